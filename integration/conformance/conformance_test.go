//go:build integration

package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/gale-rls/gale-rls/internal/testenv"
)

// TestConformance replays every recorded scenario over both stores.
func TestConformance(t *testing.T) {
	all := load(t, "*.json", 263)
	each(t, all)
}

// TestDifferences replays what we decided otherwise.
func TestDifferences(t *testing.T) {
	all := load(t, "differences/*.json", 13)
	each(t, all)
}

// each runs every scenario over every store, some at a time.
func each(t *testing.T, all []scenario) {
	for _, store := range []string{"memory", "redis"} {
		t.Run(store, func(t *testing.T) {
			free := openLanes(t, store)
			for _, s := range all {
				if store == "memory" && s.needs("redis_per_second") {
					// About where a counter is kept; memory has one place.
					continue
				}
				t.Run(s.Name, func(t *testing.T) {
					t.Parallel()
					l := <-free
					defer func() { free <- l }()
					conform(t, l, s)
				})
			}
		})
	}
}

// attempts bounds how often a scenario is repeated because a window ended
// while it ran. Windows of a second end often on a busy machine.
const attempts = 8

// conform replays s until no window ended on the way, and reports what was
// not as recorded.
func conform(t *testing.T, l *lane, s scenario) {
	t.Helper()
	if s.overMemcached() {
		s = s.withoutMemcached()
	}
	for range attempts {
		l.empty(t)
		found, ended := replay(t, l, s)
		if ended && len(found) > 0 {
			continue
		}
		if len(found) > 0 {
			t.Errorf("%s\n  %s", s.About, strings.Join(found, "\n  "))
			if s.Quirk != "" {
				t.Logf("known to be odd: %s", s.Quirk)
			}
		}
		return
	}
	t.Errorf("a window ended in each of %d attempts", attempts)
}

// replay runs s once. ended says that a window ended meanwhile.
func replay(t *testing.T, l *lane, s scenario) (found problems, ended bool) {
	t.Helper()
	awaitWindow(s.SmallestWindow)
	from := time.Now()
	p := start(t, l, s.Files, s.Env, s.Layout)
	for i, st := range s.Steps {
		for range max(1, st.Repeat) {
			if s.SmallestWindow == 1 {
				awaitWindow(1)
			}
			before := time.Now().Unix()
			p.do(t, &found, fmt.Sprintf("step %d", i+1), st)
			if s.SmallestWindow == 1 && st.PauseMS == 0 && time.Now().Unix() != before {
				ended = true
			}
		}
		if st.Redis != nil && l.redis != nil && !s.skips("redis") {
			matchStore(&found, fmt.Sprintf("redis after step %d", i+1), st.Redis, contents(t, l.redis), from, time.Now())
		}
	}
	if l.redis != nil && !s.StoreNotCompared {
		if !s.skips("redis") {
			matchStore(&found, "redis", s.Redis, contents(t, l.redis), from, time.Now())
		}
		if !s.skips("redis_per_second") {
			matchStore(&found, "redis_per_second", s.RedisPerSecond, contents(t, l.perSecond), from, time.Now())
		}
	}
	if w := s.SmallestWindow; w > 1 && from.Unix()/w != time.Now().Unix()/w {
		ended = true
	}
	if code := p.Terminate(t, patience); code != 0 {
		found.add("exit code %d after SIGTERM", code)
	}
	if s.Statsd != nil {
		testenv.Eventually(t, patience, "the last statistics", p.sink.Drained)
		matchStatsd(&found, append(s.Statsd, ownCounters()[s.Name]...), p.sink.Counters(), p.sink.Gauges())
	}
	return found, ended
}

// do performs one step and compares its answer.
func (p *process) do(t *testing.T, found *problems, where string, s step) {
	t.Helper()
	switch {
	case s.Request != nil:
		p.ask(t, found, where+", "+compact(s.Request), s)
	case s.HTTP != nil:
		p.http(t, found, where+", "+s.HTTP.Method+" "+s.HTTP.Path+" "+s.HTTP.Body, s)
	case s.Health != nil:
		p.health(t, found, where+", health of "+*s.Health, s)
	case s.Reload != nil:
		want := ""
		if s.Expect != nil {
			want = s.Expect.ConfigLoad
		}
		p.reload(t, s.Reload, want)
	case s.PauseMS > 0:
		time.Sleep(time.Duration(s.PauseMS) * time.Millisecond)
	}
}

func compact(request json.RawMessage) string {
	return strings.Join(strings.Fields(string(request)), " ")
}

// awaitWindow waits until enough of the present window is left: 8 seconds
// for a scenario, or for one step when windows last a second.
func awaitWindow(length int64) {
	if length <= 0 {
		return
	}
	need := min(8*time.Second, time.Duration(length)*time.Second*7/10)
	window := time.Duration(length) * time.Second
	if left := window - time.Duration(time.Now().UnixNano())%window; left < need {
		time.Sleep(left)
	}
}

// configError is a configuration that is rejected.
type configError struct {
	Name          string            `json:"name"`
	Env           map[string]string `json:"env"`
	Files         map[string]string `json:"files"`
	ErrorContains string            `json:"error_contains"`
	Exact         string            `json:"exact"`
}

// TestConfigErrors starts the service with each bad configuration: it says
// what the reference says (and more), counts it, and stays up.
func TestConfigErrors(t *testing.T) {
	var all []configError
	readJSON(t, vectors+"/config-errors.json", &all)
	if len(all) != 107 {
		t.Fatalf("%d configurations, want 107", len(all))
	}
	free := openLanes(t, "memory")
	for _, c := range all {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			l := <-free
			defer func() { free <- l }()
			c.check(t, l)
		})
	}
}

func (c configError) check(t *testing.T, l *lane) {
	t.Helper()
	p := start(t, l, c.Files, c.Env, "")
	if p.loads("error") != 1 {
		t.Errorf("config_load_error is %d, want 1", p.loads("error"))
	}
	if said := loadErrors(p.Log()); !c.said(said) {
		t.Errorf("the log does not say, after the name of a file, %q; it says %q", c.ErrorContains, said)
	}
	if len(c.Files) > 1 {
		return // the good ones among them are served; see TestDifferences
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var request rlsv3.RateLimitRequest
	if err := protojson.Unmarshal([]byte(`{"domain": "any", "descriptors": [{}]}`), &request); err != nil {
		t.Fatal(err)
	}
	_, err := rlsv3.NewRateLimitServiceClient(p.conn).ShouldRateLimit(ctx, &request)
	var found problems
	message := "no rate limit configuration loaded"
	matchStatus(&found, "a request", &answer{GRPCCode: "UNKNOWN", Message: &message}, err)
	for _, f := range found {
		t.Error(f)
	}
}

// loadErrors are the messages about configurations in a log of JSON lines.
func loadErrors(log string) []string {
	var all []string
	for line := range strings.Lines(log) {
		var entry struct {
			Message string `json:"@message"`
		}
		text, found := "", false
		if json.Unmarshal([]byte(line), &entry) == nil {
			text, found = strings.CutPrefix(entry.Message, "Error loading new configuration: ")
		}
		if found {
			all = append(all, text)
		}
	}
	return all
}

// said reports whether a message names the file and then the error.
func (c configError) said(messages []string) bool {
	file, _, _ := strings.Cut(c.Exact, ":")
	for _, m := range messages {
		for name := range c.Files {
			named := file == "<file>" || file == name
			_, after, found := strings.Cut(m, name+": ")
			if named && found && strings.Contains(after, c.ErrorContains) {
				return true
			}
		}
	}
	return false
}
