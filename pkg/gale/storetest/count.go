package storetest

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gale-rls/gale-rls/pkg/gale"
)

func (s *suite) countAdds() {
	a, b := s.key("a"), s.key("b")
	s.equal("first", s.count(add(a, 1)), []uint64{1})
	s.equal("several", s.count(add(a, 2), add(b, 10), add(a, 3)), []uint64{3, 10, 6})
	s.equal("none", s.count(), []uint64{})
}

func (s *suite) countPeeks() {
	a := s.key("a")
	s.equal("of nothing", s.count(add(a, 0)), []uint64{0})
	s.equal("of something", s.count(add(a, 4), add(a, 0)), []uint64{4, 4})
}

func (s *suite) countRefunds() {
	a, missing := s.key("a"), s.key("missing")
	s.equal("in order", s.count(add(a, 5), refund(a, 3), add(a, 1)), []uint64{5, 2, 3})
	s.equal("at least to 0", s.count(refund(a, 9), add(a, 1)), []uint64{0, 1})
	s.equal("of nothing", s.count(refund(missing, 9), add(missing, 1)), []uint64{0, 1})
	s.equal("huge", s.count(refund(a, math.MaxInt64), add(a, 1)), []uint64{0, 1})
	s.count(add(a, math.MaxInt64-1))
	s.equal("from huge", s.count(refund(a, 5), refund(a, math.MaxInt64)), []uint64{math.MaxInt64 - 5, 0})
}

func (s *suite) countExpires() {
	a, b := s.key("a"), s.key("b")
	short := func(key string) gale.CountStep { return gale.CountStep{Key: key, Hits: 1, TTL: 1} }
	s.count(short(a), short(b))
	s.count(add(b, 1)) // renewed
	s.pass(2*time.Second, func() bool { return s.value(a) == 0 })
	s.equal("renewed", s.value(b), 2)
	s.equal("after its end", s.count(add(a, 1)), []uint64{1})
}

func (s *suite) countOverflows() {
	a, b := s.key("a"), s.key("b")
	s.equal("the largest", s.count(add(a, math.MaxInt64)), []uint64{math.MaxInt64})
	err := s.store.Count(s.ctx(), []gale.CountStep{add(b, 1), add(a, 1), add(b, 1)})
	if !errors.Is(err, gale.ErrOverflow) {
		s.Errorf("overflow: %v", err)
	}
	s.equal("unchanged", s.count(add(a, 0)), []uint64{math.MaxInt64})
	s.equal("the others", s.value(b), 2)
}

func limited(key string, hits, limit uint64) gale.CountStep {
	return gale.CountStep{Key: key, Hits: hits, Limit: limit, TTL: 60}
}

func aside(step gale.CountStep) gale.CountStep {
	step.Bystander = true
	return step
}

func (s *suite) allOrNone() {
	a, b := s.key("a"), s.key("b")
	check := func(what string, want string, steps ...gale.CountStep) {
		s.Helper()
		taken, after := s.all(steps...)
		s.equal(what, fmt.Sprint(taken, after), want)
	}
	check("fits", "true [2 10]", limited(a, 2, 3), limited(b, 10, 100))
	check("one over", "false [4 20]", limited(a, 2, 3), limited(b, 10, 100))
	s.equal("nothing written", []uint64{s.value(a), s.value(b)}, []uint64{2, 10})
	check("other order", "false [20 4]", limited(b, 10, 100), limited(a, 2, 3))
	check("up to the limit", "true [3 100]", limited(a, 1, 3), limited(b, 90, 100))
	check("peek at the limit", "true [3]", limited(a, 0, 3))
	check("peek beyond", "false [3]", limited(a, 0, 2))
	check("nothing allowed", "false [1]", limited(s.key("c"), 1, 0))
	check("nothing asked", "true [0]", limited(s.key("c"), 0, 0))
	check("no steps", "true []")
	short := limited(s.key("short"), 1, 5)
	short.TTL = 1
	check("time to live", "true [1]", short)
	s.pass(2*time.Second, func() bool { return s.value(short.Key) == 0 })
}

