// Package trilemma states, as functions small enough to enumerate, why a
// limit that is held exactly and used fully cannot be had without
// coordination: docs/trilemma.md tells the story.
//
// One window, N nodes, limit L. An adversary picks the offered demands d; an
// oracle would admit min(sum d, L). Overshoot is how much more a fleet can be
// made to admit, waste how much less.
//
// Nothing here is used by the service.
package trilemma

// Budgets are what each node (or each group that shares a pool) may admit on
// its own in one window.
type Budgets []int

// Overshoot is the most that these budgets admit beyond the limit: everyone
// is flooded.
func (b Budgets) Overshoot(limit int) int {
	return max(0, b.sum()-limit)
}

// Waste is the most that these budgets leave unused while demand is there:
// all of it meets the poorest node.
func (b Budgets) Waste(limit int) int {
	poorest := b[0]
	for _, own := range b {
		poorest = min(poorest, own)
	}
	return max(0, limit-poorest)
}

func (b Budgets) sum() int {
	total := 0
	for _, own := range b {
		total += own
	}
	return total
}

// Floor is the least that overshoot + parties*waste can be without any
// coordination between the parties: (parties-1)*limit. Each of C links that
// merge two parties' budgets lowers the number of parties, and so the floor
// by one limit.
func Floor(parties, limit int) int { return (parties - 1) * limit }

// Leasing lets nodes ask: beyond its own budget, a node may take leases of at
// most Batch from what the budgets left over, at most Leases in all. It never
// overshoots, as budgets and leases together are at most Limit.
type Leasing struct {
	Nodes, Limit, Batch, Leases int
}

// Floor is what Nodes*waste is at least: each lease moves at most Batch
// credits to where the demand turned out to be. It is tight for Batch 1.
func (l Leasing) Floor() int {
	return (l.Nodes - 1) * (l.Limit - l.Leases*l.Batch)
}

// Admitted plays one window. Nodes are served in turn, one hit each; a node
// spends its budget first, then leases.
func (l Leasing) Admitted(budgets Budgets, demand []int) int {
	credits := append(make([]int, 0, 8), budgets...)
	offered := append(make([]int, 0, 8), demand...)
	pool, leases, admitted := l.Limit-budgets.sum(), l.Leases, 0
	for busy := true; busy; {
		busy = false
		for n := range offered {
			if offered[n] == 0 {
				continue
			}
			if credits[n] == 0 && leases > 0 && pool > 0 {
				credits[n] = min(l.Batch, pool)
				pool -= credits[n]
				leases--
			}
			if credits[n] == 0 {
				continue
			}
			credits[n]--
			offered[n]--
			admitted++
			busy = true
		}
	}
	return admitted
}

// Waste is the worst of all demands in {0..Limit}^Nodes, and that demand.
func (l Leasing) Waste(budgets Budgets) (worst int, demand []int) {
	worst = -1
	Vectors(l.Nodes, l.Limit, func(d []int) {
		could := min(Budgets(d).sum(), l.Limit)
		if waste := could - l.Admitted(budgets, d); waste > worst {
			worst, demand = waste, append([]int(nil), d...)
		}
	})
	return worst, demand
}

// OneHot is the waste when all demand meets the poorest node: a lower bound
// on Waste, in closed form.
func (l Leasing) OneHot(budgets Budgets) int {
	reach := min(l.Leases*l.Batch, l.Limit-budgets.sum())
	return max(0, budgets.Waste(l.Limit)-reach)
}

// Uniform gives each node the same budget.
func (l Leasing) Uniform(budget int) Budgets {
	b := make(Budgets, l.Nodes)
	for n := range b {
		b[n] = budget
	}
	return b
}

// Vectors calls visit with every vector of {0..top}^n. The vector is reused.
func Vectors(n, top int, visit func([]int)) {
	v := make([]int, n)
	for {
		visit(v)
		at := 0
		for at < n && v[at] == top {
			v[at] = 0
			at++
		}
		if at == n {
			return
		}
		v[at]++
	}
}
