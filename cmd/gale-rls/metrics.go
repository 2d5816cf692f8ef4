package main

import (
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"os"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/gale-rls/gale-rls/internal/settings"
	"github.com/gale-rls/gale-rls/internal/stats"
	"github.com/gale-rls/gale-rls/internal/stats/mapping"
	"github.com/gale-rls/gale-rls/internal/stats/promsink"
	"github.com/gale-rls/gale-rls/pkg/gale"
)

// metrics is the Prometheus registry: what is native to it, and, when it is the
// chosen sink, the statistics.
type metrics struct {
	registry *prometheus.Registry
	source   *stats.Registry
}

func newMetrics(a *app) (*metrics, error) {
	m := &metrics{registry: prometheus.NewRegistry(), source: a.registry}
	for _, c := range []prometheus.Collector{
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		a.service.Collector(),
		newEngineCollector(a.engine.Stats),
		gale.NewLeaseCollector(a.engine),
	} {
		if err := m.registry.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *metrics) handler() http.Handler { return promsink.Handler(m.registry) }

// sink takes the statistics in, too.
func (m *metrics) sink(s settings.Stats, log *slog.Logger) (stats.Sink, error) {
	c := promsink.Config{Mapping: mapping.BuiltIn(s.Prometheus.Milliseconds), ExtraTags: s.ExtraTags, MaxSeries: 2 * s.MaxSeries}
	if file := s.Prometheus.MapperFile; file != "" {
		data, err := os.ReadFile(file)
		var read *mapping.Mapping
		if err == nil {
			read, err = mapping.Parse(data)
		}
		switch {
		case err == nil:
			c.Mapping, c.TagsInNames = read, true
		case errors.Is(err, fs.ErrNotExist):
			log.Warn("PROMETHEUS_MAPPER_YAML names a file that is not there: the built-in mapping is used", "file", file)
		default:
			log.Error("PROMETHEUS_MAPPER_YAML cannot be used: the built-in mapping is; correct the file", "file", file, "error", err)
		}
	}
	return promsink.New(m.source, m.registry, c)
}

// engineCollector shows what the engine counts.
type engineCollector struct {
	stats                                  func() gale.Stats
	operations, failed, rejected, opened   *prometheus.Desc
	open, latency                          *prometheus.Desc
	cacheHits, cacheMisses, cached, stored *prometheus.Desc
	replicas                               *prometheus.Desc
}

func newEngineCollector(f func() gale.Stats) *engineCollector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	return &engineCollector{
		stats:       f,
		operations:  desc("gale_store_operations_total", "Operations sent to the store.", "store"),
		failed:      desc("gale_store_failures_total", "Operations that failed, or were not answered in time.", "store"),
		rejected:    desc("gale_store_rejected_total", "Operations not sent because the breaker was open.", "store"),
		opened:      desc("gale_store_breaker_opened_total", "Times that the breaker opened.", "store"),
		open:        desc("gale_store_breaker_open", "1 while the breaker is open.", "store"),
		latency:     desc("gale_store_operation_duration_seconds", "Duration of operations.", "store"),
		cacheHits:   desc("gale_deny_cache_hits_total", "Charges refused from memory."),
		cacheMisses: desc("gale_deny_cache_misses_total", "Charges looked up and not refused from memory."),
		stored:      desc("gale_deny_cache_stored_total", "Denials remembered."),
		cached:      desc("gale_deny_cache_entries", "Denials held."),
		replicas:    desc("gale_fleet_replicas", "Estimate of the live replicas, this one included."),
	}
}

// Describe implements prometheus.Collector.
func (c *engineCollector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		c.operations, c.failed, c.rejected, c.opened, c.open, c.latency,
		c.cacheHits, c.cacheMisses, c.stored, c.cached, c.replicas,
	} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (c *engineCollector) Collect(to chan<- prometheus.Metric) {
	s := c.stats()
	c.store(to, "main", s.Main)
	if s.PerSecond != nil {
		c.store(to, "per_second", *s.PerSecond)
	}
	counter := func(d *prometheus.Desc, v uint64) {
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v))
	}
	counter(c.cacheHits, s.DenyCache.Hits)
	counter(c.cacheMisses, s.DenyCache.Misses)
	counter(c.stored, s.DenyCache.Stored)
	to <- prometheus.MustNewConstMetric(c.cached, prometheus.GaugeValue, float64(s.DenyCache.Entries))
	to <- prometheus.MustNewConstMetric(c.replicas, prometheus.GaugeValue, float64(s.Replicas))
}

func (c *engineCollector) store(to chan<- prometheus.Metric, name string, s gale.StoreStats) {
	counter := func(d *prometheus.Desc, v uint64) {
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), name)
	}
	counter(c.operations, s.Operations)
	counter(c.failed, s.Failed)
	counter(c.rejected, s.Rejected)
	counter(c.opened, s.Opened)
	open := 0.0
	if s.Breaker == gale.BreakerOpen {
		open = 1
	}
	to <- prometheus.MustNewConstMetric(c.open, prometheus.GaugeValue, open, name)
	buckets, sum := make(map[float64]uint64), uint64(0)
	for i, bound := range gale.LatencyBounds() {
		sum += s.Latency[i]
		buckets[bound.Seconds()] = sum
	}
	to <- prometheus.MustNewConstHistogram(c.latency, s.Operations, s.LatencySum.Seconds(), buckets, name)
}
