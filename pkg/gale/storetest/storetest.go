package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gale-rls/gale-rls/pkg/gale"
)

// Harness is a store under test.
type Harness struct {
	Store gale.Store
	// Advance moves the store's clock forward. Nil for a store with a clock
	// that cannot be moved: tests then wait for it.
	Advance func(d time.Duration)
}

// Run runs the suite. newHarness is called for each test, and closes the
// store at the test's end if that is needed.
func Run(t *testing.T, newHarness func(t *testing.T) Harness) {
	tests := []struct {
		name string
		run  func(s *suite)
	}{
		{"Count/adds in order", (*suite).countAdds},
		{"Count/peek", (*suite).countPeeks},
		{"Count/refund", (*suite).countRefunds},
		{"Count/time to live", (*suite).countExpires},
		{"Count/overflow", (*suite).countOverflows},
		{"Count/any name", (*suite).countAnyName},
		{"CountAll/all or none", (*suite).allOrNone},
		{"CountAll/one counter several times", (*suite).allRepeated},
		{"CountAll/bystanders", (*suite).allBystanders},
		{"CountAll/huge hits", (*suite).allHuge},
		{"CountAll/many steps", (*suite).allMany},
		{"Lease/grants", (*suite).leaseGrants},
		{"Lease/taper", (*suite).leaseTapers},
		{"Lease/refusal writes nothing", (*suite).leaseRefuses},
		{"Lease/windows", (*suite).leaseWindows},
		{"Lease/return", (*suite).leaseReturns},
		{"Lease/counter shared with Count", (*suite).leaseShares},
		{"Lease/counter beyond the limit", (*suite).leaseExceeded},
		{"Lease/several steps", (*suite).leaseSeveral},
		{"Lease/until the window ends", (*suite).leaseOutlives},
		{"Announce", (*suite).announces},
		{"Model", (*suite).model},
		{"Concurrent/Count", (*suite).concurrentCount},
		{"Concurrent/CountAll", (*suite).concurrentAll},
		{"Concurrent/Lease", (*suite).concurrentLease},
		{"Deadline", (*suite).deadline},
		{"Close", (*suite).closes},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			h := newHarness(t)
			test.run(&suite{T: t, h: h, store: h.Store, prefix: fmt.Sprintf("t%x_", rand.Uint64())})
		})
	}
}

// suite is one test with its store.
type suite struct {
	*testing.T
	h      Harness
	store  gale.Store
	prefix string
}

// month is a window that hardly ends while a test runs.
const month = 30 * 24 * 3600

func (s *suite) key(name string) string { return s.prefix + name + "_" }

func (s *suite) ctx() context.Context {
	ctx, cancel := context.WithTimeout(s.Context(), 10*time.Second)
	s.Cleanup(cancel)
	return ctx
}

func add(key string, hits uint64) gale.CountStep {
	return gale.CountStep{Key: key, Hits: hits, TTL: 60}
}

func refund(key string, hits uint64) gale.CountStep {
	return gale.CountStep{Key: key, Op: gale.CountRefund, Hits: hits, TTL: 60}
}

// count executes the steps, which must succeed, and returns what the
// counters became.
func (s *suite) count(steps ...gale.CountStep) []uint64 {
	s.Helper()
	if err := s.store.Count(s.ctx(), steps); err != nil {
		s.Fatalf("Count: %v", err)
	}
	return afters(steps)
}

// all is count for CountAll.
func (s *suite) all(steps ...gale.CountStep) (bool, []uint64) {
	s.Helper()
	taken, err := s.store.CountAll(s.ctx(), steps)
	if err != nil {
		s.Fatalf("CountAll: %v", err)
	}
	return taken, afters(steps)
}

// value reads a counter without creating it.
func (s *suite) value(key string) uint64 {
	s.Helper()
	return s.count(refund(key, 0))[0]
}

func (s *suite) lease(steps ...gale.LeaseStep) []gale.LeaseStep {
	s.Helper()
	if err := s.store.Lease(s.ctx(), steps); err != nil {
		s.Fatalf("Lease: %v", err)
	}
	return steps
}

// window is the store's current window of that length.
func (s *suite) window(length int64) int64 {
	s.Helper()
	step := s.lease(gale.LeaseStep{Key: s.key("clock"), Length: length, Limit: 1})[0]
	return step.StoreMicros / 1_000_000 / length
}

// pass lets time pass on the store's clock until done, or a deadline.
func (s *suite) pass(d time.Duration, done func() bool) {
	s.Helper()
	if s.h.Advance != nil {
		s.h.Advance(d)
	}
	for deadline := time.Now().Add(d + 5*time.Second); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.Fatalf("not within %v", d)
		}
	}
}

