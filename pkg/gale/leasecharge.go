package gale

import "time"

// charge decides charge i of a request under its shard's lock. It returns
// false when a lease must land first; then nothing was spent, the lease is on
// its way, and a.wait tells when to look again.
func (l *leaser) charge(r *Request, i int, a *attempt) bool {
	c, d := &r.Charges[i], &r.Decisions[i]
	*d = Decision{}
	k := l.link(c.Policy)
	at := k.instant(a.now)
	now := at.tick()
	sh := &l.shards[l.shardOf(r.leased.hashes[i])]
	e := l.entry(sh, r.leased.hashes[i], c, k, a)
	if e == nil { // every key has a lease in flight: there is no place
		return l.unavailable(sh, c, d, a)
	}
	e.seen, e.limit = now, uint32(min(c.Policy.Limit.Hits, 1<<32-1))
	t := Terms{Hits: c.Hits, Limit: c.Policy.Limit.Hits, Length: c.Policy.Limit.Window * microsPerSecond}
	iv, known := k.clock.Load().At(at)
	if !known {
		if a.final {
			return l.unavailable(sh, c, d, a)
		}
		a.uncounted = a.first
		// Any answer tells the store's time; the wall clock guesses the window.
		l.lease(e, r.leased.hashes[i], c, k, Lack{Window: wall(a.now).Unix() / c.Policy.Limit.Window}, iv, now, a)
		return l.await(e, k, a)
	}
	var paid *Paid // one charge alone is never put back
	if len(r.Charges) > 1 {
		paid = &r.leased.paid[i]
	}
	answer := &a.answer
	*answer = Answer{}
	e.holder.take(iv, now, t, paid, answer)
	if a.first {
		e.demand.offer(c.Hits, answer.Window, now, sizesOf(c.Policy))
	}
	switch answer.Outcome {
	case Spent:
		r.leased.spent[i] = paid != nil
		sh.mu.counts.spent += c.Hits
		sh.mu.counts.decisions[ReasonLocalCredit]++
		if answer.Ahead {
			sh.mu.counts.aheadSpent += c.Hits
		}
		d.Reason = ReasonLocalCredit
		l.describe(e, d, iv, answer, t)
		if answer.Held < uint64(e.mark) || now.since(e.due) >= 0 {
			l.topUp(e, r.leased.hashes[i], c, k, iv, now, a)
		}
		return true
	case Denied:
		l.deny(sh, e, d, iv, answer, t)
		if !k.resting(now) {
			for _, lack := range answer.Lacks[:answer.NumLacks] {
				l.lease(e, r.leased.hashes[i], c, k, lack, iv, now, a)
			}
		}
		return true
	}
	if a.final {
		if e.holder.exhausted(answer, t) {
			l.deny(sh, e, d, iv, answer, t) // what was refused stays refused
			return true
		}
		return l.unavailable(sh, c, d, a)
	}
	if answer.Unplaced {
		answer.lack(answer.Window, 0)
	}
	for _, lack := range answer.Lacks[:answer.NumLacks] {
		l.lease(e, r.leased.hashes[i], c, k, lack, iv, now, a)
	}
	return l.await(e, k, a)
}

// deny fills a denial.
func (l *leaser) deny(sh *shard, e *entry, d *Decision, iv Interval, answer *Answer, t Terms) {
	sh.mu.counts.decisions[ReasonExhausted]++
	d.Over, d.Reason = true, ReasonExhausted
	l.describe(e, d, iv, answer, t)
}

// describe fills what a decision says beside its outcome.
func (l *leaser) describe(e *entry, d *Decision, iv Interval, answer *Answer, t Terms) {
	if answer.Outcome == Spent {
		d.Remaining = min(answer.Held+answer.Room, t.Limit)
	} else {
		d.Remaining, _ = e.holder.Remaining(answer.Window, t.Limit)
	}
	d.Reset = resetOf((answer.Window+1)*t.Length - iv.Earliest)
	switch {
	case d.Over:
		d.After = plusHits(t.Limit, t.Hits)
	case t.Hits == 0:
		d.After = t.Limit - d.Remaining
	default:
		d.After = answer.Position
	}
}

