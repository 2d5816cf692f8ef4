package trilemma_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/gale-rls/gale-rls/spec/trilemma"
)

type world struct{ nodes, limit int }

// Δ + N·U >= (N-1)·L for every choice of budgets, and some choice meets it.
func TestZeroCoordination(t *testing.T) {
	for _, w := range []world{{2, 4}, {3, 6}, {4, 8}} {
		least := math.MaxInt
		trilemma.Vectors(w.nodes, w.limit, func(b []int) {
			budgets := trilemma.Budgets(b)
			least = min(least, budgets.Overshoot(w.limit)+w.nodes*budgets.Waste(w.limit))
		})
		if want := trilemma.Floor(w.nodes, w.limit); least != want {
			t.Errorf("N=%d, L=%d: least Δ+N·U is %d, want (N-1)·L = %d", w.nodes, w.limit, least, want)
		}
	}
}

// The closed forms of overshoot and waste are what an adversary reaches who
// tries every demand.
func TestClosedFormsAreTheAdversarys(t *testing.T) {
	for _, w := range []world{{2, 4}, {3, 5}} {
		trilemma.Vectors(w.nodes, w.limit, func(b []int) {
			over, waste := 0, 0
			trilemma.Vectors(w.nodes, w.limit, func(d []int) {
				offered, admitted := 0, 0
				for n := range d {
					offered += d[n]
					admitted += min(d[n], b[n])
				}
				over = max(over, admitted-w.limit)
				waste = max(waste, min(offered, w.limit)-admitted)
			})
			budgets := trilemma.Budgets(b)
			if over != budgets.Overshoot(w.limit) || waste != budgets.Waste(w.limit) {
				t.Fatalf("budgets %v, L=%d: adversary reaches (%d, %d), closed forms say (%d, %d)",
					b, w.limit, over, waste, budgets.Overshoot(w.limit), budgets.Waste(w.limit))
			}
		})
	}
}

func TestCorners(t *testing.T) {
	for _, c := range []struct {
		budgets          trilemma.Budgets
		overshoot, waste int
	}{
		{trilemma.Budgets{2, 2, 2, 2}, 0, 6},  // exact: a hot node starves
		{trilemma.Budgets{8, 8, 8, 8}, 24, 0}, // work-conserving: N times the limit
	} {
		over, waste := c.budgets.Overshoot(8), c.budgets.Waste(8)
		if over != c.overshoot || waste != c.waste {
			t.Errorf("budgets %v, L=8: (Δ, U) = (%d, %d), want (%d, %d)", c.budgets, over, waste, c.overshoot, c.waste)
		}
	}
}

// m groups with a pool each are m parties, and cost C = N-m links. The floor
// falls by one limit per link: 24, 16, 8, 0 for N=4, L=8.
func TestStaticPartition(t *testing.T) {
	const nodes, limit = 4, 8
	for links, want := range []int{24, 16, 8, 0} {
		groups := nodes - links
		if got := trilemma.Floor(groups, limit); got != want {
			t.Errorf("floor with %d links is %d, want %d", links, got, want)
		}
		least := math.MaxInt
		trilemma.Vectors(groups, limit, func(p []int) {
			pools := trilemma.Budgets(p)
			least = min(least, pools.Overshoot(limit)+groups*pools.Waste(limit))
		})
		if least != want {
			t.Errorf("%d links: least Δ+(N-C)·U is %d, want (N-C-1)·L = %d", links, least, want)
		}
	}
}

// A group with a shared pool behaves as one node with that budget: a flood
// draws the pool and no more, and one hot member can draw all of it.
func TestGroupIsOneSuperNode(t *testing.T) {
	const limit, members = 12, 3
	for _, pool := range []int{0, 3, 6, 9, 12, 15} {
		flood, waste := 0, 0
		trilemma.Vectors(members, limit, func(d []int) {
			offered := d[0] + d[1] + d[2]
			admitted := min(offered, pool)
			flood = max(flood, admitted)
			waste = max(waste, min(offered, limit)-admitted)
		})
		if want := (trilemma.Budgets{pool}).Waste(limit); flood != pool || waste != want {
			t.Errorf("pool %d: flood admits %d, waste %d; want %d, %d", pool, flood, waste, pool, want)
		}
	}
	pooled, split := trilemma.Budgets{6}.Waste(limit), trilemma.Budgets{2, 2, 2}.Waste(limit)
	if pooled != 6 || split != 10 {
		t.Errorf("pool of 6: waste %d, split 2/2/2: %d; want 6, 10", pooled, split)
	}
}

// bestWaste is the least waste over all budgets whose sum is at most Limit.
func bestWaste(l trilemma.Leasing) int {
	best := math.MaxInt
	trilemma.Vectors(l.Nodes, l.Limit, func(b []int) {
		budgets := trilemma.Budgets(b)
		if budgets.Overshoot(l.Limit) == 0 && l.OneHot(budgets) < best {
			worst, _ := l.Waste(budgets)
			best = min(best, worst)
		}
	})
	return best
}

// bestUniform is the least waste over uniform budgets, and the demand that
// is worst for the best of them.
func bestUniform(l trilemma.Leasing) (best int, demand []int) {
	best = math.MaxInt
	for own := 0; own*l.Nodes <= l.Limit; own++ {
		if worst, d := l.Waste(l.Uniform(own)); worst < best {
			best, demand = worst, d
		}
	}
	return best, demand
}

