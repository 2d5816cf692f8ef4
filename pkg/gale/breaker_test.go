package gale

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// patient is a store that can be made to hang or to fail.
type patient struct {
	err   atomic.Pointer[error] // what operations return, nil: all is well
	hangs atomic.Bool           // operations and pings wait for their context
	asked atomic.Int64
	pings atomic.Int64
}

func (p *patient) fail(err error) { p.err.Store(&err) }
func (p *patient) heal()          { p.err.Store(nil) }

func (p *patient) outcome(ctx context.Context) error {
	if p.hangs.Load() {
		<-ctx.Done()
		return fmt.Errorf("%w: %w", ErrUnavailable, ctx.Err())
	}
	if err := p.err.Load(); err != nil {
		return *err
	}
	return nil
}

func (p *patient) Ping(ctx context.Context) error {
	p.pings.Add(1)
	return p.outcome(ctx)
}

func (p *patient) Count(ctx context.Context, _ []CountStep) error {
	p.asked.Add(1)
	return p.outcome(ctx)
}

func (p *patient) CountAll(ctx context.Context, s []CountStep) (bool, error) {
	return true, p.Count(ctx, s)
}
func (p *patient) Lease(ctx context.Context, _ []LeaseStep) error { return p.Count(ctx, nil) }
func (p *patient) Announce(ctx context.Context, _ string, _ time.Duration) (int, error) {
	return 1, p.Count(ctx, nil)
}
func (p *patient) Ready() error { return nil }
func (p *patient) Close() error { return nil }

var errGone = fmt.Errorf("%w: gone", ErrUnavailable)

// guarded runs f with a patient behind a breaker, in a bubble.
func guarded(t *testing.T, f func(t *testing.T, p *patient, g *guard)) {
	synctest.Test(t, func(t *testing.T) {
		p := &patient{}
		g := newGuard(p, "test", slog.New(slog.DiscardHandler))
		defer g.Close()
		f(t, p, g)
	})
}

func ask(g *guard, within time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	return g.Count(ctx, nil)
}

func TestBreakerOpensAndClosesByProbe(t *testing.T) {
	guarded(t, func(t *testing.T, p *patient, g *guard) {
		p.fail(errGone)
		for range breakerFailures {
			_ = ask(g, time.Second)
		}
		synctest.Wait()
		asked := p.asked.Load()
		if err := ask(g, time.Second); !errors.Is(err, ErrUnavailable) {
			t.Errorf("open: %v", err)
		}
		if g.Ready() == nil {
			t.Error("ready although open")
		}
		time.Sleep(time.Minute)
		if p.asked.Load() != asked {
			t.Error("a request was spent on an open breaker")
		}
		if pings := p.pings.Load(); pings < 60 || pings > 200 {
			t.Errorf("%d probes in a minute", pings)
		}
		p.heal()
		time.Sleep(probeWaitMax)
		synctest.Wait()
		if err := ask(g, time.Second); err != nil {
			t.Errorf("closed: %v", err)
		}
		s := g.stats()
		if s.Breaker != BreakerClosed || s.Opened != 1 || s.Rejected != 1 || s.Failed != breakerFailures {
			t.Errorf("%+v", s)
		}
	})
}

func TestBreakerAnswersAtOnceWhileTheStoreHangs(t *testing.T) {
	guarded(t, func(t *testing.T, p *patient, g *guard) {
		p.hangs.Store(true)
		for range breakerFailures {
			_ = ask(g, 20*time.Millisecond)
		}
		synctest.Wait()
		began := time.Now()
		for range 1000 {
			_ = ask(g, 20*time.Millisecond)
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("a thousand answers took %v", took)
		}
		time.Sleep(time.Minute)
		p.hangs.Store(false)
		began = time.Now()
		for ask(g, 20*time.Millisecond) != nil {
			time.Sleep(time.Millisecond)
		}
		if took := time.Since(began); took > probeTimeout+probeWaitMax+time.Millisecond {
			t.Errorf("closed %v after the store's return", took)
		}
	})
}

func TestBreakerForgivesAHiccup(t *testing.T) {
	guarded(t, func(t *testing.T, p *patient, g *guard) {
		p.hangs.Store(true)
		for range breakerFailures {
			_ = ask(g, 20*time.Millisecond)
		}
		p.hangs.Store(false)
		time.Sleep(probeTimeout + probeWaitMin)
		synctest.Wait()
		if err := ask(g, time.Second); err != nil {
			t.Error(err)
		}
	})
}

func TestBreakerProbesLessOftenWhenItFlaps(t *testing.T) {
	guarded(t, func(t *testing.T, p *patient, g *guard) {
		p.hangs.Store(true)
		probing := &pingsOnly{patient: p}
		g.store = probing
		began := time.Now()
		for time.Since(began) < 4*time.Second {
			_ = ask(g, 10*time.Millisecond)
			time.Sleep(time.Millisecond)
		}
		// Each opening costs breakerFailures requests their deadline; soon
		// there are at most two or three openings in a second.
		if opened := g.stats().Opened; opened < 4 || opened > 16 {
			t.Errorf("opened %d times in 4 s", opened)
		}
	})
}

// pingsOnly is a store that answers pings and nothing else.
type pingsOnly struct{ *patient }

func (pingsOnly) Ping(context.Context) error { return nil }

func TestWhatSaysNothingAboutTheStore(t *testing.T) {
	for name, do := range map[string]func(p *patient, g *guard){
		"overflow": func(p *patient, g *guard) {
			p.fail(ErrOverflow)
			_ = ask(g, time.Second)
		},
		"short deadlines": func(p *patient, g *guard) {
			p.hangs.Store(true)
			_ = ask(g, breakerPatience/2)
		},
		"callers that leave": func(p *patient, g *guard) {
			p.hangs.Store(true)
			ctx, cancel := context.WithCancel(context.Background())
			time.AfterFunc(time.Second, cancel)
			_ = g.Count(ctx, nil)
		},
		"failures between successes": func(p *patient, g *guard) {
			p.fail(errGone)
			_ = ask(g, time.Second)
			p.heal()
			_ = ask(g, time.Second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			guarded(t, func(t *testing.T, p *patient, g *guard) {
				for range 3 * breakerFailures {
					do(p, g)
				}
				if s := g.stats(); s.Opened != 0 {
					t.Errorf("the breaker opened: %+v", s)
				}
			})
		})
	}
}

func TestStoreLatency(t *testing.T) {
	var l latency
	for _, d := range []time.Duration{0, 100 * time.Microsecond, 101 * time.Microsecond, time.Second, time.Minute} {
		l.add(d)
	}
	buckets, sum := l.read()
	if buckets[0] != 2 || buckets[1] != 1 || buckets[len(buckets)-2] != 1 || buckets[len(buckets)-1] != 1 {
		t.Errorf("%v", buckets)
	}
	if sum != 61*time.Second+201*time.Microsecond {
		t.Errorf("sum %v", sum)
	}
	if len(LatencyBounds()) != len(buckets)-1 {
		t.Errorf("%d bounds, %d buckets", len(LatencyBounds()), len(buckets))
	}
}
