package stats

import (
	"context"
	"math"
	"slices"
	"time"
)

// Kind is what a Sample is of.
type Kind uint8

// Kinds of samples.
const (
	KindCounter Kind = iota
	KindGauge
	KindTimer
)

// Sample is one line of a flush.
type Sample struct {
	Kind Kind
	// Name is the full name, without extra tags. Only valid during Write.
	Name []byte
	// Delta is a counter's growth since the last flush, never 0.
	Delta uint64
	// Value is a gauge's value, or a timer's in milliseconds.
	Value int64
	// Times is how often a timer's value was seen.
	Times uint64
	// Dynamic says that callers can influence the name.
	Dynamic bool
}

// Sink takes samples to where they are kept.
type Sink interface {
	// Write takes one sample. It MUST NOT block: what finds no room is
	// dropped and counted by the sink.
	Write(Sample)
	// Flush ends one round of samples. It MUST NOT block.
	Flush()
	// Close sends what is buffered, until ctx ends, and frees the sink. No
	// call follows it.
	Close(ctx context.Context) error
}

// TimerObserver is a sink that wants each observation when it happens, rather
// than counts of milliseconds per flush.
type TimerObserver interface {
	Observer(name string) func(time.Duration)
}

// ObserveTimers has each timer, present and future, tell o. Its samples then
// are no longer part of flushes.
func (r *Registry) ObserveTimers(o TimerObserver) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.observer = o
	for name, t := range r.timers {
		r.observeLocked(name, t)
	}
}

func (r *Registry) observeLocked(name string, t *Timer) {
	if r.observer == nil {
		return
	}
	f := r.observer.Observer(name)
	t.observer.Store(&f)
}

// Run flushes to s each interval, and earlier when evictions pile up, until ctx
// ends. Then it flushes once more and closes s, which takes at most last.
// interval must be above 0.
func (r *Registry) Run(ctx context.Context, s Sink, interval, last time.Duration) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-r.leaving.wake:
		case <-ctx.Done():
			r.Flush(s)
			end, cancel := context.WithTimeout(context.WithoutCancel(ctx), last)
			defer cancel()
			return s.Close(end)
		}
		r.Flush(s)
	}
}

// Flush writes to s what has changed since the last flush. A registry has one
// sink: what one was told, another is not.
func (r *Registry) Flush(s Sink) {
	r.flushMu.Lock()
	defer r.flushMu.Unlock()
	r.update()
	f := flush{sink: s}
	for _, e := range r.leaving.take() {
		f.lastOf(r, e)
	}
	for _, e := range append(r.dynRules.all(), r.dynNames.all()...) {
		f.series(e, true)
	}
	for _, name := range names(r, r.rules) {
		f.series(lookUp(r, r.rules, name), false)
	}
	for _, name := range names(r, r.counters) {
		f.name = append(f.name[:0], name...)
		f.counter(lookUp(r, r.counters, name), false)
	}
	for _, name := range names(r, r.gauges) {
		if g := lookUp(r, r.gauges, name); g.used.Load() {
			f.name = append(f.name[:0], name...)
			s.Write(Sample{Kind: KindGauge, Name: f.name, Value: g.Value()})
		}
	}
	for _, name := range names(r, r.timers) {
		f.name = append(f.name[:0], name...)
		lookUp(r, r.timers, name).drain(func(millis, count uint64) {
			s.Write(Sample{Kind: KindTimer, Name: f.name, Value: int64(millis), Times: count})
		})
	}
	s.Flush()
}

// flush is one round; it owns the buffer that names are built in.
type flush struct {
	sink Sink
	name []byte
}

func (f *flush) counter(c *Counter, dynamic bool) {
	if delta, _ := c.claim(); delta != 0 {
		f.write(delta, dynamic)
	}
}

// write tells a counter's growth. Sinks add up what they are told, so growth
// beyond what servers can be expected to take (a request may add 2^63 hits)
// goes out in parts.
func (f *flush) write(delta uint64, dynamic bool) {
	for delta > math.MaxInt64 {
		f.write(math.MaxInt64, dynamic)
		delta -= math.MaxInt64
	}
	f.sink.Write(Sample{Kind: KindCounter, Name: f.name, Delta: delta, Dynamic: dynamic})
}

func (f *flush) series(e *series, dynamic bool) {
	for i := range e.cells {
		f.name = e.appendName(f.name[:0], i)
		f.counter(&e.cells[i], dynamic)
	}
}

// lastOf writes what an evicted series has left to tell.
func (f *flush) lastOf(r *Registry, e *series) {
	for i := range e.cells {
		stat := e.stat(i)
		delta, before := e.cells[i].bequeath(r.overflow[stat])
		r.evictedHits[stat].Add(before + delta)
		if delta != 0 {
			f.name = e.appendName(f.name[:0], i)
			f.write(delta, true)
		}
	}
}

// appendName appends the full, clean name of a cell.
func (s *series) appendName(dst []byte, cell int) []byte {
	if s.rule.TotalHits == nil {
		return append(dst, s.name...)
	}
	dst = append(append(dst, rulePrefix...), s.name...)
	return append(append(dst, '.'), ruleStats[cell]...)
}

func (r *Registry) update() {
	r.mu.RLock()
	hooks := slices.Clone(r.hooks)
	r.mu.RUnlock()
	for _, f := range hooks {
		f()
	}
}

func lookUp[T any](r *Registry, in map[string]*T, name string) *T {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return in[name]
}
