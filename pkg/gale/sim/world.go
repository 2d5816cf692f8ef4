package sim

import "github.com/gale-rls/gale-rls/pkg/gale"

const (
	// maxHolders, maxWindows and maxMessages bound a World, so that a state
	// is a value of fixed size. The third window is only ever leased ahead.
	maxHolders  = 3
	maxWindows  = 3
	maxMessages = 5
	// tickNanos is the store's time between two instants of a World: a
	// second, so that any number of ticks can be a window.
	tickNanos = 1_000_000_000
	// firstWindow is window 0 of a World: far from the Unix epoch, as
	// windows are.
	firstWindow = 600_000_000
	// farWindow stands for the guess of a replica whose wall clock is hours
	// away: the index of no window of the World.
	farWindow = maxWindows
)

// Rate is how fast a holder's clocks run by the store's, in thousands of ppm.
type Rate int64

// The rates are the ends of what the drift bound allows, and one that it does
// not.
const (
	TooSlow Rate = -2
	Slow    Rate = -1
	Exact   Rate = 0
	Fast    Rate = 1
)

// HolderClock is one holder's clocks: neither is the store's.
type HolderClock struct {
	Rate Rate
	// Mono and Wall are what the clocks show at the World's first instant,
	// in nanoseconds more than the store's. The search needs no more than
	// what production asks of them, which is nothing.
	Mono, Wall int64
}

// World is a small world: everything that may happen in it, in any order, is
// searched. Budgets bound what would otherwise go on for ever; 0 switches the
// fault off.
type World struct {
	Name    string
	Holders []HolderClock
	// Limit is the rule's limit; Low, if not 0, the smaller limit of some
	// requests (an override, or a limit that was lowered).
	Limit, Low uint64
	// PerWindow is the window's length in ticks. Start and End are the first
	// and the last tick, counted from the beginning of window 0.
	PerWindow, Start, End int
	// Phase shifts the instants against the windows, in nanoseconds: the
	// store's clock shows whole microseconds.
	Phase int64
	// Hits are the sizes of requests, Wants what leases ask for.
	Hits, Wants []uint64
	Taper       uint64
	// Messages bounds what is in the network at once.
	Messages int
	// Crashes, Losses, Duplicates and Sleeps are budgets for the whole run:
	// a holder that forgets all, a message that is lost or late beyond the
	// holder's patience, a request that arrives twice, a tick in which a
	// machine is suspended and its monotonic clock stands still.
	Crashes, Losses, Duplicates, Sleeps int
	// Strict is a budget of hits that a strict replica counts.
	Strict int
	// TopUp and Prelease let leases start before they are needed; Return
	// lets holders hand back what they have, all of it or a part; PutBack
	// lets requests be undone some time after they were paid; Lag lets a
	// decision use a reading of the clock that is one tick old.
	TopUp, Prelease, Return, PutBack, Lag bool
	// Dated lets denials age: without it a denial is believed to the end,
	// which merges states; TopUp then asks all the same.
	Dated bool
	// MaxStates stops a search that grew out of bounds; 0 means no bound.
	MaxStates int
}

// Rules are the protocol that a search runs. Production returns the one that
// ships; the negative controls replace one rule each.
type Rules struct {
	// Read is what a holder takes a reading of its clocks for.
	Read func(gale.Instant) gale.Instant
	// Place says where the store's time lies.
	Place func(c gale.StoreClock, now gale.Instant) (gale.Interval, bool)
	// Take decides a request.
	Take func(h *gale.Holder, iv gale.Interval, now gale.Tick, t gale.Terms, paid *gale.Paid) gale.Answer
	// Land credits the answer to a lease.
	Land func(h *gale.Holder, s *gale.LeaseStep, now gale.Tick, iv gale.Interval) (homeless uint64)
	// Lease is the ledger's side.
	Lease func(l *gale.Ledger, s *gale.LeaseStep, storeMicros int64)
	// Retries: a lease whose answer was lost is asked for again and granted
	// from the ledger's memory of the first time.
	Retries bool
	// RepeatReplies credits a reply that arrives twice, twice.
	RepeatReplies bool
	// RepeatReturns sends a return again when its answer was lost.
	RepeatReturns bool
	// Crowded lets a second lease of a window start while one is in flight.
	Crowded bool
}

// Production is the protocol as it ships.
func Production() Rules {
	return Rules{
		Read:  func(i gale.Instant) gale.Instant { return i },
		Place: func(c gale.StoreClock, now gale.Instant) (gale.Interval, bool) { return c.At(now) },
		Take:  (*gale.Holder).Take,
		Land: func(h *gale.Holder, s *gale.LeaseStep, now gale.Tick, _ gale.Interval) uint64 {
			return h.Granted(s, now)
		},
		Lease: (*gale.Ledger).Lease,
	}
}

// length is the window's length in microseconds.
func (w *World) length() int64 { return int64(w.PerWindow) * tickNanos / 1000 }

// storeNanos is the store's time at a tick.
func (w *World) storeNanos(tick int) int64 {
	return (firstWindow*int64(w.PerWindow)+int64(tick))*tickNanos + w.Phase
}

// window is the index of the window that a tick lies in.
func (w *World) window(tick int) int {
	return int(w.storeNanos(tick)/1000/w.length() - firstWindow)
}

// instant is what holder h reads at a tick, after so many ticks of sleep. Its
// rate is within the drift bound, rounded to the nanosecond inwards.
func (w *World) instant(h, tick, slept int) gale.Instant {
	c := &w.Holders[h]
	local := func(ticks int) int64 {
		// The bound is on what the store's time gains by the holder's.
		n, per := int64(ticks)*tickNanos*1000, 1000-int64(c.Rate)
		if c.Rate < 0 {
			n += per - 1
		}
		return n / per
	}
	return gale.Instant{
		Mono: c.Mono + local(tick-slept),
		Wall: c.Wall + w.storeNanos(0) + local(tick),
	}
}

// date is what dates a holder's memory of denials.
func (w *World) date(now gale.Instant) gale.Tick {
	if !w.Dated {
		return 1
	}
	return now.Tick()
}

// guess is the window that holder h takes for the current one before it has
// heard of the store's time: its wall clock's.
func (w *World) guess(h, tick int) uint8 {
	i, ok := windowIndex(w.instant(h, tick, 0).Wall / 1000 / w.length())
	if !ok {
		return farWindow
	}
	return i
}
