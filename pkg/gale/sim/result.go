package sim

import (
	"fmt"
	"math"
	"math/bits"
	"time"
)

// Result is what a run came to. Numbers of hits, unless said otherwise.
type Result struct {
	Offered, Admitted, Refused uint64
	// Failed got neither: no credits in time, or no replica.
	Failed uint64
	// Trips are exchanges with the store, Waited the requests that waited for
	// one, Events what was simulated.
	Trips, Waited, Events int
	// Windows are those of the store, in order; the first and the last one
	// are not whole.
	Windows []WindowResult
	// LostOvershoot is the most beyond the limit in a window of which the
	// store lost grants.
	LostOvershoot uint64
	// Err is the first violated invariant; the run ends there.
	Err error
	// waits counts requests by the bits of their wait in microseconds.
	waits   [40]int
	longest time.Duration
}

// WindowResult is one window of the store.
type WindowResult struct{ Offered, Admitted uint64 }

// Worst is the most that was admitted in one window.
func (r *Result) Worst() (n uint64) {
	for _, w := range r.Windows {
		n = max(n, w.Admitted)
	}
	return n
}

// Utilisation is the mean over the whole windows of admitted/min(offered,
// limit).
func (r *Result) Utilisation(limit uint64) float64 {
	sum, n := 0.0, 0
	for i, w := range r.Windows {
		if i > 0 && i < len(r.Windows)-1 && w.Offered > 0 {
			sum += float64(w.Admitted) / float64(min(w.Offered, limit))
			n++
		}
	}
	if n == 0 {
		return math.NaN()
	}
	return sum / float64(n)
}

// WaitAt is the wait that so large a part of all requests stayed below: exact
// within a factor of two, and never more than the longest.
func (r *Result) WaitAt(part float64) time.Duration {
	all, sum := 0, 0
	for _, n := range r.waits {
		all += n
	}
	for i, n := range r.waits {
		if sum += n; n > 0 && float64(sum) >= part*float64(all) {
			return min(time.Duration(1<<i-1)*time.Microsecond, r.longest)
		}
	}
	return r.longest
}

func (r *Result) wait(d time.Duration) {
	r.waits[min(bits.Len64(uint64(d/time.Microsecond)), len(r.waits)-1)]++
	r.longest = max(r.longest, d)
}

// finish sums up.
func (f *fleet) finish() {
	last := f.epochAt(f.s.Length)
	for i := range f.epochs[:min(last+1, len(f.epochs))] {
		e := &f.epochs[i]
		f.result.Windows = append(f.result.Windows, WindowResult{e.offered, e.admitted})
		if e.tainted && e.admitted > f.s.Limit {
			f.result.LostOvershoot = max(f.result.LostOvershoot, e.admitted-f.s.Limit)
		}
	}
}

func (f *fleet) fail(format string, args ...any) {
	if f.result.Err == nil {
		f.result.Err = fmt.Errorf(format, args...)
	}
}

// violated checks the invariants after an event: INV-1 always; INV-2 and
// INV-4, which look at every replica, always in small fleets, and so often in
// large ones that a run still ends.
func (f *fleet) violated(n int) error {
	i := f.epoch()
	for e := max(i-1, 0); e <= i+1 && e < len(f.epochs); e++ {
		w := &f.epochs[e]
		switch {
		case w.tainted:
		case w.admitted > f.s.Limit:
			return fmt.Errorf("INV-1: window %d admitted %d of %d", e, w.admitted, f.s.Limit)
		case f.s.Low > 0 && w.low > f.s.Low:
			return fmt.Errorf("INV-1: window %d admitted %d for requests of limit %d", e, w.low, f.s.Low)
		case w.ledger.Counter > f.s.Limit:
			return fmt.Errorf("INV-2: window %d: granted %d of %d", e, w.ledger.Counter, f.s.Limit)
		}
	}
	if every := f.s.Replicas * f.s.Replicas / 64; every > 1 && n%every != 0 {
		return nil
	}
	return f.balanced(i)
}

// balanced is INV-2 and INV-4: what is paid, held and on its way was granted,
// and every replica knows where the store's time lies.
func (f *fleet) balanced(i int) error {
	var have [3]uint64
	now := simStart + int64(f.now)
	for k, n := range f.nodes {
		if iv, ok := n.replica.StoreTime(f.local(n)); ok && (now < iv.Earliest*1000 || now > iv.Latest*1000) {
			return fmt.Errorf("INV-4: replica %d takes the store's time to be in %v at %d", k, iv, now/1000)
		}
		h := n.replica.Holder(simKey)
		for _, l := range h.Lots() {
			if at := l.Window - f.windowOf(i-1); at >= 0 && at < 3 {
				have[at] += l.Credits
			}
		}
	}
	for at := range have {
		e := i - 1 + at
		if e < 0 || e >= len(f.epochs) || f.epochs[e].tainted {
			continue
		}
		w := &f.epochs[e]
		if sum := have[at] + w.spent + w.returns + w.replies; sum > w.ledger.Counter {
			return fmt.Errorf("INV-2: window %d: the ledger counts %d, but %d were paid, are held or on their way",
				e, w.ledger.Counter, sum)
		}
	}
	return nil
}
