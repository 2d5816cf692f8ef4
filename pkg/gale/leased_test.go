package gale

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// fleetOf starts n engines on one store. It must run in a synctest bubble.
func fleetOf(t *testing.T, s Store, n int) []*Engine {
	t.Helper()
	// A bubble begins at midnight sharp and time stands still while anything
	// runs: off the boundary, or every request would bridge for ever.
	time.Sleep(1234 * time.Millisecond)
	fleet := make([]*Engine, n)
	for i := range fleet {
		e, err := NewEngine(s, nil, Config{OpTimeout: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		fleet[i] = e
	}
	return fleet
}

func closeAll(fleet []*Engine) {
	for _, e := range fleet {
		_ = e.Close(context.Background())
	}
}

// admit asks n times for one hit and returns how many were admitted.
func admit(t *testing.T, e *Engine, key string, p *Policy, n int) (admitted int) {
	t.Helper()
	for range n {
		r := charges(key, p, 1)
		if err := e.Decide(context.Background(), r); err != nil {
			t.Fatal(err)
		}
		if !r.Decisions[0].Over {
			admitted++
		}
	}
	return admitted
}

func TestLeasedAdmitsTheLimitExactly(t *testing.T) {
	for _, limit := range []uint64{1, 10, 100, 1000, 100000} {
		synctest.Test(t, func(t *testing.T) {
			s := newLedgers()
			s.latency = time.Millisecond
			fleet := fleetOf(t, s, 4)
			defer closeAll(fleet)
			total := 0
			for range 3 {
				for i, e := range fleet {
					total += admit(t, e, "k_", leasedPolicy(limit, 3600), int(limit)/(i+1)+1)
				}
			}
			time.Sleep(2 * time.Second) // credits at rest go back
			for _, e := range fleet {
				total += admit(t, e, "k_", leasedPolicy(limit, 3600), int(limit))
			}
			if uint64(total) != limit {
				t.Errorf("limit %d: %d admitted", limit, total)
			}
		})
	}
}

// A flood on an empty key asks the ledger at most about once a second, and no
// refused request waits.
func TestLeasedFloodOnAnEmptyKeyIsFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newLedgers()
		s.latency = 20 * time.Millisecond
		fleet := fleetOf(t, s, 1)
		defer closeAll(fleet)
		p := leasedPolicy(10, 3600)
		if n := admit(t, fleet[0], "k_", p, 20); n != 10 {
			t.Fatalf("%d admitted of 10", n)
		}
		before, start := s.steps.Load(), time.Now()
		var waited time.Duration
		for time.Since(start) < 30*time.Second {
			at := time.Now()
			admit(t, fleet[0], "k_", p, 1)
			waited = max(waited, time.Since(at))
			time.Sleep(time.Millisecond)
		}
		if asked := s.steps.Load() - before; asked > 60 {
			t.Errorf("%d steps in 30 s, want at most 2 per second", asked)
		}
		if waited > 0 {
			t.Errorf("a denied request waited %v", waited)
		}
	})
}

// Windows of one second, a hot key: after the first window no request waits,
// with a fast store and with a slow one.
func TestLeasedBoundariesAreFlat(t *testing.T) {
	for _, latency := range []time.Duration{2 * time.Millisecond, 50 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			s := newLedgers()
			s.latency = latency
			fleet := fleetOf(t, s, 1)
			defer closeAll(fleet)
			p := leasedPolicy(100000, 1)
			start := time.Now()
			waits, denied := 0, 0
			for time.Since(start) < 60*time.Second {
				at := time.Now()
				denied += 1 - admit(t, fleet[0], "k_", p, 1)
				if time.Since(at) > 0 && time.Since(start) > 1100*time.Millisecond {
					waits++
				}
				time.Sleep(time.Millisecond)
			}
			if waits > 0 || denied > 0 {
				t.Errorf("latency %v: %d waited, %d denied", latency, waits, denied)
			}
		})
	}
}

// Few trips: a hot key in minute windows.
func TestLeasedFewTrips(t *testing.T) {
	for _, tc := range []struct {
		size uint64
		most float64 // per 1,000 requests
	}{{0, 2}, {100, 11}} {
		synctest.Test(t, func(t *testing.T) {
			s := newLedgers()
			s.latency = time.Millisecond
			fleet := fleetOf(t, s, 1)
			defer closeAll(fleet)
			p := leasedPolicy(1_000_000, 60)
			p.Lease.Size = tc.size
			hot := func(d time.Duration) (n int) {
				for start := time.Now(); time.Since(start) < d; n += 5 {
					admit(t, fleet[0], "k_", p, 5)
					time.Sleep(time.Millisecond)
				}
				return n
			}
			hot(70 * time.Second)
			before := s.leases.Load()
			n := hot(60 * time.Second)
			per := float64(s.leases.Load()-before) * 1000 / float64(n)
			t.Logf("size %d: %.2f trips per 1,000 requests", tc.size, per)
			if per > tc.most {
				t.Errorf("size %d: %.2f trips per 1,000 requests, want at most %v", tc.size, per, tc.most)
			}
		})
	}
}

