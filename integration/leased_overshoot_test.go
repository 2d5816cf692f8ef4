//go:build integration

package integration

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/gale-rls/gale-rls/internal/testenv"
)

const (
	overshootLasts = 80 * time.Second
	overshootFleet = 8
	// faultEvery is how often a fault begins.
	faultEvery = 700 * time.Millisecond
)

// TestLeasedNoOvershoot runs a fleet on one Redis under skewed, shifting load
// of three times the limits, and kills, pauses and restarts replicas while
// Redis is slow and its replies are lost. No window of the ledger may admit
// more than its limit, counted at the callers.
func TestLeasedNoOvershoot(t *testing.T) {
	t.Parallel()
	limits := []int64{1, 10, 100, 1000, 100000}
	f := startLeased(t, overshootFleet, leasedRules(limits, ""), nil)
	var streams []*stream
	for _, n := range limits {
		streams = append(streams,
			demandOf(fmt.Sprint("second", n), n, 1, 3, 150),
			demandOf(fmt.Sprint("minute", n), n, 60, 3, 150))
	}
	for _, n := range limits[1:4] {
		s := demandOf(fmt.Sprint("second", n), n, 1, 5, 500)
		s.burst = true
		streams = append(streams, s)
	}
	for _, p := range f.proxies {
		p.Delay(20 * time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(t.Context(), overshootLasts)
	defer cancel()
	var load sync.WaitGroup
	load.Go(func() { newLoad80(f.rls, streams).run(ctx) })
	faults := faultsOn(t, ctx, f)
	load.Wait()

	t.Logf("faults: %v", faults)
	for _, s := range streams {
		s.noOvershoot(t)
	}
	ledgerHolds(t, f.redis, streams)
}

// faultsOn makes one fault after the other until ctx ends: each replica has at
// most one at a time, and half of the fleet none. It returns how many there
// were of each kind.
func faultsOn(t *testing.T, ctx context.Context, f *leasedFleet) map[string]int {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("faults of seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	type fault struct {
		until time.Time
		end   func()
	}
	under := map[int]fault{}
	counts := map[string]int{}
	mend := func(all bool) {
		for i, f := range under {
			if all || time.Now().After(f.until) {
				f.end()
				delete(under, i)
			}
		}
	}
	tick := time.NewTicker(faultEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			mend(true)
			return counts
		case <-tick.C:
		}
		mend(false)
		i := r.IntN(len(f.gales))
		if _, has := under[i]; has || len(under) >= len(f.gales)/2 {
			continue
		}
		g, p := f.gales[i], f.proxies[i]
		lasts := time.Duration(200+r.IntN(2500)) * time.Millisecond
		begin := func(name string, end func()) {
			counts[name]++
			under[i] = fault{time.Now().Add(lasts), end}
		}
		switch r.IntN(5) {
		case 0: // kill -9, and start again after a while
			g.Kill(t)
			begin("killed", func() { g.Restart(t) })
		case 1: // SIGTERM: credits are handed back
			g.Terminate(t, 25*time.Second)
			begin("restarted", func() { g.Restart(t) })
		case 2: // SIGSTOP, over window ends
			g.Pause(t)
			begin("paused", func() { g.Resume(t) })
		case 3: // replies lost at random
			p.LoseReplies(0.2)
			begin("replies lost", func() { p.LoseReplies(0) })
		case 4: // connections broken
			p.CloseAll()
			counts["connections closed"]++
		}
	}
}

// ledgerHolds checks the counters in Redis: none of the streams' exceeds its
// limit.
func ledgerHolds(t *testing.T, r *testenv.RedisServer, streams []*stream) {
	t.Helper()
	counters := countersOf(t, r)
	checked := 0
	for _, s := range streams {
		for w, n := range counters[s.entries[0]+"_"+s.entries[1]] {
			checked++
			if n > s.limit {
				t.Errorf("%s: the counter of second %d is %d, limit %d", s, w, n, s.limit)
			}
		}
	}
	if checked == 0 {
		t.Error("no counter of the streams is in Redis")
	}
	t.Logf("%d counters in Redis, none above its limit", checked)
}
