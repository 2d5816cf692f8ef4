package sizing_test

import (
	"math"
	"strings"
	"testing"

	"github.com/gale-rls/gale-rls/pkg/gale/sizing"
)

func TestEOQ(t *testing.T) {
	p := &sizing.Params{OrderCost: 20, StrandPenalty: 1}
	if got := p.EOQ(100); math.Abs(got-63.2456) > 1e-3 {
		t.Errorf("EOQ(100) = %v, want sqrt(2*20*100/1) = 63.25", got)
	}
	for _, none := range []float64{0, -1, math.NaN()} {
		if got := p.EOQ(none); got != 0 {
			t.Errorf("EOQ(%v) = %v, want 0", none, got)
		}
	}
	// It is where the surrogate cost is least.
	best := p.Cost(100, p.EOQ(100))
	for b := 1.0; b <= 1000; b++ {
		if p.Cost(100, b) < best {
			t.Errorf("cost at %v is below the cost at the EOQ", b)
		}
	}
}

func TestWindowCost(t *testing.T) {
	p := &sizing.Params{OrderCost: 20, StrandPenalty: 2}
	for _, c := range []struct{ demand, size, want float64 }{
		{0, 10, 0}, {10, 10, 20}, {11, 10, 2*20 + 9*2}, {1, 10, 20 + 9*2},
	} {
		if got := p.WindowCost(c.demand, c.size); got != c.want {
			t.Errorf("WindowCost(%v, %v) = %v, want %v", c.demand, c.size, got, c.want)
		}
	}
}

func TestValidateReportsEverything(t *testing.T) {
	bad := sizing.Params{
		OrderCost: -1, StrandPenalty: math.NaN(), StepScale: math.Inf(1), Eta: -2,
		Min: 10, Max: 5, Initial: 20,
	}
	err := bad.Validate()
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		"order cost", "strand penalty", "step scale", "eta",
		"least size 10 is above the largest, 5", "initial size 20",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error does not name %q:\n%v", want, err)
		}
	}
	if err := new(sizing.Params).Validate(); err != nil {
		t.Errorf("the zero value is documented as usable: %v", err)
	}
}

func TestForLimitColdStart(t *testing.T) {
	for _, c := range []struct{ limit, max, initial, size uint64 }{
		{limit: 0, initial: 1, size: 1},
		{limit: 1, initial: 1, size: 1},
		{limit: 100, initial: 3, size: 3},
		{limit: 1000, initial: 31, size: 31},
		{limit: 300_000, max: 10_000, initial: 1225, size: 1225},
		{limit: 1_000_000, max: 100, initial: 100, size: 100},
	} {
		p := sizing.ForLimit(c.limit, c.max)
		if err := p.Validate(); err != nil {
			t.Errorf("limit %d: %v", c.limit, err)
		}
		if got := p.Size(new(sizing.Learner)); p.Initial != c.initial || got != c.size {
			t.Errorf("limit %d, max %d: initial %d, size %d; want %d, %d",
				c.limit, c.max, p.Initial, got, c.initial, c.size)
		}
		if c.limit >= 32 && 32*p.Initial > c.limit {
			t.Errorf("limit %d: eight cold replicas strand %d, over a quarter", c.limit, 8*p.Initial)
		}
	}
}
