package main

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/gale-rls/gale-rls/internal/settings"
	"github.com/gale-rls/gale-rls/internal/stats/mapping"
	"github.com/gale-rls/gale-rls/internal/testenv"
)

// statName documents statsd names of one form; <…> stands for anything.
type statName struct{ name, kind, about string }

var statNames = []statName{
	{"ratelimit.service.rate_limit.<KEY>.total_hits", "counter", "hits of requests that met the rule, before the decision"},
	{"ratelimit.service.rate_limit.<KEY>.within_limit", "counter", "hits that fitted"},
	{"ratelimit.service.rate_limit.<KEY>.near_limit", "counter", "hits beyond NEAR_LIMIT_RATIO of the limit, and within it"},
	{"ratelimit.service.rate_limit.<KEY>.over_limit", "counter", "hits that did not fit"},
	{"ratelimit.service.rate_limit.<KEY>.over_limit_with_local_cache", "counter", "those of them that were refused from memory"},
	{"ratelimit.service.rate_limit.<KEY>.shadow_mode", "counter", "hits that did not fit and were let through by a shadow rule"},
	{"ratelimit.service.rate_limit.<KEY>.total_negative_hits", "counter", "hits given back (ours)"},
	{"ratelimit.service.rate_limit.<domain>.domain_not_found", "counter", "descriptors of requests for a domain without rules"},
	{"ratelimit.service.call.should_rate_limit.redis_error", "counter", "requests that failed because of the store"},
	{"ratelimit.service.call.should_rate_limit.service_error", "counter", "requests that failed for another reason: an invalid one, or no rules"},
	{"ratelimit.service.global_shadow_mode", "counter", "requests that SHADOW_MODE let through"},
	{"ratelimit.service.config_load_success", "counter", "loads without an error"},
	{"ratelimit.service.config_load_error", "counter", "loads with an error; good files are live nevertheless"},
	{"ratelimit_server.<method>.total_requests", "counter", "gRPC calls of ShouldRateLimit, Check, List"},
	{"ratelimit_server.<method>.response_time", "timer", "their duration"},
	{"ratelimit.redis_pool.cx_active", "gauge", "open connections to Redis; redis_per_second_pool for the other one"},
	{"ratelimit.redis_pool.cx_total", "counter", "connections opened"},
	{"ratelimit.redis_pool.cx_local_close", "counter", "connections closed by this side"},
	{"ratelimit.localcache.<figure>", "gauge", "hitCount, missCount, lookupCount, entryCount of the deny cache, with LOCAL_CACHE_SIZE_IN_BYTES"},
	{"ratelimit.go.<figure>", "gauge, counter", "memory, garbage collection and goroutines of the process"},
	{"runtime.load_attempts", "counter", "readings of the rule files"},
	{"runtime.load_failures", "counter", "readings that failed, and files that could not be read"},
	{"runtime.num_values", "gauge", "rule files"},
	{"certs.load_attempts", "counter", "loads of the certificate"},
	{"certs.load_failures", "counter", "those that failed and left the old one"},
	{"reserved_tag", "counter", "EXTRA_TAGS that use a reserved word"},
	{"gale.stats.series_evicted", "counter", "caller-chosen names that made room for others (ours)"},
	{"gale.stats.evicted.<stat>", "counter", "hits of those names, as far as they were shown under them (ours)"},
	{"gale.stats.overflow.<stat>", "counter", "hits of names that came and went faster than a flush (ours)"},
}

var placeholder = regexp.MustCompile(`<[^>]*>`)

func (s statName) matches(name string) bool {
	parts := placeholder.Split(s.name, -1)
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	return regexp.MustCompile("^" + strings.Join(parts, ".+") + "$").MatchString(name)
}

