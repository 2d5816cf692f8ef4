//go:build integration

package integration

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gale-rls/gale-rls/internal/testenv"
)

// wrongClocks are what the replicas' wall clocks are off by.
func wrongClocks() []string { return []string{"0s", "-3h", "7h30m", "26h17m11s"} }

// TestLeasedWrongWallClocks runs replicas whose wall clocks are hours apart:
// they admit exactly as before, for windows are the store's.
func TestLeasedWrongWallClocks(t *testing.T) {
	t.Parallel()
	const lasts = 20 * time.Second
	bin := testBuild(t)
	redis := testenv.Redis(t)
	limits := []int64{10, 100, 1000}
	f := &leasedFleet{redis: redis}
	for _, offset := range wrongClocks() {
		g := testenv.Gale(t, testenv.GaleOptions{
			Binary: bin, Redis: redis, Rules: map[string]string{"leased.yaml": leasedRules(limits, "")},
			Env: map[string]string{"GALE_DEFAULT_MODE": "leased", "TEST_WALL_OFFSET": offset},
		})
		f.gales, f.rls = append(f.gales, g), append(f.rls, dialAgain(t, g.GRPC))
	}
	var streams []*stream
	for _, n := range limits {
		streams = append(streams, demandOf(fmt.Sprint("second", n), n, 1, 2, 200))
	}
	from := time.Now().Add(2 * time.Second) // replicas get to know each other
	to := time.Now().Add(lasts)
	ctx, cancel := context.WithDeadline(t.Context(), to.Add(time.Second))
	defer cancel()
	newLoad80(f.rls, streams).run(ctx)
	for _, s := range streams {
		s.noOvershoot(t)
		s.noWaste(t, from, to)
		if s.failed > 0 {
			t.Errorf("%s: %d requests failed", s, s.failed)
		}
	}
	ledgerHolds(t, redis, streams)
	for i, g := range f.gales {
		if n := metric(t, g, `gale_lease_decisions_total{reason="local_credit"}`); n < 100 {
			t.Errorf("the replica that is off by %s paid %.0f requests from its credits", wrongClocks()[i], n)
		}
	}
}

// testBuild builds the binary whose wall clock can be off.
func testBuild(t *testing.T) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "gale-rls-galetest")
	cmd := exec.Command("go", "build", "-tags", "galetest", "-o", bin, "./cmd/gale-rls")
	cmd.Dir = testenv.Root(t)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build with the tag galetest: %v\n%s", err, out)
	}
	return bin
}

const (
	// stepEvery is how long Redis's clock goes on between its steps; what an
	// answer of the first moments after a step means depends on which side of
	// it the answer fell.
	stepEvery = 6 * time.Second
	settled   = time.Second
)

