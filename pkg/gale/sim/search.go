package sim

import (
	"fmt"
	"strings"

	"github.com/gale-rls/gale-rls/pkg/gale"
)

// Report is what a search found.
type Report struct {
	// States is how many distinct states were reached, Steps how many steps
	// led to them, Depth the length of the longest shortest path, counting
	// the first state.
	States, Steps, Depth int
	// Admitted is the most that was admitted in one window.
	Admitted int
	// Err is the first violation, with the shortest trace to it; nil when
	// there is none.
	Err error
	// Trace tells the steps to the violation, one a line.
	Trace string
}

// String gives the counts in one line.
func (r Report) String() string {
	return fmt.Sprintf("%d states, %d steps, depth %d, at most %d admitted in a window",
		r.States, r.Steps, r.Depth, r.Admitted)
}

// Search visits every state that a World can reach under the rules, breadth
// first, and checks each. It stops at the first violation.
func Search(w World, r Rules, check ...Invariant) Report {
	x := newExplorer(w, r, check)
	x.visit(step{}, x.first(), -1)
	for len(x.next) > 0 && x.report.Err == nil {
		x.report.Depth++
		x.level, x.next = x.next, x.level[:0]
		start := len(x.parents) - len(x.level)
		for i := range x.level {
			if x.report.Err != nil || x.w.MaxStates > 0 && len(x.parents) > x.w.MaxStates {
				break
			}
			x.ordinal = 0
			x.steps(&x.level[i], start+i)
		}
	}
	x.report.States = len(x.parents)
	return x.report
}

// explorer is one search.
type explorer struct {
	w       *World
	r       Rules
	check   []Invariant
	holders *intern[gale.Holder]
	clocks  *intern[gale.StoreClock]
	halves  *intern[half]

	seen fingerprints
	// level are the states to expand, next those found meanwhile.
	level, next []state
	// parents says for every state which one led to it, by which of its
	// steps: enough to walk to a violation once more.
	parents  []int32
	ordinals []uint16
	ordinal  uint16
	// from is the number of the state that is expanded.
	from int
	// walk, if not nil, is told every step instead of visit.
	walk   func(step, *state, error)
	report Report
}

func newExplorer(w World, r Rules, check []Invariant) *explorer {
	if len(check) == 0 {
		check = Invariants()
	}
	return &explorer{
		w: &w, r: r, check: check,
		holders: newIntern[gale.Holder](), clocks: newIntern[gale.StoreClock](), halves: newIntern[half](),
	}
}

func (x *explorer) first() *state {
	return &state{
		tick: uint8(x.w.Start), crashes: uint8(x.w.Crashes), losses: uint8(x.w.Losses),
		dups: uint8(x.w.Duplicates), sleeps: uint8(x.w.Sleeps), strict: uint8(x.w.Strict),
	}
}

// steps expands one state.
func (x *explorer) steps(s *state, number int) {
	x.from = number
	x.world(s)
	x.network(s)
	for h := range x.w.Holders {
		x.holder(s, h)
	}
}

// emit is called with each successor; err is what the step itself violated.
func (x *explorer) emit(a step, next *state, err error) {
	next.settle()
	if x.walk != nil {
		x.walk(a, next, err)
		x.ordinal++
		return
	}
	x.report.Steps++
	if x.report.Err == nil {
		x.visitChecked(a, next, x.from, err)
	}
	x.ordinal++
}

func (x *explorer) visit(a step, s *state, from int) { x.visitChecked(a, s, from, nil) }

func (x *explorer) visitChecked(a step, s *state, from int, err error) {
	if !x.seen.add(s.fingerprint()) && err == nil {
		return
	}
	x.next = append(x.next, *s)
	x.parents = append(x.parents, int32(from))
	x.ordinals = append(x.ordinals, x.ordinal)
	for _, n := range s.admitted {
		x.report.Admitted = max(x.report.Admitted, int(n))
	}
	if err == nil {
		err = x.violated(s)
	}
	if err != nil {
		x.report.Trace = x.trace(len(x.parents) - 1)
		x.report.Err = fmt.Errorf("%s: %w (last step: %s)", x.w.Name, err, a)
	}
}

// trace walks from the first state to state number n once more, and tells.
func (x *explorer) trace(n int) string {
	var path []uint16
	for ; x.parents[n] >= 0; n = int(x.parents[n]) {
		path = append(path, x.ordinals[n])
	}
	var b strings.Builder
	s := *x.first()
	fmt.Fprintf(&b, "start: %s\n", x.draw(&s))
	defer func(o uint16) { x.walk, x.ordinal = nil, o }(x.ordinal)
	for i := len(path) - 1; i >= 0; i-- {
		var to state
		x.walk = func(a step, next *state, err error) {
			if x.ordinal == path[i] {
				to = *next
				fmt.Fprintf(&b, "%s\n    %s\n", a, x.draw(&to))
				if err != nil {
					fmt.Fprintf(&b, "    violates %v\n", err)
				}
			}
		}
		x.ordinal = 0
		from := s
		x.steps(&from, x.from)
		s = to
	}
	return b.String()
}
