package gale

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"
)

// strict decides charges by moving the shared counter: one round trip per
// store and request, whatever the number of charges.
//
// Safe for concurrent use.
type strict struct {
	main, second *guard // second is nil when main has all counters
	cache        *denyCache
	fallback     *fallback
	lanes        *lanes // nil without second
	undoer       *undoer
	config       Config
	jitter       int64 // seconds
	calls        sync.Pool
}

func newStrict(main, second *guard, f *fallback, c Config) *strict {
	s := &strict{
		main: main, second: second,
		cache:    newDenyCache(c.DenyCacheKeys),
		fallback: f,
		undoer:   newUndoer(c.OpTimeout),
		config:   c,
		jitter:   int64(c.ExpirationJitter / time.Second),
	}
	if second != nil {
		s.lanes = newLanes()
	}
	s.calls.New = func() any { return &strictCall{done: make(chan struct{}, 1)} }
	return s
}

func (s *strict) close() {
	if s.lanes != nil {
		s.lanes.close()
	}
	s.undoer.close()
}

// strictCall is what one request needs on its way; reused.
type strictCall struct {
	now int64
	// names holds the counters' names one after the other; that of charge i
	// ends at ends[i]. Charges that are not strict have empty ones.
	names  []byte
	ends   []int
	main   batch
	second batch
	done   chan struct{} // capacity 1: a lane has finished second
}

// batch is what one request asks of one store.
type batch struct {
	store   *guard
	steps   []CountStep
	charges []int // charges[j] is the charge of steps[j]
	// refunds are apart when steps are taken all or none.
	refunds       []CountStep
	refundCharges []int

	// hold says how the steps went, once they did without err.
	hold hold
	err  error
}

// reasonPending marks a decision that the deny cache did not make.
const reasonPending = Reason(255)

// hold says what After of a batch's steps means.
type hold uint8

const (
	// counted: the counters moved; After is what they are.
	counted hold = iota
	// spared: the counters were only read; After is what they are.
	spared
	// reverted: nothing was taken, or it was undone; After is what the
	// counters would have become.
	reverted
)

func (c *strictCall) name(i int) []byte {
	start := 0
	if i > 0 {
		start = c.ends[i-1]
	}
	return c.names[start:c.ends[i]]
}

func (c *strictCall) batches() [2]*batch { return [2]*batch{&c.main, &c.second} }

func (s *strict) acquire() *strictCall {
	c := s.calls.Get().(*strictCall)
	c.now = wall(time.Now()).Unix()
	c.main.store, c.second.store = s.main, s.second
	return c
}

func (s *strict) release(c *strictCall) {
	c.names, c.ends = c.names[:0], c.ends[:0]
	for _, b := range c.batches() {
		clear(b.steps) // they hold the names
		clear(b.refunds)
		b.steps, b.charges = b.steps[:0], b.charges[:0]
		b.refunds, b.refundCharges = b.refunds[:0], b.refundCharges[:0]
		b.hold, b.err = counted, nil
	}
	s.calls.Put(c)
}

// decide fills the decisions of all strict charges. When the request is
// refused already, their counters are only read.
func (s *strict) decide(ctx context.Context, r *Request, refused bool) error {
	c := s.acquire()
	defer s.release(c)
	together := s.config.StopWhenOver && !r.Unenforced
	quotas := 0
	if together {
		quotas = r.quotas()
	}
	recalled := s.recall(r, c, quotas)
	readOnly := refused || together && recalled
	s.plan(r, c, planning{readOnly: readOnly, together: together && !readOnly, quotas: quotas})
	if len(c.main.steps)+len(c.second.steps)+len(c.main.refunds)+len(c.second.refunds) == 0 {
		return nil
	}
	ctx, cancel := s.bound(ctx)
	defer cancel()
	switch {
	case readOnly:
		c.main.hold, c.second.hold = spared, spared
		s.count(ctx, c)
	case together:
		return s.takeTogether(ctx, r, c)
	default:
		s.count(ctx, c)
	}
	return errors.Join(s.settle(r, c, &c.main), s.settle(r, c, &c.second))
}

