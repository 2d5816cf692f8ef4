package sim

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/gale-rls/gale-rls/pkg/gale"
)

// Shape says how demand spreads over the replicas.
type Shape string

// The shapes. The zero value is Even.
const (
	// Even: every replica gets the same.
	Even Shape = "even"
	// Hot: one replica gets four fifths, the others share the rest.
	Hot Shape = "hot"
	// Halves: the first half gets four times as much as the second.
	Halves Shape = "halves"
)

// Scenario is what a fleet run simulates. One scenario is one run, to the
// last event: all that is drawn is drawn from Seed.
type Scenario struct {
	Seed     uint64
	Replicas int
	// Limit is in hits per Window, which is in seconds.
	Limit  uint64
	Window int64
	// Length is how long demand is offered.
	Length time.Duration
	Lease  gale.LeasePolicy
	// Rate is the fleet's demand in requests per second, of Hits hits each
	// (0 means 1), arriving at random (Poisson).
	Rate  float64
	Hits  uint64
	Shape Shape
	// Shift moves the hot replicas on by one, every so often; 0 never.
	Shift time.Duration
	// Low, if not 0, is a smaller limit that every third request has.
	Low uint64
	// Elsewhere is the share of requests that another of their limits
	// refuses, so that what they paid is put back.
	Elsewhere float64
	// Latency is the mean round trip to the store, evenly spread by Jitter
	// to either side, and split at random between the two ways.
	Latency, Jitter time.Duration
	// Patience is how long a request waits for a lease; 0 means 20 ms.
	Patience time.Duration
	// Loss is the share of messages that are lost on each way.
	Loss float64
	// Crashes, Pauses and Partitions are how often replicas are killed,
	// stopped, and cut off from the store, for up to Outage each time.
	Crashes, Pauses, Partitions int
	Outage                      time.Duration
	// Offset and Drift bound the replicas' clocks against the store's:
	// seconds are nothing to either; Drift is in ppm, at most 1000.
	Offset time.Duration
	Drift  float64
	// Failovers is how often the store fails over, losing what it granted in
	// the LostTail before, unless Replicated.
	Failovers  int
	LostTail   time.Duration
	Replicated bool

	// mischief, in tests, breaks the shell: replies land twice.
	mischief bool
}

// Validate reports all that a run cannot do, joined.
func (s *Scenario) Validate() error {
	var problems []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			problems = append(problems, fmt.Errorf(format, args...))
		}
	}
	check(s.Replicas >= 1 && s.Replicas <= 512, "replicas: %d is not between 1 and 512", s.Replicas)
	check(s.Limit >= 1 && s.Limit <= 1<<31, "limit: %d is not between 1 and 2^31", s.Limit)
	check(s.Window >= 1, "window: %d s is less than a second", s.Window)
	check(s.Length > 0 && s.Length <= 24*time.Hour, "length: %v is not between 0 and 24h", s.Length)
	check(s.Rate > 0, "rate: %v requests/s is not positive", s.Rate)
	check(s.Rate*s.Length.Seconds() <= 1e8, "rate, length: more than 10^8 requests")
	check(s.Hits <= s.Limit, "hits: %d is beyond the limit", s.Hits)
	check(s.Low <= s.Limit, "low: %d is beyond the limit", s.Low)
	check(s.Shape == Even || s.Shape == Hot || s.Shape == Halves || s.Shape == "",
		"shape: %q is none of even, hot, halves", s.Shape)
	check(s.Latency >= 0 && s.Jitter >= 0 && s.Jitter <= s.Latency, "jitter: %v is not within the latency, %v", s.Jitter, s.Latency)
	check(s.Loss >= 0 && s.Loss <= 1, "loss: %v is not between 0 and 1", s.Loss)
	check(s.Elsewhere >= 0 && s.Elsewhere <= 1, "elsewhere: %v is not between 0 and 1", s.Elsewhere)
	check(s.Drift >= 0 && s.Drift <= 1000, "drift: %v ppm is not between 0 and 1000", s.Drift)
	check(s.Crashes >= 0 && s.Pauses >= 0 && s.Partitions >= 0 && s.Failovers >= 0, "faults: a number is negative")
	check(s.Shift >= 0 && s.Patience >= 0 && s.Outage >= 0 && s.LostTail >= 0, "a duration is negative")
	return errors.Join(problems...)
}

// Random draws a scenario: small limits and large, all faults, bad clocks.
// Store fail-over that loses grants is left out: it over-admits.
func Random(seed uint64) Scenario {
	r := rand.New(rand.NewPCG(seed, 7))
	pick := func(v ...int) int { return v[r.IntN(len(v))] }
	millis := func(v ...int) time.Duration { return time.Duration(pick(v...)) * time.Millisecond }
	s := Scenario{
		Seed:     seed,
		Replicas: pick(2, 2, 3, 4, 8, 16),
		Limit:    uint64(pick(1, 2, 5, 10, 50, 100, 300)),
		Window:   int64(pick(1, 1, 2)),
		Length:   millis(2500, 3500, 4500),
		Shape:    []Shape{Even, Hot, Halves}[r.IntN(3)],
		Shift:    millis(0, 300, 1000),
		Latency:  millis(0, 1, 5, 20, 100, 400),
		Patience: millis(5, 20, 200, 2000),
		Loss:     float64(pick(0, 0, 1, 5, 20)) / 100,
		Crashes:  pick(0, 0, 1, 3), Pauses: pick(0, 0, 1, 3), Partitions: pick(0, 0, 1, 3),
		Outage: millis(50, 400, 1500),
		Offset: time.Duration(r.Int64N(int64(4*time.Hour))) - 2*time.Hour,
		Drift:  float64(pick(0, 50, 990)),
	}
	s.Jitter = time.Duration(r.Float64() * float64(s.Latency))
	s.Rate = float64(s.Limit) * []float64{0.3, 1, 1.5, 4}[r.IntN(4)] / float64(s.Window)
	s.Rate = min(max(s.Rate, 5), 500)
	s.Lease = gale.LeasePolicy{
		Size: uint64(pick(0, 0, 0, 1, 7, 50)), NoPrefetch: r.IntN(4) == 0,
		IdleReturn: millis(0, 100, 1000),
	}
	if r.IntN(4) == 0 {
		s.Hits = min(uint64(pick(2, 5)), s.Limit)
	}
	if r.IntN(4) == 0 {
		s.Low = (s.Limit + 1) / 2
	}
	if r.IntN(4) == 0 {
		s.Elsewhere = 0.3
	}
	if r.IntN(4) == 0 {
		s.Failovers, s.LostTail, s.Replicated = 1, 100*time.Millisecond, true
	}
	return s
}
