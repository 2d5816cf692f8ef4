package storetest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/gale-rls/gale-rls/pkg/gale"
)

// outcome is what a lease step answered, without the time.
func outcome(s gale.LeaseStep) string {
	return fmt.Sprintf("grant %d, counter %d, free %d, stale %v, lost %v", s.Grant, s.Counter, s.Free, s.Stale, s.Lost)
}

func (s *suite) leases(what string, step gale.LeaseStep, want string) {
	s.Helper()
	before := time.Now()
	got := s.lease(step)[0]
	s.equal(what, outcome(got), want)
	if got.StoreMicros <= 0 {
		s.Errorf("%s: no time after %v", what, before)
	}
}

func (s *suite) leaseGrants() {
	step := gale.LeaseStep{Key: s.key("a"), Length: month, Window: s.window(month), Limit: 100, Want: 60, Need: 1}
	s.leases("all", step, "grant 60, counter 60, free 40, stale false, lost false")
	s.leases("what is left", step, "grant 40, counter 100, free 0, stale false, lost false")
	s.leases("nothing left", step, "grant 0, counter 100, free 0, stale false, lost false")
	step.Limit = 130
	s.leases("raised limit", step, "grant 30, counter 130, free 0, stale false, lost false")
	step.Limit = 50
	s.leases("lowered limit", step, "grant 0, counter 130, free 0, stale false, lost false")
}

func (s *suite) leaseTapers() {
	step := gale.LeaseStep{Key: s.key("a"), Length: month, Window: s.window(month), Limit: 100, Want: 90, Need: 2, Taper: 4}
	s.leases("a quarter", step, "grant 25, counter 25, free 75, stale false, lost false")
	s.leases("rounded up", step, "grant 19, counter 44, free 56, stale false, lost false")
	step.Need = 40
	s.leases("need", step, "grant 40, counter 84, free 16, stale false, lost false")
	step.Need, step.Taper = 2, 100
	s.leases("small need", step, "grant 2, counter 86, free 14, stale false, lost false")
	step.Need, step.Want, step.Taper = 2, 3, 1
	s.leases("want", step, "grant 3, counter 89, free 11, stale false, lost false")
}

func (s *suite) leaseRefuses() {
	key, w := s.key("a"), s.window(month)
	step := gale.LeaseStep{Key: key, Length: month, Window: w, Limit: 10, Want: 12, Need: 11}
	s.leases("beyond the limit", step, "grant 0, counter 0, free 10, stale false, lost false")
	step.Want, step.Need = 0, 0
	s.leases("only read", step, "grant 0, counter 0, free 10, stale false, lost false")
	step.Want, step.Need = 8, 8
	s.leases("granted", step, "grant 8, counter 8, free 2, stale false, lost false")
	step.Need = 3
	s.leases("too little left", step, "grant 0, counter 8, free 2, stale false, lost false")
	step.Want, step.Need = 0, 0
	s.leases("only read again", step, "grant 0, counter 8, free 2, stale false, lost false")
	s.equal("counter", s.value(counterName(key, w, month)), 8)
}

func (s *suite) leaseWindows() {
	key, w := s.key("a"), s.window(month)
	for _, far := range []int64{-1000, -2, -1, 2, 3, 1000} {
		step := s.lease(gale.LeaseStep{Key: key, Length: month, Window: w + far, Limit: 10, Want: 5, Need: 1})[0]
		if !step.Stale || step.Grant != 0 || step.StoreMicros/1_000_000/month != w {
			s.Errorf("window %+d: %+v", far, step)
		}
		s.equal("counter", s.value(counterName(key, w+far, month)), 0)
	}
	step := gale.LeaseStep{Key: key, Length: month, Window: w, Limit: 10, Want: 5, Need: 1}
	s.leases("current", step, "grant 5, counter 5, free 5, stale false, lost false")
	step.Window++
	s.leases("next", step, "grant 5, counter 5, free 5, stale false, lost false")
	step.Window, step.Length = s.window(1)+2, 1
	s.pass(time.Second, func() bool { return !s.lease(step)[0].Stale })
	s.pass(4*time.Second, func() bool { return s.lease(step)[0].Stale })
}

func (s *suite) leaseReturns() {
	key, w := s.key("a"), s.window(month)
	back := func(window int64, n uint64) gale.LeaseStep {
		return gale.LeaseStep{Key: key, Length: month, Window: window, Return: n}
	}
	take := gale.LeaseStep{Key: key, Length: month, Window: w, Limit: 10, Want: 10, Need: 10}
	s.leases("granted", take, "grant 10, counter 10, free 0, stale false, lost false")
	got := s.lease(back(w, 4))[0]
	s.equal("return", fmt.Sprint(got.Counter, got.Grant, got.StoreMicros > 0), "6 0 true")
	take.Want, take.Need = 10, 4
	s.leases("granted again", take, "grant 4, counter 10, free 0, stale false, lost false")
	s.equal("too much", s.lease(back(w, 99))[0].Counter, 0)
	s.equal("no counter", s.lease(back(w-7, 3))[0].Counter, 0)
	s.equal("not created", s.count(add(counterName(key, w-7, month), 1)), []uint64{1})
	s.leases("whole", take, "grant 10, counter 10, free 0, stale false, lost false")
}

