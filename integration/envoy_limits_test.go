//go:build integration

package integration

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/gale-rls/gale-rls/internal/testenv"
)

const (
	ok      = http.StatusOK
	refused = http.StatusTooManyRequests
)

// TestEnvoyLimits runs the example's routes through the newest Envoy and the
// oldest that we support.
func TestEnvoyLimits(t *testing.T) {
	eachEnvoy(t, func(t *testing.T, version string) {
		needOfHour(t, time.Minute)
		x := startExample(t, exampleOptions{envoy: version})
		for name, scenario := range map[string]func(*testing.T, *example){
			"per header":       perHeader,
			"headers":          rateLimitHeaders,
			"per address":      perAddress,
			"nested":           nested,
			"shadow":           shadow,
			"quota":            quota,
			"dynamic override": dynamicOverride,
			"cost on response": costOnResponse,
			"fail closed":      limitOfFailClosedFilter,
			"no descriptor":    noDescriptor,
		} {
			t.Run(name, func(t *testing.T) { scenario(t, x) })
		}
		x.noErrors(t)
	})
}

// eachEnvoy runs f with the newest Envoy and the oldest that we support.
func eachEnvoy(t *testing.T, f func(t *testing.T, version string)) {
	t.Helper()
	for _, version := range []string{testenv.EnvoyNewest(t), testenv.EnvoyOldest(t)} {
		t.Run(version, func(t *testing.T) { f(t, version) })
	}
}

// TestEnvoyNewerLimits runs envoy-1.39.yaml, which the newest Envoy accepts.
func TestEnvoyNewerLimits(t *testing.T) {
	needOfHour(t, time.Minute)
	x := startExample(t, exampleOptions{})
	t.Run("static override", func(t *testing.T) { staticOverride(t, x) })
	t.Run("refund", func(t *testing.T) { refund(t, x) })
	x.noErrors(t)
}

// noErrors checks that Envoy has had an answer to each of its calls.
func (x *example) noErrors(t *testing.T) {
	t.Helper()
	for _, s := range []string{
		"cluster.upstream.ratelimit.error",
		"cluster.upstream.ratelimit.failure_mode_allowed",
		"cluster.upstream.ratelimit.fail_closed.error",
	} {
		if n := x.envoy.Stat(t, s); n != 0 {
			t.Errorf("%s is %d: Envoy did not get an answer", s, n)
		}
	}
}

func wantCodes(t *testing.T, got []int, want ...int) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("status codes %v, want %v", got, want)
	}
}

func perHeader(t *testing.T, x *example) {
	before := x.upstream.Load()
	for range 2 { // the second user has a counter of its own
		user := unique("user")
		got := x.codes(t, 7, x.url+"/header", "x-user-id", user)
		wantCodes(t, got, ok, ok, ok, ok, ok, refused, refused)
	}
	if n := x.upstream.Load() - before; n != 10 {
		t.Errorf("%d requests reached the upstream, want the 10 admitted ones", n)
	}
}

func rateLimitHeaders(t *testing.T, x *example) {
	user := unique("user")
	for i := range 7 {
		r := x.get(t, x.url+"/header", "x-user-id", user)
		h := r.Header
		if got, want := h.Get("x-ratelimit-limit"), `5, 5;w=3600;name="per-user"`; got != want {
			t.Errorf("request %d: x-ratelimit-limit %q, want %q", i+1, got, want)
		}
		if got, want := h.Get("x-ratelimit-remaining"), strconv.Itoa(max(0, 4-i)); got != want {
			t.Errorf("request %d: x-ratelimit-remaining %q, want %q", i+1, got, want)
		}
		left := int(time.Until(time.Now().Truncate(time.Hour).Add(time.Hour)) / time.Second)
		reset, err := strconv.Atoi(h.Get("x-ratelimit-reset"))
		if err != nil || reset < left-1 || reset > left+3 {
			t.Errorf("request %d: x-ratelimit-reset %q, and the hour has %d s left",
				i+1, h.Get("x-ratelimit-reset"), left)
		}
		if got, want := h.Get("x-envoy-ratelimited") != "", i >= 5; got != want {
			t.Errorf("request %d: x-envoy-ratelimited is %t, want %t", i+1, got, want)
		}
	}
}

func perAddress(t *testing.T, x *example) {
	a, b := clientFrom(t, randomLoopback()), clientFrom(t, randomLoopback())
	suspect := clientFrom(t, fmt.Sprintf("127.9.%d.%d", rand.IntN(256), 1+rand.IntN(250)))
	count := func(c *http.Client, n int) (admitted int) {
		for range n {
			if get(t, c, x.url+"/ip").StatusCode == ok {
				admitted++
			}
		}
		return admitted
	}
	if n := count(a, 12); n != 10 {
		t.Errorf("the first address had %d of 12 requests admitted, want 10", n)
	}
	if n := count(b, 1); n != 1 {
		t.Error("the second address was refused for what the first had done")
	}
	if n := count(suspect, 4); n != 2 {
		t.Errorf("an address of 127.9.0.0/16 had %d of 4 requests admitted, want 2", n)
	}
}

