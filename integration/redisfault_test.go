//go:build integration

package integration

import (
	"fmt"
	"testing"
	"time"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/gale-rls/gale-rls/internal/testenv"
)

// What must hold while Redis is away, and after.
const (
	faultRate    = 1000             // requests per second
	faultLasts   = 60 * time.Second // Redis is away
	warmUp       = 5 * time.Second  // of the same load, before
	afterglow    = 5 * time.Second  // of the same load, after
	allowedLate  = 5 * time.Millisecond
	allowedGrown = 20 << 20 // bytes of resident memory
	backWithin   = 2 * time.Second
	// strayGoroutines are requests that came while the machine did not let
	// gale-rls run: half a second's. The fault brings 60,000 requests.
	strayGoroutines = faultRate / 2
)

const faultRules = `
domain: fault
descriptors:
- key: busy
  rate_limit: {unit: hour, requests_per_unit: 4000000000}
- key: spent
  rate_limit: {unit: hour, requests_per_unit: 5}
`

// TestRedisFault puts 1,000 requests/s on gale-rls, takes Redis away for a
// minute and gives it back. Each variant has its own Redis and gale-rls; they
// run side by side.
//
// Latency is measured at the client, from before the request is written until
// its whole answer is there, by a client that tells the server the deadline
// and does not give up at it. That includes what the machine and the client
// add: on a busy machine, a process may not run for longer than 5 ms. So two
// things are measured alongside, in tenths of a second: the latency of a
// second gale-rls, whose store stays, with the same client; and how long Linux
// says that gale-rls and the client waited for a processor. An answer is late
// through Redis when it came later than deadline plus 5 ms by more than
// either. Both counts are printed, with that excuse and without it. As the
// measures are coarse, one answer in 10,000 may be late in that sense; and as
// they are generous, the share of late answers may be at most 0.1 % above the
// share of the second gale-rls's that take longer than 5 ms.
//
// A server of grpc-go resets a call that it has not answered by the deadline.
// Such a call ends in time, but without an answer: at most 1 in 1,000.
func TestRedisFault(t *testing.T) {
	pause, kill := (*testenv.RedisServer).Pause, (*testenv.RedisServer).Kill
	resume, restart := (*testenv.RedisServer).Resume, (*testenv.RedisServer).Restart
	for _, v := range []redisFault{
		{name: "paused, deadline 20ms", deadline: 20 * time.Millisecond, away: pause, back: resume, keeps: true},
		{name: "paused, deadline 250ms", deadline: 250 * time.Millisecond, away: pause, back: resume, keeps: true},
		{name: "killed, deadline 20ms", deadline: 20 * time.Millisecond, away: kill, back: restart},
	} {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			v.run(t)
		})
	}
}

// redisFault is one way for Redis to be away.
type redisFault struct {
	name       string
	deadline   time.Duration
	away, back func(*testenv.RedisServer, testing.TB)
	keeps      bool // what was counted is there again
}

// faultedGale is what one variant runs.
type faultedGale struct {
	redis   *testenv.RedisServer
	gale    *testenv.GaleServer
	rls     rlsv3.RateLimitServiceClient
	load    *load
	control *load
	spent   string // a key of rule "spent" that is over its limit
}

func (v redisFault) run(t *testing.T) {
	needOfHour(t, warmUp+faultLasts+afterglow+20*time.Second)
	f := v.start(t)
	p, h := watchSizes(t, f.gale), watchHoldUps(t, f.gale.PID())
	from := time.Now()
	testenv.Eventually(t, 2*warmUp, "the warm-up", func() bool { return time.Since(from) > warmUp })
	calm := p.newest()

	gone := time.Now()
	v.away(f.redis, t)
	testenv.Eventually(t, faultLasts+time.Second, "the fault's end", func() bool { return time.Since(gone) > faultLasts })
	v.back(f.redis, t)
	back := time.Now()
	enforced := v.enforced(t, f, back)
	testenv.Eventually(t, 2*afterglow, "the load after the fault", func() bool { return time.Since(back) > afterglow })
	f.load.stop()
	f.control.stop()
	end := time.Now()
	worst := p.stop()

	n := noiseOf(f.control.between(from, end))
	n.held = h.stop()
	t.Logf("before:  %v", f.load.between(from, gone))
	t.Logf("during:  %v", f.load.between(gone, back))
	t.Logf("after:   %v", f.load.between(back, end))
	t.Logf("control: %v", f.control.between(from, end))
	t.Logf("machine: gale-rls and the client waited %v for a processor", total(n.held).Round(time.Millisecond))
	v.check(t, f, n, gone, back, end)
	v.checkShare(t, f, gone, end)
	t.Logf("memory:  %.1f MiB before, %.1f MiB at most", mib(calm.resident), mib(worst.resident))
	t.Logf("goroutines: %d before, %d at most", calm.goroutines, worst.goroutines)
	t.Logf("enforcement is back %v after Redis", enforced.Round(time.Millisecond))
	if grown := worst.resident - calm.resident; grown >= allowedGrown {
		t.Errorf("resident memory grew by %.1f MiB, want less than 20", mib(grown))
	}
	// Each request that waits for its deadline is a goroutine or two.
	waiting := int(v.deadline.Seconds() * faultRate)
	if bound := calm.goroutines + 3*waiting + strayGoroutines; worst.goroutines > bound {
		t.Errorf("%d goroutines, want at most %d", worst.goroutines, bound)
	}
	if n := goroutines(t, f.gale); n > calm.goroutines+50 {
		t.Errorf("%d goroutines after the fault, and %d before", n, calm.goroutines)
	}
	if enforced > backWithin {
		t.Errorf("enforcement is back after %v, want %v", enforced, backWithin)
	}
}

