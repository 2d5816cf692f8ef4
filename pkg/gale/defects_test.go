package gale

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// The defects of earlier leasing engines, one test each, numbered as in the
// list that this engine was designed against. Each fails on the behaviour
// that its comment describes.

const minuteMicros = 60 * microsPerSecond

// at is a store time known exactly, in the middle of minute w.
func at(w int64) Interval {
	m := w*minuteMicros + minuteMicros/2
	return Interval{m, m}
}

// granted lands a grant of positions counter-n+1 … counter of minute w.
func granted(h *Holder, w int64, n, counter, limit uint64) {
	h.Begin(w, at(w), minuteMicros)
	h.Granted(&LeaseStep{
		Window: w, Length: 60, Grant: n, Counter: counter, Free: limit - counter,
		StoreMicros: at(w).Earliest,
	}, 1)
}

func takeOne(h *Holder, w int64, limit uint64) Outcome {
	return h.Take(at(w), 1, Terms{Hits: 1, Limit: limit, Length: minuteMicros}, nil).Outcome
}

// 1. Credits of two windows were one number: a lease of the new window made
// what was left of the old one spendable in it.
func TestDefect01MixedWindowCredits(t *testing.T) {
	var h Holder
	granted(&h, 7, 5, 5, 10)
	granted(&h, 8, 2, 2, 10)
	spent := 0
	for takeOne(&h, 8, 10) == Spent {
		spent++
	}
	if spent != 2 {
		t.Errorf("minute 8 spends %d credits, 2 were granted for it", spent)
	}
}

// 2. A grant that arrived after its window had ended was served to all who
// waited for it.
func TestDefect02LateGrant(t *testing.T) {
	var h Holder
	granted(&h, 7, 5, 5, 10) // lands now, in minute 8
	if o := takeOne(&h, 8, 10); o != Lacking {
		t.Errorf("a grant of minute 7 is spent in minute 8: outcome %d", o)
	}
	if n := h.Expire(0, at(8), minuteMicros) + h.Expire(1, at(8), minuteMicros); n != 5 {
		t.Errorf("%d credits expired, want 5", n)
	}
}

// 3. The store decided windows by its clock, the replica discarded credits by
// its own: one that was behind carried credits over.
func TestDefect03ClockOffset(t *testing.T) {
	for _, offset := range []time.Duration{-3 * time.Hour, -700 * time.Millisecond, 0, 700 * time.Millisecond, 3 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			s := newLedgers()
			s.offset, s.latency = offset, 10*time.Millisecond
			fleet := fleetOf(t, s, 2)
			defer closeAll(fleet)
			p := leasedPolicy(50, 1)
			p.Lease.Size = 20
			windows := map[int64]int{}
			for range 4000 {
				for _, e := range fleet {
					n := admit(t, e, "k_", p, 1)
					windows[s.now().Unix()] += n
				}
				time.Sleep(time.Millisecond)
			}
			for w, n := range windows {
				if n > 50 {
					t.Errorf("offset %v: window %d admits %d of 50", offset, w, n)
				}
			}
		})
	}
}

// 4. A fail-over lost acknowledged grants. A rule that asks for durability
// does not spend a grant that no replica has acknowledged.
func TestDefect04UnacknowledgedGrantIsNotSpent(t *testing.T) {
	var h Holder
	h.Begin(7, at(7), minuteMicros)
	h.Granted(&LeaseStep{Window: 7, Length: 60, Grant: 5, Counter: 5, Free: 5, Lost: true, StoreMicros: at(7).Earliest}, 1)
	if o := takeOne(&h, 7, 10); o == Spent {
		t.Error("a grant that may be lost was spent")
	}
}

// 5. Leases were all or nothing: less than a batch was stranded, and a batch
// beyond the limit was refused for ever.
func TestDefect05PartialGrants(t *testing.T) {
	l := Ledger{Counter: 97}
	s := LeaseStep{Window: 7, Length: 60, Limit: 100, Want: 20, Need: 1}
	if l.Lease(&s, at(7).Earliest); s.Grant != 3 {
		t.Errorf("grant %d of 3 that are free", s.Grant)
	}
	l = Ledger{}
	s = LeaseStep{Window: 7, Length: 60, Limit: 100, Want: 5000, Need: 1}
	if l.Lease(&s, at(7).Earliest); s.Grant != 100 {
		t.Errorf("grant %d of a limit of 100", s.Grant)
	}
}

// 6. A waiter of 1 was refused because it shared the lease of a waiter of 50.
func TestDefect06CheapWaiterBesideAnExpensiveOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newLedgers()
		s.latency = 20 * time.Millisecond
		fleet := fleetOf(t, s, 1)
		defer closeAll(fleet)
		p := leasedPolicy(10, 3600)
		var all sync.WaitGroup
		over := make([]bool, 2)
		for i, hits := range []uint64{50, 1} {
			all.Go(func() {
				r := charges("k_", p, hits)
				if err := fleet[0].Decide(context.Background(), r); err != nil {
					t.Error(err)
				}
				over[i] = r.Decisions[0].Over
			})
		}
		all.Wait()
		if !over[0] || over[1] {
			t.Errorf("50 of 10 refused: %v, want true; 1 of 10 refused: %v, want false", over[0], over[1])
		}
	})
}