// TestLeasedRedisClockSteps steps Redis's clock by ten seconds to and fro,
// under load. No counter grants more than its limit, callers are admitted no
// more than the counters grant, and after one exchange replicas decide by the
// new time.
func TestLeasedRedisClockSteps(t *testing.T) {
	clock := newShiftedClock(t)
	redis := clock.redis(t)
	limits := []int64{10, 100, 1000}
	f := startLeasedOn(t, redis, 3, leasedRules(limits, ""), nil)
	var streams []*stream
	for _, n := range limits {
		streams = append(streams, demandOf(fmt.Sprint("second", n), n, 1, 2, 100))
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var load sync.WaitGroup
	load.Go(func() { newLoad80(f.rls, streams).run(ctx) })
	elapse(t, stepEvery)
	type phase struct {
		offset   int64 // seconds
		from, to time.Time
	}
	var phases []phase
	for _, step := range []int64{+10, -10, -10, +10} {
		offset := clock.step(step)
		from := time.Now()
		elapse(t, stepEvery)
		phases = append(phases, phase{offset, from.Add(settled), time.Now()})
	}
	cancel()
	load.Wait()

	for _, g := range f.gales {
		t.Logf("%s saw the store's time jump %.0f times", g.GRPC, metric(t, g, "gale_lease_clock_restarts_total"))
		if n := metric(t, g, "gale_lease_clock_restarts_total"); n < float64(len(phases)) {
			t.Errorf("%s saw the store's time jump %.0f times, want %d", g.GRPC, n, len(phases))
		}
	}
	ledgerHolds(t, redis, streams)
	counters := countersOf(t, redis)
	for _, s := range streams {
		granted, admitted := int64(0), int64(0)
		for _, n := range counters[strings.Join(s.entries, "_")] {
			granted += n
		}
		for _, a := range s.admitted {
			admitted += a.hits
		}
		t.Logf("%-12s %d hits admitted, %d granted in all windows, %d requests failed", s.entries[0], admitted, granted, s.failed)
		if admitted > granted {
			t.Errorf("%s: %d admitted, and only %d granted", s, admitted, granted)
		}
		for _, p := range phases {
			within := s.shifted(p.offset, p.from, p.to)
			if found := violations(within, 1e6, s.limit); len(found) > 0 {
				t.Errorf("%s, with Redis's clock off by %d s: %v", s, p.offset, found)
			}
		}
		// The first step leads to windows that nothing was counted in.
		fresh := s.shifted(phases[0].offset, phases[0].from, phases[0].to)
		sum := int64(0)
		for _, a := range fresh {
			sum += a.hits
		}
		if want := s.limit * int64((stepEvery-settled)/time.Second) * 9 / 10; sum < want {
			t.Errorf("%s: %d admitted after the first step, want %d", s, sum, want)
		}
	}
}

// shifted are the admissions that were sent and received from from to to, on
// a clock that is off by so many seconds.
func (s *stream) shifted(offset int64, from, to time.Time) (all []admission) {
	for _, a := range s.admitted {
		if a.sent >= from.UnixMicro() && a.received <= to.UnixMicro() {
			a.sent, a.received = a.sent+offset*1e6, a.received+offset*1e6
			all = append(all, a)
		}
	}
	return all
}

// shiftedClock is a wall clock that steps.
type shiftedClock struct {
	library, file string
	offset        int64
	t             *testing.T
}

// newShiftedClock compiles the library that shifts a program's clock.
func newShiftedClock(t *testing.T) *shiftedClock {
	t.Helper()
	cc, err := exec.LookPath("cc")
	if err != nil {
		testenv.Missing(t, "a C compiler", "install gcc (scripts/setup.sh does on Debian and Ubuntu)")
	}
	dir := t.TempDir()
	c := &shiftedClock{library: filepath.Join(dir, "clockshift.so"), file: filepath.Join(dir, "shift"), t: t}
	cmd := exec.Command(cc, "-shared", "-fPIC", "-O1", "-o", c.library, "testdata/clockshift.c")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("clockshift.c: %v\n%s", err, out)
	}
	c.step(0)
	return c
}

// step moves the clock by so many seconds and returns what it is off by.
func (c *shiftedClock) step(seconds int64) int64 {
	c.t.Helper()
	c.offset += seconds
	f, err := os.OpenFile(c.file, os.O_WRONLY|os.O_CREATE, 0o600) // not truncated: it is mapped
	if err != nil {
		c.t.Fatal(err)
	}
	var b [8]byte
	binary.NativeEndian.PutUint64(b[:], uint64(c.offset))
	if _, err := f.Write(b[:]); err != nil {
		c.t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		c.t.Fatal(err)
	}
	return c.offset
}

// redis starts a Redis that lives by this clock. The test cannot be parallel:
// PATH is the process's.
func (c *shiftedClock) redis(t *testing.T) *testenv.RedisServer {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil || os.Getenv("GALE_TEST_REDIS") != "" {
		testenv.Missing(t, "a redis-server whose clock can be stepped", "install redis-server, and unset GALE_TEST_REDIS")
	}
	dir := t.TempDir()
	script := fmt.Sprintf("#!/bin/sh\nLD_PRELOAD='%s' CLOCKSHIFT='%s' exec '%s' \"$@\"\n", c.library, c.file, path)
	if err := os.WriteFile(filepath.Join(dir, "redis-server"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	before := os.Getenv("PATH")
	t.Setenv("PATH", dir+string(os.PathListSeparator)+before)
	r := testenv.Redis(t)
	t.Setenv("PATH", before)
	var now int64
	if _, err := fmt.Sscan(redisAt(t, r.Addr).must(t, "TIME"), &now); err != nil {
		t.Fatal(err)
	}
	c.step(100)
	var later int64
	if _, err := fmt.Sscan(redisAt(t, r.Addr).must(t, "TIME"), &later); err != nil || later < now+100 {
		t.Fatalf("Redis's clock does not step: %d, then %d (%v)", now, later, err)
	}
	c.step(-100)
	return r
}