// quietApp is wired from an empty environment.
func quietApp(t *testing.T, environ ...string) *app {
	t.Helper()
	s, _, err := settings.FromEnv(environ)
	if err != nil {
		t.Fatal(err)
	}
	a, err := wire(s, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestMetricsDocsAreCurrent(t *testing.T) {
	const path = "../../docs/metrics.md"
	m, err := newMetrics(quietApp(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.sink(settings.Stats{MaxSeries: 1}, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	want := metricsDocs(m.registry)
	if *update {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not what the code says; go test ./cmd/gale-rls -update writes it", path)
	}
}

const metricsIntro = `# Statistics and metrics

<!-- Written from the code; ` + "`go test ./cmd/gale-rls -update`" + ` writes it again. -->

Statistics have the names of envoyproxy/ratelimit. They go to one sink: statsd over
TCP (the default), statsd over UDP (` + "`STATSD_PROTOCOL=udp`" + `), DogStatsD, Prometheus, or
JSON lines on the standard error output; see [configuration.md](configuration.md).
The debug port shows them all at ` + "`/stats`" + `, since the start of the process, and the
metrics of the last section at ` + "`/metrics`" + `, whatever the sink.

- A name that never counted anything is not shown.
- Counters are sent as growth since the last flush. Timers are sent as whole
  milliseconds, one line for each value, with how often it was seen as the sample rate.
- The last flush is at the end of the process. A sink that cannot be reached is tried
  every 3 seconds; 4 MiB wait for it, then the newest lines are dropped.
- Names that callers can choose (overrides, ` + "`value_to_metric`, `detailed_metric`" + `, unknown
  domains) are at most ` + "`GALE_MAX_SERIES`" + ` at a time, for rules and for single counters each.
  The least recently used one makes room; what it had counted is flushed first, and
  its hits stay in ` + "`gale.stats.evicted.<stat>`" + `. Names are cut at 2,048 bytes; control
  characters, ` + "`:` and `|`" + ` in them become ` + "`_`" + `.

` + "`<KEY>`" + ` is the domain and one segment for each level of the rule; ` + "`gale-rls explain`" + `
prints it.
`

func metricsDocs(registry *prometheus.Registry) []byte {
	var b bytes.Buffer
	b.WriteString(metricsIntro)
	b.WriteString("\n## Names\n\n| Name | Type | What |\n|---|---|---|\n")
	for _, s := range statNames {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", s.name, s.kind, s.about)
	}
	b.WriteString(`
## In Prometheus

With ` + "`USE_PROMETHEUS=true`" + ` the names above become metrics by the mapping of
envoyproxy/ratelimit, or by the statsd_exporter mapping file that
` + "`PROMETHEUS_MAPPER_YAML`" + ` names. What no rule maps keeps its name, with ` + "`_`" + ` for every other
character, and has no labels. ` + "`EXTRA_TAGS`" + ` are labels (with a mapping file: a suffix of
the name, as its patterns expect). Levels below the second are added up. Series of
caller-chosen names are bounded by twice ` + "`GALE_MAX_SERIES`" + `.

| Name | Metric | Labels |
|---|---|---|
`)
	m := mapping.BuiltIn(false)
	for _, name := range []string{
		"ratelimit.service.rate_limit.D.K1.total_hits", "ratelimit.service.rate_limit.D.K1.K2.K3.total_hits",
		"ratelimit.service.rate_limit.D.K1.over_limit_with_local_cache", "ratelimit.service.rate_limit.D.domain_not_found",
		"ratelimit.service.call.should_rate_limit.redis_error", "ratelimit_server.ShouldRateLimit.total_requests",
		"ratelimit.service.config_load_success", "ratelimit.service.config_load_error", "ratelimit.service.global_shadow_mode",
	} {
		mappedRow(&b, name, m.Map(name, mapping.Counter))
	}
	mappedRow(&b, "ratelimit_server.ShouldRateLimit.response_time", m.Map("ratelimit_server.ShouldRateLimit.response_time", mapping.Observer))
	b.WriteString(`
near_limit, over_limit, within_limit, shadow_mode and total_negative_hits are mapped
like total_hits.

## Metrics of our own

Besides these, those of the Go runtime, the process and the scrape itself are there.

| Metric | Labels | What |
|---|---|---|
`)
	for _, row := range ownMetrics(registry) {
		b.WriteString(row)
	}
	return b.Bytes()
}

func mappedRow(b *bytes.Buffer, name string, m mapping.Metric) {
	var labels []string
	for _, l := range m.Labels {
		labels = append(labels, fmt.Sprintf("`%s=\"%s\"`", l.Name, l.Value))
	}
	fmt.Fprintf(b, "| `%s` | `%s` | %s |\n", name, m.Name, strings.Join(labels, " "))
}

var descText = regexp.MustCompile(`fqName: "([^"]*)", help: "([^"]*)", (?:unit: "[^"]*", )?constLabels: \{[^}]*\}, variableLabels: \{([^}]*)\}`)

func ownMetrics(registry *prometheus.Registry) []string {
	descs := make(chan *prometheus.Desc)
	go func() {
		registry.Describe(descs)
		close(descs)
	}()
	var rows []string
	for d := range descs {
		parts := descText.FindStringSubmatch(d.String())
		if parts == nil || !strings.HasPrefix(parts[1], "gale_") {
			continue
		}
		labels := ""
		if parts[3] != "" {
			labels = "`" + strings.ReplaceAll(parts[3], ",", "` `") + "`"
		}
		rows = append(rows, fmt.Sprintf("| `%s` | %s | %s |\n", parts[1], labels, parts[2]))
	}
	slices.Sort(rows)
	return slices.Compact(rows)
}

// Everything that a service in use shows at /stats is documented.
func TestEveryStatisticIsDocumented(t *testing.T) {
	g := testenv.Gale(t, testenv.GaleOptions{Env: map[string]string{"LOCAL_CACHE_SIZE_IN_BYTES": "1", "SHADOW_MODE": "true"}})
	conn := dial(t, g.GRPC)
	for range 4 {
		ask(t, conn, "gale", "hello", t.Name())
	}
	ask(t, conn, "nowhere", "a", "b")
	ask(t, conn, "", "a", "b")
	if code, _, log := runs("client", "-dial_string", g.GRPC, "-domain", "gale", "-descriptors", "hello=x", "-negative-hits", "1"); code != 0 {
		t.Error(log)
	}
	_, text, _ := strings.Cut(get("http://"+g.Debug+"/stats"), " OK ")
	seen := 0
	for line := range strings.Lines(text) {
		name, _, _ := strings.Cut(line, ": ")
		name = strings.TrimSuffix(strings.TrimSuffix(name, ".count"), ".total_ms")
		seen++
		if !slices.ContainsFunc(statNames, func(s statName) bool { return s.matches(name) }) {
			t.Errorf("%s is not documented", name)
		}
	}
	if seen < 20 {
		t.Errorf("only %d statistics:\n%s", seen, text)
	}
}