// 7. Denials were not remembered: a flood on an exhausted key became a flood
// on the store.
func TestDefect07DenialsAreRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newLedgers()
		fleet := fleetOf(t, s, 1)
		defer closeAll(fleet)
		p := leasedPolicy(1, 3600)
		admit(t, fleet[0], "k_", p, 2)
		before := s.steps.Load()
		admit(t, fleet[0], "k_", p, 10000)
		if n := s.steps.Load() - before; n > 0 {
			t.Errorf("10,000 refusals within a second cost %d steps", n)
		}
	})
}

// 8. The deny cache did not know what a request cost: an expensive one that
// was refused shut out cheap ones that fit.
func TestDefect08DenyCacheKnowsHits(t *testing.T) {
	cache := newDenyCache(16)
	cache.remember([]byte("k"), 1000, 2000, 95)
	if _, refused := cache.refuses([]byte("k"), 1001, 5, 100); refused {
		t.Error("cached-deny: 95 of 100 are used, and 5 are refused")
	}
	if _, refused := cache.refuses([]byte("k"), 1001, 6, 100); !refused {
		t.Error("cached-deny: 95 of 100 are used, and 6 are asked of the store")
	}
	synctest.Test(t, func(t *testing.T) {
		s := newLedgers()
		fleet := fleetOf(t, s, 1)
		defer closeAll(fleet)
		for _, ask := range []struct {
			hits uint64
			over bool
		}{{40, false}, {90, true}, {60, false}, {1, true}} {
			r := charges("k_", leasedPolicy(100, 3600), ask.hits)
			if err := fleet[0].Decide(context.Background(), r); err != nil {
				t.Fatal(err)
			}
			if r.Decisions[0].Over != ask.over {
				t.Errorf("leased: %d hits over: %v, want %v", ask.hits, r.Decisions[0].Over, ask.over)
			}
		}
	})
}

// 9. Idle credits were forgotten instead of returned; eviction was first in,
// first out, lost credits, and let a flood of one-off keys push hot keys out.
func TestDefect09IdleCreditsComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newLedgers()
		fleet := fleetOf(t, s, 2)
		defer closeAll(fleet)
		p := leasedPolicy(100, 3600)
		p.Lease.Size = 60
		admit(t, fleet[0], "k_", p, 1)
		time.Sleep(DefaultIdleReturn + 2*sweepInterval)
		if n := admit(t, fleet[1], "k_", p, 200); n != 99 {
			t.Errorf("the other replica admits %d, want the 99 that are left", n)
		}
	})
}

func TestDefect09FloodDoesNotEvictHotKeys(t *testing.T) {
	const bound = 10_000
	synctest.Test(t, func(t *testing.T) {
		s := newLedgers()
		e, err := NewEngine(s, nil, Config{MaxLeasedKeys: bound})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second + time.Millisecond)
		defer closeAll([]*Engine{e})
		p := leasedPolicy(1000, 3600)
		p.Lease.Size = 100
		hot := func() {
			for i := range 100 {
				admit(t, e, fmt.Sprintf("hot_%d_", i), p, 1)
			}
		}
		for range 5 {
			hot()
		}
		for i := range 5 * bound {
			admit(t, e, fmt.Sprintf("once_%d_", i), p, 1)
			if i%(bound/2) == 0 {
				hot()
			}
		}
		before := s.steps.Load()
		hot()
		if n := s.steps.Load() - before; n > 5 {
			t.Errorf("%d of 100 hot keys had to be leased again", n)
		}
		if keys := e.LeaseStats().Keys; keys > bound {
			t.Errorf("%d keys, bound %d", keys, bound)
		}
		checkBooks(t, e)
	})
}

// 10. All keys of all windows that end together were leased one by one at the
// same moment.
func TestDefect10BoundariesSharePipelines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newLedgers()
		s.latency = 5 * time.Millisecond
		fleet := fleetOf(t, s, 1)
		defer closeAll(fleet)
		p := leasedPolicy(1000, 60)
		admit(t, fleet[0], "warm_", p, 1)
		time.Sleep(time.Minute)
		before, steps := s.leases.Load(), s.steps.Load()
		var all sync.WaitGroup
		for i := range 500 {
			all.Go(func() { admit(t, fleet[0], fmt.Sprintf("k%d_", i), p, 1) })
		}
		all.Wait()
		trips, leases := s.leases.Load()-before, s.steps.Load()-steps
		if leases < 500 || trips > 2*linkWorkers {
			t.Errorf("%d leases at one moment took %d round trips", leases, trips)
		}
	})
}

