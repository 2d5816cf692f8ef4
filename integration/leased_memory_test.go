//go:build integration

package integration

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"testing"
	"time"

	"github.com/gale-rls/gale-rls/pkg/gale"
)

const (
	// liveKeys are leased keys with credits.
	liveKeys = 1_000_000
	// allowedForKeys is what they may take, resident.
	allowedForKeys = 300 << 20
)

// granting is a store that grants what is wanted and remembers nothing: what
// is measured is what the engine keeps.
type granting struct{}

func (granting) Lease(_ context.Context, steps []gale.LeaseStep) error {
	for i := range steps {
		s := &steps[i]
		s.Grant, s.Counter, s.Free = s.Want, s.Want, s.Limit-s.Want
		s.StoreMicros = time.Now().UnixMicro()
	}
	return nil
}

func (granting) Count(context.Context, []gale.CountStep) error            { return nil }
func (granting) CountAll(context.Context, []gale.CountStep) (bool, error) { return true, nil }
func (granting) Announce(context.Context, string, time.Duration) (int, error) {
	return 1, nil
}
func (granting) Ready() error { return nil }
func (granting) Close() error { return nil }

// TestLeasedMemory makes a million keys live, with names of 35 bytes as
// those of a rule with a user id have, and holds what is resident after a
// forced collection, less what was before, against 300 MiB. Keys hold credits
// and are visited twice, as live ones are.
func TestLeasedMemory(t *testing.T) {
	e, err := gale.NewEngine(granting{}, nil, gale.Config{MaxLeasedKeys: 2 * liveKeys})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := e.Close(ctx); err != nil {
			t.Errorf("Close: %v", err)
		}
	}()
	policy := &gale.Policy{
		Limit: gale.Limit{Hits: 1000, Window: 3600}, Mode: gale.ModeLeased,
		Lease: gale.LeasePolicy{Size: 10, IdleReturn: -1},
	}
	live, resident := taken(t)
	start := time.Now()
	visit(t, e, policy)
	visit(t, e, policy)
	took := time.Since(start)
	s := e.LeaseStats()
	t.Logf("%d keys with %d credits after %v", s.Keys, s.Held, took.Round(time.Millisecond))
	if s.Keys != liveKeys || s.Held < liveKeys {
		t.Fatalf("%d keys hold %d credits, want %d keys with some each", s.Keys, s.Held, liveKeys)
	}
	liveAfter, residentAfter := taken(t)
	runtime.KeepAlive(e)
	t.Logf("live heap %.1f MiB before, %.1f after: %.1f for the keys, %d bytes each", mib(live), mib(liveAfter), mib(liveAfter-live), (liveAfter-live)/liveKeys)
	t.Logf("resident  %.1f MiB before, %.1f after: %.1f for the keys, %d bytes each", mib(resident), mib(residentAfter), mib(residentAfter-resident), (residentAfter-resident)/liveKeys)
	if residentAfter-resident > allowedForKeys {
		t.Errorf("%.1f MiB resident for a million keys, want at most %.0f", mib(residentAfter-resident), mib(allowedForKeys))
	}
}

// visit sends one hit to each key. Many wait at once, so that leases share
// exchanges.
func visit(t *testing.T, e *gale.Engine, policy *gale.Policy) {
	t.Helper()
	const workers = 256
	failed := make(chan error, workers)
	for w := range workers {
		go func() {
			r := &gale.Request{Charges: make([]gale.Charge, 1), Decisions: make([]gale.Decision, 1)}
			var key []byte
			for i := w; i < liveKeys; i += workers {
				key = append(key[:0], "api_tenant_acme_user_id_"...)
				key = strconv.AppendInt(key, int64(1e9)+int64(i), 10)
				key = append(key, '_')
				r.Charges[0] = gale.Charge{Key: key, Policy: policy, Hits: 1}
				if err := e.Decide(context.Background(), r); err != nil || r.Decisions[0].Over {
					failed <- fmt.Errorf("%s: over %t, %w", key, r.Decisions[0].Over, err)
					return
				}
			}
			failed <- nil
		}()
	}
	for range workers {
		if err := <-failed; err != nil {
			t.Error(err)
		}
	}
	if t.Failed() {
		t.FailNow()
	}
}

// taken is the live heap and the resident memory of this process after a
// collection, in bytes.
func taken(t *testing.T) (live, memory int64) {
	t.Helper()
	runtime.GC()
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc), resident(t, os.Getpid())
}
