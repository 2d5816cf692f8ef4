package sim

import (
	"fmt"
	"strings"
	"time"
)

// traceLines is how much of a failed run's end a report shows.
const traceLines = 60

// Shrink takes a scenario that violates an invariant and leaves out whatever
// it still fails without: faults, replicas, time. It returns the smallest it
// found, and the last events of that.
func Shrink(s Scenario) (Scenario, string) {
	for smaller := true; smaller; {
		smaller = false
		for _, cut := range cuts() {
			c := s
			cut(&c)
			if c != s && c.Validate() == nil && fails(c) {
				s, smaller = c, true
			}
		}
	}
	f := newFleet(s)
	f.traced = true
	f.run()
	last := f.trace[max(0, len(f.trace)-traceLines):]
	return s, fmt.Sprintf("%+v\n%s\n%v", s, strings.Join(last, "\n"), f.result.Err)
}

func fails(s Scenario) bool {
	f := newFleet(s)
	f.run()
	return f.result.Err != nil
}

// cuts are what a scenario may do without.
func cuts() []func(*Scenario) {
	return []func(*Scenario){
		func(s *Scenario) { s.Replicas = max(s.Replicas/2, 1) },
		func(s *Scenario) { s.Replicas = max(s.Replicas-1, 1) },
		func(s *Scenario) { s.Length -= 500 * time.Millisecond },
		func(s *Scenario) { s.Rate /= 2 },
		func(s *Scenario) { s.Failovers = 0 },
		func(s *Scenario) { s.Crashes /= 2 },
		func(s *Scenario) { s.Pauses /= 2 },
		func(s *Scenario) { s.Partitions /= 2 },
		func(s *Scenario) { s.Loss = 0 },
		func(s *Scenario) { s.Drift = 0 },
		func(s *Scenario) { s.Offset = 0 },
		func(s *Scenario) { s.Jitter = 0 },
		func(s *Scenario) { s.Shift = 0 },
		func(s *Scenario) { s.Shape = Even },
		func(s *Scenario) { s.Low = 0 },
		func(s *Scenario) { s.Hits = 0 },
		func(s *Scenario) { s.Elsewhere = 0 },
		func(s *Scenario) { s.Lease.NoPrefetch = true },
		func(s *Scenario) { s.Lease.IdleReturn = 0 },
	}
}
