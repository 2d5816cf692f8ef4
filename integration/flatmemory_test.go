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

	"github.com/gale-rls/gale-rls/internal/testenv"
)

const (
	// flood is how many names a client makes up.
	flood = 1_000_000
	// floodWarm of them come first: they fill what is bounded, such as the
	// 10,000 series of statistics.
	floodWarm = 100_000
	// floodBatch overrides travel in one request; a domain is one request.
	floodBatch   = 100
	floodWorkers = 32

	// Live heap is what names would be kept in. Resident memory is that, and
	// what the collector has not given back under this load.
	allowedHeap     = 8 << 20
	allowedResident = 40 << 20
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
		floodGale(t, nil, overrides, floodBatch)
	})
	t.Run("override keys, Redis", func(t *testing.T) {
		floodGale(t, testenv.Redis(t), overrides, floodBatch)
	})
	t.Run("unknown domains", func(t *testing.T) {
		floodGale(t, nil, unknownDomain, 1)
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

// floodGale sends flood names, batch in each request, and compares what
// gale-rls takes before and after.
func floodGale(t *testing.T, redis *testenv.RedisServer, request func(n int) *rlsv3.RateLimitRequest, batch int) {
	prom := "127.0.0.1:" + strconv.Itoa(testenv.FreePort(t))
	g := testenv.Gale(t, testenv.GaleOptions{
		Rules: map[string]string{"flood.yaml": floodRules}, Redis: redis,
		Env: map[string]string{
			"DISABLE_STATS": "false", "USE_STATSD": "false", "USE_PROMETHEUS": "true",
			"PROMETHEUS_ADDR": prom, "STATS_FLUSH_INTERVAL": "500ms",
			"GALE_MAX_KEYS": "20000",
		},
	})
	rls := dial(t, g.GRPC)
	testenv.Eventually(t, 20*time.Second, "gale-rls to count", func() bool {
		s, err := ask(rls, "flood", 1, "user", unique("probe"))
		return err == nil && s.GetCurrentLimit() != nil
	})
	send(t, rls, request, batch, 0, floodWarm)
	before := take(t, g, prom)
	start := time.Now()
	send(t, rls, request, batch, floodWarm, floodWarm+flood)
	took := time.Since(start)
	after := take(t, g, prom)
	t.Logf("%d names in %v (%.0f/s)", flood, took.Round(time.Millisecond), flood/took.Seconds())
	t.Logf("after %7d names: %v", floodWarm, before)
	t.Logf("after %7d names: %v", floodWarm+flood, after)
	if grown := after.heap - before.heap; grown > allowedHeap {
		t.Errorf("the live heap grew by %.1f MiB", mib(grown))
	}
	if grown := after.resident - before.resident; grown > allowedResident {
		t.Errorf("resident memory grew by %.1f MiB", mib(grown))
	}
	if after.series > allowedSeries {
		t.Errorf("%d Prometheus series, want at most %d", after.series, allowedSeries)
	}
}

// send sends the names from, ..., to-1.
func send(t *testing.T, rls rlsv3.RateLimitServiceClient, request func(n int) *rlsv3.RateLimitRequest, batch, from, to int) {
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
				r, err := rls.ShouldRateLimit(ctx, request(n))
				if err != nil || r.GetOverallCode() != rlsv3.RateLimitResponse_OK {
					t.Errorf("name %d: %v, %v; want OK", n, r.GetOverallCode(), err)
					cancel()
					return
				}
			}
		})
	}
	all.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

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

// take measures gale-rls after a collection.
func take(t *testing.T, g *testenv.GaleServer, prom string) footprint {
	t.Helper()
	f := footprint{resident: resident(t, g.PID())}
	for line := range strings.Lines(page(t, "http://"+prom+"/metrics")) {
		if !strings.HasPrefix(line, "#") {
			f.series++
		}
	}
	// The heap profile with gc=1 ends with the memory statistics, among them
	// "# HeapAlloc = 123".
	_, after, _ := strings.Cut(page(t, "http://"+g.Debug+"/debug/pprof/heap?gc=1&debug=1"), "# HeapAlloc = ")
	value, _, _ := strings.Cut(after, "\n")
	var err error
	if f.heap, err = strconv.ParseInt(value, 10, 64); err != nil || f.series == 0 {
		t.Fatalf("heap %q (%v), %d series: the debug port or Prometheus does not answer", value, err, f.series)
	}
	return f
}
