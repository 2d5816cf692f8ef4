package rls

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/gale-rls/gale-rls/pkg/gale"
)

// Collector returns the service's own metrics:
//
//	gale_rls_decisions_total{mode, reason, result}
//
// one sample per charge that was decided, with result "ok" or "over". Shadow
// rules are "over" too: the result is the limit's, not the request's.
func (s *Service) Collector() prometheus.Collector { return collector{s} }

type collector struct{ service *Service }

func (c collector) desc() *prometheus.Desc {
	return prometheus.NewDesc("gale_rls_decisions_total",
		"Decisions by mode of the rule, reason and result.",
		[]string{"mode", "reason", "result"}, nil)
}

// Describe implements prometheus.Collector.
func (c collector) Describe(to chan<- *prometheus.Desc) { to <- c.desc() }

// Collect implements prometheus.Collector. What never happened is not shown.
func (c collector) Collect(to chan<- prometheus.Metric) {
	desc := c.desc()
	modes := [numModes]string{"strict", "cached-deny", "leased"}
	results := [2]string{"ok", "over"}
	for mode := range c.service.decisions {
		for reason := range c.service.decisions[mode] {
			for result := range c.service.decisions[mode][reason] {
				n := c.service.decisions[mode][reason][result].Load()
				if n == 0 {
					continue
				}
				to <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(n),
					modes[mode], gale.Reason(reason).String(), results[result])
			}
		}
	}
}
