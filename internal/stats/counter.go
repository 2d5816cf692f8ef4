package stats

import (
	"sync/atomic"
	"time"
)

// Counter only goes up.
type Counter struct {
	total atomic.Uint64
	// claimed is how much of total a sink has been told, or an heir has got.
	claimed atomic.Uint64
	// heir gets what is added once the counter has left its set: a request
	// may hold a counter that was evicted under it.
	heir atomic.Pointer[Counter]
}

// Add adds n; 0 leaves the counter as it is.
func (c *Counter) Add(n uint64) {
	if n == 0 {
		return
	}
	// Adding before looking for the heir, while bequeath names the heir
	// before it claims, means that one of the two claims every hit.
	c.total.Add(n)
	if h := c.heir.Load(); h != nil {
		d, _ := c.claim()
		h.Add(d)
	}
}

// Value returns the sum of what was added.
func (c *Counter) Value() uint64 { return c.total.Load() }

// claim returns what nobody has claimed, and what had been claimed before.
// Each hit is claimed once, whoever calls.
func (c *Counter) claim() (delta, before uint64) {
	for {
		before = c.claimed.Load()
		total := c.total.Load()
		if total == before || c.claimed.CompareAndSwap(before, total) {
			return total - before, before
		}
	}
}

// bequeath ends the counter: later hits go to heir, those up to now are
// returned.
func (c *Counter) bequeath(heir *Counter) (delta, before uint64) {
	c.heir.Store(heir)
	return c.claim()
}

// Gauge is a number that goes up and down. It is shown once it was set.
type Gauge struct {
	value atomic.Int64
	used  atomic.Bool
}

// Set replaces the value.
func (g *Gauge) Set(v int64) {
	g.value.Store(v)
	g.mark()
}

// Add moves the value by n.
func (g *Gauge) Add(n int64) {
	g.value.Add(n)
	g.mark()
}

// Value returns the current value.
func (g *Gauge) Value() int64 { return g.value.Load() }

// mark reads before it writes, so that a hot gauge stays in shared caches.
func (g *Gauge) mark() {
	if !g.used.Load() {
		g.used.Store(true)
	}
}

// timerSteps are the ranges of a timer's resolution: whole milliseconds below
// 100, then two digits, which is what a person reads of a latency. The last
// range ends where every caller has long given up.
var timerSteps = [...]struct{ from, step, count uint64 }{
	{0, 1, 100},
	{100, 10, 90},
	{1000, 100, 90},
	{10000, 1000, 51},
}

const timerCells = 100 + 90 + 90 + 51

// Timer counts durations. Between two flushes it keeps how often each value
// (in whole milliseconds, two digits from 100 on) was seen, never a list of
// observations.
type Timer struct {
	cells    [timerCells]atomic.Uint64
	observer atomic.Pointer[func(time.Duration)]
	count    atomic.Uint64
	micros   atomic.Uint64
}

// Observe counts one duration; negative ones count as 0.
func (t *Timer) Observe(d time.Duration) {
	d = max(d, 0)
	t.count.Add(1)
	t.micros.Add(uint64(d.Microseconds()))
	if f := t.observer.Load(); f != nil {
		(*f)(d)
		return
	}
	t.cells[timerCell(uint64(d.Milliseconds()))].Add(1)
}

func timerCell(millis uint64) int {
	index := 0
	for _, s := range timerSteps {
		if millis < s.from+s.step*s.count {
			return index + int((millis-s.from)/s.step)
		}
		index += int(s.count)
	}
	return timerCells - 1
}

// drain empties the cells into yield: a value in milliseconds and how often.
func (t *Timer) drain(yield func(millis, count uint64)) {
	index := 0
	for _, s := range timerSteps {
		for i := range s.count {
			if t.cells[index].Load() != 0 {
				yield(s.from+i*s.step, t.cells[index].Swap(0))
			}
			index++
		}
	}
}
