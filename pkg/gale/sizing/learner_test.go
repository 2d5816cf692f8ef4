package sizing_test

import (
	"fmt"
	"math"
	"testing"
	"unsafe"

	"github.com/gale-rls/gale-rls/pkg/gale/sizing"
)

// The published figures: c=20, h=1, sizes up to 1000, the best fixed size in
// hindsight among 1..200. Published figures took the whole diameter as the
// step's scale; ours is capped at one e-fold. Both are reproduced, on both
// costs: the surrogate c*D/b + h*b/2 and the true cost of whole leases.
var (
	diameter = &sizing.Params{OrderCost: 20, StrandPenalty: 1, Max: 1000, StepScale: math.Log(1000)}
	capped   = &sizing.Params{OrderCost: 20, StrandPenalty: 1, Max: 1000}
)

func costOf(trace []float64, cost func(d, b float64) float64, size float64) float64 {
	sum := 0.0
	for _, d := range trace {
		sum += cost(d, size)
	}
	return sum
}

// bestFixed is the least cost of any fixed size in 1..200, in hindsight.
func bestFixed(trace []float64, cost func(d, b float64) float64) float64 {
	best := math.Inf(1)
	for b := 1.0; b <= 200; b++ {
		best = math.Min(best, costOf(trace, cost, b))
	}
	return best
}

func learnerCost(p *sizing.Params, trace []float64, cost func(d, b float64) float64) (float64, *sizing.Learner) {
	l, sum := new(sizing.Learner), 0.0
	for _, d := range trace {
		sum += cost(d, float64(p.Size(l)))
		p.Observe(l, d)
	}
	return sum, l
}

// ewmaCost is the plug-in without a guarantee: EOQ of a moving average.
func ewmaCost(p *sizing.Params, trace []float64, cost func(d, b float64) float64) float64 {
	estimate, sum := 100.0, 0.0
	for _, d := range trace {
		sum += cost(d, math.Max(1, math.Round(p.EOQ(estimate))))
		estimate = 0.3*d + 0.7*estimate
	}
	return sum
}

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if math.Abs(got-want) > tolerance {
		t.Errorf("%s is %.4f, want %.4f ± %g", what, got, want, tolerance)
	}
}

func TestRegretTable(t *testing.T) {
	windows := []int{100, 400, 1600, 6400}
	for _, c := range []struct {
		name   string
		p      *sizing.Params
		cost   func(d, b float64) float64
		regret [4]float64
	}{
		{"diameter/surrogate", diameter, diameter.Cost, [4]float64{18.56, 4.74, 1.29, 0.403}},
		{"diameter/integer", diameter, diameter.WindowCost, [4]float64{23.4, 6.76, 2.32, 0.625}},
		{"capped/surrogate", capped, capped.Cost, [4]float64{46.4, 11.6, 2.91, 0.735}},
		{"capped/integer", capped, capped.WindowCost, [4]float64{51.8, 12.9, 3.25, 0.693}},
	} {
		last := math.Inf(1)
		for i, n := range windows {
			trace := stationary(n, 100, 0.3, 7)
			cost, _ := learnerCost(c.p, trace, c.cost)
			regret := (cost - bestFixed(trace, c.cost)) / float64(n)
			t.Logf("%-18s %4d windows: %.3f per window", c.name, n, regret)
			near(t, fmt.Sprintf("%s: regret over %d windows", c.name, n), regret, c.regret[i], 0.005*c.regret[i])
			if regret <= 0 || regret >= last {
				t.Errorf("%s: average regret %.3f after %.3f: must be positive and fall", c.name, regret, last)
			}
			last = regret
		}
		if last >= 1 {
			t.Errorf("%s: average regret %.3f at the end, want below 1", c.name, last)
		}
	}
}

func TestTracksEOQ(t *testing.T) {
	trace := stationary(6400, 100, 0.3, 7)
	for p, want := range map[*sizing.Params]float64{diameter: 62.60, capped: 62.13} {
		_, l := learnerCost(p, trace, p.Cost)
		near(t, "size after 6400 windows", math.Exp(float64(l.X)), want, 0.05)
	}
}

func TestDriftAndAdversary(t *testing.T) {
	drifting := drift(3000, wave{base: 100, amplitude: 70, periods: 4}, 0.2, 11)
	jumping := square(3000, 20, 180, 20, 0.1, 13)
	for _, c := range []struct {
		name      string
		p         *sizing.Params
		trace     []float64
		surrogate float64
		integer   float64
		atMost    float64
	}{
		{"drift/diameter", diameter, drifting, 0.981, 1.004, 1.02},
		{"drift/capped", capped, drifting, 1.007, 1.000, 1.02},
		{"adversary/diameter", diameter, jumping, 0.905, 0.844, 0.95},
		{"adversary/capped", capped, jumping, 0.917, 0.881, 0.95},
	} {
		for kind, want := range map[string]float64{"surrogate": c.surrogate, "integer": c.integer} {
			price := c.p.Cost
			if kind == "integer" {
				price = c.p.WindowCost
			}
			cost, _ := learnerCost(c.p, c.trace, price)
			ratio := cost / bestFixed(c.trace, price)
			near(t, c.name+"/"+kind+": cost over the best fixed size's", ratio, want, 0.0006)
			if ratio > c.atMost {
				t.Errorf("%s/%s: ratio %.3f above %.2f", c.name, kind, ratio, c.atMost)
			}
		}
	}
}