// recall names the counters and answers from the deny cache. It reports
// whether an answer refuses the whole request.
func (s *strict) recall(r *Request, c *strictCall, quotas int) (refuses bool) {
	for i := range r.Charges {
		charge := &r.Charges[i]
		if charge.Policy.Mode == ModeLeased {
			c.ends = append(c.ends, len(c.names))
			continue
		}
		c.names = append(c.names, charge.Key...)
		c.names = strconv.AppendInt(c.names, windowAt(c.now, charge.Policy.Limit).start, 10)
		c.ends = append(c.ends, len(c.names))
		r.Decisions[i].Reason = reasonPending
		if !s.cached(charge) || charge.Refund {
			continue
		}
		after, over := s.cache.refuses(c.name(i), c.now, charge.Hits, charge.Policy.Limit.Hits)
		if !over {
			continue
		}
		r.Decisions[i] = Decision{
			Over: true, Reason: ReasonDenyCache, After: after,
			Reset: windowAt(c.now, charge.Policy.Limit).reset(),
		}
		refuses = refuses || !bystander(charge.Policy.Role, quotas)
	}
	return refuses
}

// cached reports whether the charge's denials are remembered.
func (s *strict) cached(c *Charge) bool {
	return c.Policy.Mode == ModeCachedDeny ||
		c.Policy.Mode == ModeStrict && s.config.DenyCacheForStrict
}

// planning says how the steps of a request are to be made.
type planning struct {
	readOnly bool // counters are read, not moved
	together bool // all steps are taken or none
	quotas   int
}

// plan makes the steps of all charges that the deny cache did not answer.
func (s *strict) plan(r *Request, c *strictCall, p planning) {
	names := string(c.names) // one allocation for all of them
	start := 0
	for i := range r.Charges {
		name := names[start:c.ends[i]]
		start = c.ends[i]
		charge := &r.Charges[i]
		if charge.Policy.Mode == ModeLeased || r.Decisions[i].Reason != reasonPending {
			continue
		}
		step := CountStep{
			Key: name, Hits: charge.Hits, Limit: charge.Policy.Limit.Hits,
			TTL:       s.ttl(charge.Policy.Limit),
			Bystander: bystander(charge.Policy.Role, p.quotas),
		}
		b := &c.main
		if charge.Policy.PerSecond && s.second != nil {
			b = &c.second
		}
		switch {
		case charge.Refund && p.together:
			step.Op = CountRefund
			b.refunds, b.refundCharges = append(b.refunds, step), append(b.refundCharges, i)
			continue
		case charge.Refund:
			step.Op = CountRefund
		case p.readOnly:
			step.Hits = 0
		}
		b.steps, b.charges = append(b.steps, step), append(b.charges, i)
	}
}

// ttl is the window's length and some jitter, as in envoyproxy/ratelimit.
func (s *strict) ttl(l Limit) int64 {
	ttl := max(l.Window, 1)
	if s.jitter > 0 {
		ttl += rand.Int64N(s.jitter)
	}
	return ttl
}

// bound gives the store's operations their deadline: early enough before the
// request's own to answer, and never later than the configured one.
func (s *strict) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithDeadline(ctx, s.config.deadline(ctx, time.Now()))
}

// deadline returns until when a store may be waited for.
func (c *Config) deadline(ctx context.Context, now time.Time) time.Time {
	deadline := now.Add(c.OpTimeout)
	if own, ok := ctx.Deadline(); ok && own.Add(-c.DeadlineMargin).Before(deadline) {
		return own.Add(-c.DeadlineMargin)
	}
	return deadline
}

// count executes the steps on both stores at once.
func (s *strict) count(ctx context.Context, c *strictCall) {
	if len(c.main.steps) == 0 || len(c.second.steps) == 0 {
		for _, b := range c.batches() {
			if len(b.steps) > 0 {
				b.err = b.store.Count(ctx, b.steps)
			}
		}
		return
	}
	beside := s.lanes.try(lane{ctx: ctx, batch: &c.second, done: c.done})
	c.main.err = c.main.store.Count(ctx, c.main.steps)
	if beside {
		<-c.done // within ctx, as every store operation
		return
	}
	c.second.err = c.second.store.Count(ctx, c.second.steps)
}
