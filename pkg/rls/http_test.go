package rls

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/gale-rls/gale-rls/internal/stats"
)

// page is what a handler answered.
type page struct {
	status     int
	kind, body string
}

func get(t *testing.T, h http.Handler, method, path, body string) page {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
	text, err := io.ReadAll(w.Result().Body)
	if err != nil {
		t.Fatal(err)
	}
	return page{w.Code, w.Header().Get("Content-Type"), string(text)}
}

func TestJSON(t *testing.T) {
	s, decider, _ := newTestService(t, Config{}, oneRule)
	h := NewHTTPHandler(s, NewHealth(false), 1000)
	for i, want := range []struct {
		status int
		code   rlsv3.RateLimitResponse_Code
	}{{200, codeOK}, {200, codeOK}, {429, codeOver}} {
		got := get(t, h, "POST", "/json", oneRequest)
		response := new(rlsv3.RateLimitResponse)
		if err := protojson.Unmarshal([]byte(got.body), response); err != nil {
			t.Fatalf("%s: %v", got.body, err)
		}
		if got.status != want.status || got.kind != "application/json" || response.GetOverallCode() != want.code {
			t.Errorf("request %d: %+v, want %+v", i, got, want)
		}
	}
	bad := page{400, "text/plain; charset=utf-8", "Bad Request\n"}
	for name, body := range map[string]string{
		"empty":            "",
		"no JSON":          "no JSON",
		"null":             "null",
		"unknown field":    `{"domain": "d", "descriptors": [{}], "x": 1}`,
		"service error":    `{"domain": "d"}`,
		"invalid argument": `{"domain": "d", "descriptors": [{"limit": {"requestsPerUnit": 5}}]}`,
		"invalid UTF-8":    "{\"domain\": \"\xff\", \"descriptors\": [{}]}",
		"too large":        oneRequest + strings.Repeat(" ", 1000),
	} {
		if got := get(t, h, "POST", "/json", body); got != bad {
			t.Errorf("%s: got %+v", name, got)
		}
	}
	decider.err = fmt.Errorf("store is gone")
	if got := get(t, h, "POST", "/json", oneRequest); got != bad {
		t.Errorf("store error: got %+v", got)
	}
	for _, path := range []string{"/", "/json/", "/JSON", "/nothing"} {
		if got, want := get(t, h, "POST", path, oneRequest), (page{404, "text/plain; charset=utf-8", "404 page not found\n"}); got != want {
			t.Errorf("%s: got %+v", path, got)
		}
	}
	if got := get(t, h, "GET", "/json", `{"domain": "d", "descriptors": [{}], "hits_addend": 1}`); got.status != 200 {
		t.Errorf("GET: got %+v", got)
	}
}

func TestHealthcheck(t *testing.T) {
	s, _, _ := newTestService(t, Config{}, oneRule)
	health := NewHealth(false)
	h := NewHTTPHandler(s, health, 0)
	bad, good := page{status: 500}, page{200, "text/plain; charset=utf-8", "OK"}
	check := func(when string, want page, failing ...string) {
		t.Helper()
		if got := get(t, h, "GET", "/healthcheck", ""); got != want {
			t.Errorf("%s: got %+v, want %+v", when, got, want)
		}
		if got := health.Failing(); strings.Join(got, "; ") != strings.Join(failing, "; ") {
			t.Errorf("%s: failing %q, want %q", when, got, failing)
		}
	}
	check("at start", bad, "the store cannot be asked", "no rules are loaded")
	health.SetStore(true)
	check("without rules", bad, "no rules are loaded")
	health.RulesLoaded(0)
	check("with an empty configuration", good)
	health.Drain()
	check("draining", bad, "shutting down")
	health.SetStore(true)
	check("still draining", bad, "shutting down")
}

func TestDebugPages(t *testing.T) {
	s, _, registry := newTestService(t, Config{}, oneRule)
	h := NewDebugHandler(s, registry, Page{"/leases", "credits held", TextPage(func(w io.Writer) error {
		_, err := io.WriteString(w, "none\n")
		return err
	})})
	if _, err := s.ShouldRateLimit(t.Context(), request(t, oneRequest)); err != nil {
		t.Fatal(err)
	}
	list := `/debug/pprof/: root of various pprof endpoints. hit for help.
/debug/pprof/profile: CPU profiling endpoint
/debug/pprof/trace: trace endpoint
/leases: credits held
/rlconfig: print out the currently loaded configuration for debugging
/stats: print out stats
`
	for path, want := range map[string]string{
		"/":         list,
		"/unknown":  list,
		"/leases":   "none\n",
		"/rlconfig": "d.k: unit=MINUTE requests_per_unit=2, shadow_mode: false, quota_mode: false\n",
	} {
		if got, want := get(t, h, "GET", path, ""), (page{200, "text/plain; charset=utf-8", want}); got != want {
			t.Errorf("%s: got %+v, want %+v", path, got, want)
		}
	}
	if got := get(t, h, "GET", "/stats", ""); !strings.Contains(got.body, "ratelimit.service.rate_limit.d.k.total_hits: 1\n") {
		t.Errorf("/stats: %+v", got)
	}
	if got := get(t, h, "GET", "/debug/pprof/heap?debug=1", ""); got.status != 200 || !strings.Contains(got.body, "heap profile") {
		t.Errorf("heap profile: %d", got.status)
	}
	if got := get(t, h, "GET", "/debug/pprof/cmdline", ""); got.status != 404 {
		t.Errorf("the command line is shown: %+v", got)
	}
}

func TestDebugPagesWithoutRules(t *testing.T) {
	registry := stats.New(stats.Options{})
	h := NewDebugHandler(NewService(new(counters), registry, Config{}), registry)
	if got, want := get(t, h, "GET", "/rlconfig", ""), (page{200, "text/plain; charset=utf-8", ""}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	failing := TextPage(func(io.Writer) error { return fmt.Errorf("no page") })
	if got := get(t, failing, "GET", "/", ""); got.status != 500 {
		t.Errorf("got %+v, want 500", got)
	}
}
