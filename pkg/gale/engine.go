package gale

import (
	"context"
	"errors"
	"fmt"
)

// Engine decides requests over their charges. Safe for concurrent use.
type Engine struct {
	main   *guard
	second *guard // nil when main has all counters
	strict *strict
	leased *leaser
	fleet  *fleet
}

// NewEngine returns an engine over the store main; charges of policies that
// say PerSecond go to perSecond, unless that is nil. The stores stay the
// caller's: close them after the engine.
func NewEngine(main, perSecond Store, c Config) (*Engine, error) {
	if main == nil {
		return nil, errors.New("gale: no store")
	}
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("gale: %w", err)
	}
	c = c.withDefaults()
	e := &Engine{main: newGuard(main, "main", c.Log)}
	leasePerSecond := Store(nil) // not a nil *guard
	if perSecond != nil {
		e.second = newGuard(perSecond, "per-second", c.Log)
		leasePerSecond = e.second
	}
	e.fleet = newFleet(e.main, c.ReplicaID, c.Log)
	f := &fallback{shares: newWindowTable(c.MaxKeys), fleet: e.fleet}
	e.strict = newStrict(e.main, e.second, f, c)
	e.leased = newLeaser(e.main, leasePerSecond, f, c)
	return e, nil
}

// Decide fills r.Decisions. It returns by ctx's deadline, less the
// configured margin.
//
// An error means that the request could not be decided, and that its
// decisions are undefined: it wraps ErrUnavailable when a store could not be
// asked and the policy of one of its charges is UnavailableError, and is
// ErrOverflow when a counter is at its end. Strict charges may have been
// counted then, as in envoyproxy/ratelimit; leased ones are not spent.
func (e *Engine) Decide(ctx context.Context, r *Request) error {
	if len(r.Decisions) != len(r.Charges) {
		return fmt.Errorf("gale: %d charges, and room for %d decisions", len(r.Charges), len(r.Decisions))
	}
	clear(r.Decisions) // requests are reused; Refused reads what is there
	leased := 0
	for i := range r.Charges {
		if r.Charges[i].Policy.Mode == ModeLeased {
			leased++
		}
	}
	refused := false
	if leased > 0 {
		var err error
		if refused, err = e.leased.take(ctx, r); err != nil {
			return err
		}
	}
	if leased == len(r.Charges) {
		return nil
	}
	err := e.strict.decide(ctx, r, refused)
	if leased > 0 && !refused && (err != nil || r.Refused()) {
		e.leased.putBack(r)
	}
	return err
}

// Ready returns nil when both stores can be asked now.
func (e *Engine) Ready() error {
	if err := e.main.Ready(); err != nil {
		return fmt.Errorf("main store: %w", err)
	}
	if e.second == nil {
		return nil
	}
	if err := e.second.Ready(); err != nil {
		return fmt.Errorf("per-second store: %w", err)
	}
	return nil
}

// Stats are what an Engine counts, and its state.
type Stats struct {
	DenyCache DenyCacheStats
	Main      StoreStats
	// PerSecond is nil without a store of its own.
	PerSecond *StoreStats
	// Replicas is the estimate of how many live, this one included.
	Replicas int
}

// Stats returns totals since the start, and the present state.
func (e *Engine) Stats() Stats {
	s := Stats{
		DenyCache: e.strict.cache.stats(),
		Main:      e.main.stats(),
		Replicas:  e.fleet.estimate(),
	}
	if e.second != nil {
		second := e.second.stats()
		s.PerSecond = &second
	}
	return s
}

// Close returns unused credits, bounded by ctx, and ends all background work.
// Requests must have ended before.
func (e *Engine) Close(ctx context.Context) error {
	err := e.leased.close(ctx)
	e.stop(ctx)
	return err
}

func (e *Engine) stop(ctx context.Context) {
	e.fleet.close(ctx)
	e.strict.close()
	_ = e.main.Close() // ends the guard, not the store; no error
	if e.second != nil {
		_ = e.second.Close()
	}
}
