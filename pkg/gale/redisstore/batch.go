package redisstore

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/gale-rls/gale-rls/pkg/gale"
)

// sendPatience is how long a pipeline is waited for at least, even if all of
// its callers leave earlier: a connection given up is one to open again, which
// costs the server more than a hiccup.
const sendPatience = 250 * time.Millisecond

var errClosed = fmt.Errorf("%w: store is closed", gale.ErrUnavailable)

// operation is a job on its way through the queue.
type operation struct {
	job      job
	deadline time.Time
	state    atomic.Int32
	err      error         // set before done
	done     chan struct{} // capacity 1
}

const (
	stateQueued int32 = iota
	stateClaimed
	stateAbandoned
)

// do has the job done by a worker, until ctx or Config.Timeout ends.
func (s *Store) do(ctx context.Context, what string, queue chan *operation, j job) error {
	if err := s.unavailable(ctx, what); err != nil {
		return err
	}
	deadline := time.Now().Add(s.settings.Timeout)
	if own, ok := ctx.Deadline(); ok && own.Before(deadline) {
		deadline = own
	} else {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline)
		defer cancel()
	}
	o := &operation{job: j, deadline: deadline, done: make(chan struct{}, 1)}
	select {
	case queue <- o:
	default:
		return fmt.Errorf("%s: %w: %d operations wait already", what, gale.ErrUnavailable, cap(queue))
	}
	select {
	case <-o.done:
		return wrap(what, o.err)
	case <-ctx.Done():
		if o.state.CompareAndSwap(stateQueued, stateAbandoned) {
			return fmt.Errorf("%s: %w: not sent: %w", what, gale.ErrUnavailable, ctx.Err())
		}
		return fmt.Errorf("%s: %w: no answer: %w", what, gale.ErrUnavailable, ctx.Err())
	case <-s.stop:
		return fmt.Errorf("%s: %w", what, errClosed)
	}
}

// wrap makes a job's error what the contract says.
func wrap(what string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, gale.ErrOverflow):
		return fmt.Errorf("%s: %w", what, err)
	default:
		return fmt.Errorf("%s: %w: %w", what, gale.ErrUnavailable, err)
	}
}

func (s *Store) isClosed() bool {
	select {
	case <-s.stop:
		return true
	default:
		return false
	}
}

// unavailable returns why nothing needs to be tried, if so.
func (s *Store) unavailable(ctx context.Context, what string) error {
	if s.isClosed() {
		return fmt.Errorf("%s: %w", what, errClosed)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s: %w: %w", what, gale.ErrUnavailable, err)
	}
	return nil
}

// work sends what is queued, pipeline by pipeline.
func (s *Store) work(queue chan *operation) {
	for {
		select {
		case <-s.stop:
			return
		case first := <-queue:
			s.send(first, queue)
		}
	}
}

// send makes one round trip of first and of what else is queued.
func (s *Store) send(first *operation, queue chan *operation) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	p := &pipeline{Pipeliner: s.client.Pipeline()}
	var claimed []*operation
	commands := 0
	deadline := time.Now().Add(sendPatience)
	for o := range s.gather(first, queue) {
		if !o.state.CompareAndSwap(stateQueued, stateClaimed) {
			continue // its caller has left
		}
		claimed = append(claimed, o)
		commands += o.job.send(ctx, p)
		if o.deadline.After(deadline) {
			deadline = o.deadline
		}
		if commands >= s.settings.PipelineLimit {
			break
		}
	}
	if len(claimed) == 0 {
		return
	}
	if limit := time.Now().Add(s.settings.Timeout); deadline.After(limit) {
		deadline = limit
	}
	bounded, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	p.exec(bounded)
	for _, o := range claimed {
		o.err = o.job.receive()
		o.done <- struct{}{}
	}
}

// gather yields first and what is queued behind it; with a pipeline window,
// also what comes within it.
func (s *Store) gather(first *operation, queue chan *operation) func(yield func(*operation) bool) {
	return func(yield func(*operation) bool) {
		if !yield(first) {
			return
		}
		var window <-chan time.Time
		if s.settings.PipelineWindow > 0 {
			timer := time.NewTimer(s.settings.PipelineWindow)
			defer timer.Stop()
			window = timer.C
		}
		for {
			select {
			case o := <-queue:
				if !yield(o) {
					return
				}
				continue
			default:
			}
			if window == nil {
				return
			}
			select {
			case o := <-queue:
				if !yield(o) {
					return
				}
			case <-window:
				return
			case <-s.stop:
				return
			}
		}
	}
}