// resetOf rounds up to whole seconds, at least one.
func resetOf(micros int64) time.Duration {
	return time.Duration(max((micros+microsPerSecond-1)/microsPerSecond, 1)) * time.Second
}

// unavailable answers a charge whose ledger could not be asked in time.
func (l *leaser) unavailable(sh *shard, c *Charge, d *Decision, a *attempt) bool {
	var err error
	if *d, err = l.fallback.decideKeyless(c, a.now); err != nil {
		a.err = errNoCredits
		return true
	}
	sh.mu.counts.decisions[d.Reason]++
	return true
}

// await makes the attempt wait for what lands next at the entry.
func (l *leaser) await(e *entry, k *link, a *attempt) bool {
	if e.waiters == nil {
		e.waiters = make(chan struct{})
	}
	if a.wait == nil {
		a.wait, a.link, a.failures = e.waiters, k, k.failures.Load()
	}
	return false
}

// entry finds or makes the key's entry. It is nil when there is no place.
func (l *leaser) entry(sh *shard, hash uint64, c *Charge, k *link, a *attempt) *entry {
	e := sh.mu.table.find(hash, c.Key)
	if e != nil {
		if e.freq < maxFreq {
			e.freq++
		}
		if e.length != uint32(c.Policy.Limit.Window) || e.perSecond != c.Policy.PerSecond {
			l.reshape(sh, e, k, c, a)
		}
		return e
	}
	for sh.mu.table.used >= l.perKeys {
		v := sh.mu.queues.victim(l.perKeys, l.hash)
		if v == nil {
			return nil
		}
		sh.mu.table.remove(l.hash(v.key), v)
		sh.mu.counts.evicted++
		l.handBack(sh, v, a)
	}
	e = &entry{
		key:       string(c.Key),
		length:    uint32(c.Policy.Limit.Window),
		perSecond: c.Policy.PerSecond,
		idle:      idleTenths(c.Policy.Lease.IdleReturn),
	}
	sh.mu.table.insert(hash, e)
	sh.mu.queues.add(hash, e)
	return e
}

// reshape begins anew for a key whose window changed its length: its windows
// are other counters. What it held is handed back; a lease in flight lands in
// no lot and is handed back too.
func (l *leaser) reshape(sh *shard, e *entry, _ *link, c *Charge, a *attempt) {
	l.handBack(sh, e, a)
	e.holder, e.demand = Holder{}, demand{}
	e.length, e.perSecond = uint32(c.Policy.Limit.Window), c.Policy.PerSecond
	e.idle = idleTenths(c.Policy.Lease.IdleReturn)
}

// handBack queues the return of all that an entry holds.
func (l *leaser) handBack(sh *shard, e *entry, a *attempt) {
	for i := range e.holder.lots {
		if w, n := e.holder.Surplus(i, 0); n > 0 {
			sh.mu.counts.returned += n
			a.add(l.linkOf(e), giveBack(e.key, int64(e.length), w, n))
		}
	}
}

func (l *leaser) linkOf(e *entry) *link {
	if e.perSecond {
		return l.perSecond
	}
	return l.main
}

// idleTenths turns a policy's IdleReturn into tenths of a second, 0 for never.
func idleTenths(d time.Duration) uint16 {
	if d == 0 {
		d = DefaultIdleReturn
	}
	if d < 0 {
		return 0
	}
	return uint16(min(max(d/(100*time.Millisecond), 1), 1<<16-1))
}

func sizesOf(p *Policy) sizes {
	most := p.Lease.Max
	if most == 0 {
		most = DefaultLeaseMax
	}
	return sizes{p.Limit.Hits, most}
}
