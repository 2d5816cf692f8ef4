package sizing

import "math"

// Learner is the size of one key's leases as learnt so far. The zero value is
// ready: it starts at Params.Initial. It holds nothing but these 8 bytes, and
// belongs to one Params for its life; after a change of Params (a reload)
// the old size is carried over as a ratio to the new Initial, within bounds.
//
// Its steps shrink with the gradients seen: after a jump of the demand by a
// factor of r it needs some r windows. A Hedge does not.
type Learner struct {
	// X is ln(size) - ln(Initial).
	X float32
	// G is the sum of the squared gradients.
	G float32
}

// idleSteps bounds the work of ObserveIdle. By then any size is at its floor,
// or the steps are too small to matter.
const idleSteps = 64

// Size returns how many credits to ask for, in [Min, Max].
func (p *Params) Size(l *Learner) uint64 {
	low, high, initial := p.logBounds()
	return p.round(math.Exp(clamp(initial+float64(l.X), low, high)))
}

// Observe ends a window in which this key was asked for demand hits, whether
// they were admitted or not: a learner that sees only what was admitted takes
// a limit for a lack of demand. Negative and NaN demand count as 0.
func (p *Params) Observe(l *Learner, demand float64) {
	low, high, initial := p.logBounds()
	x := clamp(initial+float64(l.X), low, high)
	x, sum := p.descend(x, float64(l.G), demand, low, high)
	l.X = float32(x - initial)
	l.G = float32(math.Min(sum, math.MaxFloat32))
}

// ObserveIdle ends so many windows without demand; a key that comes back
// after a silence calls it once.
func (p *Params) ObserveIdle(l *Learner, windows int64) {
	for i := int64(0); i < min(windows, idleSteps); i++ {
		p.Observe(l, 0)
	}
}

// descend is one step of AdaGrad on x = ln b. The gradient of f_D there is
// g = -c*D/b + (h/2)*b, and the step s*g/sqrt(eps + sum of g²).
func (p *Params) descend(x, sum, demand, low, high float64) (float64, float64) {
	if !(demand > 0) {
		demand = 0
	}
	c, h := p.costs()
	b := math.Exp(x)
	g := -c*demand/b + h/2*b
	sum += g * g
	x -= p.step(low, high) * g / math.Sqrt(epsilon+sum)
	return clamp(x, low, high), sum
}
