//go:build integration

package integration

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gale-rls/gale-rls/internal/testenv"
)

const unavailable = http.StatusServiceUnavailable

// TestEnvoyHotReload changes the rules while requests come in: none fails,
// the new limit holds, what was counted stays counted, and a file that is
// wrong changes nothing.
func TestEnvoyHotReload(t *testing.T) {
	eachEnvoy(t, func(t *testing.T, version string) {
		needOfHour(t, time.Minute)
		x := startExample(t, exampleOptions{envoy: version})
		user := unique("user")
		url := x.url + "/header"
		wantCodes(t, x.codes(t, 6, url, "x-user-id", user), ok, ok, ok, ok, ok, refused)

		requests := x.traffic(t, url)
		requests.waitFor(t, ok, refused)
		x.limitPerUser(t, "7")
		x.waitLimit(t, 7)
		// 6 are counted.
		wantCodes(t, x.codes(t, 2, url, "x-user-id", user), ok, refused)

		failed := x.serviceStat(t, "config_load_error")
		x.limitPerUser(t, "many")
		testenv.Eventually(t, 10*time.Second, "the bad file to be noticed", func() bool {
			return x.serviceStat(t, "config_load_error") != failed
		})
		x.waitLimit(t, 7)
		for _, n := range []string{"8", "9", "10", "11", "12"} {
			x.limitPerUser(t, n)
		}
		x.waitLimit(t, 12)
		codes := requests.stop()
		t.Logf("statuses under reload: %v", codes)
		if codes[ok] == 0 || codes[refused] == 0 || len(codes) != 2 {
			t.Errorf("statuses %v, want 200 and 429, and nothing else", codes)
		}
		x.noErrors(t)
	})
}

// limitPerUser writes another requests_per_unit for /header.
func (x *example) limitPerUser(t *testing.T, n string) {
	t.Helper()
	const rule = "{name: per-user, unit: hour, requests_per_unit: "
	text := exampleFile(t, "rules/example.yaml")
	if !strings.Contains(text, rule+"5}") {
		t.Fatalf("rules/example.yaml has no %s5}", rule)
	}
	text = strings.Replace(text, rule+"5}", rule+n+"}", 1)
	x.gale.WriteRules(t, map[string]string{"example.yaml": text})
}

func (x *example) waitLimit(t *testing.T, want uint32) {
	t.Helper()
	testenv.Eventually(t, 10*time.Second, "the new limit", func() bool {
		s, err := x.peek("example", "user", unique("probe"))
		return err == nil && s.GetCurrentLimit().GetRequestsPerUnit() == want
	})
}

// serviceStat returns one of ratelimit.service's values from /stats, "" if it
// is not there.
func (x *example) serviceStat(t *testing.T, name string) string {
	t.Helper()
	_, after, _ := strings.Cut(x.debug(t, "/stats"), "ratelimit.service."+name+": ")
	value, _, _ := strings.Cut(after, "\n")
	return value
}

// TestEnvoyRedisKilled takes Redis away and gives it back: the filter that
// fails open lets pass, the one that fails closed refuses, a rule says for
// itself, a remembered denial stays; then the limits are back.
func TestEnvoyRedisKilled(t *testing.T) {
	eachEnvoy(t, func(t *testing.T, version string) {
		needOfHour(t, time.Minute)
		x := startExample(t, exampleOptions{envoy: version})
		user := unique("user")
		wantCodes(t, x.codes(t, 6, x.url+"/header", "x-user-id", user), ok, ok, ok, ok, ok, refused)
		wantCodes(t, x.codes(t, 4, x.url+"/billing", "x-user-id", user), ok, ok, ok, refused)
		wantCodes(t, x.codes(t, 1, x.url+"/login", "x-user-id", user), ok)

		x.redis.Kill(t)
		wantCodes(t, x.codes(t, 3, x.url+"/header", "x-user-id", user), ok, ok, ok)
		wantCodes(t, x.codes(t, 2, x.url+"/billing", "x-user-id", unique("user")), unavailable, unavailable)
		wantCodes(t, x.codes(t, 2, x.url+"/billing", "x-user-id", user), refused, refused)
		wantCodes(t, x.codes(t, 2, x.url+"/login", "x-user-id", user), refused, refused)
		if n := x.envoy.Stat(t, "cluster.upstream.ratelimit.failure_mode_allowed"); n != 3 {
			t.Errorf("failure_mode_allowed is %d, want 3", n)
		}
		if n := x.envoy.Stat(t, "cluster.upstream.ratelimit.fail_closed.error"); n != 2 {
			t.Errorf("fail_closed.error is %d, want 2", n)
		}

		x.redis.Restart(t)
		start := time.Now()
		x.waitForRules(t)
		t.Logf("limits hold again %v after Redis is back", time.Since(start))
		// Redis has forgotten; gale-rls counts from the start.
		wantCodes(t, x.codes(t, 6, x.url+"/header", "x-user-id", user), ok, ok, ok, ok, ok, refused)
		wantCodes(t, x.codes(t, 4, x.url+"/billing", "x-user-id", unique("user")), ok, ok, ok, refused)
		wantCodes(t, x.codes(t, 1, x.url+"/login", "x-user-id", user), ok)
	})
}

