package sizing_test

import (
	"math"

	"github.com/gale-rls/gale-rls/pkg/gale/sizing"
)

// fleetRun is what a fleet did with its windows.
type fleetRun struct {
	trips float64
	// utilisation is the mean over windows of admitted/min(offered, limit).
	utilisation float64
	// worst is the most admitted in one window.
	worst float64
}

// sizer decides one node's leases.
type sizer struct {
	size    func() uint64
	observe func(demand float64)
}

func fixed(size uint64) sizer {
	return sizer{size: func() uint64 { return size }, observe: func(float64) {}}
}

func learned(p *sizing.Params) sizer {
	l := new(sizing.Learner)
	return sizer{
		size:    func() uint64 { return p.Size(l) },
		observe: func(d float64) { p.Observe(l, d) },
	}
}

// run plays window after window: every node offers its demand, one hit per
// node and round, and leases min(size, what is left) when it has no credit.
// Credits end with their window. A refused lease is a trip too.
func run(limit float64, demands [][]float64, sizers []sizer) fleetRun {
	var r fleetRun
	credits := make([]float64, len(sizers))
	for w := range demands[0] {
		left, admitted, offered, most := limit, 0.0, 0.0, 0.0
		for n := range sizers {
			credits[n] = 0
			offered += demands[n][w]
			most = math.Max(most, demands[n][w])
		}
		for round := 0.0; round < most; round++ {
			for n := range sizers {
				if demands[n][w] <= round {
					continue
				}
				if credits[n] == 0 {
					r.trips++
					grant := math.Min(float64(sizers[n].size()), left)
					left -= grant
					credits[n] = grant
				}
				if credits[n] > 0 {
					credits[n]--
					admitted++
				}
			}
		}
		for n := range sizers {
			sizers[n].observe(demands[n][w])
		}
		r.utilisation += admitted / math.Min(offered, limit) / float64(len(demands[0]))
		r.worst = math.Max(r.worst, admitted)
	}
	return r
}
