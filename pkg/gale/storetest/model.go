package storetest

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/gale-rls/gale-rls/pkg/gale"
)

// model runs random operations on the store and on a map of counters, which
// is as simple as the contract, and compares all answers.
func (s *suite) model() {
	seed := rand.Uint64()
	m := modelRun{
		suite:    s,
		random:   rand.New(rand.NewPCG(seed, 0)),
		counters: map[string]*gale.Ledger{},
		window:   s.window(month),
	}
	for n := range 400 {
		var what string
		switch m.random.IntN(3) {
		case 0:
			what = m.count()
		case 1:
			what = m.countAll()
		default:
			what = m.lease()
		}
		if s.Failed() {
			s.Fatalf("seed %d, operation %d: %s", seed, n, what)
		}
	}
}

type modelRun struct {
	*suite
	random   *rand.Rand
	counters map[string]*gale.Ledger
	window   int64
}

func (m *modelRun) counter(name string) *gale.Ledger {
	if m.counters[name] == nil {
		m.counters[name] = &gale.Ledger{}
	}
	return m.counters[name]
}

func (m *modelRun) anyKey() string { return m.key(fmt.Sprint(m.random.IntN(3))) }

func (m *modelRun) anyName() string {
	return counterName(m.anyKey(), m.window+m.random.Int64N(2), month)
}

func (m *modelRun) anySteps() []gale.CountStep {
	steps := make([]gale.CountStep, 1+m.random.IntN(4))
	for i := range steps {
		steps[i] = gale.CountStep{
			Key: m.anyName(), Hits: m.random.Uint64N(6), TTL: 3600,
			Limit: m.random.Uint64N(40), Bystander: m.random.IntN(4) == 0,
		}
	}
	return steps
}

func (m *modelRun) count() string {
	steps := m.anySteps()
	for i := range steps {
		if m.random.IntN(3) == 0 {
			steps[i].Op = gale.CountRefund
		}
	}
	got := m.suite.count(steps...)
	want := make([]uint64, len(steps))
	for i, step := range steps {
		c := m.counter(step.Key)
		if step.Op == gale.CountRefund {
			c.Return(step.Hits)
		} else {
			c.Counter += step.Hits
		}
		want[i] = c.Counter
	}
	m.equal("Count", got, want)
	return fmt.Sprintf("Count %+v", steps)
}

func (m *modelRun) countAll() string {
	steps := m.anySteps()
	taken, err := m.store.CountAll(m.ctx(), steps)
	if err != nil && !errors.Is(err, gale.ErrOverflow) {
		m.Fatal(err)
	}
	values, fits := map[string]uint64{}, true
	want := make([]uint64, len(steps))
	for i, step := range steps {
		if _, known := values[step.Key]; !known {
			values[step.Key] = m.counter(step.Key).Counter
		}
		values[step.Key] += step.Hits
		want[i] = values[step.Key]
		fits = fits && (want[i] <= step.Limit || step.Bystander)
	}
	if fits {
		for name, value := range values {
			m.counter(name).Counter = value
		}
	}
	m.equal("CountAll", fmt.Sprint(taken, afters(steps)), fmt.Sprint(fits, want))
	return fmt.Sprintf("CountAll %+v", steps)
}

func (m *modelRun) lease() string {
	step := gale.LeaseStep{
		Key: m.anyKey(), Length: month, Window: m.window - 1 + m.random.Int64N(4),
		Limit: m.random.Uint64N(60), Need: m.random.Uint64N(5), Taper: m.random.Uint64N(4),
	}
	step.Want = step.Need + m.random.Uint64N(10)
	name := counterName(step.Key, step.Window, month)
	if m.random.IntN(4) == 0 {
		step = gale.LeaseStep{Key: step.Key, Length: month, Window: step.Window, Return: 1 + m.random.Uint64N(5)}
		got := m.suite.lease(step)[0]
		m.counter(name).Return(step.Return)
		m.equal("Return", got.Counter, m.counter(name).Counter)
		return fmt.Sprintf("Return %+v", step)
	}
	got, want := m.suite.lease(step)[0], step
	m.counter(name).Lease(&want, got.StoreMicros)
	m.equal("Lease", outcome(got), outcome(want))
	return fmt.Sprintf("Lease %+v", step)
}
