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

	"github.com/gale-rls/gale-rls/internal/testenv"
)

const (
	mixedLasts = 45 * time.Second
	// switchEvery is how often a replica changes its mode.
	switchEvery = 1500 * time.Millisecond
)

// TestLeasedSharesItsLimit lets strict replicas, leased ones, ones that switch
// between both by reload, and writers that do what envoyproxy/ratelimit does
// share one Redis: together they admit no more than each limit.
func TestLeasedSharesItsLimit(t *testing.T) {
	t.Parallel()
	limits := []int64{10, 100, 1000}
	leased := leasedRules(limits, "")
	strict := leasedRules(limits, "  gale: {mode: strict}\n")
	redis := testenv.Redis(t)
	all := &leasedFleet{redis: redis}
	join := func(rules string) *leasedFleet {
		f := startLeasedOn(t, redis, 2, rules, nil)
		all.gales, all.rls = append(all.gales, f.gales...), append(all.rls, f.rls...)
		return f
	}
	join(leased)
	join(strict)
	switching := join(leased)

	var streams []*stream
	for _, n := range limits {
		streams = append(streams,
			demandOf(fmt.Sprint("second", n), n, 1, 3, 100),
			demandOf(fmt.Sprint("minute", n), n, 60, 3, 100))
	}
	ctx, cancel := context.WithTimeout(t.Context(), mixedLasts)
	defer cancel()
	var done sync.WaitGroup
	done.Go(func() { newLoad80(all.rls, streams).run(ctx) })
	old := make([]*oldService, len(streams))
	for i, s := range streams {
		old[i] = &oldService{redis: redisAt(t, redis.Addr), s: s}
		done.Go(func() { old[i].run(ctx) })
	}
	switches := switchModes(t, ctx, switching.gales, leased, strict)
	done.Wait()

	t.Logf("replicas changed their mode %d times", switches)
	for i, s := range streams {
		s.noOvershoot(t)
		t.Logf("%-22s of these, the old service admitted %d", s.entries[0], old[i].admitted)
		if old[i].err != nil {
			t.Errorf("the old service on %s: %v", s, old[i].err)
		}
	}
	modes := decisionsByMode(t, all)
	t.Logf("decisions by mode: %v", modes)
	if modes["leased"] < 1000 || modes["strict"] < 1000 {
		t.Errorf("decisions by mode %v: want thousands of each", modes)
	}
}

// switchModes changes the mode of one of the replicas after the other, by a
// new rule file, now and then with a SIGHUP on top; it returns how often.
func switchModes(t *testing.T, ctx context.Context, gales []*testenv.GaleServer, modes ...string) (switches int) {
	t.Helper()
	tick := time.NewTicker(switchEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return switches
		case <-tick.C:
		}
		switches++
		g := gales[switches%len(gales)]
		g.WriteRules(t, map[string]string{"leased.yaml": modes[switches/len(gales)%len(modes)]})
		if rand.IntN(2) == 0 {
			g.Reload(t)
		}
	}
}

// oldService counts one stream as envoyproxy/ratelimit does: INCRBY and EXPIRE
// of the counter of the wall clock's window; what fits is admitted.
type oldService struct {
	redis    *redisConn
	s        *stream
	admitted int64
	err      error
}

// run sends a third of the stream's rate until ctx ends.
func (o *oldService) run(ctx context.Context) {
	tick := time.NewTicker(time.Duration(3 * float64(time.Second) / o.s.rate))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		hits := o.s.some()
		a := admission{sent: time.Now().UnixMicro(), hits: int64(hits)}
		start := time.Now().Unix() / o.s.length * o.s.length
		key := fmt.Sprintf("leased_%s_%d", strings.Join(o.s.entries, "_"), start)
		after, err := o.redis.do("INCRBY", key, hits)
		if err == nil {
			_, err = o.redis.do("EXPIRE", key, o.s.length)
		}
		a.received = time.Now().UnixMicro()
		if err != nil {
			o.err = err
			return
		}
		var n int64
		if _, o.err = fmt.Sscan(after[0], &n); o.err != nil {
			return
		}
		ok := n <= o.s.limit
		if ok {
			o.admitted += a.hits
		}
		o.s.note(a, ok, false)
	}
}

// decisionsByMode sums up what the replicas say of themselves.
func decisionsByMode(t *testing.T, f *leasedFleet) map[string]float64 {
	t.Helper()
	sums := map[string]float64{}
	for _, g := range f.gales {
		for line := range strings.Lines(page(t, "http://"+g.Debug+"/metrics")) {
			labels, ok := strings.CutPrefix(line, "gale_rls_decisions_total{")
			if !ok {
				continue
			}
			_, mode, _ := strings.Cut(labels, `mode="`)
			mode, _, _ = strings.Cut(mode, `"`)
			var v float64
			if _, err := fmt.Sscan(line[strings.LastIndex(line, " ")+1:], &v); err == nil {
				sums[mode] += v
			}
		}
	}
	return sums
}
