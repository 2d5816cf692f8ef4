package promsink

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/gale-rls/gale-rls/internal/stats"
	"github.com/gale-rls/gale-rls/internal/stats/mapping"
)

func newSink(t *testing.T, o stats.Options, c Config) (*stats.Registry, *prometheus.Registry) {
	t.Helper()
	r, reg := stats.New(o), prometheus.NewRegistry()
	if c.Mapping == nil {
		c.Mapping = mapping.BuiltIn(false)
	}
	if _, err := New(r, reg, c); err != nil {
		t.Fatal(err)
	}
	return r, reg
}

func TestScrapeHasTheNamesOfTheReference(t *testing.T) {
	r, reg := newSink(t, stats.Options{}, Config{})
	use := func() {
		one := r.Rule("d.k_v")
		one.TotalHits.Add(3)
		one.OverLimit.Add(1)
		one.OverLimitWithLocalCache.Add(1)
		deep := r.Rule("d.k1_a.k2_b.k3_c")
		deep.TotalHits.Add(1)
		deep.OverLimit.Add(1)
		deep.OverLimitWithLocalCache.Add(1)
		r.DynamicRule([]byte("d.k1_a.k2_b.k3_other")).TotalHits.Add(10)
		r.Dynamic([]byte("ratelimit.service.rate_limit.nowhere.domain_not_found")).Add(2)
		r.Counter("ratelimit.service.call.should_rate_limit.service_error").Add(1)
		r.Counter("ratelimit_server.ShouldRateLimit.total_requests").Add(4)
		r.Counter("ratelimit.service.config_load_success").Add(1)
		r.Gauge("ratelimit.redis_pool.cx_active").Set(7)
		r.Timer("ratelimit_server.ShouldRateLimit.response_time").Observe(30 * time.Millisecond)
		r.Timer("some.other_time").Observe(1500 * time.Microsecond)
	}
	use()
	want, err := os.Open("testdata/scrape.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer want.Close()
	if err := testutil.GatherAndCompare(reg, want); err != nil {
		t.Error(err)
	}
	use() // counters are cumulative
	if got := scrape(t, reg); !strings.Contains(got, `ratelimit_service_rate_limit_total_hits{domain="d",key1="k1_a",key2="k2_b"} 22`) {
		t.Errorf("the second scrape does not hold the sum of both:\n%s", got)
	}
}

func scrape(t *testing.T, reg *prometheus.Registry) string {
	t.Helper()
	w := httptest.NewRecorder()
	Handler(reg).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	return w.Body.String()
}

func TestExtraTagsAreLabels(t *testing.T) {
	tags := map[string]string{"zone": "eu.west", "a-b": "c"}
	r, reg := newSink(t, stats.Options{}, Config{ExtraTags: tags})
	r.Rule("d.k").TotalHits.Add(1)
	want := `ratelimit_service_rate_limit_total_hits{a_b="c",domain="d",key1="k",zone="eu.west"} 1`
	if got := scrape(t, reg); !strings.Contains(got, want) {
		t.Errorf("no %s in:\n%s", want, got)
	}
}

func TestExtraTagsReachAMappingFileAsSuffix(t *testing.T) {
	m, err := mapping.Parse([]byte(`mappings: [{match: '^(.*)\.__zone=(.*)$', match_type: regex, name: $1, labels: {zone: $2}}, {match: 'gone.*', action: drop, name: x}]`))
	if err != nil {
		t.Fatal(err)
	}
	r, reg := newSink(t, stats.Options{}, Config{Mapping: m, ExtraTags: map[string]string{"zone": "x"}, TagsInNames: true})
	r.Counter("a.b").Add(2)
	if got := scrape(t, reg); !strings.Contains(got, `a_b{zone="x"} 2`) {
		t.Errorf("no a_b in:\n%s", got)
	}
}

func TestOneNameIsOneType(t *testing.T) {
	r, reg := newSink(t, stats.Options{}, Config{})
	r.Counter("x.y").Add(1)
	r.Gauge("x_y").Set(5)
	got := scrape(t, reg)
	if !strings.Contains(got, "\nx_y 1\n") || strings.Contains(scrape(t, reg), "gale_stats_conflicts_total 0") {
		t.Errorf("a gauge took the name of a counter:\n%s", got)
	}
}

func TestHostileNamesGather(t *testing.T) {
	r, reg := newSink(t, stats.Options{}, Config{})
	for _, key := range []string{"d.\xff\xfe", "d.\"\\\n", "d.", "", "d.k.k.k.\u2028", strings.Repeat("k.", 5000)} {
		r.DynamicRule([]byte(key)).TotalHits.Add(1)
	}
	if _, err := reg.Gather(); err != nil {
		t.Error(err)
	}
}

func TestSeriesOfCallerChosenNamesAreBounded(t *testing.T) {
	r, reg := newSink(t, stats.Options{MaxSeries: 50}, Config{MaxSeries: 100})
	r.Rule("d.kept").TotalHits.Add(1)
	for i := range 10_000 {
		r.DynamicRule(fmt.Append(nil, "d.k_", i)).TotalHits.Add(1)
		r.Dynamic(fmt.Append(nil, "ratelimit.service.rate_limit.x", i, ".domain_not_found")).Add(1)
		if i%40 == 0 {
			if _, err := reg.Gather(); err != nil {
				t.Fatal(err)
			}
		}
	}
	got := scrape(t, reg)
	if n := strings.Count(got, "d.k_") + strings.Count(got, `key1="k_`) + strings.Count(got, "_domain_not_found 1"); n > 100 {
		t.Errorf("%d series of caller-chosen names, want at most 100", n)
	}
	if !strings.Contains(got, `ratelimit_service_rate_limit_total_hits{domain="d",key1="kept"} 1`) {
		t.Error("the rule's own series is gone")
	}
	if !strings.Contains(got, "gale_stats_evicted_total_hits ") {
		t.Error("evicted hits are not shown")
	}
}

func TestRunFlushesAndCloses(t *testing.T) {
	r := stats.New(stats.Options{})
	s, err := New(r, prometheus.NewRegistry(), Config{Mapping: mapping.BuiltIn(false)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Run(ctx, s, time.Hour, time.Second); err != nil {
		t.Error(err)
	}
}
