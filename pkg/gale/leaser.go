package gale

import (
	"context"
	"fmt"
	"hash/maphash"
	"math/bits"
	"sync"
	"time"
)

// leaser is the concurrent shell of leased mode: it owns the keys' holders,
// their locks, and the exchanges with the stores. A decision on held credits
// takes one shard's lock and touches nothing else that is shared.
type leaser struct {
	seed    maphash.Seed
	start   time.Time
	config  Config
	perKeys int     // keys that a shard may have
	shards  []shard // a power of two
	shift   int     // of a hash, to its shard
	// main and perSecond are the ways to the stores; the same one when there
	// is no separate per-second store.
	main, perSecond *link
	fleet           *fleet
	waits           waitCounts
	fallback        *fallback

	sweeping sync.WaitGroup
	stop     chan struct{}
	stopOnce sync.Once
}

// leasedScratch is what a Request keeps between taking and putting back. It
// is reused with the Request, so that a decision allocates nothing.
type leasedScratch struct {
	hashes []uint64
	paid   []Paid
	spent  []bool
}

func (s *leasedScratch) reset(n int) {
	if cap(s.paid) < n {
		s.hashes, s.paid, s.spent = make([]uint64, n), make([]Paid, n), make([]bool, n)
	}
	s.hashes, s.paid, s.spent = s.hashes[:n], s.paid[:n], s.spent[:n]
	clear(s.spent)
}

func newLeaser(main, perSecond Store, f *fallback, c Config) *leaser {
	l := &leaser{
		seed:     maphash.MakeSeed(),
		start:    time.Now(),
		config:   c,
		shards:   make([]shard, shardsFor(c.MaxLeasedKeys)),
		fleet:    f.fleet,
		fallback: f,
		stop:     make(chan struct{}),
	}
	for i := range l.shards {
		l.shards[i].mu.table.hash = l.hash
	}
	l.perKeys = max(c.MaxLeasedKeys/len(l.shards), 1)
	l.shift = 65 - bits.Len(uint(len(l.shards)))
	l.main = newLink(main, l.start, c.OpTimeout, l.land)
	l.perSecond = l.main
	if perSecond != nil && perSecond != main {
		l.perSecond = newLink(perSecond, l.start, c.OpTimeout, l.land)
	}
	l.sweeping.Go(l.sweep)
	return l
}

func (l *leaser) link(p *Policy) *link {
	if p.PerSecond {
		return l.perSecond
	}
	return l.main
}

// attempt is one try at all leased charges of a request, under the locks of
// their shards.
type attempt struct {
	now   time.Time // read by try; a Replica gives its own
	first bool      // the first try: demand is counted once
	final bool      // the last try: what still lacks is answered by its fallback
	// tasks are leases and returns to send after the locks are released.
	tasks map[*link][]task
	// wait is closed when something lands that a lacking charge waits for;
	// failures is how often its link had failed before.
	wait     chan struct{}
	link     *link
	failures uint64
	err      error
	answer   Answer // of the charge at hand
	// uncounted: the demand of the first try is still to be counted, since no
	// window could be told.
	uncounted bool
}

func (a *attempt) add(k *link, t task) {
	if a.tasks == nil {
		a.tasks = make(map[*link][]task, 1)
	}
	a.tasks[k] = append(a.tasks[k], t)
}

// take decides all leased charges of a request: all are spent, or none
// (INV-7). It fills their Decisions, and reports whether they refuse the
// request. It waits for leases, at most until the deadline less the margin;
// then the fallback of the charge's rule answers, and the lease still lands
// for the next request.
func (l *leaser) take(ctx context.Context, r *Request) (refused bool, err error) {
	r.leased.reset(len(r.Charges))
	for i := range r.Charges {
		r.leased.hashes[i] = maphash.Bytes(l.seed, r.Charges[i].Key)
	}
	for i := range r.Charges {
		if c := &r.Charges[i]; c.Refund && c.Policy.Mode == ModeLeased {
			if err := l.refund(ctx, c, &r.Decisions[i]); err != nil {
				return false, err
			}
		}
	}
	a := attempt{first: true}
	if l.try(r, &a) {
		return r.Refused(), a.err
	}
	return l.takeSlowly(ctx, r, &a)
}

// takeSlowly waits for leases and tries again.
func (l *leaser) takeSlowly(ctx context.Context, r *Request, a *attempt) (refused bool, err error) {
	timer := time.NewTimer(l.patience(ctx))
	defer timer.Stop()
	start := time.Now()
	l.waits.waits.Add(1)
	defer func() { l.waits.waitedNanos.Add(uint64(time.Since(start))) }()
	for {
		late := a.wait == nil
		if !late {
			select {
			case <-a.wait:
				late = a.link.failures.Load() != a.failures
			case <-timer.C:
				late = true
				l.waits.late.Add(1)
			case <-ctx.Done():
				late = true
			}
		}
		*a = attempt{final: late, first: a.uncounted}
		if l.try(r, a) {
			return r.Refused(), a.err
		}
	}
}

// patience is how long a request may wait for a lease.
func (l *leaser) patience(ctx context.Context) time.Duration {
	patience := l.config.OpTimeout
	if deadline, ok := ctx.Deadline(); ok {
		patience = min(patience, time.Until(deadline)-l.config.DeadlineMargin)
	}
	return patience
}