// TestEnvoyGaleRestarted stops gale-rls under traffic and starts it again:
// requests pass the filter that fails open, and the one that fails closed
// refuses; afterwards nothing that was counted is forgotten.
func TestEnvoyGaleRestarted(t *testing.T) {
	eachEnvoy(t, func(t *testing.T, version string) {
		needOfHour(t, time.Minute)
		x := startExample(t, exampleOptions{envoy: version})
		user := unique("user")
		wantCodes(t, x.codes(t, 6, x.url+"/header", "x-user-id", user), ok, ok, ok, ok, ok, refused)
		wantCodes(t, x.codes(t, 2, x.url+"/billing", "x-user-id", user), ok, ok)

		open, closed := x.traffic(t, x.url+"/header"), x.traffic(t, x.url+"/billing")
		open.waitFor(t, ok, refused)
		closed.waitFor(t, ok, refused)
		if code := x.gale.Terminate(t, 30*time.Second); code != 0 {
			t.Errorf("SIGTERM under traffic: exit code %d, want 0", code)
		}
		wantCodes(t, x.codes(t, 2, x.url+"/header", "x-user-id", user), ok, ok)
		wantCodes(t, x.codes(t, 2, x.url+"/billing", "x-user-id", user), unavailable, unavailable)
		closed.waitFor(t, unavailable)
		x.gale.Restart(t)
		x.waitForRules(t)

		// Envoy reconnects at its own pace: wait for the first answer.
		testenv.Eventually(t, 10*time.Second, "Envoy to ask gale-rls again", func() bool {
			return x.get(t, x.url+"/header", "x-user-id", user).StatusCode == refused
		})
		testenv.Eventually(t, 10*time.Second, "the fail-closed filter to let pass again", func() bool {
			return x.get(t, x.url+"/billing", "x-user-id", user).StatusCode == ok
		})
		wantCodes(t, x.codes(t, 2, x.url+"/billing", "x-user-id", user), refused, refused)

		codes := open.stop()
		t.Logf("statuses, failing open: %v", codes)
		if codes[ok] == 0 || codes[refused] == 0 || len(codes) != 2 {
			t.Errorf("failing open: statuses %v, want 200 and 429, and nothing else", codes)
		}
		codes = closed.stop()
		t.Logf("statuses, failing closed: %v", codes)
		if codes[ok] == 0 || codes[refused] == 0 || codes[unavailable] == 0 || len(codes) != 3 {
			t.Errorf("failing closed: statuses %v, want 200, 429 and 503, and nothing else", codes)
		}
	})
}

// TestEnvoyTimeout runs the files with the timeout they have: when gale-rls
// hangs, a request waits 50 ms for it.
func TestEnvoyTimeout(t *testing.T) {
	eachEnvoy(t, func(t *testing.T, version string) {
		x := startExample(t, exampleOptions{envoy: version, ownTimeout: true})
		x.gale.Pause(t)
		testenv.Eventually(t, 10*time.Second, "gale-rls to stand still", func() bool {
			return standsStill(x.gale.PID())
		})
		for _, c := range []struct {
			path string
			want int
		}{{"/header", ok}, {"/billing", unavailable}} {
			start := time.Now()
			got := x.get(t, x.url+c.path, "x-user-id", unique("user")).StatusCode
			took := time.Since(start)
			t.Logf("%s: %d after %v", c.path, got, took)
			if got != c.want {
				t.Errorf("%s while gale-rls hangs: status %d, want %d", c.path, got, c.want)
			}
			// Envoy's timers tick in milliseconds; and this machine may be busy.
			if took < 45*time.Millisecond || took > 2*time.Second {
				t.Errorf("%s while gale-rls hangs took %v, want about 50ms", c.path, took)
			}
		}
		x.gale.Resume(t)
		testenv.Eventually(t, 10*time.Second, "the limits to hold again", func() bool {
			r := x.get(t, x.url+"/header", "x-user-id", unique("user"))
			return r.Header.Get("x-ratelimit-limit") != ""
		})
	})
}

// standsStill reports whether all threads of a process are stopped: on a busy
// machine, SIGSTOP takes a while to reach them, and they answer until then.
func standsStill(pid int) bool {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	for _, f := range files {
		b, err := os.ReadFile(f)
		// "26715 (gale-rls) T ..."
		if _, state, ok := strings.Cut(string(b), ") "); err != nil || !ok || state[0] != 'T' {
			return false
		}
	}
	return err == nil && len(files) > 0
}
