package redisstore_test

import (
	"context"
	"errors"
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gale-rls/gale-rls/internal/testenv"
	"github.com/gale-rls/gale-rls/pkg/gale"
	"github.com/gale-rls/gale-rls/pkg/gale/redisstore"
)

func strictRequest(key string, limit uint64) *gale.Request {
	return &gale.Request{
		Charges: []gale.Charge{{
			Key: []byte(key), Hits: 1, Policy: &gale.Policy{Limit: gale.Limit{Hits: limit, Window: 86400}},
		}},
		Decisions: make([]gale.Decision, 1),
	}
}

// outage is what customers saw of one.
type outage struct {
	mu                sync.Mutex
	answers, failures int
	latest            time.Duration // beyond its deadline
}

func (o *outage) note(late time.Duration, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.answers++
	if err != nil {
		o.failures++
	}
	o.latest = max(o.latest, late)
}

// TestOutages is issue-sized in integration; this is the short form: Redis
// stops answering, or dies, or the network swallows what is sent to it, under
// 1,000 requests per second, and comes back.
func TestOutages(t *testing.T) {
	for _, test := range []struct {
		name       string
		begin, end func(*testing.T, *redisBehindProxy)
	}{
		{"paused", func(t *testing.T, r *redisBehindProxy) { r.server.Pause(t) }, func(t *testing.T, r *redisBehindProxy) { r.server.Resume(t) }},
		{"killed", func(t *testing.T, r *redisBehindProxy) { r.server.Kill(t) }, func(t *testing.T, r *redisBehindProxy) { r.server.Restart(t) }},
		{"swallowed", func(_ *testing.T, r *redisBehindProxy) { r.swallow() }, func(_ *testing.T, r *redisBehindProxy) { r.swallowed.Store(false) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := startBehindProxy(t)
			endure(t, r, func() { test.begin(t, r) }, func() { test.end(t, r) })
		})
	}
}

// redisBehindProxy is a server that connections can be kept from.
type redisBehindProxy struct {
	server    *testenv.RedisServer
	proxy     *testenv.Proxy
	swallowed atomic.Bool
}

func startBehindProxy(t *testing.T) *redisBehindProxy {
	server := testenv.Redis(t)
	if !server.Owned() {
		t.Skip("needs a server of its own")
	}
	return &redisBehindProxy{server: server, proxy: testenv.NewProxy(t, server.Addr)}
}

// swallow ends all connections, and lets new ones hang.
func (r *redisBehindProxy) swallow() {
	r.swallowed.Store(true)
	r.proxy.CloseAll()
}

func (r *redisBehindProxy) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if r.swallowed.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return new(net.Dialer).DialContext(ctx, network, address)
}

// endure checks an outage: answers in time, nothing that grows, and
// enforcement soon after.
func endure(t *testing.T, r *redisBehindProxy, begin, end func()) {
	duration := 3 * time.Second
	if d, err := time.ParseDuration(os.Getenv("GALE_TEST_OUTAGE")); err == nil {
		duration = d
	}
	store := open(t, redisstore.Config{Address: r.proxy.Addr, Timeout: 10 * time.Second, Dialer: r.dial})
	engine, err := gale.NewEngine(store, nil, gale.Config{DeadlineMargin: 2 * time.Millisecond, OpTimeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close(context.Background())
	decide := func() (time.Duration, error) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		began := time.Now()
		err := engine.Decide(ctx, strictRequest("outage_", 1<<40))
		return time.Since(began) - 20*time.Millisecond, err
	}
	for range 100 {
		_, _ = decide()
	}
	goroutines, memory := runtime.NumGoroutine(), heap()
	begin()
	var seen outage
	load(duration, func() { seen.note(decide()) })
	grown := int64(heap()) - int64(memory)
	more := runtime.NumGoroutine() - goroutines
	end()
	began := time.Now()
	testenv.Eventually(t, 5*time.Second, "enforcement", func() bool { _, err := decide(); return err == nil })
	back := time.Since(began)
	t.Logf("%d answers, %d of them errors, the latest %v after its deadline; %+d goroutines, heap %+d KiB; enforcing %v after the return",
		seen.answers, seen.failures, seen.latest, more, grown>>10, back)
	// The lateness allows for a machine that is busy with other tests.
	if back > 2*time.Second || more > 100 || grown > 20<<20 || seen.latest > 500*time.Millisecond {
		t.Error("beyond the bounds")
	}
}

// load calls f 1,000 times per second, each call on a goroutine of its own,
// as a server would.
func load(duration time.Duration, f func()) {
	var wg sync.WaitGroup
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for began := time.Now(); time.Since(began) < duration; <-tick.C {
		for range 10 {
			wg.Go(f)
		}
	}
	wg.Wait()
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// Replicas that share a server share the limit.
func TestReplicasShareTheLimit(t *testing.T) {
	server := testenv.Redis(t)
	const limit = 500
	for name, c := range map[string]gale.Config{
		"strict": {}, "together": {StopWhenOver: true}, "cached": {DenyCacheForStrict: true},
	} {
		t.Run(name, func(t *testing.T) {
			var admitted atomic.Int64
			var wg sync.WaitGroup
			for range 3 {
				engine, err := gale.NewEngine(open(t, redisstore.Config{Address: server.Addr, Timeout: 5 * time.Second}), nil, c)
				if err != nil {
					t.Fatal(err)
				}
				defer engine.Close(context.Background())
				for range 4 {
					wg.Go(func() {
						for range 100 {
							r := strictRequest(name+steps(1, "_share")[0].Key, limit)
							if err := engine.Decide(t.Context(), r); err != nil && !errors.Is(err, context.Canceled) {
								t.Error(err)
								return
							}
							if !r.Refused() {
								admitted.Add(1)
							}
						}
					})
				}
			}
			wg.Wait()
			if n := admitted.Load(); n != limit {
				t.Errorf("%d admitted, the limit is %d", n, limit)
			}
		})
	}
}

func BenchmarkEngine(b *testing.B) {
	server := testenv.Redis(b)
	store, err := redisstore.New(redisstore.Config{Address: server.Addr})
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	engine, err := gale.NewEngine(store, nil, gale.Config{ExpirationJitter: 300 * time.Second})
	if err != nil {
		b.Fatal(err)
	}
	defer engine.Close(context.Background())
	testenv.Eventually(b, 5*time.Second, "the server", func() bool { return store.Ready() == nil })
	b.ReportAllocs()
	b.SetParallelism(64)
	b.RunParallel(func(pb *testing.PB) {
		r := strictRequest("bench_", 1<<40)
		for pb.Next() {
			if err := engine.Decide(b.Context(), r); err != nil {
				b.Error(err)
			}
		}
	})
}