// 11. The learner saw what was served instead of what was asked for, no idle
// windows, and was not bounded by the limit.
func TestDefect11LearnerSeesOfferedDemand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newLedgers()
		fleet := fleetOf(t, s, 1)
		defer closeAll(fleet)
		p := leasedPolicy(10, 60)
		admit(t, fleet[0], "k_", p, 500)
		e := onlyEntry(t, fleet[0])
		if e.demand.offered != 500 {
			t.Errorf("offered %v, want 500: refused hits are demand too", e.demand.offered)
		}
		for range 20 {
			time.Sleep(time.Minute)
			admit(t, fleet[0], "k_", p, 500)
		}
		a := appetite{sizes: sizesOf(p), need: 1, left: minuteMicros, lead: 1000}
		if n := onlyEntry(t, fleet[0]).demand.want(a); n > 10 {
			t.Errorf("asks for %d of a limit of 10", n)
		}
	})
	d := demand{}
	sz := sizes{100000, 100000}
	now := tick(1)
	for w := int64(1); w < 20; w++ {
		d.offer(50000, w, now, sz)
		now += 60000
	}
	params := sz.params()
	high := params.Size(&d.hedge.Robust)
	d.offer(1, 200, now+180*60000, sz)
	if low := params.Size(&d.hedge.Robust); low >= high {
		t.Errorf("after 180 idle windows the size is %d, as before: %d", low, high)
	}
}

// 12. A lease whose reply was lost was asked again and counted twice.
func TestDefect12LostReplyIsNotRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &lossy{ledgers: newLedgers()}
		fleet := fleetOf(t, s, 1)
		defer closeAll(fleet)
		p := leasedPolicy(100, 3600)
		p.OnUnavailable = UnavailableDeny
		p.Lease.Size = 10
		admit(t, fleet[0], "k_", p, 1)
		s.lose.Store(true)
		time.Sleep(time.Second)
		admitted := 1
		before := s.steps.Load()
		admitted += admit(t, fleet[0], "k_", p, 10)
		if n := s.steps.Load() - before; n != 1 {
			t.Errorf("%d leases for one loss, want 1: none is repeated for the same request", n)
		}
		s.lose.Store(false)
		time.Sleep(time.Second)
		admitted += admit(t, fleet[0], "k_", p, 200)
		if admitted > 100 || admitted < 70 {
			t.Errorf("%d admitted of 100: a lost reply burns its credits, once", admitted)
		}
		checkBooks(t, fleet[0])
	})
}

// 13. What happens without the store was said differently in prose and code.
// Here each rule says it (TestLeasedDeadlineAndFallback tries all four); the
// default is an error, so that the caller's own failure mode decides.
func TestDefect13OneFailurePolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newLedgers()
		fleet := fleetOf(t, s, 1)
		defer closeAll(fleet)
		s.fail = true
		r := charges("k_", leasedPolicy(10, 3600), 1)
		if err := fleet[0].Decide(context.Background(), r); err == nil {
			t.Errorf("the default answers %+v without a store, want an error", r.Decisions[0])
		}
	})
}

// 14b. A clock that stepped back re-opened its old window with a full budget.
func TestDefect14bClockStepsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newLedgers()
		fleet := fleetOf(t, s, 1)
		defer closeAll(fleet)
		p := leasedPolicy(10, 1)
		total := 0
		for step := range 6 {
			total += admit(t, fleet[0], "k_", p, 50)
			s.mu.Lock()
			s.offset = time.Duration(step%2) * -time.Second
			s.mu.Unlock()
			admit(t, fleet[0], "other_", p, 50) // an exchange tells the new time
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		for name, l := range s.counters {
			if l.Counter > 10 {
				t.Errorf("counter %s stands at %d of 10", name, l.Counter)
			}
		}
		if total > 20 {
			t.Errorf("two windows admitted %d of 20", total)
		}
	})
}

// lossy executes leases and loses the answers while told to.
type lossy struct {
	*ledgers
	lose atomic.Bool
}

func (s *lossy) Lease(ctx context.Context, steps []LeaseStep) error {
	err := s.ledgers.Lease(ctx, steps)
	if s.lose.Load() {
		return fmt.Errorf("reply lost: %w", ErrUnavailable)
	}
	return err
}

func onlyEntry(t *testing.T, e *Engine) *entry {
	t.Helper()
	var found *entry
	for i := range e.leased.shards {
		for _, s := range e.leased.shards[i].mu.table.entries {
			if s != nil {
				found = s
			}
		}
	}
	if found == nil {
		t.Fatal("no key")
	}
	return found
}

// checkBooks holds a replica to INV-2.
func checkBooks(t *testing.T, e *Engine) {
	t.Helper()
	s := e.LeaseStats()
	if s.CreditsGranted != s.CreditsSpent+s.CreditsReturned+s.CreditsExpired+s.Held {
		t.Errorf("granted %d != spent %d + returned %d + expired %d + held %d",
			s.CreditsGranted, s.CreditsSpent, s.CreditsReturned, s.CreditsExpired, s.Held)
	}
}
