//go:build integration

package integration

import (
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gale-rls/gale-rls/internal/testenv"
)

const durabilityRules = `
domain: leased
descriptors:
- key: probe
  rate_limit: {unit: hour, requests_per_unit: 1000}
- key: replicated
  rate_limit: {unit: day, requests_per_unit: 20000}
  gale: {lease: {durability: replicated}}
- key: plain
  rate_limit: {unit: day, requests_per_unit: 20000}
`

// TestLeasedFailOver kills a Redis whose replica lags behind, and promotes the
// replica. With durability: replicated the limit holds over both; without, the
// grants that the replica had not seen are admitted twice, and how many that
// is is printed.
func TestLeasedFailOver(t *testing.T) {
	t.Parallel()
	primary := testenv.Redis(t, "--repl-diskless-sync-delay", "0")
	if !primary.Owned() {
		testenv.Missing(t, "a Redis to kill", "unset GALE_TEST_REDIS, whose server is not ours")
	}
	link := testenv.NewProxy(t, primary.Addr)
	replica := replicaOf(t, link.Addr)
	replicaOf(t, replica.Addr) // so that the promoted one has one, too
	standby := redisAt(t, replica.Addr)
	f := startLeasedOn(t, primary, 2, durabilityRules, nil)
	streams := []*stream{
		{entries: []string{"replicated", unique("key")}, limit: 20000, length: 86400, rate: 300, hits: 10},
		{entries: []string{"plain", unique("key")}, limit: 20000, length: 86400, rate: 300, hits: 10},
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var load sync.WaitGroup
	load.Go(func() { newLoad80(f.rls, streams).run(ctx) })
	admitted := func(s *stream) (n int64) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, a := range s.admitted {
			n += a.hits
		}
		return n
	}
	for _, s := range streams {
		testenv.Eventually(t, 20*time.Second, "admissions of "+s.entries[0], func() bool { return admitted(s) > 3000 })
	}
	link.Cut() // from here on the replica hears nothing
	elapse(t, 2*time.Second)
	var before [2]int64
	for i, s := range streams {
		before[i] = admitted(s)
	}
	primary.Kill(t)
	standby.must(t, "REPLICAOF", "NO", "ONE")
	survived := countersOf(t, replica)
	forwardTo(t, primary.Addr, replica.Addr)
	for _, s := range streams {
		refused := s.hitsRefused()
		testenv.Eventually(t, 30*time.Second, "the rest of "+s.entries[0]+" to be admitted", func() bool {
			return admitted(s) > s.limit/2 && s.hitsRefused() > refused+5000
		})
	}
	cancel()
	load.Wait()

	for i, s := range streams {
		all, held := admitted(s), int64(0)
		for _, n := range survived[strings.Join(s.entries, "_")] {
			held = n
		}
		t.Logf("%-11s limit %d: %d hits admitted before the primary died, of which its replica knew %d as granted; %d in all (%+d), %d requests failed",
			s.entries[0], s.limit, before[i], held, all, all-s.limit, s.failed)
		if s.entries[0] == "replicated" && all > s.limit {
			t.Errorf("durability: replicated admitted %d over both servers, limit %d", all, s.limit)
		}
		if all < s.limit/2 {
			t.Errorf("%s: only %d admitted", s, all)
		}
	}
}

// replicaOf starts a Redis that follows another, and has caught up.
func replicaOf(t *testing.T, addr string) *testenv.RedisServer {
	t.Helper()
	host, port, _ := net.SplitHostPort(addr)
	r := testenv.Redis(t, "--repl-diskless-sync-delay", "0", "--replicaof", host+" "+port)
	c := redisAt(t, r.Addr)
	testenv.Eventually(t, 20*time.Second, "the replica to follow", func() bool {
		return strings.Contains(c.must(t, "INFO", "replication"), "master_link_status:up")
	})
	return r
}

func (s *stream) hitsRefused() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refused
}

// forwardTo listens where a server was and leads to another, as the address of
// a Redis does that has failed over.
func forwardTo(t *testing.T, from, to string) {
	t.Helper()
	var l net.Listener
	testenv.Eventually(t, 10*time.Second, "the address of the dead server", func() (ok bool) {
		var err error
		l, err = net.Listen("tcp", from)
		return err == nil
	})
	t.Cleanup(func() { _ = l.Close() })
	go func() { // ends with the listener
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				d, err := net.Dial("tcp", to)
				if err != nil {
					return
				}
				defer func() { _ = d.Close() }()
				go func() { _, _ = io.Copy(d, c); _ = d.Close() }()
				_, _ = io.Copy(c, d)
			}()
		}
	}()
}
