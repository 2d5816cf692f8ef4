//go:build race

package sim

// raceEnabled shortens what the race detector makes ten times slower: the
// searches and the simulator have no concurrency of their own.
const raceEnabled = true
