package redisstore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gale-rls/gale-rls/internal/testenv"
	"github.com/gale-rls/gale-rls/pkg/gale"
	"github.com/gale-rls/gale-rls/pkg/gale/redisstore"
)

// log is what the store tells an operator.
type log struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *log) has(s string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.buf.String(), s)
}

func (l *log) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

func TestServerAbsentAtStart(t *testing.T) {
	port := testenv.FreePort(t)
	var l log
	s, err := redisstore.New(redisstore.Config{Address: fmt.Sprintf("127.0.0.1:%d", port), Log: l.logger()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	began := time.Now()
	if err := s.Ready(); !errors.Is(err, gale.ErrUnavailable) {
		t.Errorf("Ready: %v", err)
	}
	if err := s.Count(t.Context(), steps(1, "absent")); !errors.Is(err, gale.ErrUnavailable) {
		t.Errorf("Count: %v", err)
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("took %v", took)
	}
	testenv.Eventually(t, 5*time.Second, "a line in the log", func() bool { return l.has("does not answer") })
}

func TestServerKilledAndRestarted(t *testing.T) {
	server := testenv.Redis(t)
	if !server.Owned() {
		t.Skip("kills the server")
	}
	var l log
	s := open(t, redisstore.Config{Address: server.Addr, Log: l.logger()})
	count(t, s, steps(3, "before")...)
	server.Kill(t)
	testenv.Eventually(t, 5*time.Second, "not ready", func() bool { return s.Ready() != nil })
	for range 50 { // all connections find out
		_ = s.Count(t.Context(), steps(1, "dead"))
	}
	server.Restart(t)
	began := time.Now()
	testenv.Eventually(t, 2*time.Second, "counting again", func() bool {
		return s.Count(t.Context(), steps(1, "after")) == nil
	})
	t.Logf("back after %v", time.Since(began))
	if !l.has("redis answers") {
		t.Error("nothing in the log")
	}
}

func TestServerPaused(t *testing.T) {
	server := testenv.Redis(t)
	if !server.Owned() {
		t.Skip("pauses the server")
	}
	s := open(t, redisstore.Config{Address: server.Addr, QueueSize: 64, Timeout: 300 * time.Millisecond})
	count(t, s, steps(1, "before")...)
	goroutines := runtime.NumGoroutine()
	server.Pause(t)
	var worst time.Duration
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			for range 100 {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
				began := time.Now()
				err := s.Count(ctx, steps(1, "paused"))
				late := time.Since(began) - 10*time.Millisecond
				cancel()
				if !errors.Is(err, gale.ErrUnavailable) {
					t.Errorf("paused server: %v", err)
				}
				mu.Lock()
				worst = max(worst, late)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	t.Logf("latest answer %v after its deadline", worst)
	if worst > 100*time.Millisecond { // a busy machine; the figure is in integration
		t.Errorf("an answer came %v after its deadline", worst)
	}
	if n := runtime.NumGoroutine(); n > goroutines+50 {
		t.Errorf("%d goroutines, before %d", n, goroutines)
	}
	server.Resume(t)
	testenv.Eventually(t, 2*time.Second, "counting again", func() bool {
		return s.Count(t.Context(), steps(1, "after")) == nil
	})
}

func TestAbandonedOperationsAreNotSent(t *testing.T) {
	server := testenv.Redis(t)
	if !server.Owned() {
		t.Skip("pauses the server")
	}
	s := open(t, redisstore.Config{Address: server.Addr, PoolSize: 1, Timeout: 10 * time.Second})
	count(t, s, steps(1, "warm")...)
	server.Pause(t)
	sent := make(chan error, 1)
	go func() { sent <- s.Count(t.Context(), steps(1, "sent")) }()
	testenv.Eventually(t, 5*time.Second, "the worker to take the first", func() bool { return s.Stats().Queued == 0 })
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	// The worker may not have taken the first one before Queued was read, so
	// the second must not be in the same pipeline: it is queued behind.
	err := s.Count(short, steps(1, "abandoned"))
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("abandoned: %v", err)
	}
	notSent := strings.Contains(err.Error(), "not sent")
	server.Resume(t)
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	read := steps(1, "abandoned")
	read[0].Op, read[0].Hits = gale.CountRefund, 0
	if got := count(t, s, read...)[0].After; notSent && got != 0 {
		t.Errorf("counter of an operation that was not sent is %d", got)
	}
	if !notSent {
		t.Log("the worker had taken both")
	}
}

func TestCloseEndsOperations(t *testing.T) {
	server := testenv.Redis(t)
	if !server.Owned() {
		t.Skip("pauses the server")
	}
	s := open(t, redisstore.Config{Address: server.Addr, PoolSize: 1, Timeout: time.Minute})
	count(t, s, steps(1, "warm")...)
	server.Pause(t)
	ended := make(chan error, 4)
	for range cap(ended) {
		go func() { ended <- s.Count(t.Context(), steps(1, "closing")) }()
	}
	began := time.Now()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	for range cap(ended) {
		if err := <-ended; !errors.Is(err, gale.ErrUnavailable) {
			t.Errorf("closed: %v", err)
		}
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("closing took %v", took)
	}
	server.Resume(t)
}

func TestWarnsOfEviction(t *testing.T) {
	server := testenv.Redis(t, "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru")
	var l log
	open(t, redisstore.Config{Address: server.Addr, Log: l.logger()})
	testenv.Eventually(t, 5*time.Second, "the warning", func() bool { return l.has("maxmemory-policy=allkeys-lru") })
}

func TestConnectionsAreCounted(t *testing.T) {
	server := testenv.Redis(t)
	dialed := 0
	var mu sync.Mutex
	s := open(t, redisstore.Config{Address: server.Addr, PoolSize: 3, Dialer: func(ctx context.Context, network, address string) (net.Conn, error) {
		mu.Lock()
		defer mu.Unlock()
		dialed++
		return new(net.Dialer).DialContext(ctx, network, address)
	}})
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() { _ = s.Count(t.Context(), steps(1, fmt.Sprint(i))) })
	}
	wg.Wait()
	stats := s.Stats()
	mu.Lock()
	defer mu.Unlock()
	if stats.Open < 1 || stats.Open > 5 || stats.Opened != int64(dialed) || stats.Closed != stats.Opened-stats.Open {
		t.Errorf("%+v, %d dialed", stats, dialed)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if stats := s.Stats(); stats.Open != 0 {
		t.Errorf("after Close: %+v", stats)
	}
}
