package gale

import (
	"math"

	"github.com/gale-rls/gale-rls/pkg/gale/sizing"
)

const (
	// sliceMillis is the least time over which a rate is measured: shorter
	// slices see single requests, longer ones see a burst too late.
	sliceMillis = 20
	// rateMillis is the time constant of the rate: half a second follows a
	// shift of load within one per-second window.
	rateMillis = 500
	// contendedShare of a window's rest is what a lease covers when the limit
	// will run dry: what is leased beyond is stranded while a peer refuses.
	contendedShare = 1.0 / 8
)

// demand is what one key is asked for: a rate, to know when to top up, and
// the learner of gale/sizing, to know how much. Offered hits count, whether
// admitted or not. The zero value is a key never asked for.
type demand struct {
	hedge sizing.Hedge
	// rate is in hits per second.
	rate float32
	// fresh are the hits offered since the tick since.
	fresh uint32
	since tick
	// offered are the hits of window, the latest seen; last those of the
	// window before, as a prediction.
	offered, last float32
	window        uint32
}

// offer counts hits offered in window w.
func (d *demand) offer(hits uint64, w int64, now tick, s sizes) {
	if uint32(w) != d.window {
		d.roll(w, s)
	}
	h := uint32(min(hits, math.MaxUint32/2))
	d.offered += float32(h)
	elapsed := now.since(d.since)
	if elapsed < sliceMillis && d.since != 0 {
		if d.fresh < math.MaxUint32/2 {
			d.fresh += h
		}
		return
	}
	if d.since != 0 {
		measured := float32(d.fresh) * 1000 / float32(elapsed)
		d.rate += (measured - d.rate) * float32(elapsed) / float32(elapsed+rateMillis)
	}
	d.fresh, d.since = h, max(now, 1)
}

// roll ends the window that was counted, and the idle ones up to w.
func (d *demand) roll(w int64, s sizes) {
	gap := int64(uint32(w) - d.window)
	if d.window != 0 && gap > 0 && gap < math.MaxInt32 {
		params := s.params()
		params.HedgeObserve(&d.hedge, d.predicted(), float64(d.offered))
		if gap > 1 {
			params.ObserveIdle(&d.hedge.Robust, gap-1)
		}
		d.last = d.offered
		if gap > 1 {
			d.last = 0
		}
	}
	if gap > 0 && gap < math.MaxInt32 || d.window == 0 {
		d.window, d.offered = uint32(w), 0
	}
}

func (d *demand) predicted() [sizing.Predictions]float64 {
	if d.last == 0 {
		return [sizing.Predictions]float64{sizing.Unknown, sizing.Unknown}
	}
	return [sizing.Predictions]float64{float64(d.last), sizing.Unknown}
}

// hits returns the demand expected in so many microseconds.
func (d *demand) hits(micros int64) float64 {
	return float64(d.rate) * float64(micros) / microsPerSecond
}

// sizes bounds what a rule leases at once: its limit, and the most per lease.
type sizes struct{ limit, most uint64 }

func (s sizes) params() sizing.Params { return sizing.ForLimit(s.limit, s.most) }

// appetite is what a lease decision depends on, besides the demand.
type appetite struct {
	sizes
	// fixed is the rule's own size, 0 to learn it; need is what a waiting
	// request lacks.
	fixed, need uint64
	// left is the time to the window's end, lead the time within which a
	// lease arrives for certain, both in microseconds.
	left, lead int64
	// contended: the ledger is on course to run dry.
	contended bool
}

// want returns how much to ask for: the learnt size, or the rule's, yet
// enough to last while the next lease travels, and no more than the rest of
// the window can use. Sizes move efficiency only; the ledger holds the limit.
func (d *demand) want(a appetite) uint64 {
	size := float64(a.fixed)
	if a.fixed == 0 {
		params := a.params()
		size = float64(params.HedgeSize(&d.hedge, d.predicted()))
		// A lease must outlast the next one's journey, or the key stalls.
		size = max(size, d.hits(4*a.lead))
		// What the window's rest cannot use is stranded; a quarter more
		// than expected spares most second leases. A key without a measured
		// rate yet takes the learner's first size.
		if d.rate > 0 {
			size = min(size, 1+1.25*d.hits(a.left))
		}
	}
	if a.contended {
		size = min(size, d.hits(max(int64(float64(a.left)*contendedShare), 2*a.lead)))
	}
	// Requests that came in while none was held wait for this lease too.
	size = max(size, float64(a.need), min(float64(d.fresh), d.hits(2*a.lead)))
	return max(a.need, min(uint64(size), a.most, a.limit), 1)
}

// low returns the credits below which to top up: what is used while a lease
// travels, or until the window ends, and a margin for demand that comes
// unevenly; at the very end a request of too little would wait for one.
func (d *demand) low(left, lead int64) uint64 {
	n := d.hits(min(left, lead))
	if n < 0.5 {
		return 0
	}
	return uint64(1.25*n) + 2
}

// ahead returns how much of the next window to lease before it begins: the
// first moments, in which the bridge is paid and the window's first lease
// travels. A key that is not expected then gets none.
func (d *demand) ahead(width, lead int64) uint64 {
	n := d.hits(2*lead + width)
	if n < 0.5 {
		return 0
	}
	return uint64(n) + 1
}
