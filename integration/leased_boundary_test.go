//go:build integration

package integration

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"

	"github.com/gale-rls/gale-rls/internal/testenv"
)

const (
	boundaryLasts = 60 * time.Second
	// boundaryWarm is before: the first window, in which the key is new.
	boundaryWarm = 3 * time.Second
	boundaryRate = 300 // requests per second and variant
	// allowedP99 is at the caller.
	allowedP99 = 2 * time.Millisecond
	// holdUp is when the machine may make requests wait for a lease: gale-rls
	// leases some milliseconds ahead, and when it is kept from running for as
	// long, nobody can.
	holdUp = 10 * time.Millisecond
)

const boundaryRules = `
domain: leased
descriptors:
- key: probe
  rate_limit: {unit: hour, requests_per_unit: 1000}
- key: hot
  rate_limit: {unit: second, requests_per_unit: 100000}
`

// TestLeasedBoundariesAreFlat puts a hot key with windows of one second on
// gale-rls, and a slow wire between it and Redis: through sixty boundaries no
// request waits for a lease, callers wait less than 2 ms, and an Envoy with
// its default timeout of 20 ms has an answer to each of its calls.
//
// Latencies are those that callers see, and callers, kernel and machine are in
// them: a server that answers at once is measured alongside, and the scheduler
// is asked when it kept gale-rls from running. The 99th percentile may exceed
// 2 ms by that of the control; waits are excused around hold-ups only.
func TestLeasedBoundariesAreFlat(t *testing.T) {
	var all sync.WaitGroup
	for _, delay := range []time.Duration{2 * time.Millisecond, 50 * time.Millisecond} {
		all.Go(func() { t.Run("wire of "+delay.String(), func(t *testing.T) { flatAtCaller(t, delay) }) })
	}
	all.Go(func() { t.Run("Envoy", flatAtEnvoy) })
	all.Wait()
}

func flatAtCaller(t *testing.T, delay time.Duration) {
	f := startLeased(t, 1, boundaryRules, nil)
	f.proxies[0].Delay(delay)
	frames := [][]byte{frame(t, "leased", "hot", unique("key"))}
	hot := &load{wire: newWire(t, f.gales[0].GRPC), frames: frames, rate: boundaryRate, deadline: time.Second}
	control := &load{wire: newWire(t, instantRLS(t)), frames: frames, rate: boundaryRate / 2, deadline: time.Second}
	hot.start()
	control.start()
	elapse(t, boundaryWarm)
	stalled := watchStalls(t, f.gales[0].PID())
	from, waited := time.Now(), metric(t, f.gales[0], "gale_lease_waits_total")
	elapse(t, boundaryLasts)
	to := time.Now()
	waits := metric(t, f.gales[0], "gale_lease_waits_total") - waited
	hot.stop()
	control.stop()

	answers, idle := hot.between(from, to), control.between(from, to)
	t.Logf("hot key: %v", answers)
	t.Logf("control: %v", idle)
	stalls := stalled()
	for _, a := range idle {
		if a.took > holdUp {
			stalls[slot(a.sent)] = true
		}
	}
	excused := float64(len(stalls)) * 2 * boundaryRate * noiseStep.Seconds()
	p99, floor := answers.p99(), idle.p99()
	t.Logf("%.0f requests waited for a lease; the machine held gale-rls or its caller up for %v in %d tenths of a second; p99 %v, the control's %v",
		waits, holdUp, len(stalls), p99, floor)
	if len(answers) < boundaryRate*int(boundaryLasts.Seconds())*8/10 {
		t.Errorf("only %d requests were sent: this machine is too busy", len(answers))
	}
	for _, a := range answers {
		if a.name() != "OK" {
			t.Errorf("an answer is %s (%v)", a.name(), a.err)
			break
		}
	}
	if waits > excused {
		t.Errorf("%.0f requests waited for a lease, want none", waits)
	}
	switch {
	case floor > 5*allowedP99:
		t.Logf("p99 NOT TESTED: this machine is too busy, the control's is %v", floor)
	case p99 > allowedP99 && p99-floor > allowedP99:
		t.Errorf("p99 is %v, want less than %v, or than that and the control's %v", p99, allowedP99, floor)
	}
}

// p99 is what 99 of 100 answers do not take longer than.
func (all answers) p99() time.Duration {
	took := make([]time.Duration, 0, len(all))
	for _, a := range all {
		took = append(took, a.took)
	}
	slices.Sort(took)
	if len(took) == 0 {
		return 0
	}
	return took[len(took)*99/100]
}

// watchStalls notes, until the function that it returns is called, in which
// slots of time a thread of pid was ready to run for holdUp and did not.
func watchStalls(t *testing.T, pid int) (end func() map[int64]bool) {
	ctx, cancel := context.WithCancel(t.Context())
	stalls := map[int64]bool{}
	var done sync.WaitGroup
	done.Go(func() {
		tick := time.NewTicker(holdUpStep)
		defer tick.Stop()
		for before := threadDelays(pid); ; {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			now := threadDelays(pid)
			for thread, d := range now {
				if d-before[thread] > holdUp {
					stalls[slot(time.Now())] = true
				}
			}
			before = now
		}
	})
	return func() map[int64]bool {
		cancel()
		done.Wait()
		return stalls
	}
}

