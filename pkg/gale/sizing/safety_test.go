package sizing_test

import (
	"math"
	"testing"

	"github.com/gale-rls/gale-rls/pkg/gale/sizing"
)

// Whatever sizes are learnt, the ledger holds the limit; and what is lost to
// stranding is bounded. Five nodes, limit 100, 500 windows.
func TestLearnedSizesAreSafe(t *testing.T) {
	traces := map[string]func(node int) []float64{
		"all alike": func(i int) []float64 { return stationary(500, 30, 0.3, uint32(100+i)) },
		"one hot": func(i int) []float64 {
			return stationary(500, []float64{80, 5, 5, 5, 5}[i], 0.3, uint32(200+i))
		},
		"drift": func(i int) []float64 {
			return drift(500, wave{base: 30, amplitude: 20, periods: 3}, 0.3, uint32(300+i))
		},
	}
	for name, trace := range traces {
		var demands [][]float64
		var sizers []sizer
		for i := range 5 {
			demands = append(demands, trace(i))
			sizers = append(sizers, learned(capped))
		}
		r := run(100, demands, sizers)
		t.Logf("%-9s utilisation %.3f, worst window %v", name, r.utilisation, r.worst)
		if r.worst > 100 {
			t.Errorf("%s: a window admitted %v, the limit is 100", name, r.worst)
		}
		if r.utilisation < 0.7 {
			t.Errorf("%s: utilisation %.3f, want above 0.7", name, r.utilisation)
		}
	}
}

func TestMisledHedgesAreSafe(t *testing.T) {
	var demands [][]float64
	var sizers []sizer
	five := [sizing.Predictions]float64{5, sizing.Unknown}
	for i := range 5 {
		demands = append(demands, drift(400, wave{base: 30, amplitude: 20, periods: 3}, 0.3, uint32(400+i)))
		h := new(sizing.Hedge)
		sizers = append(sizers, sizer{
			size:    func() uint64 { return capped.HedgeSize(h, five) },
			observe: func(d float64) { capped.HedgeObserve(h, five, d) },
		})
	}
	if r := run(100, demands, sizers); r.worst > 100 {
		t.Errorf("a window admitted %v, the limit is 100", r.worst)
	}
}

// Workload A: five nodes, one of them hot, limit 100, 500 windows, c=20. The
// learner beats every fixed size in trips and nearly every one in use.
func TestWorkloadA(t *testing.T) {
	var demands [][]float64
	for i, mean := range []float64{80, 5, 5, 5, 5} {
		demands = append(demands, stationary(500, mean, 0.3, uint32(500+i)))
	}
	auto := sizing.Params{OrderCost: 20, StrandPenalty: 10, Max: 1000}
	whole := auto
	whole.StepScale = math.Log(1000)
	for _, c := range []struct {
		name        string
		sizer       func() sizer
		trips       float64
		utilisation float64
	}{
		{"strict", func() sizer { return fixed(1) }, 51186, 1},
		{"fixed 5", func() sizer { return fixed(5) }, 17178, 0.955},
		{"fixed 10", func() sizer { return fixed(10) }, 17039, 0.864},
		{"fixed 20", func() sizer { return fixed(20) }, 33702, 0.446},
		{"learner, diameter", func() sizer { return learned(&whole) }, 12731, 0.962},
		{"learner, capped", func() sizer { return learned(&auto) }, 12630, 0.961},
	} {
		var sizers []sizer
		for range demands {
			sizers = append(sizers, c.sizer())
		}
		r := run(100, demands, sizers)
		t.Logf("%-18s %6.0f trips, utilisation %.3f, worst window %v", c.name, r.trips, r.utilisation, r.worst)
		if r.trips != c.trips {
			t.Errorf("%s: %v trips, want %v", c.name, r.trips, c.trips)
		}
		near(t, c.name+": utilisation", r.utilisation, c.utilisation, 0.0006)
		if r.worst > 100 {
			t.Errorf("%s: a window admitted %v, the limit is 100", c.name, r.worst)
		}
	}
}
