package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/gale-rls/gale-rls/internal/testenv"
	"github.com/gale-rls/gale-rls/pkg/gale"
	"github.com/gale-rls/gale-rls/pkg/gale/redisstore"
)

// driver is a client of the test's own, to look at the server.
func driver(t *testing.T, address string) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: address, Protocol: 2, DisableIdentity: true})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func count(t *testing.T, s gale.Store, steps ...gale.CountStep) []gale.CountStep {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if err := s.Count(ctx, steps); err != nil {
		t.Fatal(err)
	}
	return steps
}

func steps(n int, name string) []gale.CountStep {
	s := make([]gale.CountStep, n)
	for i := range s {
		s[i] = gale.CountStep{Key: fmt.Sprint(t0, name, i, "_1700000000"), Hits: 1, Limit: 1000, TTL: 60}
	}
	return s
}

// t0 makes keys of this run, for a server that is shared.
var t0 = time.Now().UnixNano()

func TestOneRoundTripForTenDescriptors(t *testing.T) {
	server := testenv.Redis(t)
	proxy := testenv.NewProxy(t, server.Addr)
	s := open(t, redisstore.Config{Address: proxy.Addr, PoolSize: 1})
	count(t, s, steps(1, "warm")...) // connects
	for name, do := range map[string]func() error{
		"Count":    func() error { return s.Count(t.Context(), steps(10, "count")) },
		"CountAll": func() error { _, err := s.CountAll(t.Context(), steps(10, "all")); return err },
		"Lease": func() error {
			return s.Lease(t.Context(), []gale.LeaseStep{
				{Key: "a_", Length: 60, Limit: 10, Want: 1}, {Key: "b_", Length: 60, Limit: 10, Want: 1},
			})
		},
	} {
		// A ping in between is a round trip too, so the least of several counts.
		least := int64(1 << 60)
		for range 5 {
			before := proxy.RoundTrips()
			if err := do(); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			least = min(least, proxy.RoundTrips()-before)
		}
		if least != 1 {
			t.Errorf("%s: %d round trips", name, least)
		}
	}
}

