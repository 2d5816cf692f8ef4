package sim

import (
	"time"

	"github.com/gale-rls/gale-rls/pkg/gale"
)

func (f *fleet) handle(e event) {
	f.note(e)
	n := f.nodes[e.node]
	if f.now < n.pausedUntil && e.what != arrives && e.what != planned && e.what != executes {
		e.seq = 0
		f.at(n.pausedUntil, e) // it happens when the process goes on
		return
	}
	switch e.what {
	case arrives:
		if f.now < f.s.Length {
			f.at(f.now+f.gap(), event{what: arrives})
			f.request(f.target())
		}
	case planned:
		f.request(e.node)
	case asks:
		f.start(e.node, e.waiter)
	case executes:
		f.execute(e)
	case receives, timesOut:
		f.receive(e, n)
	case isLate:
		if !e.waiter.settled && e.life == n.life {
			f.retry(n, e.waiter, true)
			f.flush(e.node)
		}
	case sweeps:
		f.at(f.now+sweepEvery, event{what: sweeps, node: e.node})
		if f.now >= n.downUntil {
			n.replica.Sweep(f.local(n))
			f.flush(e.node)
		}
	case crashes:
		f.crash(n)
	case pauses:
		n.pausedUntil = f.now + f.between(0, f.s.Outage)
	case parts:
		n.cutUntil = f.now + f.between(0, f.s.Outage)
	case failsOver:
		f.failOver()
	}
}

// request is one that a caller sends to a replica.
func (f *fleet) request(i int) {
	n := f.nodes[i]
	w := &waiter{arrived: f.now, low: f.s.Low > 0 && f.rng.IntN(3) == 0}
	policy := &f.policy[0]
	if w.low {
		policy = &f.policy[1]
	}
	w.Charges = []gale.Charge{
		{Key: simKey, Policy: policy, Hits: min(f.s.Hits, policy.Limit.Hits)},
		{Key: otherKey, Policy: &f.other}, // so that it remembers what it paid
	}
	w.Decisions = make([]gale.Decision, len(w.Charges))
	f.result.Offered += w.Charges[0].Hits
	f.epochs[f.epoch()].offered += w.Charges[0].Hits
	if f.now < n.pausedUntil {
		f.at(n.pausedUntil, event{what: asks, node: i, waiter: w, life: n.life})
		return
	}
	f.start(i, w)
}

func (f *fleet) start(i int, w *waiter) {
	n := f.nodes[i]
	if f.now < n.downUntil {
		f.result.Failed += w.Charges[0].Hits
		return
	}
	if n.replica.Start(&w.Waiter, f.local(n)) {
		f.answered(n, w)
	} else {
		n.waiting = append(n.waiting, w)
		f.result.Waited++
		f.at(w.arrived+f.s.Patience, event{what: isLate, node: i, life: n.life, waiter: w})
	}
	f.flush(i)
}

func (f *fleet) retry(n *node, w *waiter, late bool) {
	if n.replica.Retry(&w.Waiter, f.local(n), late) {
		f.answered(n, w)
	}
}

// answered counts the answer of a settled request: an admission falls into
// the store's window now, and has paid there (INV-3).
func (f *fleet) answered(n *node, w *waiter) {
	hits := w.Charges[0].Hits
	w.settled = true
	f.result.wait(f.now - w.arrived)
	switch {
	case w.Err() != nil:
		f.result.Failed += hits
		return
	case w.Decisions[0].Over:
		f.result.Refused += hits
		return
	}
	i := f.epoch()
	if f.s.Elsewhere > 0 && f.rng.Float64() < f.s.Elsewhere {
		n.replica.PutBack(&w.Waiter)
		f.result.Refused += hits
		return
	}
	f.result.Admitted += hits
	f.epochs[i].admitted += hits
	if w.low {
		f.epochs[i].low += hits
	}
	if w.Spent(0, f.windowOf(i)) != hits {
		f.fail("INV-3: %d hits admitted in window %d paid %d there", hits, i, w.Spent(0, f.windowOf(i)))
	}
	for e := max(i-1, 0); e <= i+1 && e < len(f.epochs); e++ {
		f.epochs[e].spent += w.Spent(0, f.windowOf(e))
	}
}

