package gale

// driftDivisor is the inverse of the drift bound: 1,000 ppm, what NTP may
// slew on both sides together. A smaller bound narrows brackets between
// exchanges and breaks INV-4 on a machine whose clock is slewed.
const driftDivisor = 1000

// wallSlack is how far wall clock and monotonic clock may part, beyond drift,
// before the machine is taken to have slept. The monotonic clock stands still
// meanwhile, and so would the store's time as we know it.
const wallSlack = int64(1_000_000) // nanoseconds

// Instant is one reading of this replica's clocks, in nanoseconds. Mono never
// steps and has any origin; Wall is only compared with itself, so its offset
// does not matter.
type Instant struct{ Mono, Wall int64 }

// Interval is where the store's time lies, in microseconds since the epoch.
type Interval struct{ Earliest, Latest int64 }

// StoreClock knows the time of one store node from brackets: an exchange that
// was sent, answered with the store's time, and received, says that the store
// showed that time somewhere in between. It never reads a clock.
//
// It is a value: Observe returns the next one, so that a shell can publish it
// to readers without a lock. The zero value knows nothing.
type StoreClock struct {
	// The store's time less Mono, in nanoseconds, lies in [lo, hi] at the
	// instant at.
	lo, hi int64
	at     Instant
	known  bool
}

// drift is how far two clocks may part in so many nanoseconds.
func drift(elapsed int64) int64 {
	if elapsed < 0 {
		elapsed = -elapsed
	}
	return elapsed/driftDivisor + 1
}

// Observe adds the bracket of one exchange. Exchanges may arrive in any
// order. A bracket that does not fit what was known (the store's clock
// stepped, or another node answers) restarts the clock from it alone, and
// restarted is true. An exchange during which the machine slept brackets
// nothing, and changes nothing: the monotonic clock stood still in it.
func (c StoreClock) Observe(sent, received Instant, storeMicros int64) (next StoreClock, restarted bool) {
	if !agree(sent, received) {
		return c, false
	}
	within := drift(received.Mono - sent.Mono)
	// The store's time is truncated to microseconds, so the true one is up to
	// one microsecond later.
	next = StoreClock{
		lo:    storeMicros*1000 - received.Mono - within,
		hi:    (storeMicros+1)*1000 - sent.Mono + within,
		at:    received,
		known: true,
	}
	if !c.known {
		return next, false
	}
	if !c.trusts(received) {
		return next, true
	}
	if received.Mono < c.at.Mono { // an older answer that came late
		d := drift(c.at.Mono - received.Mono)
		next.lo, next.hi, next.at = next.lo-d, next.hi+d, c.at
	} else {
		d := drift(received.Mono - c.at.Mono)
		c.lo, c.hi = c.lo-d, c.hi+d
	}
	lo, hi := max(c.lo, next.lo), min(c.hi, next.hi)
	if lo > hi {
		return next, true
	}
	next.lo, next.hi = lo, hi
	return next, false
}

// At returns where the store's time lies now (INV-4). ok is false when that
// is not known: before the first exchange, and after the machine slept.
func (c *StoreClock) At(now Instant) (iv Interval, ok bool) {
	if !c.known || !c.trusts(now) {
		return Interval{}, false
	}
	d := drift(now.Mono - c.at.Mono)
	// Rounded outwards: down, and up.
	return Interval{
		Earliest: (now.Mono + c.lo - d) / 1000,
		Latest:   (now.Mono+c.hi+d)/1000 + 1,
	}, true
}

// trusts reports whether wall and monotonic clock agree since the last
// exchange.
func (c *StoreClock) trusts(now Instant) bool { return agree(c.at, now) }

// agree reports whether wall and monotonic clock moved alike from a to b.
func agree(a, b Instant) bool {
	mono := b.Mono - a.Mono
	apart := (b.Wall - a.Wall) - mono
	slack := wallSlack + drift(mono)
	return apart <= slack && apart >= -slack
}
