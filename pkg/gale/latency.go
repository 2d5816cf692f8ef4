package gale

import (
	"slices"
	"sync/atomic"
	"time"
)

// LatencyBounds returns the upper bounds of StoreStats.Latency.
func LatencyBounds() []time.Duration { return slices.Clone(latencyBounds[:]) }

// latencyBounds go from an answer of the same machine to far beyond a
// request's usual deadline of 20 ms.
var latencyBounds = [...]time.Duration{
	100 * time.Microsecond, 250 * time.Microsecond, 500 * time.Microsecond,
	time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond,
	10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 250 * time.Millisecond, time.Second,
}

// latency is a histogram of durations. Safe for concurrent use.
type latency struct {
	buckets [len(latencyBounds) + 1]atomic.Uint64
	nanos   atomic.Int64
}

func (l *latency) add(d time.Duration) {
	i := 0
	for i < len(latencyBounds) && d > latencyBounds[i] {
		i++
	}
	l.buckets[i].Add(1)
	l.nanos.Add(int64(d))
}

func (l *latency) read() (buckets [len(latencyBounds) + 1]uint64, sum time.Duration) {
	for i := range l.buckets {
		buckets[i] = l.buckets[i].Load()
	}
	return buckets, time.Duration(l.nanos.Load())
}
