//go:build integration

package integration

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	rlv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gale-rls/gale-rls/internal/testenv"
)

// leasedFleet is replicas of gale-rls on one Redis, a proxy before each.
type leasedFleet struct {
	redis   *testenv.RedisServer
	proxies []*testenv.Proxy
	gales   []*testenv.GaleServer
	rls     []rlsv3.RateLimitServiceClient
}

// startLeased starts n replicas with one rule file, and leases where it does
// not say otherwise.
func startLeased(t *testing.T, n int, rules string, env map[string]string) *leasedFleet {
	t.Helper()
	return startLeasedOn(t, testenv.Redis(t), n, rules, env)
}

func startLeasedOn(t *testing.T, redis *testenv.RedisServer, n int, rules string, env map[string]string) *leasedFleet {
	t.Helper()
	f := &leasedFleet{redis: redis}
	for range n {
		p := testenv.NewProxy(t, redis.Addr)
		all := map[string]string{
			"REDIS_SOCKET_TYPE": "tcp", "REDIS_URL": p.Addr, "GALE_DEFAULT_MODE": "leased",
		}
		for k, v := range env {
			all[k] = v
		}
		g := testenv.Gale(t, testenv.GaleOptions{Rules: map[string]string{"leased.yaml": rules}, Env: all})
		f.proxies, f.gales, f.rls = append(f.proxies, p), append(f.gales, g), append(f.rls, dialAgain(t, g.GRPC))
	}
	for _, c := range f.rls {
		testenv.Eventually(t, 20*time.Second, "a replica to decide", func() bool {
			_, err := ask(c, "leased", 1, "probe", unique("probe"))
			return err == nil
		})
	}
	return f
}

// dialAgain is dial for a server that dies and comes back: it is looked for
// often.
func dialAgain(t *testing.T, target string) rlsv3.RateLimitServiceClient {
	t.Helper()
	c, err := grpc.NewClient("passthrough:///"+target,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{BaseDelay: 20 * time.Millisecond, Multiplier: 1.5, MaxDelay: 200 * time.Millisecond},
		}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return rlsv3.NewRateLimitServiceClient(c)
}

// stream is requests for one key at a constant rate.
type stream struct {
	entries []string // the descriptor: key, value, ...
	limit   int64    // of its rule
	length  int64    // of its window, in seconds
	rate    float64  // requests per second
	hits    int      // of a request, on average
	// burst sends only around every other boundary of a second: a window that
	// has credits left at its end meets one that is asked for all it has.
	burst bool

	mu       sync.Mutex
	admitted []admission
	refused  int64 // hits
	failed   int   // requests
	unsent   int   // requests, since a replica had too many already
	offered  map[int64]int64
}

func (s *stream) String() string { return strings.Join(s.entries, " ") }

// demandOf makes a stream that asks for so many times its limit, with no
// more than most requests per second: many hits in one where it must.
func demandOf(name string, limit, length int64, times, most float64) *stream {
	hits := 1
	perSecond := times * float64(limit) / float64(length)
	if perSecond > most {
		hits = int(perSecond/most) + 1
	}
	return &stream{
		entries: []string{name, unique("key")}, limit: limit, length: length,
		rate: max(perSecond/float64(hits), 0.5), hits: hits,
	}
}

// load80 sends the streams to the fleet until ctx ends, each request to a
// replica of its own: 80 of 100 to a fifth of the replicas, and another
// fifth every few seconds, for each stream in its own order.
type load80 struct {
	fleet   []rlsv3.RateLimitServiceClient
	streams []*stream
	// busy holds a place for each request under way at a replica: one that
	// hangs must not take all memory.
	busy []chan struct{}
	done sync.WaitGroup
}

const (
	// tick80 is how often it looks what is due.
	tick80 = 2 * time.Millisecond
	// shift80 is how long a fifth of the replicas is hot.
	shift80 = 4 * time.Second
	// patience80 is a request's deadline.
	patience80 = 2 * time.Second
	underWay80 = 400
)

func newLoad80(fleet []rlsv3.RateLimitServiceClient, streams []*stream) *load80 {
	l := &load80{fleet: fleet, streams: streams}
	for range fleet {
		l.busy = append(l.busy, make(chan struct{}, underWay80))
	}
	return l
}

// run returns when ctx has ended and all requests are answered.
func (l *load80) run(ctx context.Context) {
	tick := time.NewTicker(tick80)
	defer tick.Stop()
	due := make([]float64, len(l.streams))
	start := time.Now()
	for last := start; ; {
		select {
		case <-ctx.Done():
			l.done.Wait()
			return
		case <-tick.C:
		}
		now := time.Now()
		for i, s := range l.streams {
			if phase := now.UnixMilli() % 2000; s.burst && (phase < 900 || phase > 1600) {
				due[i] = 0
				continue
			}
			due[i] += s.rate * min(now.Sub(last), 50*time.Millisecond).Seconds()
			for ; due[i] > 0; due[i] -= rand.ExpFloat64() {
				l.send(s, l.pick(i, now.Sub(start)))
			}
		}
		last = now
	}
}

