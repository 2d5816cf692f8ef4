// Package invariants checks, in test builds, what must never be false.
//
// With the build tag invariants, or under the race detector, a broken
// invariant panics. In other builds the checks cost nothing, and arithmetic
// that would have panicked is clamped to the safe side.
//
// # Concurrency
//
// All functions are pure and safe for concurrent use.
package invariants

import "fmt"

// Check panics with msg if ok is false and checks are enabled. What computes
// ok should itself stand behind Enabled when it is not cheap.
func Check(ok bool, msg ...any) {
	if Enabled && !ok {
		panic("invariant broken: " + fmt.Sprint(msg...))
	}
}

// Unsigned is any counter type: hits, credits, positions.
type Unsigned interface {
	~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64
}

// SafeSub returns a - b. If b is larger it panics when checks are enabled,
// and returns 0 otherwise: a counter that wraps around would admit without
// bound, one that sticks at 0 only admits too little.
func SafeSub[T Unsigned](a, b T) T {
	if b > a {
		Check(false, "subtraction below zero: ", a, " - ", b)
		return 0
	}
	return a - b
}
