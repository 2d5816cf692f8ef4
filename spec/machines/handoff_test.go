package machines_test

import (
	"testing"

	"github.com/gale-rls/gale-rls/spec/machines"
)

func TestHandoffCounts(t *testing.T) {
	spec := machines.Handoff{Nodes: 2, Limit: 4, History: 2}
	expect(t, "spec, K=2", spec.Machine(), counts{20914, 132229, 29, 4})
	spec.History = 3
	expect(t, "spec, K=3", spec.Machine(), counts{250624, 1785951, 37, 4})

	twin := machines.Handoff{Nodes: 2, Limit: 4, History: 2, Trim: true}
	expect(t, "trimmed, K=2", twin.Machine(), counts{12387, 81413, 26, 4})
	twin.Bound = 3
	if r := machines.Explore(twin.Machine()); r.Err == nil {
		t.Error("InflightCapTight was not refuted")
	}
}

func TestHandoffHolds(t *testing.T) {
	for _, h := range []machines.Handoff{
		{Nodes: 2, Limit: 4, History: 3, Trim: true},
		{Nodes: 2, Limit: 6, History: 2, Trim: true},
	} {
		if r := machines.Explore(h.Machine()); r.Err != nil || r.Max != h.Limit {
			t.Errorf("%+v: %v, err %v", h, r, r.Err)
		}
	}
}

// Each mistake lets more than the limit run.
func TestHandoffControls(t *testing.T) {
	for _, c := range []struct {
		name     string
		handoff  machines.Handoff
		distinct int
		worst    int
	}{
		{"committed snapshot", machines.Handoff{Limit: 4, History: 2, Rule: machines.CommittedSnapshot}, 36415, 6},
		{"suffix only", machines.Handoff{Limit: 4, History: 2, Rule: machines.SuffixOnly}, 10397, 6},
	} {
		c.handoff.Nodes, c.handoff.Trim = 2, true
		m := c.handoff.Machine()
		if r := machines.Explore(m); r.Err == nil {
			t.Errorf("%s: not refuted", c.name)
		}
		m.Check = nil
		if r := machines.Explore(m); r.Distinct != c.distinct || r.Max != c.worst {
			t.Errorf("%s: %v; want %d distinct, max %d", c.name, r, c.distinct, c.worst)
		}
	}
	for _, h := range []machines.Handoff{
		{Limit: 4, History: 3, Rule: machines.CommittedSnapshot},
		{Limit: 6, History: 3, Rule: machines.CommittedSnapshot},
		{Limit: 4, History: 3, Rule: machines.SuffixOnly},
		{Limit: 6, History: 3, Rule: machines.SuffixOnly},
		{Limit: 4, History: 3, Rule: machines.TornReport},
	} {
		h.Nodes, h.Trim = 2, true
		if r := machines.Explore(h.Machine()); r.Err == nil {
			t.Errorf("%+v: not refuted", h)
		}
	}
}
