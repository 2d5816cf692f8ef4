package memstore_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gale-rls/gale-rls/pkg/gale"
	"github.com/gale-rls/gale-rls/pkg/gale/memstore"
	"github.com/gale-rls/gale-rls/pkg/gale/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		s := memstore.New(memstore.Config{})
		return storetest.Harness{Store: s, Advance: s.Advance}
	})
}

func TestStoreWithAnotherClock(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		s := memstore.New(memstore.Config{ClockOffset: -400 * 24 * time.Hour})
		return storetest.Harness{Store: s, Advance: s.Advance}
	})
}

func count(t *testing.T, s *memstore.Store, key string, ttl int64) uint64 {
	t.Helper()
	steps := []gale.CountStep{{Key: key, Hits: 1, TTL: ttl}}
	if err := s.Count(t.Context(), steps); err != nil {
		t.Fatal(err)
	}
	return steps[0].After
}

func TestAMillionNamesExpire(t *testing.T) {
	s := memstore.New(memstore.Config{})
	const names = 1_000_000
	for i := range names {
		count(t, s, fmt.Sprint("flood", i), 1)
	}
	s.Advance(2 * time.Second)
	for i := range names {
		count(t, s, fmt.Sprint("later", i), 60)
		if i == names*3/4 {
			if left := s.Len() - i; left > names/20 {
				t.Fatalf("%d expired counters left after %d new ones", left, i)
			}
		}
	}
}

func TestFloodOfNamesSparesTheOnesInUse(t *testing.T) {
	const bound = 10_000
	s := memstore.New(memstore.Config{MaxKeys: bound})
	const hot = 500
	rounds := uint64(0)
	for i := range 20 * bound {
		if i%2000 == 0 {
			rounds++
			for h := range hot {
				if got := count(t, s, fmt.Sprint("hot", h), 3600); got != rounds {
					t.Fatalf("hot counter is %d in round %d", got, rounds)
				}
			}
		}
		count(t, s, fmt.Sprint("flood", i), 3600)
	}
	if n := s.Len(); n > bound+64 {
		t.Fatalf("%d counters, bound is %d", n, bound)
	}
}

func TestClockInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New(memstore.Config{})
		count(t, s, "k", 60)
		time.Sleep(59 * time.Second)
		if got := count(t, s, "k", 60); got != 2 {
			t.Fatalf("counter is %d before its end", got)
		}
		time.Sleep(time.Minute)
		if got := count(t, s, "k", 60); got != 1 {
			t.Fatalf("counter is %d after its end", got)
		}
	})
}

func BenchmarkCount(b *testing.B) {
	s := memstore.New(memstore.Config{})
	steps := []gale.CountStep{{Key: "benchmark_1", Hits: 1, TTL: 60}}
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		_ = s.Count(ctx, steps)
	}
}