func nested(t *testing.T, x *example) {
	tenant, other := unique("tenant"), unique("tenant")
	url := x.url + "/nested"
	wantCodes(t, x.codes(t, 4, url, "x-tenant", tenant, "x-plan", "free"), ok, ok, ok, refused)
	wantCodes(t, x.codes(t, 7, url, "x-tenant", tenant, "x-plan", "pro"), ok, ok, ok, ok, ok, ok, refused)
	wantCodes(t, x.codes(t, 1, url, "x-tenant", other, "x-plan", "free"), ok)
	wantCodes(t, x.codes(t, 8, url, "x-tenant", tenant, "x-plan", "internal"), ok, ok, ok, ok, ok, ok, ok, ok)
}

func shadow(t *testing.T, x *example) {
	user := unique("user")
	wantCodes(t, x.codes(t, 4, x.url+"/shadow", "x-user-id", user), ok, ok, ok, ok)
	x.left(t, 0, "example", "trial", "shadow", "user", user)
	s, err := x.peek("example", "trial", "shadow", "user", user)
	if err != nil || s.GetCode() != rlsv3.RateLimitResponse_OK {
		t.Errorf("a shadow limit that is over says %v (%v), want OK", s.GetCode(), err)
	}
	const stat = "rate_limit.example.trial_shadow.user."
	testenv.Eventually(t, 15*time.Second, stat+"shadow_mode in /stats", func() bool {
		return strings.Contains(x.debug(t, "/stats"), stat+"shadow_mode: 2")
	})
}

func quota(t *testing.T, x *example) {
	user, mate, team := unique("user"), unique("user"), unique("team")
	url := x.url + "/quota"
	// 2 of the user's own, and then what the team has left: 4, of which each
	// request took one too.
	wantCodes(t, x.codes(t, 6, url, "x-user-id", user, "x-team", team), ok, ok, ok, ok, refused, refused)
	// The mate's own share is untouched.
	wantCodes(t, x.codes(t, 3, url, "x-user-id", mate, "x-team", team), ok, ok, refused)
}

func dynamicOverride(t *testing.T, x *example) {
	customer := unique("customer")
	wantCodes(t, x.codes(t, 3, x.url+"/override", "x-customer", customer), ok, ok, refused)
	// The same customer without an override has the rule's 50, of which 3 are
	// counted.
	x.left(t, 47, "example", "customer", customer)
	r := x.get(t, x.url+"/override", "x-customer", customer)
	if got, want := r.Header.Get("x-ratelimit-limit"), "2, 2;w=3600"; got != want {
		t.Errorf("x-ratelimit-limit %q, want the override's %q", got, want)
	}
}

func costOnResponse(t *testing.T, x *example) {
	user := unique("user")
	for _, left := range []uint32{600, 200, 0} {
		wantCodes(t, x.codes(t, 1, x.url+"/cost", "x-user-id", user), ok)
		// Envoy charges when the response is over, which is after us.
		x.left(t, left, "example", "budget", "bytes", "user", user)
	}
	wantCodes(t, x.codes(t, 2, x.url+"/cost", "x-user-id", user), refused, refused)
}

func limitOfFailClosedFilter(t *testing.T, x *example) {
	got := x.codes(t, 5, x.url+"/billing", "x-user-id", unique("user"))
	wantCodes(t, got, ok, ok, ok, refused, refused)
}

func noDescriptor(t *testing.T, x *example) {
	asked := x.envoy.Stat(t, "cluster.upstream.ratelimit.ok")
	wantCodes(t, x.codes(t, 8, x.url+"/header"), ok, ok, ok, ok, ok, ok, ok, ok)
	wantCodes(t, x.codes(t, 2, x.url+"/"), ok, ok)
	if now := x.envoy.Stat(t, "cluster.upstream.ratelimit.ok"); now != asked {
		t.Errorf("Envoy asked %d times about requests without a descriptor", now-asked)
	}
}

func staticOverride(t *testing.T, x *example) {
	customer := unique("customer")
	wantCodes(t, x.codes(t, 3, x.newer+"/override-static", "x-customer", customer), ok, refused, refused)
	x.left(t, 47, "example", "customer", customer)
}

func refund(t *testing.T, x *example) {
	const failed = http.StatusBadGateway
	user := unique("user")
	for range 5 { // more than the limit of 3
		r := x.get(t, x.newer+"/refund/failed", "x-user-id", user)
		if r.StatusCode != failed || r.Header.Get("x-refund") != "" {
			t.Fatalf("status %d, x-refund %q; want %d, and no x-refund",
				r.StatusCode, r.Header.Get("x-refund"), failed)
		}
		x.left(t, 3, "example", "budget", "jobs", "user", user)
	}
	got := x.codes(t, 5, x.newer+"/refund/done", "x-user-id", user)
	wantCodes(t, got, ok, ok, ok, refused, refused)
}
