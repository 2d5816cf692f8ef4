package gale

import "errors"

// errNoCredits is ErrUnavailable for a leased charge: no credits are held,
// and the ledger did not answer in time.
var errNoCredits = &unavailableError{"lease: no credits held, and the ledger did not answer in time"}

type unavailableError struct{ text string }

func (e *unavailableError) Error() string { return e.text }
func (e *unavailableError) Unwrap() error { return ErrUnavailable }

// lease starts a lease of one window unless one is in flight (INV-5). The
// shard's lock is held; the task is sent after it is released.
func (l *leaser) lease(e *entry, hash uint64, c *Charge, k *link, lack Lack, iv Interval, now tick, a *attempt) {
	length := c.Policy.Limit.Window * microsPerSecond
	begun, dropped, of := e.holder.Begin(lack.Window, iv, length)
	if dropped > 0 {
		sh := &l.shards[l.shardOf(hash)]
		if of < iv.Earliest/length {
			sh.mu.counts.expired += dropped
		} else {
			sh.mu.counts.returned += dropped
			a.add(k, giveBack(e.key, int64(e.length), of, dropped))
		}
	}
	if !begun {
		return
	}
	want := uint64(0)
	if lack.Need > 0 {
		want = e.demand.want(l.appetite(e, c, k, lack, iv))
	}
	l.shards[l.shardOf(hash)].mu.counts.want(want)
	a.add(k, l.leaseTask(e, hash, c, lack.Window, lack.Need, want))
}

func (l *leaser) leaseTask(e *entry, hash uint64, c *Charge, w int64, need, want uint64) task {
	if c.Policy.Lease.Replicated && l.link(c.Policy).lossy.Load() {
		want = min(max(need, 1), want) // what a lost lease burns stays counted
	}
	return task{entry: e, hash: hash, step: LeaseStep{
		Key: e.key, Length: c.Policy.Limit.Window, Window: w,
		Limit: c.Policy.Limit.Hits, Need: min(need, want), Want: want,
		Taper: l.taper(), Replicated: c.Policy.Lease.Replicated,
	}}
}

// taper is how many leases share what is free: two for each replica, so that
// the fleet's leases shrink before the budget ends; one alone needs none.
func (l *leaser) taper() uint64 {
	live := uint64(l.fleet.estimate())
	if live <= 1 {
		return 1
	}
	return 2 * live
}

func (l *leaser) appetite(e *entry, c *Charge, k *link, lack Lack, iv Interval) appetite {
	length := c.Policy.Limit.Window * microsPerSecond
	return appetite{
		sizes: sizesOf(c.Policy), fixed: c.Policy.Lease.Size, need: lack.Need,
		left: min((lack.Window+1)*length-iv.Earliest, length), lead: k.lead(),
		contended: e.holder.contended(lack.Window),
	}
}

// topUp leases before the credits run out, and the first moments of the next
// window before it begins, so that a hot key never waits. The shard's lock is
// held. It sets when to be called again.
func (l *leaser) topUp(e *entry, hash uint64, c *Charge, k *link, iv Interval, now tick, a *attempt) {
	limit, length := c.Policy.Limit.Hits, c.Policy.Limit.Window*microsPerSecond
	lead := k.lead()
	w := iv.Latest / length
	untilAhead := max((w+1)*length-iv.Latest-lead, 0) / 1000
	e.due, e.mark = now+tick(min(untilAhead, sliceMillis)), 0
	if c.Policy.Lease.NoPrefetch || k.resting(now) {
		return
	}
	low := e.demand.low((w+1)*length-iv.Earliest, lead)
	e.mark = uint32(min(low, 1<<32-1))
	held, room, idle := e.holder.level(w, limit)
	if idle && room > 0 && held < low {
		l.lease(e, hash, c, k, Lack{Window: w, Need: 1}, iv, now, a)
	}
	if untilAhead > 0 || e.holder.find(w+1) != nil {
		return
	}
	n := min(e.demand.ahead(iv.Latest-iv.Earliest, lead), sizesOf(c.Policy).most, limit)
	if n == 0 {
		return
	}
	if begun, _, _ := e.holder.Begin(w+1, iv, length); begun {
		t := l.leaseTask(e, hash, c, w+1, 1, n)
		t.ahead = true
		a.add(k, t)
	}
}

// land applies the answers of one exchange, and lets those who wait look
// again.
func (l *leaser) land(k *link, tasks []task, err error, iv Interval, now tick) {
	var a attempt
	for i := range tasks {
		t := &tasks[i]
		if t.entry == nil {
			continue
		}
		sh := &l.shards[l.shardOf(t.hash)]
		sh.mu.Lock()
		l.landOne(sh, k, t, err, now, &a)
		sh.mu.Unlock()
	}
	for k, tasks := range a.tasks {
		k.send(tasks)
	}
}

func (l *leaser) landOne(sh *shard, k *link, t *task, err error, now tick, a *attempt) {
	counts := &sh.mu.counts
	e, s := t.entry, &t.step
	defer e.wake()
	switch {
	case err != nil && !errors.Is(err, ErrOverflow):
		counts.leasesFailed++
		e.holder.Failed(s.Window)
		return
	case s.Stale:
		counts.leasesStale++
	case s.Lost:
		counts.lost += s.Grant
		k.lossy.Store(true)
	case s.Grant == 0:
		counts.leasesRefused++
	default:
		if s.Replicated {
			k.lossy.Store(false)
		}
		counts.leasesGranted++
		counts.granted += s.Grant
		if t.ahead {
			counts.ahead++
		}
	}
	if int64(e.length) != s.Length { // reshaped meanwhile
		if s.Grant > 0 && !s.Lost {
			a.add(k, giveBack(e.key, s.Length, s.Window, s.Grant))
			counts.returned += s.Grant
		}
		return
	}
	if homeless := e.holder.Granted(s, now); homeless > 0 {
		counts.returned += homeless
		a.add(k, giveBack(e.key, s.Length, s.Window, homeless))
	}
}
