package machines

import "fmt"

// maxNodes is the largest fleet of the machines without clocks.
const maxNodes = 8

// Leasing is DistributedLeasing.tla, and GaleWindowCoupledLeasing.tla when
// Coupled: nodes lease whole batches from one counter, windows roll for all
// at once, messages take no time.
type Leasing struct {
	Nodes, Limit, Batch int
	// Coupled ends credits with their window; without it they carry over.
	Coupled bool
	// Return lets a node hand back what it holds.
	Return bool
	// Bound overrides the bound that is checked, for one that must not hold;
	// 0 means the proved one.
	Bound int
}

// LeasingState is one state of Leasing.
type LeasingState struct {
	// Left is what the counter still has to give.
	Left uint8
	// Credits is what each node holds.
	Credits [maxNodes]uint8
	// Admitted is what this window has admitted so far.
	Admitted uint8
}

// MaxAdmitted is the proved bound on what a window admits: the limit when
// coupled; else each node may bring Batch-1 credits along.
func (l Leasing) MaxAdmitted() int {
	if l.Coupled {
		return l.Limit
	}
	return l.Limit + l.Nodes*(l.Batch-1)
}

// Machine returns the state machine.
func (l Leasing) Machine() Machine[LeasingState] {
	bound := l.Bound
	if bound == 0 {
		bound = l.MaxAdmitted()
	}
	return Machine[LeasingState]{
		Init:  []LeasingState{{Left: uint8(l.Limit)}},
		Next:  l.next,
		Gauge: func(s LeasingState) int { return int(s.Admitted) },
		Check: func(s LeasingState) error {
			if int(s.Admitted) > bound {
				return fmt.Errorf("a window admitted %d, the bound is %d", s.Admitted, bound)
			}
			return nil
		},
	}
}

func (l Leasing) next(s LeasingState, emit func(LeasingState)) {
	for n := range l.Nodes {
		if s.Credits[n] >= 1 { // Serve(n)
			t := s
			t.Credits[n]--
			t.Admitted++
			emit(t)
		}
		if s.Credits[n] == 0 && int(s.Left) >= l.Batch { // Lease(n)
			t := s
			t.Left -= uint8(l.Batch)
			t.Credits[n] = uint8(l.Batch - 1)
			t.Admitted++
			emit(t)
		}
		if l.Return && s.Credits[n] >= 1 { // Return(n)
			t := s
			t.Left += t.Credits[n]
			t.Credits[n] = 0
			emit(t)
		}
		emit(l.roll(s)) // Roll, once per node: it stands under the quantifier
	}
}

func (l Leasing) roll(s LeasingState) LeasingState {
	s.Left, s.Admitted = uint8(l.Limit), 0
	if l.Coupled {
		s.Credits = [maxNodes]uint8{}
	}
	return s
}
