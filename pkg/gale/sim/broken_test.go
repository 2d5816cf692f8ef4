package sim

import (
	"testing"

	"github.com/gale-rls/gale-rls/pkg/gale"
)

// Each test here breaks one rule of the protocol and nothing else. The search
// must find an over-admission, or it could not be trusted to find none.

// refuted searches a World with a broken rule and wants INV-1 violated: more
// admitted than the limit, not only an accounting that does not add up.
func refuted(t *testing.T, w World, r Rules) {
	t.Helper()
	t.Parallel()
	w.Name = t.Name()
	w.MaxStates = 4_000_000
	report := Search(w, r, INV1)
	if report.Err == nil {
		t.Fatalf("not refuted: %v", report)
	}
	t.Logf("%v\n%v\n%s", report, report.Err, report.Trace)
}

// otherWindow spends in a window that is not now, if it holds credits there.
func otherWindow(w World, fits func(lot, first int64) bool) Rules {
	r := Production()
	r.Take = func(h *gale.Holder, iv gale.Interval, now gale.Tick, t gale.Terms, paid *gale.Paid) gale.Answer {
		for _, l := range h.Lots() {
			if l.Credits >= t.Hits && fits(l.Window, iv.Earliest/w.length()) {
				then := gale.Interval{Earliest: l.Window * w.length(), Latest: l.Window * w.length()}
				return h.Take(then, now, t, paid)
			}
		}
		return h.Take(iv, now, t, paid)
	}
	return r
}

func TestCarryOver(t *testing.T) {
	w := oneBoundary()
	refuted(t, w, otherWindow(w, func(lot, first int64) bool { return lot < first }))
}

func TestSpendingALotInAnotherWindow(t *testing.T) {
	w := oneBoundary()
	w.Prelease = true
	refuted(t, w, otherWindow(w, func(lot, first int64) bool { return lot > first }))
}

// placedAs moves what a holder knows of the store's time.
func placedAs(move func(iv gale.Interval) gale.Interval) Rules {
	r := Production()
	r.Place = func(c gale.StoreClock, now gale.Instant) (gale.Interval, bool) {
		iv, ok := c.At(now)
		return move(iv), ok
	}
	return r
}

func TestNoBridge(t *testing.T) {
	t.Run("pays in the earliest window", func(t *testing.T) {
		refuted(t, oneBoundary(), placedAs(func(iv gale.Interval) gale.Interval {
			return gale.Interval{Earliest: iv.Earliest, Latest: iv.Earliest}
		}))
	})
	t.Run("pays in the latest window", func(t *testing.T) {
		w := slowReplies()
		refuted(t, w, placedAs(func(iv gale.Interval) gale.Interval {
			return gale.Interval{Earliest: iv.Latest, Latest: iv.Latest}
		}))
	})
}

// slowReplies is a World in which the store's time can be known so badly that
// it seems to be a window later than it is: three ticks to a window, and
// instants further from its end than a clock may drift.
func slowReplies() World {
	w := oneHolder()
	w.PerWindow, w.Start, w.End, w.Phase, w.Prelease = 3, 0, 3, 10_000_000, true
	return w
}

const tickMicros = tickNanos / 1000

func TestBracketOneTickTooNarrow(t *testing.T) {
	t.Run("latest a tick early", func(t *testing.T) {
		refuted(t, oneBoundary(), placedAs(func(iv gale.Interval) gale.Interval {
			return gale.Interval{Earliest: iv.Earliest, Latest: max(iv.Earliest, iv.Latest-tickMicros)}
		}))
	})
	t.Run("earliest a tick late", func(t *testing.T) {
		w := slowReplies()
		refuted(t, w, placedAs(func(iv gale.Interval) gale.Interval {
			return gale.Interval{Earliest: min(iv.Latest, iv.Earliest+tickMicros), Latest: iv.Latest}
		}))
	})
}

func TestWindowsByTheReplicasWallClock(t *testing.T) {
	r := Production()
	r.Place = func(_ gale.StoreClock, now gale.Instant) (gale.Interval, bool) {
		return gale.Interval{Earliest: now.Wall / 1000, Latest: now.Wall / 1000}, true
	}
	w := oneBoundary()
	w.Holders = []HolderClock{{Exact, 0, 0}, {Exact, 0, tickNanos}}
	refuted(t, w, r)
}

// A clock that drifts more than the bound: what the bound is for.
func TestDriftBeyondTheBound(t *testing.T) {
	w := oneBoundary()
	w.Holders = []HolderClock{{TooSlow, 0, 0}, {Exact, 0, 0}}
	refuted(t, w, Production())
}

func TestLeaseRetriedAndCountedOnce(t *testing.T) {
	r := Production()
	r.Retries = true
	w := oneBoundary()
	w.Losses = 1
	refuted(t, w, r)
}

func TestReplyCreditedTwice(t *testing.T) {
	r := Production()
	r.RepeatReplies = true
	w := oneBoundary()
	w.Duplicates = 1
	refuted(t, w, r)
}

func TestReturnRepeated(t *testing.T) {
	r := Production()
	r.RepeatReturns = true
	w := oneBoundary()
	w.Return, w.Losses, w.Wants = true, 1, []uint64{2}
	refuted(t, w, r)
}

func TestLateGrantCountedAsTheNewWindows(t *testing.T) {
	w := oneBoundary()
	r := Production()
	r.Land = func(h *gale.Holder, s *gale.LeaseStep, now gale.Tick, iv gale.Interval) uint64 {
		if first := iv.Earliest / w.length(); s.Grant > 0 && s.Window < first {
			h.Failed(s.Window)
			if ok, _, _ := h.Begin(first, iv, w.length()); ok {
				s.Window = first
			}
		}
		return h.Granted(s, now)
	}
	refuted(t, w, r)
}

// A position that came back may be granted again, but not below where it was.
func TestReturnedPositionGrantedLower(t *testing.T) {
	r := Production()
	r.Lease = func(l *gale.Ledger, s *gale.LeaseStep, storeMicros int64) {
		l.Lease(s, storeMicros)
		if s.Grant > 0 && s.Counter > s.Grant {
			s.Counter--
		}
	}
	w := oneBoundary()
	w.Limit, w.Low, w.Return = 2, 1, true
	refuted(t, w, r)
}

func TestPositionsIgnoredByLowerLimits(t *testing.T) {
	w := oneBoundary()
	w.Limit, w.Low, w.Wants = 3, 1, []uint64{3}
	r := Production()
	r.Take = func(h *gale.Holder, iv gale.Interval, now gale.Tick, t gale.Terms, paid *gale.Paid) gale.Answer {
		t.Limit = w.Limit
		return h.Take(iv, now, t, paid)
	}
	refuted(t, w, r)
}

// A suspended machine whose wall clock is not asked does not know that it
// slept.
func TestSleepUnnoticed(t *testing.T) {
	r := Production()
	r.Read = func(i gale.Instant) gale.Instant { return gale.Instant{Mono: i.Mono, Wall: i.Mono} }
	w := oneBoundary()
	w.Sleeps = 1
	refuted(t, w, r)
}

// Two leases of one window in flight admit no more than the limit, but break
// INV-5: the second waiter's credits would be leased twice.
func TestTwoLeasesInFlight(t *testing.T) {
	t.Parallel()
	r := Production()
	r.Crowded = true
	w := oneBoundary()
	w.Name = t.Name()
	if report := Search(w, r, INV5); report.Err == nil {
		t.Fatalf("not refuted: %v", report)
	}
}
