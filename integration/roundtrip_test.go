//go:build integration

package integration

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gale-rls/gale-rls/internal/testenv"
)

const roundTripRules = `
domain: trips
descriptors:
- key: strict
  rate_limit: {unit: hour, requests_per_unit: 1000000}
- key: second
  rate_limit: {unit: second, requests_per_unit: 1000000}
- key: shadow
  shadow_mode: true
  rate_limit: {unit: day, requests_per_unit: 1000000}
- key: quota
  quota_mode: true
  rate_limit: {unit: week, requests_per_unit: 1000000}
- key: cached
  rate_limit: {unit: minute, requests_per_unit: 1000000}
  gale: {mode: cached-deny}
`

// trips is one kind of request, and what it may cost.
type trips struct {
	name string
	env  map[string]string
	keys []string // of its descriptors, in turn
	hits uint64
	neg  bool
}

// TestOneRoundTrip counts, on the wire between gale-rls and Redis, the times
// that gale-rls waits for Redis: one for a request of ten descriptors,
// whatever they are.
func TestOneRoundTrip(t *testing.T) {
	mixed := []string{"strict", "second", "shadow", "quota", "cached"}
	for _, c := range []trips{
		{name: "ten strict limits", keys: []string{"strict"}, hits: 1},
		{name: "ten limits of all kinds", keys: mixed, hits: 1},
		{name: "ten peeks", keys: mixed, hits: 0},
		{name: "ten refunds", keys: mixed, hits: 1, neg: true},
		{name: "ten limits, all or none", keys: mixed, hits: 1,
			env: map[string]string{"STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT": "true"}},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t) })
	}
}

func (c trips) run(t *testing.T) {
	const requests = 100
	proxy, rls := tripsGale(t, c.env)
	send := func(key string) {
		r, err := rls.ShouldRateLimit(t.Context(), c.request(key))
		if err != nil || r.GetOverallCode() != rlsv3.RateLimitResponse_OK || len(r.GetStatuses()) != 10 {
			t.Fatalf("%v, %v; want OK with 10 statuses", r, err)
		}
	}
	send(unique("warm")) // scripts are loaded with their first use

	idle := idleTrips(t, proxy)
	before, start := proxy.RoundTrips(), time.Now()
	for range requests {
		send(unique("key"))
	}
	got, took := proxy.RoundTrips()-before, time.Since(start)
	// Connections that gale-rls checks while they rest are no requests.
	own := int64(took.Seconds()*idle + 1)
	if idle == 0 {
		own = 0
	}
	t.Logf("%d requests of 10 descriptors: %d round trips (and %.1f/s when idle)", requests, got, idle)
	if got < requests || got > requests+own {
		t.Errorf("%d requests cost %d round trips, want one each", requests, got)
	}
}

// request is one of ten descriptors with counters that no other request has.
func (c trips) request(key string) *rlsv3.RateLimitRequest {
	r := &rlsv3.RateLimitRequest{Domain: "trips"}
	for i := range 10 {
		d := descriptor(c.keys[i%len(c.keys)], fmt.Sprintf("%s-%d", key, i))
		d.HitsAddend, d.IsNegativeHits = wrapperspb.UInt64(c.hits), c.neg
		r.Descriptors = append(r.Descriptors, d)
	}
	return r
}

// TestRoundTripsShared sends many requests at once: they share round trips.
func TestRoundTripsShared(t *testing.T) {
	const workers, each = 64, 50
	proxy, rls := tripsGale(t, nil)
	// On a longer wire, requests that come while one waits travel together.
	proxy.Delay(2 * time.Millisecond)
	one := trips{keys: []string{"strict"}, hits: 1}
	before := proxy.RoundTrips()
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for range each {
				if _, err := rls.ShouldRateLimit(t.Context(), one.request(unique("key"))); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	got := proxy.RoundTrips() - before
	t.Logf("%d requests of 10 descriptors, %d at a time: %d round trips", workers*each, workers, got)
	if got > workers*each/2 {
		t.Errorf("%d requests at once cost %d round trips, want less than half as many", workers*each, got)
	}
}

// tripsGale starts gale-rls with a counting proxy before its Redis.
func tripsGale(t *testing.T, env map[string]string) (*testenv.Proxy, rlsv3.RateLimitServiceClient) {
	t.Helper()
	proxy := testenv.NewProxy(t, testenv.Redis(t).Addr)
	all := map[string]string{"REDIS_SOCKET_TYPE": "tcp", "REDIS_URL": proxy.Addr}
	for k, v := range env {
		all[k] = v
	}
	g := testenv.Gale(t, testenv.GaleOptions{Rules: map[string]string{"trips.yaml": roundTripRules}, Env: all})
	rls := dial(t, g.GRPC)
	testenv.Eventually(t, 20*time.Second, "gale-rls to count", func() bool {
		s, err := ask(rls, "trips", 1, "strict", unique("probe"))
		return err == nil && s.GetCurrentLimit() != nil
	})
	return proxy, rls
}

// idleTrips is how many round trips per second there are without requests.
func idleTrips(t *testing.T, p *testenv.Proxy) float64 {
	t.Helper()
	const watch = time.Second
	before, start := p.RoundTrips(), time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), watch)
	defer cancel()
	<-ctx.Done()
	return float64(p.RoundTrips()-before) / time.Since(start).Seconds()
}