func TestAgainstEWMA(t *testing.T) {
	for name, c := range map[string]struct {
		trace []float64
		want  float64
	}{
		"drift":     {drift(3000, wave{base: 100, amplitude: 70, periods: 4}, 0.2, 11), 1.015},
		"adversary": {square(3000, 20, 180, 20, 0.1, 13), 1.004},
	} {
		cost, _ := learnerCost(diameter, c.trace, diameter.Cost)
		near(t, name+": cost over EWMA's", cost/ewmaCost(diameter, c.trace, diameter.Cost), c.want, 0.0006)
		cost, _ = learnerCost(capped, c.trace, capped.Cost)
		if ratio := cost / ewmaCost(capped, c.trace, capped.Cost); ratio > 1.05 {
			t.Errorf("%s: %.3f of EWMA's cost with the capped step, want at most 1.05", name, ratio)
		}
	}
}

// The original's first observation threw the size to its maximum of a
// million, and an all-or-nothing ledger then refused every lease for ever.
func TestColdStartStepsOneEFold(t *testing.T) {
	p := &sizing.Params{OrderCost: 20, StrandPenalty: 1, Initial: 50}
	l := new(sizing.Learner)
	if got := p.Size(l); got != 50 {
		t.Errorf("the zero learner has size %d, want the initial 50", got)
	}
	p.Observe(l, 300)
	if got, most := p.Size(l), uint64(math.Ceil(50*math.E)); got > most {
		t.Errorf("size %d after one window, want at most %d", got, most)
	}
	for range 40 {
		p.Observe(l, 300)
	}
	if got := float64(p.Size(l)); got < 0.7*109.5 || got > 1.3*109.5 {
		t.Errorf("size %v after 41 windows, want about 109.5", got)
	}
	uncapped := &sizing.Params{OrderCost: 20, StrandPenalty: 1, Initial: 50, StepScale: math.Log(1e6)}
	l = new(sizing.Learner)
	uncapped.Observe(l, 300)
	if got := uncapped.Size(l); got != sizing.DefaultMax {
		t.Errorf("control: without the cap the size is %d, want the outage at %d", got, sizing.DefaultMax)
	}
}

func TestAdaptsUp(t *testing.T) {
	l := new(sizing.Learner)
	for range 4000 {
		capped.Observe(l, 50)
	}
	before := capped.Size(l)
	for range 4000 {
		capped.Observe(l, 400)
	}
	if after := capped.Size(l); after <= before {
		t.Errorf("size %d at 400 hits per window, after %d at 50", after, before)
	}
}

func TestIdleWindowsShrink(t *testing.T) {
	p := sizing.ForLimit(100_000, 0)
	l := new(sizing.Learner)
	for range 50 {
		p.Observe(l, 50_000)
	}
	busy := p.Size(l)
	p.ObserveIdle(l, 1<<62)
	if idle := p.Size(l); idle >= busy/2 {
		t.Errorf("size %d after a long silence, %d before it", idle, busy)
	}
}

func TestSizesStayInBounds(t *testing.T) {
	p := &sizing.Params{Min: 3, Max: 700, Initial: 9}
	l := &sizing.Learner{}
	for _, d := range []float64{
		0, 1e300, math.Inf(1), math.NaN(), -5, 1e18, 0, math.Inf(1), 1, math.MaxFloat64,
	} {
		p.Observe(l, d)
		if got := p.Size(l); got < 3 || got > 700 {
			t.Fatalf("size %d after demand %v, want [3, 700]", got, d)
		}
	}
	// A reload may bring a learner under other parameters.
	tight := &sizing.Params{Min: 1, Max: 2}
	if got := tight.Size(&sizing.Learner{X: 50}); got != 2 {
		t.Errorf("size %d, want the new maximum 2", got)
	}
	if got := tight.Size(&sizing.Learner{X: float32(math.NaN())}); got != 1 {
		t.Errorf("size %d for a learner that is not a number, want 1", got)
	}
}

func TestLearnerCosts(t *testing.T) {
	if size := unsafe.Sizeof(sizing.Learner{}); size != 8 {
		t.Errorf("a learner has %d bytes, want 8", size)
	}
	p, l := sizing.ForLimit(1000, 0), new(sizing.Learner)
	if n := testing.AllocsPerRun(100, func() { p.Observe(l, 10); p.Size(l) }); n != 0 {
		t.Errorf("%v allocations per window, want 0", n)
	}
}

func FuzzSizeInBounds(f *testing.F) {
	f.Add(uint64(100), uint64(0), 10.0, 1e9, float32(0))
	f.Fuzz(func(t *testing.T, limit, most uint64, first, second float64, x float32) {
		p := sizing.ForLimit(limit, most)
		if err := p.Validate(); err != nil {
			t.Fatal(err)
		}
		l := &sizing.Learner{X: x}
		for _, d := range []float64{first, second, first} {
			p.Observe(l, d)
			if got := p.Size(l); got < 1 || got > max(p.Max, 1) {
				t.Fatalf("size %d, want [1, %d]", got, p.Max)
			}
		}
	})
}

func BenchmarkSize(b *testing.B) {
	p, l := sizing.ForLimit(100_000, 0), &sizing.Learner{X: 1}
	b.ReportAllocs()
	for b.Loop() {
		p.Size(l)
	}
}

func BenchmarkObserve(b *testing.B) {
	p, l := sizing.ForLimit(100_000, 0), new(sizing.Learner)
	b.ReportAllocs()
	for b.Loop() {
		p.Observe(l, 5000)
	}
}
