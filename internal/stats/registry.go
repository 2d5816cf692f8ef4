package stats

import (
	"maps"
	"slices"
	"sync"
)

// DefaultMaxSeries bounds the names that callers can choose. 10,000 rules cost
// about 5 MB, and are more than anyone reads.
const DefaultMaxSeries = 10000

// Options say how a Registry behaves. The zero value is usable.
type Options struct {
	// ExtraTags are those of the sink. The registry only counts the use of a
	// tag that envoyproxy/ratelimit reserves, as is done there.
	ExtraTags map[string]string
	// MaxSeries bounds each of the two sets of caller-chosen names; 0 means
	// DefaultMaxSeries.
	MaxSeries int
}

// RuleCounters are the counters of one rule, "rate_limit.<KEY>.<stat>".
type RuleCounters struct {
	TotalHits, WithinLimit, NearLimit, OverLimit, OverLimitWithLocalCache, ShadowMode *Counter
}

// rulePrefix begins the names of all rules' counters.
const rulePrefix = "ratelimit.service.rate_limit."

var ruleStats = [...]string{
	"total_hits", "within_limit", "near_limit", "over_limit",
	"over_limit_with_local_cache", "shadow_mode",
}

// otherStat is the <stat> of single dynamic counters in the names that
// account for evicted series.
const otherStat = "other"

// Registry holds all counters, gauges and timers of a process.
type Registry struct {
	mu       sync.RWMutex
	counters map[string]*Counter
	gauges   map[string]*Gauge
	timers   map[string]*Timer
	rules    map[string]*series
	hooks    []func()
	observer TimerObserver

	dynRules, dynNames *boundedSet
	leaving            leaving
	evicted            *Counter
	evictedHits        [len(ruleStats) + 1]*Counter // the last is otherStat
	overflow           [len(ruleStats) + 1]*Counter

	flushMu sync.Mutex // serialises flushes
}

// New returns an empty registry.
func New(o Options) *Registry {
	if o.MaxSeries <= 0 {
		o.MaxSeries = DefaultMaxSeries
	}
	r := &Registry{
		counters: make(map[string]*Counter),
		gauges:   make(map[string]*Gauge),
		timers:   make(map[string]*Timer),
		rules:    make(map[string]*series),
		leaving:  leaving{max: o.MaxSeries, wake: make(chan struct{}, 1)},
	}
	r.dynRules = newBoundedSet(o.MaxSeries, newRuleSeries, r.retire)
	r.dynNames = newBoundedSet(o.MaxSeries, newNameSeries, r.retire)
	r.evicted = r.Counter("gale.stats.series_evicted")
	for i, stat := range append(ruleStats[:len(ruleStats):len(ruleStats)], otherStat) {
		r.evictedHits[i] = r.Counter("gale.stats.evicted." + stat)
		r.overflow[i] = r.Counter("gale.stats.overflow." + stat)
	}
	for _, tag := range reservedTags {
		if _, ok := o.ExtraTags[tag]; ok {
			r.Counter("reserved_tag").Add(1)
		}
	}
	return r
}

func newRuleSeries(key string) *series {
	s := &series{key: key, name: cleanName(key), cells: make([]Counter, len(ruleStats))}
	s.rule = RuleCounters{
		TotalHits: &s.cells[0], WithinLimit: &s.cells[1], NearLimit: &s.cells[2],
		OverLimit: &s.cells[3], OverLimitWithLocalCache: &s.cells[4], ShadowMode: &s.cells[5],
	}
	return s
}

func newNameSeries(key string) *series {
	return &series{key: key, name: cleanName(key), cells: make([]Counter, 1)}
}

// Counter returns the permanent counter of this full name. For names that the
// operator or the program chooses; for others there is Dynamic.
func (r *Registry) Counter(name string) *Counter {
	return getOrAdd(r, r.counters, cleanName(name), func() *Counter { return new(Counter) })
}

// Gauge returns the gauge of this full name.
func (r *Registry) Gauge(name string) *Gauge {
	return getOrAdd(r, r.gauges, cleanName(name), func() *Gauge { return new(Gauge) })
}

// Timer returns the timer of this full name.
func (r *Registry) Timer(name string) *Timer {
	name = cleanName(name)
	return getOrAdd(r, r.timers, name, func() *Timer {
		t := new(Timer)
		r.observeLocked(name, t)
		return t
	})
}

// Rule returns the permanent counters of a rule, "rate_limit.<key>.".
func (r *Registry) Rule(key string) *RuleCounters {
	return &getOrAdd(r, r.rules, key, func() *series { return newRuleSeries(key) }).rule
}

// Dynamic returns the counter of a full name that callers can influence. It
// does not keep name. The counter may leave the registry any time later; what
// is added to it then is still counted, see the package comment.
func (r *Registry) Dynamic(name []byte) *Counter { return &r.dynNames.get(name).cells[0] }

// DynamicRule is Rule for keys that callers can influence. It does not keep key.
func (r *Registry) DynamicRule(key []byte) *RuleCounters { return &r.dynRules.get(key).rule }

// OnFlush has f called before each flush and before WriteText, from one
// goroutine at a time, so that gauges can be brought up to date.
func (r *Registry) OnFlush(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hooks = append(r.hooks, f)
}

func getOrAdd[T any](r *Registry, in map[string]*T, name string, add func() *T) *T {
	r.mu.RLock()
	v := in[name]
	r.mu.RUnlock()
	if v != nil {
		return v
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if in[name] == nil {
		in[name] = add()
	}
	return in[name]
}

// leaving are the series that were evicted since the last flush.
type leaving struct {
	mu   sync.Mutex
	list []*series
	max  int
	wake chan struct{} // buffered by one: asks for an early flush
}

// take empties the list.
func (l *leaving) take() []*series {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := l.list
	l.list = nil
	return list
}

// retire sends an evicted series to the next flush; with no room left there,
// its counts go to overflow at once.
func (r *Registry) retire(s *series) {
	r.evicted.Add(1)
	r.leaving.mu.Lock()
	n := len(r.leaving.list)
	room := n < r.leaving.max
	if room {
		r.leaving.list = append(r.leaving.list, s)
	}
	r.leaving.mu.Unlock()
	if n >= r.leaving.max/2 {
		select {
		case r.leaving.wake <- struct{}{}:
		default:
		}
	}
	if room {
		return
	}
	for i := range s.cells {
		stat := s.stat(i)
		delta, shown := s.cells[i].bequeath(r.overflow[stat])
		r.overflow[stat].Add(delta)
		r.evictedHits[stat].Add(shown)
	}
}

// stat is the index of a cell's stat in evictedHits and overflow.
func (s *series) stat(cell int) int {
	if s.rule.TotalHits == nil {
		return len(ruleStats)
	}
	return cell
}

// names returns the permanent names of a kind, sorted.
func names[T any](r *Registry, in map[string]*T) []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.Sorted(maps.Keys(in))
}
