// Package sim runs the production core of package gale in worlds that it
// makes up: Search in every order of events of a small one, Fleet in one
// order, drawn from a seed, of a large one.
//
// # Search
//
// A World has two or three holders, a ledger, and a network between them that
// delays, loses, doubles and reorders. The holders' clocks are offset and
// drift as far as the bound allows. Search visits every state that a World
// can reach, and checks INV-1 to INV-5 and INV-7 of package gale on each. The
// Ledger, the Holder and the StoreClock are the ones that ship. When to lease
// and how much is left open: whatever the shell and the learner decide is
// among what is searched.
//
// # Fleet
//
// A discrete-event simulator of up to 512 replicas. Each runs the shell of
// leased mode as it ships, without its goroutines: tables, demand, learner,
// top-up, pre-lease, sweep. Latency, partitions, crashes, pauses, clocks and
// fail-over of the store are drawn from the scenario and a seed; one seed is
// one run, to the last event. INV-1 and INV-2 are checked after every event.
//
// # Time
//
// Virtual. Nothing here reads a clock.
//
// # Testing
//
// The checks are checked: each rule of the protocol is broken in turn, in
// broken_test.go, and the search must find what that admits.
package sim
