package gale

import (
	"context"
	"errors"
	"sync"
	"time"
)

// bystander reports whether a charge of this role moves with the others and
// keeps none of them from being counted: shadows, and one quota of several,
// refuse no request by themselves.
func bystander(role Role, quotas int) bool {
	switch role {
	case RoleShadow, RoleShadowQuota:
		return true
	case RoleQuota:
		return quotas > 1
	default:
		return false
	}
}

// quotas is the number of quotas of the request, those included that always
// pass.
func (r *Request) quotas() int {
	n := 0
	if r.FreeQuota {
		n++
	}
	for i := range r.Charges {
		if role := r.Charges[i].Policy.Role; role == RoleQuota || role == RoleShadowQuota {
			n++
		}
	}
	return n
}

// takeTogether takes all steps of both stores, or none. One store does that
// by itself; with two, what the first has taken is given back when the second
// refuses, so that for a moment the first counts too much, and never too
// little. Refunds are made in any case: what they give back was not asked
// for by this request.
func (s *strict) takeTogether(ctx context.Context, r *Request, c *strictCall) error {
	for _, b := range c.batches() {
		if err := s.refund(ctx, r, c, b); err != nil {
			return err
		}
	}
	first, second := &c.main, &c.second
	refused, err := s.takeFrom(ctx, r, c, first)
	if err != nil {
		return err
	}
	if refused {
		second.spare()
		if len(second.steps) > 0 {
			second.err = second.store.Count(ctx, second.steps)
		}
		return errors.Join(s.settle(r, c, second), s.putBackShares(r, c))
	}
	refused, err = s.takeFrom(ctx, r, c, second)
	if err == nil && !refused {
		return nil
	}
	s.revert(ctx, r, c, first, err)
	return errors.Join(err, s.putBackShares(r, c))
}

// takeFrom takes the steps of one store, and reports whether one of its
// charges refuses the request.
func (s *strict) takeFrom(ctx context.Context, r *Request, c *strictCall, b *batch) (refused bool, err error) {
	if len(b.steps) == 0 {
		return false, nil
	}
	taken, err := b.store.CountAll(ctx, b.steps)
	b.err = err
	if err == nil && !taken {
		b.hold = reverted
	}
	if err := s.settle(r, c, b); err != nil {
		return false, err
	}
	for j, i := range b.charges {
		if r.Decisions[i].Over && !b.steps[j].Bystander {
			return true, nil
		}
	}
	return false, nil
}

// revert gives back what b's store has taken. If the request failed there is
// no time left to wait for that.
func (s *strict) revert(ctx context.Context, r *Request, c *strictCall, b *batch, failed error) {
	if len(b.steps) == 0 || b.err != nil {
		return
	}
	b.hold = reverted
	_ = s.settle(r, c, b) // b.err is nil
	undo := make([]CountStep, 0, len(b.steps))
	for _, step := range b.steps {
		if step.Hits > 0 {
			undo = append(undo, CountStep{Key: step.Key, Op: CountRefund, Hits: step.Hits, TTL: step.TTL})
		}
	}
	if len(undo) == 0 {
		return
	}
	if failed != nil {
		s.undoer.later(b.store, undo)
		return
	}
	// An error leaves hits counted that were not admitted: too few are
	// admitted in this window, never too many.
	_ = b.store.Count(ctx, undo)
}

// putBackShares undoes what fallbacks admitted in a refused request.
func (s *strict) putBackShares(r *Request, c *strictCall) error {
	for _, b := range c.batches() {
		if b.err == nil {
			continue
		}
		for _, i := range b.charges {
			s.fallback.putBack(&r.Charges[i], c.name(i), &r.Decisions[i])
		}
	}
	return nil
}

// refund makes the refunds of one store and answers them.
func (s *strict) refund(ctx context.Context, r *Request, c *strictCall, b *batch) error {
	if len(b.refunds) == 0 {
		return nil
	}
	refunds := batch{steps: b.refunds, charges: b.refundCharges}
	refunds.err = b.store.Count(ctx, refunds.steps)
	return s.settle(r, c, &refunds)
}

// spare makes the batch read its counters only.
func (b *batch) spare() {
	b.hold = spared
	for j := range b.steps {
		b.steps[j].Hits = 0
	}
}

// keySum sums up the hits of a batch's steps by key, step by step.
type keySum struct{ sums map[string]uint64 }

// add returns the hits of all steps up to j that have the key of step j.
// Steps are added in order.
func (k *keySum) add(steps []CountStep, j int) uint64 {
	const few = 16 // comparing is cheaper than a map
	if len(steps) > few {
		if k.sums == nil {
			k.sums = make(map[string]uint64, len(steps))
		}
		sum := plusHits(k.sums[steps[j].Key], steps[j].Hits)
		k.sums[steps[j].Key] = sum
		return sum
	}
	sum := uint64(0)
	for i := range j + 1 {
		if steps[i].Key == steps[j].Key {
			sum = plusHits(sum, steps[i].Hits)
		}
	}
	return sum
}

// undoer gives hits back in the background, for requests that have no time
// left. What does not fit its queue stays counted.
type undoer struct {
	queue   chan undo
	timeout time.Duration
	stop    chan struct{}
	done    chan struct{}
	once    sync.Once
}

type undo struct {
	store Store
	steps []CountStep
}

func newUndoer(timeout time.Duration) *undoer {
	u := &undoer{
		queue: make(chan undo, 256), timeout: timeout,
		stop: make(chan struct{}), done: make(chan struct{}),
	}
	go u.run()
	return u
}

func (u *undoer) later(store Store, steps []CountStep) {
	select {
	case u.queue <- undo{store, steps}:
	default:
	}
}

func (u *undoer) run() {
	defer close(u.done)
	for {
		select {
		case <-u.stop:
			return
		case job := <-u.queue:
			ctx, cancel := context.WithTimeout(context.Background(), u.timeout)
			_ = job.store.Count(ctx, job.steps) // else they stay counted
			cancel()
		}
	}
}

func (u *undoer) close() {
	u.once.Do(func() { close(u.stop) })
	<-u.done
}