func TestConcurrentOperationsSharePipelines(t *testing.T) {
	server := testenv.Redis(t)
	proxy := testenv.NewProxy(t, server.Addr)
	s := open(t, redisstore.Config{Address: proxy.Addr, PoolSize: 2, Timeout: 5 * time.Second})
	count(t, s, steps(1, "warm")...)
	proxy.Delay(20 * time.Millisecond)
	before := proxy.RoundTrips()
	var wg sync.WaitGroup
	const operations = 500
	for i := range operations {
		wg.Go(func() {
			if err := s.Count(t.Context(), steps(2, fmt.Sprint("shared", i%7))); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	trips := proxy.RoundTrips() - before
	t.Logf("%d operations in %d round trips", operations, trips)
	if trips > operations/10 {
		t.Errorf("%d operations took %d round trips", operations, trips)
	}
}

func TestCommandsAreThoseOfTheReference(t *testing.T) {
	server := testenv.Redis(t)
	if !server.Owned() {
		t.Skip("counts the commands of a server of its own")
	}
	s := open(t, redisstore.Config{Address: server.Addr})
	look := driver(t, server.Addr)
	count(t, s, steps(1, "warm")...)
	look.ConfigResetStat(t.Context())
	done := count(t, s, gale.CountStep{Key: "domain_key_välue_1700000000", Hits: 3, TTL: 77})
	stats := look.Info(t.Context(), "commandstats").Val()
	for _, want := range []string{"cmdstat_incrby:calls=1,", "cmdstat_expire:calls=1,"} {
		if !strings.Contains(stats, want) {
			t.Errorf("no %s in\n%s", want, stats)
		}
	}
	if strings.Contains(stats, "cmdstat_eval") || strings.Contains(stats, "cmdstat_get:") {
		t.Errorf("other commands:\n%s", stats)
	}
	if got := look.Get(t.Context(), done[0].Key).Val(); got != "3" {
		t.Errorf("counter is %q", got)
	}
	if ttl := look.TTL(t.Context(), done[0].Key).Val(); ttl < 75*time.Second || ttl > 77*time.Second {
		t.Errorf("time to live is %v", ttl)
	}
}

func TestScriptsAreSentAgainWhenForgotten(t *testing.T) {
	server := testenv.Redis(t)
	if !server.Owned() {
		t.Skip("makes the server forget scripts")
	}
	s := open(t, redisstore.Config{Address: server.Addr})
	look := driver(t, server.Addr)
	step := steps(1, "forgotten")[0]
	count(t, s, step)
	forget := func() {
		if err := look.ScriptFlush(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
	}
	forget()
	taken, err := s.CountAll(t.Context(), []gale.CountStep{step, step})
	if err != nil || !taken {
		t.Errorf("CountAll: %v, %v", taken, err)
	}
	forget()
	back := step
	back.Op, back.Hits = gale.CountRefund, 2
	if got := count(t, s, step, back, step); got[0].After != 4 || got[2].After < 3 {
		t.Errorf("Count: %+v", got)
	}
	forget()
	lease := []gale.LeaseStep{{Key: step.Key, Length: 60, Window: time.Now().Unix()/60 + 1, Limit: 5, Want: 5, Replicated: true}}
	if err := s.Lease(t.Context(), lease); err != nil || lease[0].Grant != 5 || !lease[0].Lost {
		t.Errorf("Lease: %+v, %v", lease, err)
	}
}

func TestLeasedCounterOutlivesItsWindow(t *testing.T) {
	server := testenv.Redis(t)
	s := open(t, redisstore.Config{Address: server.Addr})
	look := driver(t, server.Addr)
	key, w := fmt.Sprint(t0, "life_"), time.Now().Unix()/60+1
	name := fmt.Sprint(key, w*60)
	lease := func() {
		t.Helper()
		step := []gale.LeaseStep{{Key: key, Length: 60, Window: w, Limit: 50, Want: 5, Need: 1}}
		if err := s.Lease(t.Context(), step); err != nil || step[0].Grant != 5 {
			t.Fatalf("%+v, %v", step, err)
		}
	}
	lease()
	ends := time.Unix((w+1)*60, 0).Add(300 * time.Second)
	if ttl := look.TTL(t.Context(), name).Val(); time.Until(ends.Add(-2*time.Second)) > ttl {
		t.Errorf("lives for %v, until %v", ttl, ends)
	}
	look.Expire(t.Context(), name, time.Hour)
	lease()
	if ttl := look.TTL(t.Context(), name).Val(); ttl < 59*time.Minute {
		t.Errorf("shortened to %v", ttl)
	}
}

// A counter below zero comes from negative hits in another service; it must
// not widen the limit.
func TestCounterBelowZero(t *testing.T) {
	server := testenv.Redis(t)
	s := open(t, redisstore.Config{Address: server.Addr})
	look := driver(t, server.Addr)
	key, w := fmt.Sprint(t0, "below_"), time.Now().Unix()/3600+1
	name := fmt.Sprint(key, w*3600)
	look.Set(t.Context(), name, "-7", time.Hour)
	step := []gale.LeaseStep{{Key: key, Length: 3600, Window: w, Limit: 10, Want: 20, Need: 1}}
	if err := s.Lease(t.Context(), step); err != nil {
		t.Fatal(err)
	}
	if step[0].Grant != 10 || step[0].Counter != 10 || step[0].Free != 0 {
		t.Errorf("%+v", step[0])
	}
	if got := look.Get(t.Context(), name).Val(); got != "10" {
		t.Errorf("counter is %s", got)
	}
}

func TestReplicatedLease(t *testing.T) {
	server := testenv.Redis(t)
	if !server.Owned() {
		t.Skip("needs a replica of a server of its own")
	}
	s := open(t, redisstore.Config{Address: server.Addr, ReplicaTimeout: 200 * time.Millisecond, Timeout: 5 * time.Second})
	host, port, _ := strings.Cut(server.Addr, ":")
	lease := func() gale.LeaseStep {
		step := []gale.LeaseStep{{
			Key: fmt.Sprint(t0, "replicated_"), Length: 3600, Window: time.Now().Unix() / 3600,
			Limit: 1000, Want: 5, Need: 1, Replicated: true,
		}}
		if err := s.Lease(t.Context(), step); err != nil {
			t.Fatal(err)
		}
		return step[0]
	}
	if step := lease(); step.Grant != 5 || !step.Lost {
		t.Errorf("without a replica: %+v", step)
	}
	testenv.Redis(t, "--replicaof", host, port)
	testenv.Eventually(t, 20*time.Second, "the replica to acknowledge", func() bool { return !lease().Lost })
}

func TestErrorReplies(t *testing.T) {
	server := testenv.Redis(t)
	s := open(t, redisstore.Config{Address: server.Addr})
	look := driver(t, server.Addr)
	name := fmt.Sprint(t0, "list")
	look.RPush(t.Context(), name, "not a counter")
	err := s.Count(t.Context(), []gale.CountStep{{Key: name, Hits: 1, TTL: 1}})
	if !errors.Is(err, gale.ErrUnavailable) || !strings.Contains(err.Error(), "WRONGTYPE") {
		t.Errorf("Count: %v", err)
	}
	_, err = s.CountAll(t.Context(), []gale.CountStep{{Key: name, Hits: 1, TTL: 1, Limit: 5}})
	if !errors.Is(err, gale.ErrUnavailable) || !strings.Contains(err.Error(), "WRONGTYPE") {
		t.Errorf("CountAll: %v", err)
	}
	// Another operation in the same pipeline is not concerned.
	count(t, s, steps(1, "beside")...)
}
