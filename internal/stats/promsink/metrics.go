package promsink

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/gale-rls/gale-rls/internal/stats"
	"github.com/gale-rls/gale-rls/internal/stats/mapping"
)

// Config says how names become metrics.
type Config struct {
	Mapping *mapping.Mapping
	// ExtraTags become labels of every metric.
	ExtraTags map[string]string
	// TagsInNames appends the extra tags to the statsd name before it is
	// mapped, as mapping files written for envoyproxy/ratelimit expect,
	// instead of making them labels.
	TagsInNames bool
	// MaxSeries bounds the series of caller-chosen names; 0 means twice
	// stats.DefaultMaxSeries.
	MaxSeries int
}

// Sink is a stats.Sink and a prometheus.Collector over the same registry.
type Sink struct {
	source *stats.Registry
	config Config
	suffix string
	labels []mapping.Label

	mu        sync.Mutex
	table     *table
	observers map[string]prometheus.Observer // by identity
	conflicts prometheus.Counter
}

// New returns a sink of source, registered with reg. Timers of source are
// observed from now on.
func New(source *stats.Registry, reg prometheus.Registerer, c Config) (*Sink, error) {
	if c.MaxSeries <= 0 {
		c.MaxSeries = 2 * stats.DefaultMaxSeries
	}
	s := &Sink{
		source: source, config: c, table: newTable(c.MaxSeries),
		observers: make(map[string]prometheus.Observer),
		conflicts: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "gale_stats_conflicts_total",
			Help: "Samples not shown because their name is already a metric of another type.",
		}),
	}
	if c.TagsInNames {
		s.suffix = stats.TagSuffix(c.ExtraTags)
	} else {
		for _, k := range slices.Sorted(maps.Keys(c.ExtraTags)) {
			s.labels = append(s.labels, mapping.Label{Name: mapping.EscapeName(k), Value: c.ExtraTags[k]})
		}
	}
	if err := reg.Register(s.conflicts); err != nil {
		return nil, err
	}
	if err := reg.Register(s); err != nil {
		return nil, err
	}
	source.ObserveTimers(s)
	return s, nil
}

// Handler serves what g gathers, as far as it can be gathered.
func Handler(g *prometheus.Registry) http.Handler {
	return promhttp.InstrumentMetricHandler(g, promhttp.HandlerFor(g, promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError,
	}))
}

// Write implements stats.Sink.
func (s *Sink) Write(m stats.Sample) {
	if m.Kind == stats.KindTimer {
		return // observed when they happen
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	kind := mapping.Counter
	if m.Kind == stats.KindGauge {
		kind = mapping.Gauge
	}
	e := s.table.get(m.Name, m.Dynamic, func(name string) (mapping.Metric, mapping.Kind) {
		return s.resolve(name, kind), kind
	})
	switch {
	case e == nil: // dropped by the mapping
	case e.kind != kind:
		s.conflicts.Inc()
	case kind == mapping.Gauge:
		e.value = float64(m.Value)
	default:
		e.value += float64(m.Delta)
	}
}

func (s *Sink) resolve(name string, kind mapping.Kind) mapping.Metric {
	m := s.config.Mapping.Map(name+s.suffix, kind)
	for _, l := range s.labels {
		if !slices.ContainsFunc(m.Labels, func(have mapping.Label) bool { return have.Name == l.Name }) {
			m.Labels = append(m.Labels, l)
		}
	}
	slices.SortFunc(m.Labels, func(a, b mapping.Label) int { return strings.Compare(a.Name, b.Name) })
	return m
}

// Flush implements stats.Sink.
func (s *Sink) Flush() {}

// Close implements stats.Sink.
func (s *Sink) Close(context.Context) error { return nil }

// Observer implements stats.TimerObserver.
func (s *Sink) Observer(name string) func(time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.resolve(name, mapping.Observer)
	if m.Drop {
		return func(time.Duration) {}
	}
	id := identity(m)
	o, ok := s.observers[id]
	if !ok {
		if !s.table.claimFamily(m.Name, mapping.Observer) {
			s.conflicts.Inc()
			return func(time.Duration) {}
		}
		o = newObserver(m)
		s.observers[id] = o
	}
	scale := m.Observe.Scale
	return func(d time.Duration) { o.Observe(float64(d) / float64(time.Millisecond) * scale) }
}

func newObserver(m mapping.Metric) prometheus.Observer {
	labels := make(prometheus.Labels, len(m.Labels))
	for _, l := range m.Labels {
		labels[l.Name] = l.Value
	}
	if m.Observe.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: m.Name, Help: help(m), ConstLabels: labels, Buckets: m.Observe.Buckets,
			NativeHistogramBucketFactor:    m.Observe.NativeFactor,
			NativeHistogramMaxBucketNumber: m.Observe.NativeMaxBuckets,
		})
	}
	return prometheus.NewSummary(prometheus.SummaryOpts{
		Name: m.Name, Help: help(m), ConstLabels: labels, Objectives: m.Observe.Quantiles,
	})
}

// Describe implements prometheus.Collector. It names nothing: which metrics
// there are depends on rules and callers.
func (s *Sink) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (s *Sink) Collect(out chan<- prometheus.Metric) {
	s.source.Flush(s)
	for _, m := range s.metrics() {
		out <- m
	}
}

// metrics builds all series under the lock, so that nothing is sent while it
// is held.
func (s *Sink) metrics() []prometheus.Metric {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []prometheus.Metric
	for _, e := range s.table.series {
		kind := prometheus.CounterValue
		if e.kind == mapping.Gauge {
			kind = prometheus.GaugeValue
		}
		values := make([]string, len(e.metric.Labels))
		names := make([]string, len(e.metric.Labels))
		for i, l := range e.metric.Labels {
			names[i], values[i] = l.Name, l.Value
		}
		desc := prometheus.NewDesc(e.metric.Name, help(e.metric), names, nil)
		if m, err := prometheus.NewConstMetric(desc, kind, e.value, values...); err == nil {
			all = append(all, m)
		} else {
			s.conflicts.Inc()
		}
	}
	for _, o := range s.observers {
		all = append(all, o.(prometheus.Metric))
	}
	return all
}

// help is the same for all series of a metric, as Prometheus demands.
func help(m mapping.Metric) string {
	if m.Help != "" {
		return m.Help
	}
	return "Metric of the rate limit service; see docs/metrics.md."
}
