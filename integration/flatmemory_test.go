//go:build integration

package integration

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	rlv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/grpc"

	"github.com/gale-rls/gale-rls/internal/testenv"
)

const (
	// flood is how many names a client makes up.
	flood = 1_000_000
	// floodWarm come before: they fill what is bounded, such as the 10,000
	// series of statistics.
	floodWarm = 200_000
	// floodBatch overrides travel in one request; a domain is one request.
	floodBatch   = 100
	floodWorkers = 32
	// floodFlush is how often the statistics go to Prometheus.
	floodFlush = 500 * time.Millisecond
	// floodDomains over gRPC: a million of those requests would take minutes
	// on a busy machine. TestFlatMemoryInProcess sends the million.
	floodDomains = 200_000

	// Live heap is what names would be kept in. A million in 48 MiB is 50
	// bytes each, less than their text and a place in a map. Sets that are
	// full still grow and shrink by some MiB, as their maps do. With Redis the
	// heap wanders between 19 and 46 MiB, after 200,000 names as after 1.2
	// million.
	allowedHeap = 48 << 20
	// Resident memory is several times that under such a load, as the
	// collector lets the heap double and gives back late. A million override
	// keys with their series would take more than 500 MiB.
	allowedResident = 250 << 20
	// With the statistics' bounded sets at 10,000 names, of up to six
	// counters each, and no more for any number of names.
	allowedSeries = 6*10_000 + 10_000 + 1000
)

const floodRules = `
domain: flood
descriptors:
- key: user
  rate_limit: {unit: hour, requests_per_unit: 100}
`

// TestFlatMemory lets a client make up a million keys with limits of their
// own, and a million domains. All of that is counted or answered, and nothing
// of it may be kept for ever: neither in the store in memory (which is told to
// keep 20,000 counters) nor in the statistics, with Prometheus on.
func TestFlatMemory(t *testing.T) {
	t.Run("override keys, store in memory", func(t *testing.T) {
		floodGale(t, nil, overrides, floodBatch, flood)
	})
	t.Run("override keys, Redis", func(t *testing.T) {
		floodGale(t, testenv.Redis(t), overrides, floodBatch, flood)
	})
	t.Run("unknown domains", func(t *testing.T) {
		floodGale(t, nil, unknownDomain, 1, floodDomains)
	})
}

// overrides is a request of floodBatch keys from number n on, each with a
// limit of its own.
func overrides(n int) *rlsv3.RateLimitRequest {
	r := &rlsv3.RateLimitRequest{Domain: "flood"}
	for i := range floodBatch {
		d := descriptor("user", fmt.Sprintf("made-up-%d", n+i))
		d.Limit = &rlv3.RateLimitDescriptor_RateLimitOverride{
			RequestsPerUnit: 10, Unit: typev3.RateLimitUnit_HOUR,
		}
		r.Descriptors = append(r.Descriptors, d)
	}
	return r
}

// unknownDomain is a request to a domain without rules.
func unknownDomain(n int) *rlsv3.RateLimitRequest {
	return &rlsv3.RateLimitRequest{
		Domain:      fmt.Sprintf("made-up-%d", n),
		Descriptors: []*rlv3.RateLimitDescriptor{descriptor("user", "anybody")},
	}
}