func TestNoLeasesIsZeroCoordination(t *testing.T) {
	for _, w := range []world{{2, 8}, {3, 9}, {4, 8}} {
		for _, batch := range []int{1, 3, 5} {
			l := trilemma.Leasing{Nodes: w.nodes, Limit: w.limit, Batch: batch}
			if best, _ := bestUniform(l); w.nodes*best != trilemma.Floor(w.nodes, w.limit) {
				t.Errorf("%+v: N·U* = %d, want (N-1)·L = %d", l, w.nodes*best, trilemma.Floor(w.nodes, w.limit))
			}
		}
	}
}

// With leases of one credit the bound is met: the waste falls by (N-1)/N per
// lease, and reaches 0 at one lease per credit.
func TestSingleCreditLeasesAreTight(t *testing.T) {
	for _, w := range []world{{2, 8}, {3, 9}, {4, 12}} {
		last := math.MaxInt
		for leases := 0; leases <= w.limit; leases++ {
			l := trilemma.Leasing{Nodes: w.nodes, Limit: w.limit, Batch: 1, Leases: leases}
			closed := math.MaxInt
			for own := 0; own*w.nodes <= w.limit; own++ {
				closed = min(closed, w.limit-own-min(leases, w.limit-w.nodes*own))
			}
			// From above by every demand, from below by every budget.
			upper, _ := bestUniform(l)
			lower := math.MaxInt
			trilemma.Vectors(w.nodes, w.limit, func(b []int) {
				if budgets := trilemma.Budgets(b); budgets.Overshoot(w.limit) == 0 {
					lower = min(lower, l.OneHot(budgets))
				}
			})
			if upper != closed || lower != closed {
				t.Errorf("%+v: U* in [%d, %d], closed form %d", l, lower, upper, closed)
			}
			if ceil := (l.Floor() + w.nodes - 1) / w.nodes; closed != ceil {
				t.Errorf("%+v: U* = %d, want ceil((N-1)(L-C)/N) = %d", l, closed, ceil)
			}
			if closed > last {
				t.Errorf("%+v: U* = %d grew from %d with one more lease", l, closed, last)
			}
			last = closed
		}
		if last != 0 {
			t.Errorf("N=%d, L=%d: waste %d at one lease per credit, want 0", w.nodes, w.limit, last)
		}
	}
}

func TestSingleCreditTable(t *testing.T) {
	for leases, want := range []int{6, 6, 5, 4, 4, 3, 2, 2, 1, 0} {
		l := trilemma.Leasing{Nodes: 3, Limit: 9, Batch: 1, Leases: leases}
		if got, _ := bestUniform(l); got != want {
			t.Errorf("N=3, L=9, B=1, C=%d: U* = %d, want %d", leases, got, want)
		}
	}
}

func TestDynamicBound(t *testing.T) {
	for _, w := range []world{{2, 8}, {3, 9}} {
		for batch := 1; batch <= 4; batch++ {
			for leases := 0; leases <= 4; leases++ {
				l := trilemma.Leasing{Nodes: w.nodes, Limit: w.limit, Batch: batch, Leases: leases}
				best, _ := bestUniform(l)
				if w.nodes*best < l.Floor() {
					t.Errorf("%+v: N·U* = %d is below the bound %d", l, w.nodes*best, l.Floor())
				}
			}
		}
	}
}

// A larger batch strands: nodes made barely hot take leases that they do not
// use, and the bound is no longer met.
func TestLargerBatchesStrand(t *testing.T) {
	for leases, want := range map[int]int{1: 4, 2: 4, 3: 4} {
		l := trilemma.Leasing{Nodes: 3, Limit: 9, Batch: 3, Leases: leases}
		best, demand := bestUniform(l)
		t.Logf("N=3, L=9, B=3, C=%d: bound %d/3, U* = %d, worst demand %v", leases, l.Floor(), best, demand)
		if best != want {
			t.Errorf("%+v: U* = %d, want %d", l, best, want)
		}
	}
	l := trilemma.Leasing{Nodes: 3, Limit: 9, Batch: 3, Leases: 2}
	if waste := 9 - l.Admitted(l.Uniform(1), []int{2, 2, 5}); waste != 4 {
		t.Errorf("budgets of 1, demand [2 2 5]: waste %d, want 4", waste)
	}
}

func TestUniformBudgetsAreBest(t *testing.T) {
	for _, l := range []trilemma.Leasing{
		{Nodes: 3, Limit: 9, Batch: 2, Leases: 1},
		{Nodes: 3, Limit: 9, Batch: 3, Leases: 2},
		{Nodes: 3, Limit: 9, Batch: 4, Leases: 2},
		{Nodes: 2, Limit: 8, Batch: 3, Leases: 2},
	} {
		uniform, _ := bestUniform(l)
		if full := bestWaste(l); full != uniform {
			t.Errorf("%+v: the best of all budgets wastes %d, the best uniform ones %d", l, full, uniform)
		}
	}
}

func ExampleLeasing() {
	// Nine credits, three nodes. Without asking, a hot node starves at 3.
	for _, leases := range []int{0, 3, 6, 9} {
		l := trilemma.Leasing{Nodes: 3, Limit: 9, Batch: 1, Leases: leases}
		best, _ := bestUniform(l)
		fmt.Printf("%d leases: %d of 9 may go unused\n", leases, best)
	}
	// Output:
	// 0 leases: 6 of 9 may go unused
	// 3 leases: 4 of 9 may go unused
	// 6 leases: 2 of 9 may go unused
	// 9 leases: 0 of 9 may go unused
}
