package stats

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// lines is a sink that keeps what a statsd server would be sent.
type lines struct {
	sum     map[string]int64
	written []string
}

func newLines() *lines { return &lines{sum: make(map[string]int64)} }

func (l *lines) Write(m Sample) {
	l.written = append(l.written, string(appendValue(append([]byte(nil), m.Name...), m)))
	if m.Kind == KindCounter {
		l.sum[string(m.Name)] += int64(m.Delta)
	}
}
func (l *lines) Flush()                      {}
func (l *lines) Close(context.Context) error { return nil }

func flushed(r *Registry) string {
	l := newLines()
	r.Flush(l)
	return strings.Join(l.written, "\n")
}

// A request may add 2^63 hits, more than a server may take.
func TestGrowthBeyondInt64IsWrittenInParts(t *testing.T) {
	r := New(Options{})
	r.Counter("c").Add(1<<63 + 4)
	want := "c:9223372036854775807|c\nc:5|c"
	if got := flushed(r); got != want {
		t.Errorf("written: %s, want %s", got, want)
	}
}

func TestFlushWritesDeltasAndNothingUnused(t *testing.T) {
	r := New(Options{})
	r.Counter("unused").Add(0)
	r.Rule("d.unused")
	r.Timer("unused_timer")
	r.Gauge("unused_gauge")
	if got := flushed(r); got != "" {
		t.Errorf("unused names were written:\n%s", got)
	}
	r.Counter("ratelimit.service.config_load_success").Add(2)
	rule := r.Rule("d.k_v")
	rule.TotalHits.Add(3)
	rule.OverLimitWithLocalCache.Add(1)
	r.DynamicRule([]byte("d.k_x")).NearLimit.Add(4)
	r.Dynamic([]byte("ratelimit.service.rate_limit.no.domain_not_found")).Add(5)
	r.Gauge("g").Set(-7)
	for range 49 {
		r.Timer("t").Observe(1700 * time.Microsecond)
	}
	r.Timer("t").Observe(1239 * time.Millisecond)
	want := `ratelimit.service.rate_limit.d.k_x.near_limit:4|c
ratelimit.service.rate_limit.no.domain_not_found:5|c
ratelimit.service.rate_limit.d.k_v.total_hits:3|c
ratelimit.service.rate_limit.d.k_v.over_limit_with_local_cache:1|c
ratelimit.service.config_load_success:2|c
g:-7|g
t:1|ms|@` + "0.02040816326530612" + `
t:1200|ms`
	if got := flushed(r); got != want {
		t.Errorf("first flush:\n%s\nwant:\n%s", got, want)
	}
	rule.TotalHits.Add(1)
	if got, want := flushed(r), "ratelimit.service.rate_limit.d.k_v.total_hits:1|c\ng:-7|g"; got != want {
		t.Errorf("second flush:\n%s\nwant:\n%s", got, want)
	}
}

func TestNamesCannotBreakALine(t *testing.T) {
	r := New(Options{})
	r.Dynamic([]byte("a\nforged:1|c")).Add(1)
	r.DynamicRule([]byte("d.k_\r\nx:9|c\nz")).TotalHits.Add(1)
	want := "ratelimit.service.rate_limit.d.k___x_9_c_z.total_hits:1|c\na_forged_1_c:1|c"
	if got := flushed(r); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestTextSumsRuleAndOverrideOfOneName(t *testing.T) {
	r := New(Options{})
	r.Rule("d.k").TotalHits.Add(1)
	r.DynamicRule([]byte("d.k")).TotalHits.Add(2)
	r.Timer("t").Observe(1500 * time.Millisecond)
	r.OnFlush(func() { r.Gauge("g").Set(5) })
	var b bytes.Buffer
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	want := "g: 5\nratelimit.service.rate_limit.d.k.total_hits: 3\nt.count: 1\nt.total_ms: 1500\n"
	if b.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", b.String(), want)
	}
}

func TestSetKeepsNamesInUse(t *testing.T) {
	r := New(Options{MaxSeries: 10})
	hot := []byte("hot")
	for i := range 1000 {
		r.DynamicRule(hot).TotalHits.Add(1)
		r.DynamicRule(fmt.Append(nil, "once", i)).TotalHits.Add(1)
	}
	if got := r.DynamicRule(hot).TotalHits.Value(); got != 1000 {
		t.Errorf("the name in use has %d hits, want 1000: it was evicted", got)
	}
}

// Every hit is shown exactly once under its own name or under overflow, also
// when the counter it is added to was evicted meanwhile.
func TestNoHitIsLostToEviction(t *testing.T) {
	r := New(Options{MaxSeries: 8})
	sink := newLines()
	const perWorker, workers = 20000, 4
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(w), 1))
			for range perWorker {
				c := r.DynamicRule(fmt.Append(nil, "k", rnd.IntN(40)))
				c.TotalHits.Add(1)
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	for running := true; running; {
		select {
		case <-done:
			running = false
		case <-r.leaving.wake:
			r.Flush(sink)
		}
	}
	r.Flush(sink)
	r.Flush(sink) // what the first handed to overflow
	var sum int64
	for name, n := range sink.sum {
		if strings.HasSuffix(name, ".total_hits") && !strings.HasPrefix(name, "gale.stats.evicted") {
			sum += n
		}
	}
	if sum != perWorker*workers {
		t.Errorf("%d hits were shown, want %d", sum, perWorker*workers)
	}
}

func TestMillionNamesStayFlat(t *testing.T) {
	r := New(Options{})
	sink := newLines()
	fill := func(from, n int) uint64 {
		for i := range n {
			r.DynamicRule(fmt.Append(nil, "domain.user_", from+i, ".path_/x")).TotalHits.Add(1)
			r.Dynamic(fmt.Append(nil, "ratelimit.service.rate_limit.", from+i, ".domain_not_found")).Add(1)
			if i%5000 == 0 {
				r.Flush(sink)
				clear(sink.sum)
				sink.written = nil
			}
		}
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := fill(0, 50_000)
	after := fill(50_000, 1_000_000)
	t.Logf("heap after 50,000 names %d KiB, after 1,050,000 names %d KiB", before>>10, after>>10)
	if after > before+4<<20 {
		t.Errorf("heap grew from %d to %d bytes over a million names", before, after)
	}
}

func TestKnownNamesDoNotAllocate(t *testing.T) {
	r := New(Options{})
	key, name := []byte("d.k_v"), []byte("x.y")
	n := testing.AllocsPerRun(100, func() {
		r.DynamicRule(key).TotalHits.Add(1)
		r.Dynamic(name).Add(1)
	})
	if n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

func TestTimerCellsCoverEveryDuration(t *testing.T) {
	for millis, want := range map[int]int64{0: 0, 99: 99, 100: 100, 109: 100, 999: 990, 1000: 1000, 10500: 10000, 3600000: 60000} {
		r := New(Options{})
		r.Timer("t").Observe(time.Duration(millis) * time.Millisecond)
		if got := flushed(r); got != fmt.Sprintf("t:%d|ms", want) {
			t.Errorf("%d ms was written as %s, want %d", millis, got, want)
		}
	}
	for count := range uint64(10000) {
		if got := uint64(1 / sampleRate(count+1)); got != count+1 {
			t.Fatalf("a server takes the rate of %d for %d", count+1, got)
		}
	}
}

func TestReservedTagIsCounted(t *testing.T) {
	r := New(Options{ExtraTags: map[string]string{"az": "x", "mine": "y"}})
	if got := flushed(r); got != "reserved_tag:1|c" {
		t.Errorf("got %q", got)
	}
}
