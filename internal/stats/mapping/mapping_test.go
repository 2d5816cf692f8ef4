package mapping

import (
	"fmt"
	"strings"
	"testing"
)

func spell(m Metric) string {
	if m.Drop {
		return "dropped"
	}
	var labels []string
	for _, l := range m.Labels {
		labels = append(labels, fmt.Sprintf("%s=%q", l.Name, l.Value))
	}
	return m.Name + "{" + strings.Join(labels, ",") + "}"
}

func TestBuiltIn(t *testing.T) {
	m := BuiltIn(false)
	for _, c := range []struct{ name, want string }{
		{"ratelimit.service.rate_limit.d.k_v.over_limit", `ratelimit_service_rate_limit_over_limit{domain="d",key1="k_v"}`},
		{"ratelimit.service.rate_limit.d.k1.k2.near_limit", `ratelimit_service_rate_limit_near_limit{domain="d",key1="k1",key2="k2"}`},
		{"ratelimit.service.rate_limit.d.k1.k2.k3.k4.total_hits", `ratelimit_service_rate_limit_total_hits{domain="d",key1="k1",key2="k2"}`},
		{"ratelimit.service.rate_limit.d.host_a.example.com.shadow_mode", `ratelimit_service_rate_limit_shadow_mode{domain="d",key1="host_a",key2="example"}`},
		{"ratelimit.service.rate_limit.d.k1.k2.k3.over_limit_with_local_cache", `ratelimit_service_rate_limit_d_k1_k2_k3_over_limit_with_local_cache{}`},
		{"ratelimit.service.rate_limit.d.k1.k2.total_negative_hits", `ratelimit_service_rate_limit_total_negative_hits{domain="d",key1="k1",key2="k2"}`},
		{"ratelimit.service.rate_limit.d.domain_not_found", `ratelimit_service_rate_limit_d_domain_not_found{}`},
		{"ratelimit.service.call.should_rate_limit.redis_error", `ratelimit_service_should_rate_limit_error{err_type="redis_error"}`},
		{"ratelimit_server.ShouldRateLimit.total_requests", `ratelimit_service_total_requests{grpc_method="ShouldRateLimit"}`},
		{"ratelimit.service.config_load_error", `ratelimit_service_config_load_error{}`},
		{"ratelimit.service.global_shadow_mode", `ratelimit_service_global_shadow_mode{}`},
	} {
		if got := spell(m.Map(c.name, Counter)); got != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.name, got, c.want)
		}
	}
	timer := m.Map("ratelimit_server.Check.response_time", Observer)
	if got, want := spell(timer), `ratelimit_service_response_time_seconds{grpc_method="Check"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if o := timer.Observe; !o.Histogram || o.Scale != 0.001 || o.NativeFactor != 1.1 || o.NativeMaxBuckets != 256 {
		t.Errorf("response times are kept as %+v", o)
	}
	if o := BuiltIn(true).Map("ratelimit_server.Check.response_time", Observer).Observe; o.Scale != 1 {
		t.Errorf("in milliseconds, the scale is %v", o.Scale)
	}
}

const sample = `
defaults: {timer_type: histogram, buckets: [1, 2]}
mappings:
  - {match: '^a\.(\w+)\.(.*)$', match_type: regex, name: 're_${1}', labels: {rest: '$2'}}
  - {match: a.*.c, name: glob_first, labels: {x: '${1}y'}}
  - {match: a.*.c, name: never}
  - {match: secret.*, name: x, action: drop}
  - {match: only.timers, match_metric_type: timer, name: t, observer_type: summary, quantiles: [{quantile: 0.5, error: 0.1}], scale: 0.001}
`

func TestFile(t *testing.T) {
	m, err := Parse([]byte(sample))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		kind Kind
		want string
	}{
		{"a.b.c", Counter, `glob_first{x="by"}`},
		{"a.b.d.e", Gauge, `re_b{rest="d.e"}`},
		{"secret.x", Counter, "dropped"},
		{"only.timers", Counter, "only_timers{}"},
		{"only.timers", Observer, "t{}"},
		{"9 lives/ü", Counter, "_9_lives__{}"},
	} {
		if got := spell(m.Map(c.name, c.kind)); got != c.want {
			t.Errorf("%s %s: got %s, want %s", c.kind, c.name, got, c.want)
		}
	}
	if o := m.Map("other", Observer).Observe; !o.Histogram || len(o.Buckets) != 2 {
		t.Errorf("the defaults do not reach unmapped timers: %+v", o)
	}
}

func TestBadFileNamesEveryMapping(t *testing.T) {
	_, err := Parse([]byte(`
mappings:
  - {match: a}
  - {match: '(', match_type: regex, name: b}
  - {match: c, name: c, labels: {"a-b": x}}
  - {match: d, name: d, timer_type: gauge}
  - {match: e, name: e, action: keep}
  - {match: f, name: f, match_metric_type: set}
`))
	if err == nil {
		t.Fatal("a bad file was accepted")
	}
	for i, want := range []string{"no name", "missing closing", `"a-b"`, `observer_type "gauge"`, `action "keep"`, `match_metric_type "set"`} {
		if !strings.Contains(err.Error(), fmt.Sprintf("mapping %d ", i+1)) || !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q of mapping %d:\n%v", want, i+1, err)
		}
	}
}
