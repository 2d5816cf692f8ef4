package stats

import "runtime"

// WatchProcess brings the figures of the Go runtime up to date at each flush,
// as ratelimit.go.*.
func WatchProcess(r *Registry) {
	p := process{r: r, seen: make(map[string]uint64)}
	r.OnFlush(p.update)
}

type process struct {
	r    *Registry
	seen map[string]uint64 // totals, at the last update
}

func (p *process) update() {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	for _, g := range []struct {
		name  string
		value uint64
	}{
		{"alloc", m.Alloc}, {"heapAlloc", m.HeapAlloc}, {"heapSys", m.HeapSys}, {"heapIdle", m.HeapIdle},
		{"heapInuse", m.HeapInuse}, {"heapReleased", m.HeapReleased}, {"heapObjects", m.HeapObjects},
		{"nextGC", m.NextGC}, {"lastGC", m.LastGC}, {"gcCPUPercent", uint64(m.GCCPUFraction * 100)},
		{"numGoroutine", uint64(runtime.NumGoroutine())},
	} {
		p.r.Gauge("ratelimit.go." + g.name).Set(int64(g.value))
	}
	p.total("totalAlloc", m.TotalAlloc)
	p.total("mallocs", m.Mallocs)
	p.total("frees", m.Frees)
	p.total("pauseTotalNs", m.PauseTotalNs)
	p.total("numGC", uint64(m.NumGC))
}

func (p *process) total(name string, value uint64) {
	p.r.Counter("ratelimit.go." + name).Add(value - p.seen[name])
	p.seen[name] = value
}