func (s *suite) leaseShares() {
	key, w := s.key("a"), s.window(month)
	name := counterName(key, w, month)
	s.count(add(name, 7))
	step := gale.LeaseStep{Key: key, Length: month, Window: w, Limit: 20, Want: 5, Need: 1}
	s.leases("after strict", step, "grant 5, counter 12, free 8, stale false, lost false")
	s.equal("strict after a lease", s.count(add(name, 1)), []uint64{13})
	s.leases("and again", step, "grant 5, counter 18, free 2, stale false, lost false")
	s.equal("refund", s.count(refund(name, 3)), []uint64{15})
	s.leases("after a refund", step, "grant 5, counter 20, free 0, stale false, lost false")
}

func (s *suite) leaseExceeded() {
	key, w := s.key("a"), s.window(month)
	step := gale.LeaseStep{Key: key, Length: month, Window: w, Limit: 20, Want: 5, Need: 1}
	s.count(add(counterName(key, w, month), 25))
	s.leases("beyond", step, "grant 0, counter 25, free 0, stale false, lost false")
	s.count(add(counterName(key, w, month), math.MaxInt64-25))
	s.leases("at the end", step, fmt.Sprintf("grant 0, counter %d, free 0, stale false, lost false", math.MaxInt64))
	s.lease(gale.LeaseStep{Key: key, Length: month, Window: w, Return: 7})
	s.equal("return from the end", s.value(counterName(key, w, month)), math.MaxInt64-7)
}

func (s *suite) leaseSeveral() {
	key, w := s.key("a"), s.window(month)
	one := gale.LeaseStep{Key: key, Length: month, Window: w, Limit: 10, Want: 6, Need: 1}
	next, other, stale := one, one, one
	next.Window++
	other.Key = s.key("b")
	stale.Window += 5
	back := gale.LeaseStep{Key: key, Length: month, Window: w, Return: 2}
	got := s.lease(one, next, other, stale, back, one)
	grants := make([]uint64, len(got))
	for i := range got {
		grants[i] = got[i].Grant
		if got[i].StoreMicros < got[0].StoreMicros {
			s.Errorf("step %d happened before the first", i)
		}
	}
	s.equal("grants", grants, []uint64{6, 6, 6, 0, 0, 6})
	s.equal("stale", got[3].Stale, true)
	s.equal("none", len(s.lease()), 0)
}

// leaseOutlives: a counter that strict mode let expire early must live to
// the window's end once credits of it are held.
func (s *suite) leaseOutlives() {
	key := s.key("a")
	w := s.window(month)
	name := counterName(key, w+1, month) // the next window, so that its end is far
	s.count(gale.CountStep{Key: name, Hits: 1, TTL: 1})
	s.lease(gale.LeaseStep{Key: key, Length: month, Window: w + 1, Limit: 10, Want: 5, Need: 1})
	short := s.key("short")
	s.count(gale.CountStep{Key: short, Hits: 1, TTL: 1})
	s.pass(3*time.Second, func() bool { return s.value(short) == 0 })
	s.equal("counter", s.value(name), 6)
}

func (s *suite) concurrentLease() {
	const limit = 1000
	key, w := s.key("a"), s.window(month)
	var held atomic.Uint64
	workers(func(i int) {
		random := rand.New(rand.NewPCG(1, uint64(i)))
		for {
			steps := []gale.LeaseStep{{
				Key: key, Length: month, Window: w, Limit: limit, Want: 1 + random.Uint64N(30), Need: 1, Taper: 4,
			}}
			if err := s.store.Lease(s.ctx(), steps); err != nil {
				s.Error(err)
				return
			}
			if steps[0].Grant == 0 {
				return
			}
			back := steps[0].Grant / 3
			held.Add(steps[0].Grant - back)
			if back == 0 {
				continue
			}
			err := s.store.Lease(s.ctx(), []gale.LeaseStep{{Key: key, Length: month, Window: w, Return: back}})
			if err != nil {
				s.Error(err)
				return
			}
		}
	})
	// A worker that saw an empty ledger may have missed a later return.
	rest := s.lease(gale.LeaseStep{Key: key, Length: month, Window: w, Limit: limit, Want: limit, Need: 0})[0]
	s.equal("held and left", held.Load()+rest.Grant, limit)
}
