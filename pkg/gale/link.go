package gale

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// linkWorkers is how many exchanges may be under way with one store: a
	// slow one does not hold up the next, and what queues up meanwhile
	// travels together.
	linkWorkers = 8
	// linkBatch bounds the steps of one exchange.
	linkBatch = 512
	// linkQueue bounds what waits for an exchange; beyond it leases are
	// unavailable and returns are lost, both safe.
	linkQueue = 1 << 16
	// leaseTimeout bounds an exchange. A grant that is answered later is
	// lost: the ledger keeps it counted.
	leaseTimeout = 2 * time.Second
	// backoffMillis is how long background leases rest after a failure.
	backoffMillis = 100
	// leadSlackMicros is added to the lead of every lease: what a busy machine
	// or a collection of garbage may hold a goroutine up.
	leadSlackMicros = 15_000
)

// task is one step on its way to a store.
type task struct {
	entry *entry // nil for a return
	hash  uint64
	step  LeaseStep
	ahead bool          // a pre-lease
	done  chan struct{} // closed when the exchange is over, if not nil
}

// link is the way to one store: its clock, and the exchanges with it. Tasks
// that are queued while exchanges travel share the next one.
type link struct {
	store Store
	start time.Time // the origin of Instant.Mono
	land  func(k *link, tasks []task, err error, iv Interval, now tick)

	clock atomic.Pointer[StoreClock]
	// rtt is the recent longest exchange, in microseconds, slowly forgotten.
	rtt atomic.Int64
	// failures counts failed exchanges; failedAt is the tick of the last.
	failures atomic.Uint64
	failedAt atomic.Uint32
	// lossy: no replica of the store acknowledged the last replicated grant.
	lossy atomic.Bool
	stats linkStats

	mu struct {
		sync.Mutex
		queue  []task
		closed bool
	}
	more    sync.Cond // the queue is not empty, or closed
	workers sync.WaitGroup
	timeout time.Duration
}

type linkStats struct {
	exchanges, failed, restarts, overflowed atomic.Uint64
}

func newLink(s Store, start time.Time, timeout time.Duration, land func(*link, []task, error, Interval, tick)) *link {
	k := &link{store: s, start: start, timeout: min(timeout, leaseTimeout), land: land}
	k.more.L = &k.mu.Mutex
	k.clock.Store(&StoreClock{})
	for range linkWorkers {
		k.workers.Go(k.work)
	}
	return k
}

// instant reads both of this replica's clocks.
func (k *link) instant(now time.Time) Instant {
	return Instant{Mono: int64(now.Sub(k.start)), Wall: wall(now).UnixNano()}
}

func (i Instant) tick() tick { return tick(i.Mono/int64(time.Millisecond)) + 1 }

// lead is the time within which a lease arrives, in microseconds.
func (k *link) lead() int64 { return 3*k.rtt.Load() + leadSlackMicros }

// resting reports whether an exchange failed a moment ago.
func (k *link) resting(now tick) bool {
	at := tick(k.failedAt.Load())
	return at != 0 && now.since(at) < backoffMillis
}

// send queues tasks. Tasks that find no place land as failures.
func (k *link) send(tasks []task) {
	if len(tasks) == 0 {
		return
	}
	k.mu.Lock()
	full := k.mu.closed || len(k.mu.queue)+len(tasks) > linkQueue
	if !full {
		k.mu.queue = append(k.mu.queue, tasks...)
	}
	k.mu.Unlock()
	if full {
		k.stats.overflowed.Add(uint64(len(tasks)))
		k.finish(tasks, ErrUnavailable, k.instant(time.Now()))
		return
	}
	k.more.Signal()
}

func (k *link) work() {
	for {
		tasks := k.next()
		if tasks == nil {
			return
		}
		k.exchange(tasks)
	}
}

// next takes what is queued, up to a batch; nil when the link is closed and
// its queue is empty.
func (k *link) next() []task {
	k.mu.Lock()
	defer k.mu.Unlock()
	for len(k.mu.queue) == 0 {
		if k.mu.closed {
			return nil
		}
		k.more.Wait()
	}
	n := min(len(k.mu.queue), linkBatch)
	tasks := k.mu.queue[:n:n]
	k.mu.queue = k.mu.queue[n:]
	if len(k.mu.queue) == 0 {
		k.mu.queue = nil
	} else {
		k.more.Signal()
	}
	return tasks
}

// exchange is one round trip: it brackets the store's time and lands the
// answers. A failed exchange is never repeated: what it may have done is lost
// to this replica, which under-admits.
func (k *link) exchange(tasks []task) {
	steps := make([]LeaseStep, len(tasks))
	for i := range tasks {
		steps[i] = tasks[i].step
	}
	ctx, cancel := context.WithTimeout(context.Background(), k.timeout)
	sent := k.instant(time.Now())
	err := k.store.Lease(ctx, steps)
	received := k.instant(time.Now())
	cancel()
	k.stats.exchanges.Add(1)
	if err == nil {
		for i := range steps {
			tasks[i].step = steps[i]
		}
		k.observe(sent, received, steps)
	}
	k.finish(tasks, err, k.instant(time.Now()))
}

// observe narrows the store's clock by one exchange and remembers how long
// it took.
func (k *link) observe(sent, received Instant, steps []LeaseStep) {
	took := (received.Mono - sent.Mono) / 1000
	if old := k.rtt.Load(); took > old {
		k.rtt.Store(took)
	} else {
		k.rtt.Store(old - (old-took)/8)
	}
	for _, s := range []*LeaseStep{&steps[0], &steps[len(steps)-1]} {
		for s.StoreMicros > 0 {
			old := k.clock.Load()
			next, restarted := old.Observe(sent, received, s.StoreMicros)
			if !k.clock.CompareAndSwap(old, &next) {
				continue
			}
			if restarted {
				k.stats.restarts.Add(1)
			}
			break
		}
	}
}

func (k *link) finish(tasks []task, err error, now Instant) {
	if err != nil {
		k.stats.failed.Add(1)
		k.failedAt.Store(uint32(now.tick()))
		k.failures.Add(1)
	}
	iv, ok := k.clock.Load().At(now)
	if !ok {
		iv = Interval{}
	}
	k.land(k, tasks, err, iv, now.tick())
	for i := range tasks {
		if tasks[i].done != nil {
			close(tasks[i].done)
		}
	}
}

// close lets what is queued finish and stops the workers. It waits until ctx
// ends at the longest.
func (k *link) close(ctx context.Context) error {
	k.mu.Lock()
	k.mu.closed = true
	k.mu.Unlock()
	k.more.Broadcast()
	done := make(chan struct{})
	go func() { k.workers.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
