package gale

// This file is what the exhaustive search and the fleet simulator of gale/sim
// need to see of the core. It decides nothing.

// Tick dates the memory of denials.
type Tick = tick

// Tick returns the instant as holders date things.
func (i Instant) Tick() Tick { return i.tick() }

// LotView is what a lot looks like from outside.
type LotView struct {
	Window int64
	// Credits is what is held, of any position.
	Credits uint64
	// Pending: a lease of Window is in flight.
	Pending bool
}

// Lots returns what the holder has of its two windows.
func (h *Holder) Lots() (views [2]LotView) {
	for i := range h.lots {
		l := &h.lots[i]
		views[i] = LotView{Window: l.w(), Credits: l.held(^uint64(0)), Pending: l.pending}
	}
	return views
}

// Canonical returns a holder that decides every request as h does, now and
// later, and is the same for all holders that do so: the order of the lots is
// forgotten, lots that know nothing, and the hints that only move sizes.
func (h Holder) Canonical() Holder {
	for i := range h.lots {
		l := &h.lots[i]
		if h.find(l.w()) != l {
			*l = lot{}
		}
		l.contended, l.ahead = false, false
	}
	if a, b := &h.lots[0], &h.lots[1]; a.w() > b.w() {
		*a, *b = *b, *a
	}
	return h
}

// Credits returns what was paid in window w.
func (p *Paid) Credits(w int64) (n uint64) {
	for i := range p.windows {
		if p.windows[i] != w || i == 1 && p.windows[0] == w {
			continue
		}
		for _, s := range p.spans[i] {
			n += s.size()
		}
	}
	return n
}
