package gale

import (
	"hash/maphash"
	"time"
)

// Replica is leased mode as it ships, without its goroutines, its timers and
// its clock: whoever drives it brings the time and carries the exchanges. The
// fleet simulator of gale/sim runs it.
//
// A Replica is not safe for concurrent use.
type Replica struct{ l *leaser }

// NewReplica starts a replica at its own clock's time now, in a fleet of so
// many that live.
func NewReplica(now time.Time, live int) *Replica {
	f := &fleet{}
	f.note(live)
	l := &leaser{
		seed: maphash.MakeSeed(), start: now, config: Config{}.withDefaults(),
		perKeys: DefaultMaxLeasedKeys, shards: make([]shard, 1), shift: 64,
		fleet: f, fallback: &fallback{shares: newWindowTable(DefaultMaxKeys), fleet: f},
	}
	l.main = &link{start: now, land: l.land}
	l.main.more.L = &l.main.mu.Mutex
	l.main.clock.Store(&StoreClock{})
	l.perSecond = l.main
	return &Replica{l}
}

// Waiter is one request from its arrival to its answer.
type Waiter struct {
	Request
	attempt attempt
}

// Start makes the first attempt. It returns true when the request is settled:
// Decisions are filled. If not, it waits: see Woken.
func (p *Replica) Start(w *Waiter, now time.Time) bool {
	w.leased.reset(len(w.Charges))
	for i := range w.Charges {
		w.leased.hashes[i] = maphash.Bytes(p.l.seed, w.Charges[i].Key)
	}
	w.attempt = attempt{now: now, first: true}
	return p.l.try(&w.Request, &w.attempt)
}

// Retry makes another attempt, the last one if the request's time is up.
func (p *Replica) Retry(w *Waiter, now time.Time, late bool) bool {
	if a := &w.attempt; a.wait != nil {
		late = late || a.link.failures.Load() != a.failures
	}
	w.attempt = attempt{now: now, final: late, first: w.attempt.uncounted}
	return p.l.try(&w.Request, &w.attempt)
}

// Woken reports whether something landed that the request waited for.
func (w *Waiter) Woken() bool {
	select {
	case <-w.attempt.wait:
		return true
	default:
		return w.attempt.wait == nil
	}
}

// PutBack undoes a settled request, since another charge refused it.
func (p *Replica) PutBack(w *Waiter) { p.l.putBack(&w.Request) }

// Err is why a settled request fails, or nil.
func (w *Waiter) Err() error { return w.attempt.err }

// Spent returns the credits that charge i of a settled request paid in window
// v. A request of one charge does not remember them.
func (w *Waiter) Spent(i int, v int64) uint64 {
	if !w.leased.spent[i] {
		return 0
	}
	return w.leased.paid[i].Credits(v)
}

// Exchange is one round trip to the store: Steps are to be executed.
type Exchange struct {
	Steps []LeaseStep
	tasks []task
	sent  Instant
}

// Outbox takes what is to be sent to the store; nil when that is nothing.
func (p *Replica) Outbox(now time.Time) *Exchange {
	k := p.l.main
	if len(k.mu.queue) == 0 {
		return nil
	}
	x := &Exchange{tasks: k.next(), sent: k.instant(now)}
	for i := range x.tasks {
		x.Steps = append(x.Steps, x.tasks[i].step)
	}
	return x
}

// Receive ends an exchange, answered or failed.
func (p *Replica) Receive(x *Exchange, err error, now time.Time) {
	k := p.l.main
	at := k.instant(now)
	if err == nil {
		for i := range x.Steps {
			x.tasks[i].step = x.Steps[i]
		}
		k.observe(x.sent, at, x.Steps)
	}
	k.finish(x.tasks, err, at)
}

// Sweep visits all keys, as the shell does once a second.
func (p *Replica) Sweep(now time.Time) {
	for i := range p.l.shards {
		p.l.sweepShard(&p.l.shards[i], now)
	}
}

// Close queues the return of all that is held.
func (p *Replica) Close() {
	for i := range p.l.shards {
		var a attempt
		sh := &p.l.shards[i]
		for _, s := range sh.mu.table.entries {
			if s != nil {
				p.l.handBack(sh, s, &a)
			}
		}
		for k, tasks := range a.tasks {
			k.send(tasks)
		}
	}
}

// StoreTime returns where the store's time lies, if that is known.
func (p *Replica) StoreTime(now time.Time) (Interval, bool) {
	k := p.l.main
	return k.clock.Load().At(k.instant(now))
}

// Holder returns what is held of a key.
func (p *Replica) Holder(key []byte) Holder {
	hash := maphash.Bytes(p.l.seed, key)
	if e := p.l.shards[p.l.shardOf(hash)].mu.table.find(hash, key); e != nil {
		return e.holder
	}
	return Holder{}
}
