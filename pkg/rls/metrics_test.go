package rls

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/gale-rls/gale-rls/pkg/gale"
)

func TestDecisionMetrics(t *testing.T) {
	s, decider, _ := newTestService(t, Config{}, `
domain: d
descriptors:
  - {key: k, rate_limit: {unit: minute, requests_per_unit: 2}}
  - {key: c, rate_limit: {unit: minute, requests_per_unit: 1}, gale: {mode: cached-deny}}
`)
	decider.reason = gale.ReasonDenyCache
	both := request(t, `{"domain": "d", "descriptors": [{"entries": [{"key": "k"}]}, {"entries": [{"key": "c"}]}]}`)
	for range 3 {
		if _, err := s.ShouldRateLimit(t.Context(), both); err != nil {
			t.Fatal(err)
		}
	}
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(s.Collector()); err != nil {
		t.Fatal(err)
	}
	want := `
# HELP gale_rls_decisions_total Decisions by mode of the rule, reason and result.
# TYPE gale_rls_decisions_total counter
gale_rls_decisions_total{mode="cached-deny",reason="deny_cache",result="over"} 2
gale_rls_decisions_total{mode="cached-deny",reason="store",result="ok"} 1
gale_rls_decisions_total{mode="strict",reason="deny_cache",result="over"} 1
gale_rls_decisions_total{mode="strict",reason="store",result="ok"} 2
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
	if problems, err := testutil.GatherAndLint(registry); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
	s.decisions.add(200, &gale.Decision{Reason: 200}) // does not panic
}