// try makes one attempt. It returns true when the leased charges are settled:
// Decisions are filled, and spent unless the request is refused or a.err is
// set.
func (l *leaser) try(r *Request, a *attempt) bool {
	if a.now.IsZero() {
		a.now = time.Now()
	}
	var locked [maxShards / 64]uint64
	single := -1
	if len(r.Charges) == 1 {
		single = l.shardOf(r.leased.hashes[0])
		l.shards[single].mu.Lock()
	} else {
		l.lock(r, &locked)
	}
	settled := true
	for i := range r.Charges {
		if r.Charges[i].Policy.Mode == ModeLeased && !r.Charges[i].Refund {
			settled = l.charge(r, i, a) && settled
		}
	}
	if single >= 0 && a.tasks == nil { // nothing to undo, nothing to send
		l.shards[single].mu.Unlock()
		return settled
	}
	refused := r.Refused()
	if !settled && refused {
		settled = true // another limit refuses it: no need to know the rest
	}
	if !settled || refused || a.err != nil {
		l.undo(r, a)
	}
	if single >= 0 {
		l.shards[single].mu.Unlock()
	} else {
		l.unlock(&locked)
	}
	for k, tasks := range a.tasks {
		k.send(tasks)
	}
	return settled
}

func (l *leaser) shardOf(hash uint64) int { return int(hash >> l.shift) }

// lock takes the shards of all leased charges, in one order everywhere.
func (l *leaser) lock(r *Request, locked *[maxShards / 64]uint64) {
	for i := range r.Charges {
		if r.Charges[i].Policy.Mode == ModeLeased {
			s := l.shardOf(r.leased.hashes[i])
			locked[s/64] |= 1 << (s % 64)
		}
	}
	for i, word := range locked[:(len(l.shards)+63)/64] {
		for ; word != 0; word &= word - 1 {
			l.shards[i*64+bits.TrailingZeros64(word)].mu.Lock()
		}
	}
}

func (l *leaser) unlock(locked *[maxShards / 64]uint64) {
	for i, word := range locked[:(len(l.shards)+63)/64] {
		for ; word != 0; word &= word - 1 {
			l.shards[i*64+bits.TrailingZeros64(word)].mu.Unlock()
		}
	}
}

// undo puts back what this attempt spent. The locks are held.
func (l *leaser) undo(r *Request, a *attempt) {
	for i := range r.Charges {
		if r.leased.spent[i] {
			l.restore(r, i, a)
		}
	}
}

// restore puts one charge's credits back. The shard's lock is held.
func (l *leaser) restore(r *Request, i int, a *attempt) {
	c := &r.Charges[i]
	sh := &l.shards[l.shardOf(r.leased.hashes[i])]
	r.leased.spent[i] = false
	sh.mu.counts.spent -= c.Hits
	e := sh.mu.table.find(r.leased.hashes[i], c.Key)
	var homeless [2]Lack
	if e != nil {
		homeless = e.holder.PutBack(&r.leased.paid[i])
	} else {
		homeless = new(Holder).PutBack(&r.leased.paid[i])
	}
	for _, h := range homeless {
		if h.Need > 0 {
			sh.mu.counts.returned += h.Need
			a.add(l.link(c.Policy), giveBack(string(c.Key), c.Policy.Limit.Window, h.Window, h.Need))
		}
	}
}

// putBack returns all that take spent, since another charge refused the
// request (INV-7).
func (l *leaser) putBack(r *Request) {
	var a attempt
	for i := range r.Charges {
		if i < len(r.leased.spent) && r.leased.spent[i] {
			sh := &l.shards[l.shardOf(r.leased.hashes[i])]
			sh.mu.Lock()
			l.restore(r, i, &a)
			sh.mu.Unlock()
		}
	}
	for k, tasks := range a.tasks {
		k.send(tasks)
	}
}

// giveBack is the task that hands n credits of a window back.
func giveBack(key string, length, window int64, n uint64) task {
	return task{step: LeaseStep{Key: key, Length: length, Window: window, Return: n}}
}

func (l *leaser) hash(key string) uint64 { return maphash.String(l.seed, key) }

// refund takes hits off the ledger's counter of the current window, for a
// charge with negative hits, and fills its decision. It waits for the store,
// so that what follows sees it.
func (l *leaser) refund(ctx context.Context, c *Charge, d *Decision) error {
	k := l.link(c.Policy)
	now := time.Now()
	length := c.Policy.Limit.Window
	w := wall(now).Unix() / length
	*d = Decision{Reason: ReasonRefund, Remaining: c.Policy.Limit.Hits, Reset: windowAt(wall(now).Unix(), c.Policy.Limit).reset()}
	if iv, ok := k.clock.Load().At(k.instant(now)); ok {
		w = iv.Earliest / (length * microsPerSecond)
		d.Reset = resetOf((w+1)*length*microsPerSecond - iv.Earliest)
	}
	failures := k.failures.Load()
	t := giveBack(string(c.Key), length, w, c.Hits)
	t.done = make(chan struct{})
	k.send([]task{t})
	ctx, cancel := context.WithTimeout(ctx, l.patience(ctx))
	defer cancel()
	select {
	case <-t.done:
	case <-ctx.Done():
		return l.refundLost(c)
	}
	if k.failures.Load() != failures {
		return l.refundLost(c)
	}
	hash := maphash.Bytes(l.seed, c.Key)
	sh := &l.shards[l.shardOf(hash)]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if e := sh.mu.table.find(hash, c.Key); e != nil {
		e.holder.Refunded(w, c.Hits)
		d.Remaining, _ = e.holder.Remaining(w, c.Policy.Limit.Hits)
	}
	return nil
}

// refundLost answers a refund that may not have reached the ledger: it is OK
// all the same, unless the rule wants errors.
func (l *leaser) refundLost(c *Charge) error {
	if c.Policy.OnUnavailable == UnavailableError {
		return fmt.Errorf("refund: %w", ErrUnavailable)
	}
	return nil
}
