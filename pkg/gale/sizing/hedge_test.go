package sizing_test

import (
	"math"
	"testing"

	"github.com/gale-rls/gale-rls/pkg/gale/sizing"
)

// hedgeCost runs a Hedge with one prediction per window.
func hedgeCost(p *sizing.Params, trace []float64, predict func(demand float64) float64) (cost float64, follows uint64) {
	var h sizing.Hedge
	var last [sizing.Predictions]float64
	for _, d := range trace {
		last = [sizing.Predictions]float64{predict(d), sizing.Unknown}
		cost += p.Cost(d, float64(p.HedgeSize(&h, last)))
		p.HedgeObserve(&h, last, d)
	}
	return cost, p.HedgeSize(&h, last)
}

// On the surrogate cost, with the diameter as the step's scale, as published.
func TestHedgeFigures(t *testing.T) {
	p := diameter
	trace := drift(3000, wave{base: 100, amplitude: 70, periods: 4}, 0.2, 11)
	clairvoyant, blind := 0.0, costOf(trace, p.Cost, math.Round(p.EOQ(5)))
	for _, d := range trace {
		clairvoyant += p.Cost(d, math.Max(1, math.Round(p.EOQ(d))))
	}
	robust, _ := learnerCost(p, trace, p.Cost)

	perfect, _ := hedgeCost(p, trace, func(d float64) float64 { return d })
	near(t, "perfect hint over clairvoyant", perfect/clairvoyant, 1.0001, 0.0001)

	noise := mulberry32(21)
	noisy, _ := hedgeCost(p, trace, func(d float64) float64 {
		return math.Max(0, d*(1+0.1*noise.normal()))
	})
	near(t, "hint with 10% noise over clairvoyant", noisy/clairvoyant, 1.0014, 0.0001)

	misled, size := hedgeCost(p, trace, func(float64) float64 { return 5 })
	near(t, "constant hint over the learner alone", misled/robust, 0.9998, 0.0001)
	near(t, "constant hint over following it", misled/blind, 0.415, 0.001)
	if size < 40 {
		t.Errorf("size %d at the end: the misleading hint (14) still weighs", size)
	}
	if ratio := misled / robust; ratio > 1.05 {
		t.Errorf("a bad hint costs %.3f of the learner, want at most 1.05", ratio)
	}
}

// With whole leases a clairvoyant (of the sizes 1..200) asks for the demand
// itself and pays one trip, which no size between round trips and stranding comes close to: the
// consistency figure exists for the surrogate cost only.
func TestHedgeIntegerCostHasNoConsistency(t *testing.T) {
	p := diameter
	trace := drift(3000, wave{base: 100, amplitude: 70, periods: 4}, 0.2, 11)
	var h sizing.Hedge
	cost, clairvoyant := 0.0, 0.0
	for _, d := range trace {
		hint := [sizing.Predictions]float64{d, sizing.Unknown}
		cost += p.WindowCost(d, float64(p.HedgeSize(&h, hint)))
		p.HedgeObserve(&h, hint, d)
		clairvoyant += bestFixed([]float64{d}, p.WindowCost)
	}
	near(t, "perfect hint over clairvoyant, integer cost", cost/clairvoyant, 3.35, 0.01)
}

func TestHedgeWithoutPredictionsIsTheLearner(t *testing.T) {
	p := capped
	trace := stationary(500, 100, 0.3, 7)
	hedged, _ := hedgeCost(p, trace, func(float64) float64 { return sizing.Unknown })
	alone, _ := learnerCost(p, trace, p.Cost)
	if hedged != alone {
		t.Errorf("cost %v without predictions, the learner's is %v", hedged, alone)
	}
}

// A demand that repeats every 60 windows and jumps in between: the same
// window one period ago knows it, the last window does not.
func TestPredictorLearnsTheSeason(t *testing.T) {
	p := capped
	random := mulberry32(3)
	cost := func(period int) (sum float64) {
		random = 3
		q := sizing.NewPredictor(period)
		for i := range 6000 {
			mean := 20.0
			if i%60/10%2 == 1 {
				mean = 400
			}
			d := random.hits(mean, 0.05)
			if i >= 1200 {
				sum += p.Cost(d, float64(q.Size(p)))
			}
			q.Observe(p, d)
		}
		return sum
	}
	seasonal, recent := cost(60), cost(0)
	if seasonal > 0.97*recent {
		t.Errorf("cost %.0f with the season, %.0f without: nothing was learnt", seasonal, recent)
	}
	t.Logf("with the season %.3f of the cost without", seasonal/recent)
}

// The learner's steps shrink with the gradients it has seen, so after a jump
// by a factor r it needs about r windows; a Hedge that is told the last
// window's demand needs few.
func TestHedgeFollowsAJump(t *testing.T) {
	p := sizing.ForLimit(1_000_000, 0)
	var h sizing.Hedge
	last := [sizing.Predictions]float64{sizing.Unknown, sizing.Unknown}
	window := func(demand float64) {
		p.HedgeObserve(&h, last, demand)
		last[0] = demand
	}
	for range 200 {
		window(100)
	}
	for range 3 {
		window(1_000_000)
	}
	hedged, alone := float64(p.HedgeSize(&h, last)), float64(p.Size(&h.Robust))
	if optimum := p.EOQ(1_000_000); hedged < 0.7*optimum {
		t.Errorf("size %v three windows after the jump, want about %.0f", hedged, optimum)
	}
	if alone > hedged/2 {
		t.Errorf("the learner alone has %v, the Hedge %v: it is no longer needed", alone, hedged)
	}
}

func TestHedgeSurvivesNonsense(t *testing.T) {
	p := capped
	var h sizing.Hedge
	for _, d := range []float64{math.Inf(1), math.NaN(), -1, math.MaxFloat64, 1e30} {
		p.HedgeObserve(&h, [sizing.Predictions]float64{d, 1e300}, d)
	}
	for range 50 {
		p.HedgeObserve(&h, [sizing.Predictions]float64{100, sizing.Unknown}, 100)
	}
	if got := p.HedgeSize(&h, [sizing.Predictions]float64{100, sizing.Unknown}); got < 1 || got > 1000 {
		t.Errorf("size %d, want [1, 1000]", got)
	}
}