// start starts Redis, gale-rls, and the loads, and waits until limits hold.
func (v redisFault) start(t *testing.T) *faultedGale {
	t.Helper()
	f := &faultedGale{redis: testenv.Redis(t), spent: unique("spent")}
	if !f.redis.Owned() {
		testenv.Missing(t, "a Redis of its own", "unset GALE_TEST_REDIS")
	}
	f.gale = testenv.Gale(t, testenv.GaleOptions{
		Rules: map[string]string{"fault.yaml": faultRules}, Redis: f.redis,
	})
	f.rls = dial(t, f.gale.GRPC)
	testenv.Eventually(t, 20*time.Second, "the limit to hold", func() bool {
		s, err := ask(f.rls, "fault", 1, "spent", f.spent)
		return err == nil && s.GetCode() == rlsv3.RateLimitResponse_OVER_LIMIT
	})
	frames := make([][]byte, 1000)
	for i := range frames {
		frames[i] = frame(t, "fault", "busy", fmt.Sprintf("key-%d", i))
	}
	f.load = &load{wire: newWire(t, f.gale.GRPC), frames: frames, rate: faultRate, deadline: v.deadline}
	still := testenv.Gale(t, testenv.GaleOptions{Rules: map[string]string{"fault.yaml": faultRules}})
	f.control = &load{wire: newWire(t, still.GRPC), frames: frames, rate: faultRate / 10, deadline: v.deadline}
	f.load.start()
	f.control.start()
	return f
}

// check holds every answer from the fault's start on against its deadline.
func (v redisFault) check(t *testing.T, f *faultedGale, n noise, gone, back, end time.Time) {
	t.Helper()
	all := f.load.between(gone, end)
	if want := int(end.Sub(gone).Seconds() * faultRate * 0.9); len(all) < want {
		t.Errorf("only %d requests were sent, want at least %d: this machine is too busy", len(all), want)
	}
	late := all.later(v.deadline + allowedLate)
	net := late.beyond(v.deadline+allowedLate, n)
	cut := all.unanswered()
	t.Logf("of %d requests, %d later than deadline + 5ms, of these %d beyond the noise of the moment; %d reset",
		len(all), len(late), len(net), len(cut))
	if len(net) > len(all)/10_000 {
		t.Errorf("%d late answers beyond the noise of the moment, the first: %v", len(net), net[0])
	}
	if len(cut) > len(all)/1000 {
		t.Errorf("%d calls without an answer, the first: %v", len(cut), cut[0])
	}
	// One deadline after Redis went, nothing is counted any more, and no rule
	// says to answer without. Where gale-rls could not run before its deadline
	// was over, grpc-go says so in its place (code 4).
	for _, a := range f.load.between(gone.Add(v.deadline+100*time.Millisecond), back.Add(-v.deadline)) {
		if a.err == nil && a.name() != "UNKNOWN" && !(a.name() == "code4" && a.took >= v.deadline) {
			t.Errorf("%v, want UNKNOWN while Redis is away", a)
			break
		}
	}
}

// checkShare holds the share of late answers against that of the undisturbed
// gale-rls: lateness that is not the machine's would come on top.
func (v redisFault) checkShare(t *testing.T, f *faultedGale, gone, end time.Time) {
	t.Helper()
	all, control := f.load.between(gone, end), f.control.between(gone, end)
	got := float64(len(all.later(v.deadline+allowedLate))) / float64(len(all))
	want := float64(len(control.later(allowedLate))) / float64(len(control))
	t.Logf("%.3f%% are late; of the control, %.3f%% take longer than %v", 100*got, 100*want, allowedLate)
	if got > want+0.001 {
		t.Errorf("more answers are late than the machine explains")
	}
}

// enforced polls until a limit is held again, and returns how long it took.
func (v redisFault) enforced(t *testing.T, f *faultedGale, back time.Time) time.Duration {
	t.Helper()
	key, hits := f.spent, uint64(1)
	if !v.keeps {
		key, hits = unique("again"), 6 // over at once
	}
	testenv.Eventually(t, 20*time.Second, "the limit to hold again", func() bool {
		s, err := ask(f.rls, "fault", hits, "spent", key)
		return err == nil && s.GetCode() == rlsv3.RateLimitResponse_OVER_LIMIT
	})
	return time.Since(back)
}
