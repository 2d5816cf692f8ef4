//go:build integration

package integration

import (
	"context"
	"sync"
	"testing"
	"time"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/gale-rls/gale-rls/internal/testenv"
)

const (
	tripsRate  = 5000 // requests per second
	tripsWarm  = 5 * time.Second
	tripsLasts = 12 * time.Second
	floodLasts = 12 * time.Second
)

const leasedTripsRules = `
domain: leased
descriptors:
- key: probe
  rate_limit: {unit: hour, requests_per_unit: 1000}
- key: auto
  rate_limit: {unit: minute, requests_per_unit: 1000000}
- key: fixed
  rate_limit: {unit: minute, requests_per_unit: 1000000}
  gale: {lease: {size: 100}}
- key: empty
  rate_limit: {unit: hour, requests_per_unit: 10}
`

// TestLeasedFewTrips counts, on the wire between gale-rls and Redis, the
// round trips that a hot key costs, and a flood on one that is exhausted. What
// gale-rls asks without any request (whether Redis is there, how many replicas
// live) is measured first and taken off.
func TestLeasedFewTrips(t *testing.T) {
	for _, c := range []struct {
		key  string
		most float64 // round trips per 1,000 requests
	}{{"auto", 2}, {"fixed", 11}} {
		t.Run(c.key, func(t *testing.T) { fewTrips(t, c.key, c.most) })
	}
	t.Run("exhausted", fewTripsWhenEmpty)
}

func fewTrips(t *testing.T, key string, most float64) {
	f := startLeased(t, 1, leasedTripsRules, nil)
	idle := idleTrips(t, f.proxies[0])
	hot := hotStream(key, tripsRate)
	end := hot.flood(t, f.rls[0])
	elapse(t, tripsWarm)
	trips, sent := f.proxies[0].RoundTrips(), hot.answered()
	begin := time.Now()
	elapse(t, tripsLasts)
	took := time.Since(begin)
	trips, sent = f.proxies[0].RoundTrips()-trips, hot.answered()-sent
	end()
	per := max(float64(trips)-idle*took.Seconds(), 0) / float64(sent) * 1000
	t.Logf("%d requests in %v (%.0f/s, %d not sent): %d round trips, of them %.1f/s when idle: %.2f per 1,000",
		sent, took.Round(time.Millisecond), float64(sent)/took.Seconds(), hot.unsent, trips, idle, per)
	if sent < int(took.Seconds()*tripsRate*8/10) {
		t.Errorf("only %.0f requests/s: this machine is too busy", float64(sent)/took.Seconds())
	}
	if per > most {
		t.Errorf("%.2f round trips per 1,000 requests, want at most %.0f", per, most)
	}
	if hot.refused > 0 || hot.failed > 0 {
		t.Errorf("%d requests refused, %d failed", hot.refused, hot.failed)
	}
}

// fewTripsWhenEmpty floods a key that has nothing left, at two replicas.
func fewTripsWhenEmpty(t *testing.T) {
	f := startLeased(t, 2, leasedTripsRules, nil)
	var idle float64
	for _, p := range f.proxies {
		idle += idleTrips(t, p) / float64(len(f.proxies))
	}
	hot := hotStream("empty", 500)
	var ends []func()
	for i := range f.rls {
		ends = append(ends, hot.flood(t, f.rls[i]))
	}
	testenv.Eventually(t, 10*time.Second, "the limit to be admitted", func() bool { return hot.answered() > 1000 })
	before := []int64{f.proxies[0].RoundTrips(), f.proxies[1].RoundTrips()}
	answered, begin := hot.answered(), time.Now()
	elapse(t, floodLasts)
	took := time.Since(begin)
	after := []int64{f.proxies[0].RoundTrips(), f.proxies[1].RoundTrips()}
	answered = hot.answered() - answered
	for _, end := range ends {
		end()
	}
	for i := range f.proxies {
		wire := float64(after[i]-before[i]) / took.Seconds()
		per := wire - idle
		t.Logf("replica %d: %.2f round trips per second, of them %.2f when idle; flooded with %.0f requests/s",
			i, wire, idle, float64(answered)/2/took.Seconds())
		if per > 2 {
			t.Errorf("%.2f round trips per second, want at most 2", per)
		}
	}
	if n := len(hot.admitted); n > 10 {
		t.Errorf("%d admitted, limit 10", n)
	}
}

func hotStream(key string, rate float64) *stream {
	return &stream{entries: []string{key, unique("key")}, rate: rate, hits: 1, length: 60}
}

// answered is how many requests of a hit have been answered.
func (s *stream) answered() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.admitted) + int(s.refused)
}

// flood sends the stream's requests to one replica until the function that it
// returns is called, or the test ends.
func (s *stream) flood(t *testing.T, rls rlsv3.RateLimitServiceClient) (end func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() { newLoad80([]rlsv3.RateLimitServiceClient{rls}, []*stream{s}).run(ctx) })
	return func() {
		cancel()
		done.Wait()
	}
}
