//go:build integration

package integration

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/gale-rls/gale-rls/internal/testenv"
)

// wasteWarm is how long the fleet runs before its figures count: replicas
// know each other after they have announced themselves twice.
const wasteWarm = 8 * time.Second

// TestLeasedNoWaste runs the same fleet without faults, asked for one and a
// half times its limits and for more: what the limit allows is admitted,
// whichever replica holds the credits.
//
// It is not parallel: what is lost at the boundary of a window grows with the
// round trip, and so with what else the machine does.
func TestLeasedNoWaste(t *testing.T) {
	limits := []int64{1, 10, 100, 1000, 100000}
	f := startLeased(t, overshootFleet, leasedRules(limits, ""), nil)
	var streams []*stream
	for _, n := range limits {
		// A tenth more, for a Poisson stream may have less by chance.
		for _, times := range []float64{1.65, 3.3} {
			streams = append(streams, demandOf(fmt.Sprint("second", n), n, 1, times, 600))
		}
		for _, times := range []float64{1.65, 11} {
			streams = append(streams, demandOf(fmt.Sprint("minute", n), n, 60, times, 100))
		}
	}
	// One whole minute, and what is needed before it.
	minute := time.Now().Truncate(time.Minute).Add(time.Minute)
	if time.Until(minute) < wasteWarm {
		minute = minute.Add(time.Minute)
	}
	from, to := minute, minute.Add(time.Minute)
	testenv.Eventually(t, 90*time.Second, "the minute to be near", func() bool { return time.Until(from) < wasteWarm })
	ctx, cancel := context.WithDeadline(t.Context(), to.Add(500*time.Millisecond))
	defer cancel()
	newLoad80(f.rls, streams).run(ctx)
	for _, s := range streams {
		s.noOvershoot(t)
		s.noWaste(t, from, to)
	}
}

// noWaste holds what the whole windows from from to to admitted against the
// limit. A window that, by chance, was not asked for one and a half times its
// limit is no evidence and does not count.
func (s *stream) noWaste(t *testing.T, from, to time.Time) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	_, possible := perWindow(s.admitted, s.length*1e6)
	sum, least, of := int64(0), s.limit, int64(0)
	for _, w := range s.full(from, to) {
		if 2*s.offered[w] < 3*s.limit {
			continue
		}
		// An answer that straddles a boundary may belong to either side.
		n := min(possible[w], s.limit)
		sum, least, of = sum+n, min(least, n), of+1
	}
	if of == 0 {
		t.Errorf("%s: no window was asked for 1.5 times its limit", s)
		return
	}
	share := float64(sum) / float64(s.limit*of)
	t.Logf("%-22s asked for %.1f times: %6.2f %% of the limit admitted, %d of %d in the worst of %d windows",
		s.entries[0], s.rate*float64(int64(s.hits)*s.length)/float64(s.limit), 100*share, least, s.limit, of)
	switch {
	case s.length == 1 && share < 0.97:
		t.Errorf("%s: %.2f %% admitted, want 97 %%", s, 100*share)
	case s.length > 1 && s.limit >= 100 && share < 0.99:
		t.Errorf("%s: %.2f %% admitted, want 99 %%", s, 100*share)
	case s.length > 1 && s.limit < 100 && least < s.limit-1:
		t.Errorf("%s: %d admitted, want %d", s, least, s.limit)
	}
}
