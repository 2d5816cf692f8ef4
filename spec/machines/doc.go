// Package machines holds the Go twins of the TLA+ modules in spec: the same
// states, actions and invariants, explored breadth first. They need no Java,
// run with go test, and count what TLC counts, so that either can be checked
// against the other.
//
// Nothing here is used by the service. That the service itself keeps the
// invariants is checked on its own code, in pkg/gale.
//
// # Counting
//
// As TLC does: distinct states are those reached; generated states also count
// each state once for every action instance that leads to it, the initial
// ones included; the depth of an initial state is 1.
package machines
