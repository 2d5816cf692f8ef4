package gale_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gale-rls/gale-rls/pkg/gale"
	"github.com/gale-rls/gale-rls/pkg/gale/memstore"
)

func TestOnUnavailable(t *testing.T) {
	run(t, gale.Config{}, false, func(b *bench) {
		b.decides("OK 1 9", "k 10")
		b.main.fail(errGone)
		for range 10 { // also when the breaker is open
			err := b.engine.Decide(b.Context(), request("k 10 allow", "k 10"))
			if !errors.Is(err, gale.ErrUnavailable) {
				b.Errorf("error: %v", err)
			}
		}
		b.decides("OK 2 8 fallback_allow", "k 10 +2 allow")
		b.decides("OK 10 0 fallback_allow", "k 10 +99 allow")
		b.decides("OVER 12 0 fallback_deny", "k 10 +2 deny")
		b.decides("OK 0 10 refund", "k 10 +2 refund allow")
		b.decides("OK 4 6 fallback_share", "k 10 +4 share")
		b.decides("OVER 17 0 fallback_share", "k 10 +7 share")
		b.decides("OK 10 0 fallback_share", "k 10 +6 share")
		b.decides("OK 0 10 refund", "k 10 +3 refund share")
		b.decides("OK 10 0 fallback_share", "k 10 +3 share")
		b.decides("OVER 11 0 fallback_share", "k 10 share")
		time.Sleep(time.Hour)
		b.decides("OK 1 9 fallback_share", "k 10 share")
	})
}

func TestKnownDenialsAreServedWithoutTheStore(t *testing.T) {
	run(t, gale.Config{DenyCacheForStrict: true}, false, func(b *bench) {
		b.decides("OVER 1 0", "k 0")
		b.main.fail(errGone)
		b.decides("OVER 2 0 deny_cache, OK 1 9 fallback_allow", "k 0", "o 10 allow")
	})
}

func TestSharesTogether(t *testing.T) {
	run(t, gale.Config{StopWhenOver: true}, true, func(b *bench) {
		b.second.fail(errGone)
		b.decides("OVER 1 0, OK 0 4 fallback_share", "none 0", "s 4 second share +0")
		// A share that was taken for a request that another limit refused is
		// given back.
		b.decides("OK 1 3 fallback_share, OVER 5 0 fallback_deny, OK 0 5", "s 4 second share", "t 4 second deny", "h 5")
		b.decides("OK 4 0 fallback_share", "s 4 second share +4")
	})
}

func TestDeadlines(t *testing.T) {
	run(t, gale.Config{DeadlineMargin: 2 * time.Millisecond, OpTimeout: 500 * time.Millisecond}, false, func(b *bench) {
		b.main.slow.Store(int64(time.Minute))
		for _, test := range []struct{ deadline, want time.Duration }{
			{20 * time.Millisecond, 18 * time.Millisecond},
			{time.Millisecond, 0},
			{time.Minute, 500 * time.Millisecond},
		} {
			ctx, cancel := context.WithTimeout(b.Context(), test.deadline)
			began := time.Now()
			err := b.engine.Decide(ctx, request("k 10"))
			if took := time.Since(began); took != test.want || !errors.Is(err, gale.ErrUnavailable) {
				b.Errorf("deadline %v: %v after %v", test.deadline, err, took)
			}
			cancel()
		}
		began := time.Now()
		b.decides("OK 1 9 fallback_allow", "k 10 allow")
		if took := time.Since(began); took != 500*time.Millisecond {
			b.Errorf("without a deadline: %v", took)
		}
	})
}

// The rule of local shares: all replicas together admit at most the limit.
func TestLocalSharesOfAFleet(t *testing.T) {
	for _, replicas := range []int{1, 3, 7} {
		for _, limit := range []uint64{0, 1, 5, 100} {
			synctest.Test(t, func(t *testing.T) { fleetAdmits(t, replicas, limit) })
		}
	}
}

func fleetAdmits(t *testing.T, replicas int, limit uint64) {
	shared := &spy{Store: memstore.New(memstore.Config{})}
	var engines []*gale.Engine
	for i := range replicas {
		e, err := gale.NewEngine(shared, nil, gale.Config{ReplicaID: fmt.Sprint("replica", i)})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close(context.Background())
		engines = append(engines, e)
	}
	time.Sleep(time.Minute)
	shared.fail(errGone)
	admitted := uint64(0)
	for range 2 * limit {
		for _, e := range engines {
			r := request(fmt.Sprintf("k %d/86400 share", limit))
			if err := e.Decide(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			if !r.Refused() {
				admitted++
			}
		}
	}
	share := limit / uint64(replicas)
	if admitted != share*uint64(replicas) {
		t.Errorf("%d replicas admitted %d of %d", replicas, admitted, limit)
	}
	for _, e := range engines {
		if n := e.Stats().Replicas; n != replicas {
			t.Errorf("%d of %d replicas known", n, replicas)
		}
	}
}

func TestFleetEstimateErrsHigh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := memstore.New(memstore.Config{})
		start := func(id string) *gale.Engine {
			e, err := gale.NewEngine(shared, nil, gale.Config{ReplicaID: id})
			if err != nil {
				t.Fatal(err)
			}
			return e
		}
		a, b := start("a"), start("b")
		defer a.Close(context.Background())
		time.Sleep(10 * time.Second)
		if err := b.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Second)
		if n := a.Stats().Replicas; n != 2 {
			t.Errorf("%d replicas soon after one left", n)
		}
		time.Sleep(time.Minute)
		if n := a.Stats().Replicas; n != 1 {
			t.Errorf("%d replicas long after one left", n)
		}
	})
}

func TestReady(t *testing.T) {
	run(t, gale.Config{}, true, func(b *bench) {
		if err := b.engine.Ready(); err != nil {
			b.Error(err)
		}
		b.second.fail(errGone)
		if err := b.engine.Ready(); !errors.Is(err, gale.ErrUnavailable) {
			b.Errorf("%v", err)
		}
		s := b.engine.Stats()
		if s.PerSecond == nil || s.Main.Breaker != gale.BreakerClosed {
			b.Errorf("%+v", s)
		}
	})
}