func (s *suite) equal(what string, got, want any) {
	s.Helper()
	if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
		s.Errorf("%s: %s, want %s", what, g, w)
	}
}

func afters(steps []gale.CountStep) []uint64 {
	after := make([]uint64, len(steps))
	for i := range steps {
		after[i] = steps[i].After
	}
	return after
}

// counterName is the name of a leased counter: that of strict mode.
func counterName(key string, window, length int64) string {
	return key + strconv.FormatInt(window*length, 10)
}

func (s *suite) deadline() {
	expired, cancel := context.WithDeadline(s.Context(), time.Now().Add(-time.Second))
	defer cancel()
	cancelled, cancel := context.WithCancel(s.Context())
	cancel()
	for _, ctx := range []context.Context{expired, cancelled} {
		began := time.Now()
		_, errAll := s.store.CountAll(ctx, []gale.CountStep{add(s.key("k"), 1)})
		_, errAnnounce := s.store.Announce(ctx, s.prefix, time.Minute)
		for name, err := range map[string]error{
			"Count":    s.store.Count(ctx, []gale.CountStep{add(s.key("k"), 1)}),
			"CountAll": errAll,
			"Lease": s.store.Lease(ctx, []gale.LeaseStep{
				{Key: s.key("k"), Length: month, Limit: 1, Want: 1, Need: 1},
			}),
			"Announce": errAnnounce,
		} {
			if !errors.Is(err, gale.ErrUnavailable) || !errors.Is(err, ctx.Err()) {
				s.Errorf("%s with %v: %v", name, ctx.Err(), err)
			}
		}
		if took := time.Since(began); took > time.Second {
			s.Errorf("took %v with an ended context", took)
		}
	}
	if err := s.store.Ready(); err != nil {
		s.Errorf("not ready after other's deadlines: %v", err)
	}
	s.equal("count", s.count(add(s.key("other"), 1)), []uint64{1})
}

func (s *suite) closes() {
	s.count(add(s.key("k"), 1))
	for range 2 {
		if err := s.store.Close(); err != nil {
			s.Fatalf("Close: %v", err)
		}
	}
	_, errAll := s.store.CountAll(s.ctx(), []gale.CountStep{add(s.key("k"), 1)})
	_, errAnnounce := s.store.Announce(s.ctx(), s.prefix, time.Minute)
	for name, err := range map[string]error{
		"Count":    s.store.Count(s.ctx(), []gale.CountStep{add(s.key("k"), 1)}),
		"CountAll": errAll,
		"Lease":    s.store.Lease(s.ctx(), []gale.LeaseStep{{Key: s.key("k"), Length: 1}}),
		"Announce": errAnnounce,
		"Ready":    s.store.Ready(),
	} {
		if !errors.Is(err, gale.ErrUnavailable) {
			s.Errorf("%s after Close: %v", name, err)
		}
	}
}

func (s *suite) announces() {
	a, b := s.prefix+"a", s.prefix+"b"
	announce := func(id string, ttl time.Duration) int {
		s.Helper()
		live, err := s.store.Announce(s.ctx(), id, ttl)
		if err != nil {
			s.Fatalf("Announce: %v", err)
		}
		return live
	}
	// Others may live on a server that is shared.
	others := announce(a, time.Minute) - 1
	s.equal("again", announce(a, time.Minute), others+1)
	s.equal("with another", announce(b, time.Minute), others+2)
	s.equal("withdrawn", announce(b, 0), others+1)
	s.equal("withdrawn twice", announce(b, -time.Second), others+1)
	announce(b, time.Second)
	s.pass(2*time.Second, func() bool { return announce(a, time.Minute) == others+1 })
	announce(a, 0)
}

func (s *suite) countAnyName() {
	names := []string{
		"spaces and * [glob]?", "newline\r\nPING\r\n", "ünï\u2028code", "nul\x00\xff\xfe",
		"{braces}", "100%d", strings.Repeat("long", 4000),
	}
	for _, name := range names {
		key := s.key(name)
		s.equal(fmt.Sprintf("count %.20q", name), s.count(add(key, 2), add(key, 1)), []uint64{2, 3})
		taken, after := s.all(gale.CountStep{Key: key, Hits: 1, Limit: 4, TTL: 60})
		s.equal(fmt.Sprintf("count all %.20q", name), fmt.Sprint(taken, after), "true [4]")
		w := s.window(month)
		s.equal(fmt.Sprintf("lease %.20q", name), s.lease(gale.LeaseStep{
			Key: key, Length: month, Window: w, Limit: 5, Want: 5, Need: 1,
		})[0].Grant, 5)
	}
}
