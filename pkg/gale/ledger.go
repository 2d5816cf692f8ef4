package gale

// microsPerSecond converts a window's length to the unit of the store's time.
const microsPerSecond = 1_000_000

// Ledger is the counter of one key and window: the store's side of a limit,
// as pure arithmetic. The memory store runs it; scripts/lease.lua says the
// same in Lua, and gale/storetest holds both to it.
//
// The counter is the one that strict mode moves: a granted credit is a hit
// that has been counted ahead. The zero value is an unused counter.
type Ledger struct {
	// Counter is hits counted plus credits granted, less what was returned.
	Counter uint64
}

// Lease executes a lease step at the store's time, in microseconds since the
// epoch, and fills the step's results. A refusal and a stale step change
// nothing (INV-1, INV-2: a grant never moves the counter beyond the limit).
//
// A grant is at most max(Need, ceil(free/Taper)): guided self-scheduling, so
// that leases shrink as the budget drains and no replica strands what
// another needs (Polychronopoulos and Kuck, 1987).
func (l *Ledger) Lease(s *LeaseStep, storeMicros int64) {
	s.Grant, s.Free, s.Stale, s.Lost = 0, 0, false, false
	s.Counter, s.StoreMicros = l.Counter, storeMicros
	current := storeMicros / (s.Length * microsPerSecond)
	if s.Window != current && s.Window != current+1 {
		s.Stale = true
		return
	}
	var free uint64
	if s.Limit > l.Counter {
		free = s.Limit - l.Counter
	}
	s.Free = free
	if free < s.Need || s.Want == 0 || free == 0 {
		return
	}
	taper := max(s.Taper, 1)
	s.Grant = min(max(s.Want, s.Need), free, max(s.Need, (free+taper-1)/taper))
	l.Counter += s.Grant
	s.Counter, s.Free = l.Counter, free-s.Grant
}

// Return hands n credits back: the counter goes down by n, at least to 0.
// What is granted again lies no lower than what came back, so INV-1 holds for
// every smaller limit too (docs/proof.md).
func (l *Ledger) Return(n uint64) {
	l.Counter -= min(n, l.Counter)
}