// flush sends what a replica has to send.
func (f *fleet) flush(i int) {
	n := f.nodes[i]
	for {
		x := n.replica.Outbox(f.local(n))
		if x == nil {
			return
		}
		f.result.Trips++
		took := f.between(f.s.Latency-f.s.Jitter, f.s.Latency+f.s.Jitter)
		t := &trip{Exchange: x, sent: f.now, there: time.Duration(f.rng.Float64() * float64(took))}
		t.back = took - t.there
		for _, step := range x.Steps {
			if e, _ := f.epochOf(step.Window); e != nil {
				e.returns += step.Return
			}
		}
		if f.now >= n.cutUntil && f.rng.Float64() >= f.s.Loss {
			f.at(f.now+t.there, event{what: executes, node: i, life: n.life, exchange: t})
		}
		f.at(f.now+exchangeTimeout, event{what: timesOut, node: i, life: n.life, exchange: t})
	}
}

// execute is the store's side.
func (f *fleet) execute(e event) {
	if f.now < f.gone {
		return
	}
	micros := (simStart + int64(f.now)) / 1000
	for i := range e.exchange.Steps {
		t := &e.exchange.Steps[i]
		t.StoreMicros = micros
		w, at := f.epochOf(t.Window)
		if w == nil {
			new(gale.Ledger).Lease(t, micros) // stale
			continue
		}
		before := w.ledger.Counter
		if t.Return > 0 {
			w.ledger.Return(t.Return)
			w.returns -= t.Return
		} else {
			w.ledger.Lease(t, micros)
			w.replies += t.Grant
		}
		f.grants = append(f.grants, grant{f.now, at, int64(w.ledger.Counter) - int64(before)})
	}
	n := f.nodes[e.node]
	if f.now >= n.cutUntil && f.rng.Float64() >= f.s.Loss && e.exchange.there+e.exchange.back < exchangeTimeout {
		f.at(f.now+e.exchange.back, event{what: receives, node: e.node, life: e.life, exchange: e.exchange})
	}
}

// receive ends an exchange at the replica, answered or given up.
func (f *fleet) receive(e event, n *node) {
	t := e.exchange
	if t.over || e.life != n.life {
		return
	}
	t.over = true
	var err error
	if e.what == timesOut {
		err = gale.ErrUnavailable
	} else {
		f.landed(t)
	}
	n.replica.Receive(t.Exchange, err, f.local(n))
	if f.s.mischief && err == nil {
		n.replica.Receive(t.Exchange, nil, f.local(n))
	}
	still := n.waiting[:0]
	for _, w := range n.waiting {
		if !w.settled && w.Woken() {
			f.retry(n, w, false)
		}
		if !w.settled {
			still = append(still, w)
		}
	}
	n.waiting = still
	f.flush(e.node)
}

// landed takes grants out of what is on its way.
func (f *fleet) landed(t *trip) {
	for _, step := range t.Steps {
		if w, _ := f.epochOf(step.Window); w != nil {
			w.replies -= step.Grant
		}
	}
}

// crash kills a replica; it comes back with nothing, perhaps with another
// clock.
func (f *fleet) crash(n *node) {
	n.life++
	for _, w := range n.waiting {
		if !w.settled {
			w.settled = true
			f.result.Failed += w.Charges[0].Hits
		}
	}
	n.waiting = nil
	n.downUntil = f.now + f.between(0, f.s.Outage)
	n.replica = gale.NewReplica(f.local(n), f.s.Replicas)
}

// failOver: another node of the store takes over. Without replication it does
// not know what was granted last.
func (f *fleet) failOver() {
	f.gone = f.now + f.between(0, f.s.Outage)
	if f.s.Replicated {
		return
	}
	for i := len(f.grants) - 1; i >= 0 && f.grants[i].at > f.now-f.s.LostTail; i-- {
		g := &f.grants[i]
		w := &f.epochs[g.epoch]
		w.ledger.Counter = uint64(max(int64(w.ledger.Counter)-g.delta, 0))
		g.delta, w.tainted = 0, true
	}
}
