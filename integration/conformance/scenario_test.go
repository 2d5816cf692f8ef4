//go:build integration

package conformance

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// vectors is where the recorded answers are; README.md there is the format.
const vectors = "../testdata/conformance"

// scenario is one recorded conversation with one process.
type scenario struct {
	Name             string            `json:"name"`
	About            string            `json:"about"`
	Quirk            string            `json:"quirk"`
	Needs            []string          `json:"needs"`
	Layout           string            `json:"layout"`
	SmallestWindow   int64             `json:"smallest_window_seconds"`
	Env              map[string]string `json:"env"`
	Files            map[string]string `json:"files"`
	Steps            []step            `json:"steps"`
	Redis            []storedKey       `json:"redis"`
	RedisPerSecond   []storedKey       `json:"redis_per_second"`
	StoreNotCompared bool              `json:"store_not_compared"`
	Statsd           []string          `json:"statsd"`
	// UnlikeReference names the members that are not compared, because
	// gale-rls decides otherwise.
	UnlikeReference struct {
		Members []string `json:"members"`
		Because string   `json:"because"`
	} `json:"unlike_reference"`
	// Reference is what the reference does in a deliberate difference.
	Reference string `json:"reference"`
}

// step is one thing that is done to the process, and the answer.
type step struct {
	Request json.RawMessage `json:"request"`
	HTTP    *httpRequest    `json:"http"`
	Health  *string         `json:"health"`
	Reload  *reload         `json:"reload"`
	PauseMS int             `json:"pause_ms"`
	Repeat  int             `json:"repeat"`
	Expect  *answer         `json:"expect"`
	Redis   []storedKey     `json:"redis"`
}

type httpRequest struct {
	Port   string `json:"port"`
	Method string `json:"method"`
	Path   string `json:"path"`
	Body   string `json:"body"`
}

type reload struct {
	Write  map[string]string `json:"write"`
	Remove []string          `json:"remove"`
}

// answer holds what is compared; what is absent is not, with the exceptions
// that README.md names.
type answer struct {
	GRPCCode        string          `json:"grpc_code"`
	Response        json.RawMessage `json:"response"`
	Message         *string         `json:"message"`
	MessageContains string          `json:"message_contains"`
	Health          string          `json:"health"`
	HTTPStatus      int             `json:"http_status"`
	ContentType     *string         `json:"content_type"`
	JSON            json.RawMessage `json:"json"`
	Text            *string         `json:"text"`
	Lines           []string        `json:"lines"`
	ConfigLoad      string          `json:"config_load"`
}

// storedKey is a counter in Redis.
type storedKey struct {
	Key        string   `json:"key"`
	Window     int64    `json:"window_seconds"`
	Value      string   `json:"value"`
	TTLBetween [2]int64 `json:"ttl_between"`
}

func (s *scenario) skips(member string) bool {
	return slices.Contains(s.UnlikeReference.Members, member)
}

func (s *scenario) needs(server string) bool { return slices.Contains(s.Needs, server) }

// load reads the scenarios that match pattern, and insists on their number:
// a scenario that gets lost would be a promise that nobody checks.
func load(t *testing.T, pattern string, want int) []scenario {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(vectors, filepath.FromSlash(pattern)))
	if err != nil {
		t.Fatal(err)
	}
	var all []scenario
	for _, f := range files {
		if filepath.Base(f) == "config-errors.json" {
			continue
		}
		var s scenario
		readJSON(t, f, &s)
		if s.Name != strings.TrimSuffix(filepath.Base(f), ".json") {
			t.Errorf("%s holds the scenario %q", f, s.Name)
		}
		all = append(all, s)
	}
	if len(all) != want {
		t.Fatalf("%s: %d scenarios, want %d", pattern, len(all), want)
	}
	return all
}

func readJSON(t *testing.T, file string, into any) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// overMemcached are the scenarios that were recorded over memcached, which
// gale-rls does not speak. What they say of memcached's own contents has no
// meaning here; answers and statistics do not depend on the store, so they are
// replayed over the stores there are.
func (s *scenario) overMemcached() bool { return s.needs("memcached") }

// withoutMemcached is the scenario with the settings of memcached removed.
func (s scenario) withoutMemcached() scenario {
	env := map[string]string{}
	for k, v := range s.Env {
		if k != "BACKEND_TYPE" && !strings.HasPrefix(k, "MEMCACHE_") {
			env[k] = v
		}
	}
	s.Env, s.Needs, s.StoreNotCompared = env, []string{"redis"}, true
	return s
}

// ownCounters are counters that we have and the reference loses: it sends a
// newline of a value in the middle of a statsd line, we send an underscore.
func ownCounters() map[string][]string {
	const k = "ratelimit.service.rate_limit.match-whitespace-is-significant.k_a_"
	return map[string][]string{
		"match-whitespace-is-significant": {k + ".total_hits:1|c", k + ".within_limit:1|c"},
	}
}