func TestLeasedDeadlineAndFallback(t *testing.T) {
	for _, tc := range []struct {
		on   Unavailable
		over bool
		err  bool
	}{{UnavailableError, false, true}, {UnavailableAllow, false, false}, {UnavailableDeny, true, false}, {UnavailableLocalShare, false, false}} {
		synctest.Test(t, func(t *testing.T) {
			s := newLedgers()
			s.latency = 100 * time.Millisecond
			e, err := NewEngine(s, nil, Config{OpTimeout: time.Second, DeadlineMargin: 2 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			defer closeAll([]*Engine{e})
			p := leasedPolicy(10, 3600)
			p.OnUnavailable = tc.on
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
			defer cancel()
			start := time.Now()
			r := charges("k_", p, 1)
			err = e.Decide(ctx, r)
			if took := time.Since(start); took != 18*time.Millisecond {
				t.Errorf("answered after %v, want 18ms", took)
			}
			if (err != nil) != tc.err || err == nil && r.Decisions[0].Over != tc.over || err != nil && !errors.Is(err, ErrUnavailable) {
				t.Errorf("on_unavailable %d: %+v, %v", tc.on, r.Decisions[0], err)
			}
			time.Sleep(time.Second) // the lease lands for the next request
			start = time.Now()
			r = charges("k_", p, 1)
			if err := e.Decide(context.Background(), r); err != nil || r.Decisions[0].Over || time.Since(start) > 100*time.Millisecond {
				t.Errorf("afterwards: %+v, %v after %v", r.Decisions[0], err, time.Since(start))
			}
		})
	}
}

// A refused request spends nothing, whichever of its limits refuses it.
func TestLeasedRefusedRequestSpendsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newLedgers()
		fleet := fleetOf(t, s, 1)
		defer closeAll(fleet)
		wide, narrow := leasedPolicy(1000, 3600), leasedPolicy(5, 3600)
		strict := &Policy{Limit: Limit{7, 3600}}
		for _, second := range []*Policy{narrow, strict} {
			ok := 0
			for range 50 {
				r := &Request{
					Charges: []Charge{
						{Key: fmt.Appendf(nil, "wide_%p_", second), Policy: wide, Hits: 1},
						{Key: fmt.Appendf(nil, "second_%p_", second), Policy: second, Hits: 1},
					},
					Decisions: make([]Decision, 2),
				}
				if err := fleet[0].Decide(context.Background(), r); err != nil {
					t.Fatal(err)
				}
				if !r.Refused() {
					ok++
				}
			}
			if uint64(ok) != second.Limit.Hits {
				t.Errorf("%d admitted, limit %d", ok, second.Limit.Hits)
			}
			left := admit(t, fleet[0], fmt.Sprintf("wide_%p_", second), wide, 2000)
			if left != 1000-ok {
				t.Errorf("the wide limit admits %d more, want %d", left, 1000-ok)
			}
		}
	})
}

// Many replicas, clocks hours off, shifting load, failures of the store, two
// limits on one key: no window admits more than either limit.
func TestLeasedNeverExceeds(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 1))
			s := newLedgers()
			s.latency = time.Duration(rng.IntN(30)) * time.Millisecond
			s.offset = time.Duration(rng.IntN(7200)-3600) * time.Second
			fleet := fleetOf(t, s, 2+rng.IntN(6))
			limit, lower := uint64(20+rng.IntN(200)), uint64(5+rng.IntN(20))
			window := int64(1 + rng.IntN(3))
			all, low := map[int64]uint64{}, map[int64]uint64{}
			var mu sync.Mutex
			var done sync.WaitGroup
			for i, e := range fleet {
				done.Go(func() {
					rng := rand.New(rand.NewPCG(seed, uint64(i+2)))
					for range 1500 {
						p := leasedPolicy(limit, window)
						p.OnUnavailable = UnavailableDeny
						small := rng.IntN(4) == 0
						if small {
							p.Limit.Hits = lower
						}
						hits := 1 + uint64(rng.IntN(3))
						r := charges("k_", p, hits)
						if err := e.Decide(context.Background(), r); err != nil {
							t.Error(err)
						}
						// The store's window at the moment of admission: with no
						// wait after it, that is now.
						after := s.now().Unix() / window
						mu.Lock()
						if !r.Decisions[0].Over {
							all[after] += hits
							if small {
								low[after] += hits
							}
						}
						mu.Unlock()
						time.Sleep(time.Duration(rng.IntN(15)) * time.Millisecond)
					}
				})
			}
			done.Go(func() {
				rng := rand.New(rand.NewPCG(seed, 99))
				for range 20 {
					time.Sleep(time.Duration(rng.IntN(800)) * time.Millisecond)
					s.mu.Lock()
					s.fail = !s.fail
					s.mu.Unlock()
				}
				s.mu.Lock()
				s.fail = false
				s.mu.Unlock()
			})
			done.Wait()
			for w, n := range all {
				if n > limit || low[w] > lower {
					t.Errorf("seed %d: window %d admitted %d of %d, %d of %d", seed, w, n, limit, low[w], lower)
				}
			}
			closeAll(fleet)
		})
	}
}

// Credits that are put back after their lot has gone are handed back, and the
// books say so (INV-2).
func TestLeasedPutBackAfterTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fleet := fleetOf(t, newLedgers(), 1)
		defer closeAll(fleet)
		p := leasedPolicy(100, 1)
		r := &Request{
			Charges: []Charge{
				{Key: []byte("a_"), Policy: p, Hits: 3},
				{Key: []byte("b_"), Policy: p, Hits: 2},
			},
			Decisions: make([]Decision, 2),
		}
		if refused, err := fleet[0].leased.take(context.Background(), r); refused || err != nil {
			t.Fatal(refused, err)
		}
		time.Sleep(4 * sweepInterval)
		before := fleet[0].LeaseStats()
		fleet[0].leased.putBack(r)
		after := fleet[0].LeaseStats()
		if n := after.CreditsReturned - before.CreditsReturned; n != 5 || after.CreditsSpent != 0 {
			t.Errorf("%d returned, %d spent; want 5 and 0", n, after.CreditsSpent)
		}
		checkBooks(t, fleet[0])
	})
}
