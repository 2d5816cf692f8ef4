package sim

import (
	"math"

	"github.com/gale-rls/gale-rls/pkg/gale/sizing"
)

// mulberry32 is the generator of the published traces.
type mulberry32 uint32

func (g *mulberry32) next() float64 {
	*g += 0x6d2b79f5
	t := uint32(*g)
	t = (t ^ t>>15) * (t | 1)
	t ^= t + (t^t>>7)*(t|61)
	return float64(t^t>>14) / (1 << 32)
}

// around is max(0, round(mean*(1+cv*z))), z nearly normal.
func (g *mulberry32) around(mean, cv float64) int {
	z := -6.0
	for range 12 {
		z += g.next()
	}
	return int(math.Max(0, math.Floor(mean*(1+cv*z)+0.5)))
}

// trace draws one node's demand for each window.
func trace(windows int, mean, cv float64, seed uint32) []int {
	g, d := mulberry32(seed), make([]int, windows)
	for i := range d {
		d[i] = g.around(mean, cv)
	}
	return d
}

// classic is a scheme of the original work in its own model: windows without
// time, one hit per node and round, answers at once.
type classic struct {
	// size is how much a node leases; 0 learns it with penalty 10 and cost
	// 20, at most one e-fold per window unless whole.
	size         int
	whole        bool
	carry        bool // credits outlive their window
	static       bool // each node has its share and asks nobody
	trips, worst int
	utilisation  float64
}

// play runs the scheme. A refused lease is a trip too.
func (c *classic) play(limit int, d [][]int) {
	nodes, windows := len(d), len(d[0])
	credits := make([]int, nodes)
	params := sizing.Params{OrderCost: 20, StrandPenalty: 10, Max: 1000}
	if c.whole {
		params.StepScale = math.Log(1000)
	}
	learners := make([]sizing.Learner, nodes)
	for w := range windows {
		left, admitted, most, offered := limit, 0, 0, 0
		for n := range d {
			most, offered = max(most, d[n][w]), offered+d[n][w]
			switch {
			case c.static:
				credits[n] = limit / nodes
			case !c.carry:
				credits[n] = 0
			}
		}
		for round := range most {
			for n := range d {
				if d[n][w] <= round {
					continue
				}
				if credits[n] == 0 && !c.static {
					size := c.size
					if size == 0 {
						size = int(params.Size(&learners[n]))
					}
					c.trips++
					credits[n] = min(size, left)
					left -= credits[n]
				}
				if credits[n] > 0 {
					credits[n]--
					admitted++
				}
			}
		}
		for n := range d {
			params.Observe(&learners[n], float64(d[n][w]))
		}
		c.worst = max(c.worst, admitted)
		c.utilisation += float64(admitted) / float64(min(limit, offered)) / float64(windows)
	}
}