func (s *suite) allRepeated() {
	a := s.key("a")
	taken, after := s.all(limited(a, 1, 3), limited(a, 1, 3), limited(a, 1, 3))
	s.equal("fit together", fmt.Sprint(taken, after), "true [1 2 3]")
	taken, after = s.all(limited(a, 1, 5), limited(a, 2, 5))
	s.equal("fit apart", fmt.Sprint(taken, after), "false [4 6]")
	s.equal("counter", s.value(a), 3)
}

func (s *suite) allBystanders() {
	a, b := s.key("a"), s.key("b")
	taken, after := s.all(aside(limited(a, 5, 1)), limited(b, 1, 2))
	s.equal("over, not refusing", fmt.Sprint(taken, after), "true [5 1]")
	taken, after = s.all(limited(b, 2, 2), aside(limited(a, 1, 1)))
	s.equal("refused by the other", fmt.Sprint(taken, after), "false [3 6]")
	s.equal("nothing written", []uint64{s.value(a), s.value(b)}, []uint64{5, 1})
}

func (s *suite) allHuge() {
	a, b := s.key("a"), s.key("b")
	s.count(add(a, 1))
	taken, after := s.all(limited(a, math.MaxInt64, 10), limited(b, 1, 10))
	s.equal("refused", fmt.Sprint(taken, after), fmt.Sprint(false, []uint64{math.MaxInt64, 1}))
	taken, after = s.all(limited(b, 1, 10), aside(limited(a, 1<<60+1, 10)))
	s.equal("beside", fmt.Sprint(taken, after), fmt.Sprint(true, []uint64{1, 1<<60 + 2}))
	taken, err := s.store.CountAll(s.ctx(), []gale.CountStep{limited(b, 1, 10), aside(limited(a, math.MaxInt64, 10))})
	if taken || !errors.Is(err, gale.ErrOverflow) {
		s.Errorf("overflow: taken %v, %v", taken, err)
	}
	s.equal("nothing written", []uint64{s.value(a), s.value(b)}, []uint64{1<<60 + 2, 1})
}

func (s *suite) allMany() {
	const n = 100
	a := s.key("a")
	var steps []gale.CountStep
	for i := range n {
		steps = append(steps, limited(a, 1, n), limited(s.key(fmt.Sprint(i)), 2, 2))
	}
	taken, after := s.all(steps...)
	s.equal("first time", fmt.Sprint(taken, after[0], after[2*n-2], after[2*n-1]), "true 1 100 2")
	taken, after = s.all(steps...)
	s.equal("second time", fmt.Sprint(taken, after[0], after[2*n-2], after[2*n-1]), "false 101 200 4")
	s.equal("counter", s.value(a), n)
}

// workers runs f on several goroutines at once.
func workers(f func(i int)) {
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() { f(i) })
	}
	wg.Wait()
}

func (s *suite) concurrentCount() {
	const rounds = 50
	shared := s.key("shared")
	var seen sync.Map
	workers(func(i int) {
		own := s.key(fmt.Sprint("own", i))
		for n := range rounds {
			steps := []gale.CountStep{add(shared, 1), add(own, 2)}
			if err := s.store.Count(s.ctx(), steps); err != nil {
				s.Error(err)
				return
			}
			if steps[1].After != uint64(2*n+2) {
				s.Errorf("own counter is %d in round %d", steps[1].After, n)
			}
			if _, twice := seen.LoadOrStore(steps[0].After, true); twice {
				s.Errorf("%d seen twice", steps[0].After)
			}
		}
	})
	s.equal("sum", s.value(shared), 8*rounds)
}

func (s *suite) concurrentAll() {
	const limit = 100
	a, b := s.key("a"), s.key("b")
	var admitted atomic.Uint64
	workers(func(i int) {
		for range 50 {
			steps := []gale.CountStep{limited(a, 1, limit), limited(b, 2, 10*limit)}
			if i%2 == 1 { // the other order must not lock up
				steps[0], steps[1] = steps[1], steps[0]
			}
			taken, err := s.store.CountAll(s.ctx(), steps)
			if err != nil {
				s.Error(err)
				return
			}
			if taken {
				admitted.Add(1)
			}
		}
	})
	s.equal("admitted", admitted.Load(), limit)
	s.equal("counters", []uint64{s.value(a), s.value(b)}, []uint64{limit, 2 * limit})
}
