package gale

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// unacknowledged is a store whose replica is away: grants are Lost.
type unacknowledged struct {
	*ledgers
	away atomic.Bool
}

func (s *unacknowledged) Lease(ctx context.Context, steps []LeaseStep) error {
	err := s.ledgers.Lease(ctx, steps)
	for i := range steps {
		steps[i].Lost = s.away.Load() && steps[i].Replicated && steps[i].Grant > 0
	}
	return err
}

// While no replica acknowledges, a replicated lease asks for no more than the
// request needs: a lost grant stays counted, and the window's limit must not
// be gone when the replica is back.
func TestLeasedLostGrantsBurnLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &unacknowledged{ledgers: newLedgers()}
		s.latency = 100 * time.Millisecond // as long as an acknowledgement is waited for
		e := fleetOf(t, s, 1)[0]
		defer closeAll([]*Engine{e})
		p := leasedPolicy(20000, 3600)
		p.Lease.Replicated, p.Lease.Size = true, 1000
		ask := func(d time.Duration) (admitted int) {
			for end := time.Now().Add(d); time.Now().Before(end); {
				ctx, cancel := context.WithTimeout(context.Background(), 150*time.Millisecond)
				r := charges("k_", p, 1)
				if e.Decide(ctx, r) == nil && !r.Decisions[0].Over {
					admitted++
				}
				cancel()
				time.Sleep(time.Millisecond)
			}
			return admitted
		}
		if n := ask(5 * time.Second); n < 1000 {
			t.Errorf("%d admitted with a replica", n)
		}
		s.away.Store(true)
		ask(60 * time.Second)
		if lost := e.LeaseStats().CreditsLost; lost == 0 || lost > 3000 {
			t.Errorf("%d credits lost in a minute without a replica, want at most 3,000 of 20,000", lost)
		}
		s.away.Store(false)
		if n := ask(5 * time.Second); n < 1000 {
			t.Errorf("%d admitted when the replica was back", n)
		}
	})
}
