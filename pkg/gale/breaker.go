package gale

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// breakerFailures in a row open the breaker: more than the requests of a
	// few connections that broke together, few enough to open within
	// milliseconds under load.
	breakerFailures = 5
	// breakerPatience is how long an operation must have been waited for to
	// be a failure when its caller's deadline ended it. A caller in a hurry
	// says nothing about the store.
	breakerPatience = 5 * time.Millisecond
	// probeTimeout, probeWaitMax bound the time from the store's return to
	// the breaker's closing: at most their sum, and the store's own time to
	// connect.
	probeTimeout = 500 * time.Millisecond
	probeWaitMin = 25 * time.Millisecond
	probeWaitMax = 400 * time.Millisecond
	// breakerCalm is how long the breaker must stay closed for the next
	// opening to be probed at once.
	breakerCalm = 5 * time.Second
)

// BreakerState says whether a store's operations are tried.
type BreakerState int32

const (
	// BreakerClosed: operations go to the store.
	BreakerClosed BreakerState = iota
	// BreakerOpen: operations fail at once; a probe runs in the background.
	BreakerOpen
)

// String returns the state as metrics and logs spell it.
func (s BreakerState) String() string {
	if s == BreakerOpen {
		return "open"
	}
	return "closed"
}

// pinger is a Store that can be probed with a round trip of its own. Stores
// that cannot are probed with Ready.
type pinger interface {
	Ping(ctx context.Context) error
}

var errBreakerOpen = fmt.Errorf("%w: breaker open after repeated failures", ErrUnavailable)

// guard is a Store behind a breaker. After repeated failures it answers at
// once with ErrUnavailable, and probes the store in the background until it
// answers again: no customer's request is spent on trying.
type guard struct {
	store Store
	name  string
	log   *slog.Logger

	state    atomic.Int32
	failures atomic.Int32
	latency  latency
	failed   atomic.Uint64
	rejected atomic.Uint64
	opened   atomic.Uint64

	wake chan struct{} // capacity 1: the breaker opened
	stop chan struct{}
	once sync.Once
	done chan struct{}
}

var _ Store = (*guard)(nil)

func newGuard(store Store, name string, log *slog.Logger) *guard {
	g := &guard{
		store: store, name: name, log: log,
		wake: make(chan struct{}, 1),
		stop: make(chan struct{}),
		done: make(chan struct{}),
	}
	go g.probe()
	return g
}

// StoreStats are totals since the start of the engine, and the present state.
type StoreStats struct {
	Breaker BreakerState
	// Opened counts how often the breaker opened.
	Opened uint64
	// Operations went to the store; of these Failed failed. Rejected ones
	// did not go, because the breaker was open.
	Operations, Failed, Rejected uint64
	// Latency counts the operations by duration: Latency[i] took at most
	// LatencyBounds()[i], and the last one longer than all bounds.
	Latency [len(latencyBounds) + 1]uint64
	// LatencySum is the duration of all operations together.
	LatencySum time.Duration
}

func (g *guard) stats() StoreStats {
	s := StoreStats{
		Breaker:  BreakerState(g.state.Load()),
		Opened:   g.opened.Load(),
		Failed:   g.failed.Load(),
		Rejected: g.rejected.Load(),
	}
	s.Latency, s.LatencySum = g.latency.read()
	for _, n := range s.Latency {
		s.Operations += n
	}
	return s
}

// Count is Store.Count behind the breaker.
func (g *guard) Count(ctx context.Context, steps []CountStep) error {
	if err := g.admit(); err != nil {
		return err
	}
	began := time.Now()
	err := g.store.Count(ctx, steps)
	g.observe(time.Since(began), err)
	return err
}

// CountAll is Store.CountAll behind the breaker.
func (g *guard) CountAll(ctx context.Context, steps []CountStep) (bool, error) {
	if err := g.admit(); err != nil {
		return false, err
	}
	began := time.Now()
	taken, err := g.store.CountAll(ctx, steps)
	g.observe(time.Since(began), err)
	return taken, err
}

// Lease is Store.Lease behind the breaker.
func (g *guard) Lease(ctx context.Context, steps []LeaseStep) error {
	if err := g.admit(); err != nil {
		return err
	}
	began := time.Now()
	err := g.store.Lease(ctx, steps)
	g.observe(time.Since(began), err)
	return err
}

// Announce is Store.Announce behind the breaker.
func (g *guard) Announce(ctx context.Context, id string, ttl time.Duration) (int, error) {
	if err := g.admit(); err != nil {
		return 0, err
	}
	return g.store.Announce(ctx, id, ttl)
}

// Ready is nil when operations are tried.
func (g *guard) Ready() error {
	if BreakerState(g.state.Load()) == BreakerOpen {
		return errBreakerOpen
	}
	return g.store.Ready()
}

// Close ends the probing. The store itself belongs to whoever made it.
func (g *guard) Close() error {
	g.once.Do(func() { close(g.stop) })
	<-g.done
	return nil
}

func (g *guard) admit() error {
	if BreakerState(g.state.Load()) == BreakerClosed {
		return nil
	}
	g.rejected.Add(1)
	return errBreakerOpen
}

// observe counts an operation, and opens the breaker when enough of them
// failed in a row. What says nothing about the store is no failure.
func (g *guard) observe(took time.Duration, err error) {
	g.latency.add(took)
	if err == nil || errors.Is(err, ErrOverflow) {
		if g.failures.Load() != 0 {
			g.failures.Store(0)
		}
		return
	}
	g.failed.Add(1)
	if errors.Is(err, context.Canceled) {
		return
	}
	if errors.Is(err, context.DeadlineExceeded) && took < breakerPatience {
		return
	}
	if g.failures.Add(1) >= breakerFailures {
		g.open(err)
	}
}

func (g *guard) open(cause error) {
	if !g.state.CompareAndSwap(int32(BreakerClosed), int32(BreakerOpen)) {
		return
	}
	g.opened.Add(1)
	g.log.Warn("store is not asked until it answers a probe", "store", g.name, "cause", cause)
	select {
	case g.wake <- struct{}{}:
	default:
	}
}

// probe closes the breaker once the store answers. The first probe follows
// the opening at once, so that a hiccup costs one round trip; if the breaker
// opens again soon, the store is given longer pauses.
func (g *guard) probe() {
	defer close(g.done)
	var closedAt time.Time
	wait := time.Duration(0)
	for {
		select {
		case <-g.stop:
			return
		case <-g.wake:
		}
		if time.Since(closedAt) > breakerCalm {
			wait = 0
		}
		began := time.Now()
		for {
			if !g.pause(wait) {
				return
			}
			wait = min(max(2*wait, probeWaitMin), probeWaitMax)
			if g.ping() == nil {
				break
			}
		}
		closedAt = time.Now()
		g.failures.Store(0)
		g.state.Store(int32(BreakerClosed))
		g.log.Info("store is asked again", "store", g.name, "after", closedAt.Sub(began).Round(time.Millisecond))
	}
}

// pause waits and returns true, or returns false when the guard is closed.
func (g *guard) pause(wait time.Duration) bool {
	if wait == 0 {
		return true
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-g.stop:
		return false
	case <-timer.C:
		return true
	}
}

func (g *guard) ping() error {
	p, ok := g.store.(pinger)
	if !ok {
		return g.store.Ready()
	}
	ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
	defer cancel()
	return p.Ping(ctx)
}
