package gale

import (
	"math"

	"github.com/prometheus/client_golang/prometheus"
)

// leaseCollector shows leased mode's figures as Prometheus metrics. Its
// labels are closed sets; no key ever becomes a label.
type leaseCollector struct{ engine *Engine }

// NewLeaseCollector returns a collector of the engine's leases.
func NewLeaseCollector(e *Engine) prometheus.Collector { return &leaseCollector{e} }

func leaseDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("gale_lease_"+name, help, labels, nil)
}

var (
	descLeases    = leaseDesc("requests_total", "Leases asked of the ledger, by what came of them.", "result")
	descAhead     = leaseDesc("ahead_total", "Leases granted before their window began.")
	descAheadHits = leaseDesc("ahead_hits_total", "Hits paid from credits leased before their window began.")
	descCredits   = leaseDesc("credits_total", "Credits by what became of them.", "event")
	descWaits     = leaseDesc("waits_total", "Requests that waited for a lease.")
	descWaited    = leaseDesc("wait_seconds_total", "Time that requests waited for leases.")
	descLate      = leaseDesc("late_total", "Requests whose deadline came before their lease.")
	descDecisions = leaseDesc("decisions_total", "Leased charges decided, by reason.", "reason")
	descSize      = leaseDesc("size_credits", "Credits asked for at once.")
	descEvicted   = leaseDesc("keys_evicted_total", "Keys forgotten for want of room.")
	descKeys      = leaseDesc("keys", "Keys known.")
	descHeld      = leaseDesc("held_credits", "Credits held.")
	descExchanges = leaseDesc("exchanges_total", "Round trips of leases and returns.", "result")
	descRestarts  = leaseDesc("clock_restarts_total", "Times that the store's time did not fit what was known of it.")
)

// Describe implements prometheus.Collector.
func (c *leaseCollector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		descLeases, descAhead, descAheadHits, descCredits, descWaits, descWaited, descLate,
		descDecisions, descSize, descEvicted, descKeys, descHeld, descExchanges, descRestarts,
	} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (c *leaseCollector) Collect(to chan<- prometheus.Metric) {
	s := c.engine.LeaseStats()
	counter := func(d *prometheus.Desc, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, labels...)
	}
	gauge := func(d *prometheus.Desc, v uint64) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(v))
	}
	for result, n := range map[string]uint64{"granted": s.Granted, "refused": s.Refused, "stale": s.Stale, "failed": s.Failed} {
		counter(descLeases, float64(n), result)
	}
	for event, n := range map[string]uint64{
		"granted": s.CreditsGranted, "spent": s.CreditsSpent, "returned": s.CreditsReturned,
		"expired": s.CreditsExpired, "lost": s.CreditsLost,
	} {
		counter(descCredits, float64(n), event)
	}
	for r, n := range s.Decisions {
		counter(descDecisions, float64(n), Reason(r).String())
	}
	counter(descAhead, float64(s.Ahead))
	counter(descAheadHits, float64(s.AheadSpent))
	counter(descWaits, float64(s.Waits))
	counter(descWaited, s.Waited.Seconds())
	counter(descLate, float64(s.Late))
	counter(descEvicted, float64(s.Evicted))
	counter(descExchanges, float64(s.Exchanges-s.ExchangesFailed), "ok")
	counter(descExchanges, float64(s.ExchangesFailed), "failed")
	counter(descRestarts, float64(s.ClockRestarts))
	gauge(descKeys, s.Keys)
	gauge(descHeld, s.Held)
	to <- sizeHistogram(&s)
}

// sizeHistogram turns the counts by power of two into a histogram.
func sizeHistogram(s *LeaseStats) prometheus.Metric {
	buckets := make(map[float64]uint64, sizeBuckets)
	total := uint64(0)
	for i, n := range s.Sizes {
		total += n
		if i < sizeBuckets-1 {
			buckets[math.Exp2(float64(i))] = total
		}
	}
	return prometheus.MustNewConstHistogram(descSize, total, float64(s.Wanted), buckets)
}
