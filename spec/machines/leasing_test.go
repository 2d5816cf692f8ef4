package machines_test

import (
	"fmt"
	"testing"

	"github.com/gale-rls/gale-rls/spec/machines"
)

type counts struct{ distinct, generated, depth, max int }

func TestLeasingCounts(t *testing.T) {
	for _, c := range []struct {
		nodes, limit, batch int
		carryOver, coupled  counts
		withReturn          int
	}{
		{2, 4, 2, counts{31, 113, 10, 6}, counts{8, 29, 5, 4}, 12},
		{3, 6, 3, counts{441, 2458, 18, 12}, counts{27, 136, 7, 6}, 43},
		{5, 10, 2, counts{992, 9441, 22, 15}, counts{112, 1041, 11, 10}, 192},
		{4, 12, 4, counts{10432, 80129, 31, 24}, counts{256, 1793, 13, 12}, 499},
		{1, 8, 2, counts{19, 37, 12, 9}, counts{9, 18, 9, 8}, 16},
		{2, 8, 2, counts{55, 209, 14, 10}, counts{16, 61, 9, 8}, 28},
		{4, 8, 2, counts{344, 2593, 18, 12}, counts{48, 353, 9, 8}, 80},
		{8, 8, 2, counts{8762, 131281, 27, 16}, counts{303, 4057, 9, 8}, 443},
		{3, 5, 1, counts{6, 34, 6, 5}, counts{6, 34, 6, 5}, 6},
	} {
		t.Run(fmt.Sprintf("N%d_L%d_B%d", c.nodes, c.limit, c.batch), func(t *testing.T) {
			leasing := machines.Leasing{Nodes: c.nodes, Limit: c.limit, Batch: c.batch}
			expect(t, "carry-over", leasing.Machine(), c.carryOver)
			refuteBelow(t, leasing, c.carryOver.max)

			leasing.Coupled = true
			expect(t, "coupled", leasing.Machine(), c.coupled)
			refuteBelow(t, leasing, c.coupled.max)

			leasing.Return = true
			r := machines.Explore(leasing.Machine())
			if r.Err != nil || r.Distinct != c.withReturn || r.Max != c.limit {
				t.Errorf("coupled with Return: %v, err %v; want %d distinct, max %d", r, r.Err, c.withReturn, c.limit)
			}
		})
	}
}

func expect[S comparable](t *testing.T, name string, m machines.Machine[S], want counts) {
	t.Helper()
	r := machines.Explore(m)
	got := counts{r.Distinct, r.Generated, r.Depth, r.Max}
	if r.Err != nil || got != want {
		t.Errorf("%s: %v, err %v; want %v", name, r, r.Err, want)
	}
}

// refuteBelow shows that the bound is tight: one less is violated.
func refuteBelow(t *testing.T, l machines.Leasing, most int) {
	t.Helper()
	if l.MaxAdmitted() != most {
		t.Errorf("proved bound %d, reached %d: not tight", l.MaxAdmitted(), most)
	}
	l.Bound = most - 1
	if r := machines.Explore(l.Machine()); r.Err == nil {
		t.Errorf("OvershootTight (admitted <= %d) was not refuted", l.Bound)
	}
}

// A shortest way to exceed a limit of 4 by carrying credits over: two nodes
// bank a credit each in one window, and spend them on top of the next.
func TestCarryOverTrace(t *testing.T) {
	l := machines.Leasing{Nodes: 2, Limit: 4, Batch: 2, Bound: 5}
	r := machines.Explore(l.Machine())
	if r.Err == nil {
		t.Fatal("not refuted")
	}
	if last := r.Trace[len(r.Trace)-1]; last.Admitted != 6 {
		t.Errorf("the trace ends at %d admitted, want 6", last.Admitted)
	}
	for i, s := range r.Trace {
		t.Logf("%2d: left %d, credits %v, admitted %d", i+1, s.Left, s.Credits[:2], s.Admitted)
	}
}

// Negative control: credits that carry over exceed the limit.
func TestControlCarryOver(t *testing.T) {
	l := machines.Leasing{Nodes: 2, Limit: 4, Batch: 2, Bound: 4}
	if r := machines.Explore(l.Machine()); r.Err == nil {
		t.Error("admitted <= Limit holds with carry-over: the check is blind")
	}
}
