package gale

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// ledgers is a Store for this package's tests: real Ledgers behind a lock,
// with the replica's clock shifted by an offset, and a latency each way.
// (memstore cannot be imported here; it passes gale/storetest.)
type ledgers struct {
	mu       sync.Mutex
	counters map[string]*Ledger
	offset   time.Duration
	latency  time.Duration
	fail     bool
	leases   atomic.Int64
	steps    atomic.Int64
}

func newLedgers() *ledgers { return &ledgers{counters: map[string]*Ledger{}} }

func (s *ledgers) now() time.Time { return time.Now().Add(s.offset) }

func (s *ledgers) ledger(key string, w int64) *Ledger {
	name := fmt.Sprint(key, w)
	if s.counters[name] == nil {
		s.counters[name] = &Ledger{}
	}
	return s.counters[name]
}

func (s *ledgers) Lease(ctx context.Context, steps []LeaseStep) error {
	s.leases.Add(1)
	s.steps.Add(int64(len(steps)))
	time.Sleep(s.latency / 2)
	s.mu.Lock()
	failing := s.fail
	if !failing {
		for i := range steps {
			st := &steps[i]
			l := s.ledger(st.Key, st.Window)
			if st.Return > 0 {
				l.Return(st.Return)
				st.StoreMicros = s.now().UnixMicro()
				continue
			}
			l.Lease(st, s.now().UnixMicro())
		}
	}
	s.mu.Unlock()
	time.Sleep(s.latency - s.latency/2)
	if failing {
		return ErrUnavailable
	}
	return ctx.Err()
}

func (s *ledgers) Count(_ context.Context, steps []CountStep) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range steps {
		l := s.ledger(steps[i].Key, 0)
		if steps[i].Op == CountRefund {
			l.Return(steps[i].Hits)
		} else {
			l.Counter += steps[i].Hits
		}
		steps[i].After = l.Counter
	}
	return nil
}

func (s *ledgers) CountAll(context.Context, []CountStep) (bool, error) { return true, nil }
func (s *ledgers) Announce(context.Context, string, time.Duration) (int, error) {
	return 1, nil
}
func (s *ledgers) Ready() error { return nil }
func (s *ledgers) Close() error { return nil }

func leasedPolicy(limit uint64, window int64) *Policy {
	return &Policy{Mode: ModeLeased, Limit: Limit{limit, window}}
}

// bigLeases is a policy whose credits outlast a benchmark's pace.
func bigLeases() *Policy {
	p := leasedPolicy(1<<32-1, 3600)
	p.Lease = LeasePolicy{Size: 1 << 24, Max: 1 << 24}
	return p
}

func charges(key string, p *Policy, hits uint64) *Request {
	return &Request{
		Charges:   []Charge{{Key: []byte(key), Policy: p, Hits: hits}},
		Decisions: make([]Decision, 1),
	}
}

func newTestEngine(t testing.TB, s Store) *Engine {
	t.Helper()
	e, err := NewEngine(s, nil, Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close(context.Background()) })
	return e
}

// A decision on held credits allocates nothing, alone and with others.
func TestDecideLeasedAllocatesNothing(t *testing.T) {
	e := newTestEngine(t, newLedgers())
	for _, n := range []int{1, 2, 10} {
		r := &Request{Charges: make([]Charge, n), Decisions: make([]Decision, n)}
		for i := range r.Charges {
			r.Charges[i] = Charge{Key: fmt.Appendf(nil, "domain_tenant_%d_", i), Policy: bigLeases(), Hits: 1}
		}
		ctx := context.Background()
		if err := e.Decide(ctx, r); err != nil {
			t.Fatal(err)
		}
		if allocs := testing.AllocsPerRun(1000, func() {
			if err := e.Decide(ctx, r); err != nil || r.Refused() {
				t.Fatal(err, r.Decisions)
			}
		}); allocs > 0 {
			t.Errorf("%d descriptors: %v allocations per decision", n, allocs)
		}
	}
}

func BenchmarkDecideLeased(b *testing.B) {
	for _, keys := range []int{1, 1000} {
		b.Run(fmt.Sprintf("keys=%d", keys), func(b *testing.B) {
			e := newTestEngine(b, newLedgers())
			p := bigLeases()
			b.ReportAllocs()
			var worker atomic.Int64
			b.RunParallel(func(pb *testing.PB) {
				id := worker.Add(1)
				rs := make([]*Request, keys)
				for i := range rs {
					rs[i] = charges(fmt.Sprintf("domain_tenant_%d_%d_", id, i), p, 1)
				}
				ctx := context.Background()
				for i := 0; pb.Next(); i++ {
					if err := e.Decide(ctx, rs[i%keys]); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}

func BenchmarkDecideLeasedOne(b *testing.B) {
	e := newTestEngine(b, newLedgers())
	r := charges("domain_tenant_1234_", bigLeases(), 1)
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		if err := e.Decide(ctx, r); err != nil || r.Decisions[0].Over {
			b.Fatal(err, r.Decisions[0])
		}
	}
}
