package sizing

import (
	"errors"
	"fmt"
	"math"
)

const (
	// DefaultOrderCost is c: what one round trip costs, in stranded credits.
	// At 20, a key of 5,000 hits a second with minute windows leases about
	// 3,500 at a time, once in 0.7 s.
	DefaultOrderCost = 20
	// DefaultStrandPenalty is h: what one stranded credit costs.
	DefaultStrandPenalty = 1
	// DefaultMax is the largest size where Params say nothing.
	DefaultMax = 1_000_000
	// DefaultEta is how fast a Hedge turns to the better expert.
	DefaultEta = 0.01

	// maxStep caps the default step at one e-fold per window: AdaGrad's
	// first step has the length StepScale whatever the gradient, and with
	// the whole diameter a first observation would throw the size to its
	// maximum.
	maxStep = 1
	// epsilon keeps the first division finite.
	epsilon = 1e-8
	// coldReplicas is how many replicas a cold start supposes; see ForLimit.
	coldReplicas = 8
	// coldShare bounds a cold lease: one such part of a replica's share.
	coldShare = 4
)

// Params are what the learners of many keys share: typically those of one
// rule. The zero value is usable and means the defaults. Immutable once used.
type Params struct {
	// OrderCost is c, the cost of one round trip; 0 means DefaultOrderCost.
	OrderCost float64
	// StrandPenalty is h, the cost of one credit that expires unused; 0 means
	// DefaultStrandPenalty.
	StrandPenalty float64
	// Min and Max bound the size; 0 means 1 and DefaultMax.
	Min, Max uint64
	// Initial is the size before anything was observed; 0 means Min.
	Initial uint64
	// StepScale is the length of the first step in e-folds; 0 means
	// ln(Max/Min), at most 1.
	StepScale float64
	// Eta is the learning rate of a Hedge; 0 means DefaultEta.
	Eta float64
}

// ForLimit returns the parameters of a rule with this limit, of which at most
// max (0: no bound) may be leased at once. Sizes lie in [1, min(limit, max)].
//
// The limit is all that is known of a cold key: the first lease is the
// economic quantity of an eighth of it, yet at most a quarter of that eighth,
// so that eight cold replicas strand no more than a quarter.
func ForLimit(limit, max uint64) Params {
	p := Params{Min: 1, Max: limit}
	if max > 0 && p.Max > max {
		p.Max = max
	}
	if p.Max < 1 {
		p.Max = 1
	}
	share := float64(limit) / coldReplicas
	first := math.Min(p.EOQ(share), share/coldShare)
	p.Initial = p.round(first)
	return p
}

// Validate reports every value that is out of range, or nil.
func (p *Params) Validate() error {
	var errs []error
	check := func(name string, v float64) {
		if math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
			errs = append(errs, fmt.Errorf("%s is %v, must be finite and positive", name, v))
		}
	}
	check("order cost", p.OrderCost)
	check("strand penalty", p.StrandPenalty)
	check("step scale", p.StepScale)
	check("eta", p.Eta)
	low, high := p.bounds()
	if low > high {
		errs = append(errs, fmt.Errorf("least size %d is above the largest, %d", low, high))
	}
	if p.Initial != 0 && (p.Initial < low || p.Initial > high) {
		errs = append(errs, fmt.Errorf("initial size %d is not in [%d, %d]", p.Initial, low, high))
	}
	return errors.Join(errs...)
}

// EOQ returns the size that costs least at a demand of so many hits per
// window, not rounded and not bounded; 0 for no demand.
func (p *Params) EOQ(demand float64) float64 {
	if !(demand > 0) {
		return 0
	}
	c, h := p.costs()
	return math.Sqrt(2 * c * demand / h)
}

// Cost returns f_D(b), the surrogate that the learner descends: c*D/b + h*b/2.
func (p *Params) Cost(demand, size float64) float64 {
	c, h := p.costs()
	return c*demand/size + h*size/2
}

// WindowCost returns what a window of this demand truly costs with whole
// leases of this size: ceil(D/b) round trips, and what is left of the last.
func (p *Params) WindowCost(demand, size float64) float64 {
	if !(demand > 0) {
		return 0
	}
	c, h := p.costs()
	leases := math.Ceil(demand / size)
	return leases*c + (leases*size-demand)*h
}

func (p *Params) costs() (c, h float64) {
	c, h = p.OrderCost, p.StrandPenalty
	if c == 0 {
		c = DefaultOrderCost
	}
	if h == 0 {
		h = DefaultStrandPenalty
	}
	return c, h
}

func (p *Params) bounds() (low, high uint64) {
	low, high = p.Min, p.Max
	if low == 0 {
		low = 1
	}
	if high == 0 {
		high = DefaultMax
	}
	return low, high
}

// logBounds returns ln Min, ln Max and ln Initial.
func (p *Params) logBounds() (low, high, initial float64) {
	l, h := p.bounds()
	low, high = math.Log(float64(l)), math.Log(float64(h))
	initial = low
	if p.Initial != 0 {
		initial = clamp(math.Log(float64(p.Initial)), low, high)
	}
	return low, high, initial
}

func (p *Params) step(low, high float64) float64 {
	if p.StepScale > 0 {
		return p.StepScale
	}
	return math.Min(math.Max(high-low, 1e-6), maxStep)
}

// round returns the nearest size that is allowed.
func (p *Params) round(size float64) uint64 {
	low, high := p.bounds()
	size = clamp(size, float64(low), float64(high))
	return uint64(math.Floor(size + 0.5))
}

// clamp returns v within [low, high], and low for NaN.
func clamp(v, low, high float64) float64 {
	if !(v > low) {
		return low
	}
	return math.Min(v, high)
}