// pick chooses a replica for a request of stream i.
func (l *load80) pick(i int, at time.Duration) int {
	n := len(l.fleet)
	hot := max(1, (n+2)/5)
	first := (int(at/shift80) + 3*i) % n
	if rand.IntN(5) > 0 {
		return (first + rand.IntN(hot)) % n
	}
	return (first + hot + rand.IntN(max(1, n-hot))) % n
}

// send sends one request, unless the replica has too many already.
func (l *load80) send(s *stream, replica int) {
	select {
	case l.busy[replica] <- struct{}{}:
	default:
		s.mu.Lock()
		s.unsent++
		s.mu.Unlock()
		return
	}
	hits := s.some()
	s.offer(int64(hits))
	l.done.Go(func() {
		defer func() { <-l.busy[replica] }()
		a, over, err := askFor(l.fleet[replica], uint64(hits), s.entries)
		s.note(a, !over && err == nil, err != nil)
	})
}

// askFor sends one request and notes when.
func askFor(c rlsv3.RateLimitServiceClient, hits uint64, entries []string) (a admission, over bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience80)
	defer cancel()
	d := descriptor(entries...)
	d.HitsAddend = wrapperspb.UInt64(hits)
	q := &rlsv3.RateLimitRequest{Domain: "leased", Descriptors: []*rlv3.RateLimitDescriptor{d}}
	a = admission{sent: time.Now().UnixMicro(), hits: int64(hits)}
	r, err := c.ShouldRateLimit(ctx, q)
	a.received = time.Now().UnixMicro()
	if err == nil && r.GetStatuses()[0].GetCurrentLimit() == nil {
		err = fmt.Errorf("no limit for %v", entries)
	}
	return a, r.GetOverallCode() == rlsv3.RateLimitResponse_OVER_LIMIT, err
}

// some is how many hits the next request has: one for a third of them, so
// that something fits into what is left, and hits on average.
func (s *stream) some() int {
	if s.hits == 1 || rand.IntN(3) == 0 {
		return 1
	}
	return 1 + rand.IntN(3*s.hits-2)
}

// offer notes, for the window of the moment, that hits are asked for.
func (s *stream) offer(hits int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.offered == nil {
		s.offered = map[int64]int64{}
	}
	s.offered[time.Now().UnixMicro()/(s.length*1e6)] += hits
}

func (s *stream) note(a admission, admitted, failed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case failed:
		s.failed++
	case admitted:
		s.admitted = append(s.admitted, a)
	default:
		s.refused += a.hits
	}
}

// noOvershoot fails the test for each span of windows with more admissions
// than it has, and logs what the stream did.
func (s *stream) noOvershoot(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	length := s.length * 1e6
	found := violations(s.admitted, length, s.limit)
	certain, _ := perWindow(s.admitted, length)
	most, sum := int64(0), int64(0)
	for _, n := range certain {
		most = max(most, n)
	}
	for _, a := range s.admitted {
		sum += a.hits
	}
	t.Logf("%-22s limit %6d per %2ds: %8d hits admitted, %9d refused, %5d requests failed, %d not sent; at most %d in one of %d windows",
		s.entries[0], s.limit, s.length, sum, s.refused, s.failed, s.unsent, most, len(certain))
	if len(found) > 0 {
		t.Errorf("%s: limit %d exceeded %d times: %v", s, s.limit, len(found), found[:min(5, len(found))])
	}
}

// full returns the windows that lie in [from, to] entirely, by index.
func (s *stream) full(from, to time.Time) []int64 {
	length := s.length * 1e6
	var all []int64
	for w := (from.UnixMicro() + length - 1) / length; (w+1)*length <= to.UnixMicro(); w++ {
		all = append(all, w)
	}
	return all
}

// leasedRules are one rule for each limit and unit, named by both, and what
// is below them in their gale block.
func leasedRules(limits []int64, gale string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "domain: leased\ndescriptors:\n- key: probe\n  rate_limit: {unit: hour, requests_per_unit: 1000}\n")
	for _, unit := range []string{"second", "minute"} {
		for _, n := range limits {
			fmt.Fprintf(&b, "- key: %s%d\n  rate_limit: {unit: %s, requests_per_unit: %d}\n%s", unit, n, unit, n, gale)
		}
	}
	return b.String()
}
