package machines_test

import (
	"fmt"
	"testing"

	"github.com/gale-rls/gale-rls/spec/machines"
)

func TestHeartbeatCounts(t *testing.T) {
	for _, c := range []struct {
		nodes, limit     int
		equal            counts
		proportional     int
		shareOnly, worst int
	}{
		{2, 4, counts{76, 379, 12, 4}, 112, 64, 6},
		{2, 6, counts{149, 813, 15, 6}, 292, 99, 9},
		{3, 4, counts{361, 2614, 15, 4}, 635, 253, 6},
		{3, 6, counts{1432, 11524, 19, 6}, 2547, 2497, 11},
		{3, 2, counts{103, 643, 7, 2}, 103, 127, 3},
	} {
		t.Run(fmt.Sprintf("N%d_L%d", c.nodes, c.limit), func(t *testing.T) {
			beat := machines.Heartbeat{Nodes: c.nodes, Limit: c.limit}
			expect(t, "equal split", beat.Machine(), c.equal)

			tight := beat
			tight.Bound = c.limit - 1
			if r := machines.Explore(tight.Machine()); r.Err == nil {
				t.Error("InflightCapTight was not refuted")
			}

			beat.Rule = machines.DemandProportional
			if r := machines.Explore(beat.Machine()); r.Err != nil || r.Distinct != c.proportional {
				t.Errorf("demand-proportional: %v, err %v; want %d distinct", r, r.Err, c.proportional)
			}
			// The mistake is searched to the end, to see how bad it gets.
			beat.Rule = machines.ShareOnly
			m := beat.Machine()
			m.Check = nil
			if r := machines.Explore(m); r.Distinct != c.shareOnly || r.Max != c.worst {
				t.Errorf("share-only cap: %v; want %d distinct, max %d", r, c.shareOnly, c.worst)
			}
		})
	}
}