// flatAtEnvoy runs the example's Envoy without a timeout of its own, on
// gale-rls with 50 ms added to each reply of Redis, and beside it one on a
// gale-rls that has no Redis and counts in its memory.
func flatAtEnvoy(t *testing.T) {
	rules := strings.ReplaceAll(boundaryRules, "domain: leased", "domain: example") +
		"- key: user\n  rate_limit: {unit: second, requests_per_unit: 100000}\n"
	redis := testenv.Redis(t)
	proxy := testenv.NewProxy(t, redis.Addr)
	g := testenv.Gale(t, testenv.GaleOptions{Rules: map[string]string{"r.yaml": rules}, Env: map[string]string{
		"REDIS_SOCKET_TYPE": "tcp", "REDIS_URL": proxy.Addr, "GALE_DEFAULT_MODE": "leased",
	}})
	proxy.Delay(50 * time.Millisecond)
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "hello\n")
	}))
	t.Cleanup(up.Close)
	local := testenv.Gale(t, testenv.GaleOptions{Rules: map[string]string{"r.yaml": rules}})
	hot, control := envoyOn(t, g.GRPC, up), envoyOn(t, local.GRPC, up)

	ctx, cancel := context.WithTimeout(t.Context(), boundaryWarm+boundaryLasts)
	defer cancel()
	var load sync.WaitGroup
	for _, e := range []*testenv.EnvoyServer{hot, control} {
		load.Go(func() { browse(ctx, e.Listeners["ingress"], 150) })
	}
	elapse(t, boundaryWarm)
	const allowed, answered = "cluster.upstream.ratelimit.failure_mode_allowed", "cluster.upstream.ratelimit.ok"
	before, noise := hot.Stat(t, allowed), control.Stat(t, allowed)
	load.Wait()
	n := hot.Stat(t, allowed) - before
	noise = control.Stat(t, allowed) - noise
	t.Logf("%d calls answered, failure_mode_allowed %d; without a Redis: %d, %d",
		hot.Stat(t, answered), n, control.Stat(t, answered), noise)
	if hot.Stat(t, answered) < 5000 {
		t.Errorf("only %d calls were answered", hot.Stat(t, answered))
	}
	// Where the machine stops everything for 20 ms, both suffer.
	if n > 0 && (noise == 0 || n > 2*noise+5) {
		t.Errorf("failure_mode_allowed is %d, want 0", n)
	}
}

// envoyOn is the example's Envoy with its default timeout, on that rate limit
// service.
func envoyOn(t *testing.T, rls string, up *httptest.Server) *testenv.EnvoyServer {
	t.Helper()
	config := exampleFile(t, "envoy.yaml")
	if !strings.Contains(config, "timeout: 0.050s\n") {
		t.Fatal("envoy.yaml has no timeout: 0.050s to take out")
	}
	config = strings.NewReplacer(
		"timeout: 0.050s\n", "\n",
		"port_value: 10000}", "port_value: 0}",
		"port_value: 8081}", "port_value: "+port(t, rls)+"}",
		"port_value: 9000}", "port_value: "+port(t, up.Listener.Addr().String())+"}",
	).Replace(config)
	return testenv.Envoy(t, testenv.EnvoyNewest(t), []byte(config))
}

// browse sends GET /header of one user at that rate until ctx ends.
func browse(ctx context.Context, address string, rate int) {
	tr := &http.Transport{MaxIdleConnsPerHost: 64}
	defer tr.CloseIdleConnections()
	client := &http.Client{Transport: tr, Timeout: 10 * time.Second}
	tick := time.NewTicker(time.Second / time.Duration(rate))
	defer tick.Stop()
	var under sync.WaitGroup
	defer under.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			under.Go(func() { status(client, "http://"+address+"/header", "hot") })
		}
	}
}

// elapse lets time pass while the load runs.
func elapse(t *testing.T, d time.Duration) {
	t.Helper()
	start := time.Now()
	testenv.Eventually(t, 2*d+time.Second, d.String()+" of load", func() bool { return time.Since(start) >= d })
}

// instantRLS is a server that answers OK to everything, at once; it returns
// its address.
func instantRLS(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	rlsv3.RegisterRateLimitServiceServer(s, instant{})
	go func() { _ = s.Serve(l) }() // ends with Stop
	t.Cleanup(s.Stop)
	return l.Addr().String()
}

type instant struct {
	rlsv3.UnimplementedRateLimitServiceServer
}

func (instant) ShouldRateLimit(context.Context, *rlsv3.RateLimitRequest) (*rlsv3.RateLimitResponse, error) {
	return &rlsv3.RateLimitResponse{OverallCode: rlsv3.RateLimitResponse_OK}, nil
}

// metric reads one of gale-rls's metrics from its debug port; name includes
// its labels, as the page spells them.
func metric(t *testing.T, g *testenv.GaleServer, name string) float64 {
	t.Helper()
	_, after, found := strings.Cut(page(t, "http://"+g.Debug+"/metrics"), "\n"+name+" ")
	text, _, _ := strings.Cut(after, "\n")
	v, err := strconv.ParseFloat(text, 64)
	if !found || err != nil {
		t.Fatal(fmt.Errorf("metric %s: found %t, %w", name, found, err))
	}
	return v
}