// floodGale sends so many names, batch in each request, and compares what
// gale-rls takes before and after.
func floodGale(t *testing.T, redis *testenv.RedisServer, request func(n int) *rlsv3.RateLimitRequest, batch, names int) {
	prom := "127.0.0.1:" + strconv.Itoa(testenv.FreePort(t))
	g := testenv.Gale(t, testenv.GaleOptions{
		Rules: map[string]string{"flood.yaml": floodRules}, Redis: redis,
		Env: map[string]string{
			"DISABLE_STATS": "false", "USE_STATSD": "false", "USE_PROMETHEUS": "true",
			"PROMETHEUS_ADDR": prom, "STATS_FLUSH_INTERVAL": floodFlush.String(),
			"GALE_MAX_KEYS": "20000",
			// Two million commands at full speed, on a machine that may be busy.
			"REDIS_TIMEOUT": "30s",
		},
	})
	rls := dial(t, g.GRPC)
	testenv.Eventually(t, 20*time.Second, "gale-rls to count", func() bool {
		s, err := ask(rls, "flood", 1, "user", unique("probe"))
		return err == nil && s.GetCurrentLimit() != nil
	})
	warm := min(floodWarm, names/2)
	send(t, rls.ShouldRateLimit, request, batch, 0, warm)
	before := take(t, g, prom)
	t.Logf("after %7d names: %v", warm, before)
	start := time.Now()
	send(t, rls.ShouldRateLimit, request, batch, warm, warm+names)
	took := time.Since(start)
	after := take(t, g, prom)
	t.Logf("after %7d names: %v", warm+names, after)
	t.Logf("%d names in %v (%.0f/s)", names, took.Round(time.Millisecond), float64(names)/took.Seconds())
	if grown := after.heap - before.heap; grown > allowedHeap {
		t.Errorf("the live heap grew by %.1f MiB", mib(grown))
	}
	if after.resident > allowedResident {
		t.Errorf("%.1f MiB resident, want at most %.0f", mib(after.resident), mib(allowedResident))
	}
	if after.series > allowedSeries {
		t.Errorf("%d Prometheus series, want at most %d", after.series, allowedSeries)
	}
}

// send sends the names from, ..., to-1.
func send(t *testing.T, should shouldRateLimit, request func(n int) *rlsv3.RateLimitRequest, batch, from, to int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	var next atomic.Int64
	next.Store(int64(from))
	var all sync.WaitGroup
	for range floodWorkers {
		all.Go(func() {
			for {
				n := int(next.Add(int64(batch))) - batch
				if n >= to {
					return
				}
				r, err := should(ctx, request(n))
				if ctx.Err() != nil {
					return // another one has failed
				}
				if err != nil || r.GetOverallCode() != rlsv3.RateLimitResponse_OK {
					t.Errorf("name %d: %v, %v; want OK", n, r.GetOverallCode(), err)
					cancel()
					return
				}
			}
		})
	}
	all.Wait()
	if t.Failed() || ctx.Err() != nil {
		t.Fatalf("not all names were sent: %v", ctx.Err())
	}
}

// shouldRateLimit is the method of a client.
type shouldRateLimit func(context.Context, *rlsv3.RateLimitRequest, ...grpc.CallOption) (*rlsv3.RateLimitResponse, error)

// footprint is what a process takes.
type footprint struct {
	heap     int64 // live, bytes
	resident int64 // bytes
	series   int   // lines of values on the Prometheus page
}

func (f footprint) String() string {
	return fmt.Sprintf("%.1f MiB live heap, %.1f MiB resident, %d Prometheus series",
		mib(f.heap), mib(f.resident), f.series)
}

// take measures gale-rls.
func take(t *testing.T, g *testenv.GaleServer, prom string) footprint {
	t.Helper()
	f := footprint{heap: atRest(t, func() int64 { return liveHeap(t, g) })}
	f.resident = resident(t, g.PID())
	for line := range strings.Lines(page(t, "http://"+prom+"/metrics")) {
		if !strings.HasPrefix(line, "#") {
			f.series++
		}
	}
	if f.series == 0 {
		t.Fatal("Prometheus has no series")
	}
	return f
}

// atRest is the smallest of what measure returns within some rounds of
// flushing: until then, the statistics keep what they have evicted.
func atRest(t *testing.T, measure func() int64) int64 {
	t.Helper()
	least, start := measure(), time.Now()
	testenv.Eventually(t, time.Minute, "the statistics to be flushed", func() bool {
		least = min(least, measure())
		return time.Since(start) > 4*floodFlush
	})
	return least
}

// liveHeap is what is alive after a collection: the heap profile with gc=1
// ends with the memory statistics, among them "# HeapAlloc = 123".
func liveHeap(t *testing.T, g *testenv.GaleServer) int64 {
	t.Helper()
	_, after, _ := strings.Cut(page(t, "http://"+g.Debug+"/debug/pprof/heap?gc=1&debug=1"), "# HeapAlloc = ")
	value, _, _ := strings.Cut(after, "\n")
	heap, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		t.Fatalf("heap profile: %v", err)
	}
	return heap
}
