package machines

import "fmt"

// Machine is a state machine over states S. Init and Next are required.
type Machine[S comparable] struct {
	// Init lists the initial states, without repetition.
	Init []S
	// Next calls emit with each successor, once per action instance.
	Next func(s S, emit func(S))
	// Check returns the invariant that s violates, or nil.
	Check func(s S) error
	// Gauge is what Result.Max is the maximum of.
	Gauge func(s S) int
	// Within bounds the search, as TLC's CONSTRAINT: a state outside is
	// checked, and not explored further.
	Within func(s S) bool
}

// Result is what a search found.
type Result[S comparable] struct {
	Distinct, Generated, Depth, Max int
	// Err is the first violation, at the end of Trace; the search stops
	// there, and the counts are those so far. Nil when there is none.
	Err   error
	Trace []S
}

// String gives the counts as spec/README.md tabulates them.
func (r Result[S]) String() string {
	return fmt.Sprintf("%d distinct, %d generated, depth %d, max %d", r.Distinct, r.Generated, r.Depth, r.Max)
}

// Explore visits every reachable state, breadth first, so that a trace to a
// violation is a shortest one.
func Explore[S comparable](m Machine[S]) Result[S] {
	x := &search[S]{machine: m, seen: map[S]int32{}}
	for _, s := range m.Init {
		x.visit(s, -1)
	}
	for level := len(x.states); level > 0 && x.result.Err == nil; {
		x.result.Depth++
		first := len(x.states) - level
		level = x.expand(first)
	}
	x.result.Distinct = len(x.states)
	return x.result
}

type search[S comparable] struct {
	machine Machine[S]
	result  Result[S]
	seen    map[S]int32
	states  []S
	parents []int32
}

// expand explores the states from first to the end of those known, and
// returns how many new ones that gave.
func (x *search[S]) expand(first int) int {
	last := len(x.states)
	for at := first; at < last && x.result.Err == nil; at++ {
		s := x.states[at]
		if x.machine.Within != nil && !x.machine.Within(s) {
			continue
		}
		x.machine.Next(s, func(next S) { x.visit(next, int32(at)) })
	}
	return len(x.states) - last
}

func (x *search[S]) visit(s S, parent int32) {
	if x.result.Err != nil {
		return
	}
	x.result.Generated++
	if _, known := x.seen[s]; known {
		return
	}
	at := int32(len(x.states))
	x.seen[s] = at
	x.states = append(x.states, s)
	x.parents = append(x.parents, parent)
	if x.machine.Gauge != nil {
		x.result.Max = max(x.result.Max, x.machine.Gauge(s))
	}
	if x.machine.Check == nil {
		return
	}
	if err := x.machine.Check(s); err != nil {
		x.result.Err = err
		x.result.Trace = x.trace(at)
	}
}

func (x *search[S]) trace(at int32) []S {
	var back []S
	for ; at >= 0; at = x.parents[at] {
		back = append(back, x.states[at])
	}
	for i, j := 0, len(back)-1; i < j; i, j = i+1, j-1 {
		back[i], back[j] = back[j], back[i]
	}
	return back
}
