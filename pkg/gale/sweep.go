package gale

import (
	"context"
	"time"
)

const (
	// sweepInterval is between two visits of one shard: a fifth of the
	// default idle time, so that idle credits go back about on time. With
	// more keys than sweepKeys it grows in proportion, up to
	// DefaultIdleReturn, so that sweeping stays below 2 % of a core.
	sweepInterval = time.Second
	sweepKeys     = 250_000
	// sweepParts spreads the shards over the interval.
	sweepParts = 16
	// forgetMillis is how long a key without credits is remembered beyond its
	// window: its rate and its learner are worth keeping for a while.
	forgetMillis = 60_000
	// lateMicros before a window ends, a contended key keeps only what it
	// expects to use: a peer may need the rest. Windows shorter than four
	// times that are not worth a visit.
	lateMicros = 5 * microsPerSecond
)

// sweep visits all keys once per interval: it expires lots, returns what
// rests, and forgets keys that are not used.
func (l *leaser) sweep() {
	ticker := time.NewTicker(sweepInterval / sweepParts)
	defer ticker.Stop()
	keys := 0
	for part := 0; ; part = (part + 1) % sweepParts {
		select {
		case <-l.stop:
			return
		case <-ticker.C:
		}
		for i := part; i < len(l.shards); i += sweepParts {
			keys += l.sweepShard(&l.shards[i], time.Now())
		}
		if part == sweepParts-1 {
			pace := sweepInterval * time.Duration(keys) / sweepKeys
			ticker.Reset(min(max(pace, sweepInterval), DefaultIdleReturn) / sweepParts)
			keys = 0
		}
	}
}

// sweepShard returns how many keys it visited.
func (l *leaser) sweepShard(sh *shard, now time.Time) (keys int) {
	var a attempt
	var gone []*entry
	sh.mu.Lock()
	for _, s := range sh.mu.table.entries {
		if s != nil && l.sweepEntry(sh, s, now, &a) {
			gone = append(gone, s)
		}
	}
	for _, e := range gone {
		sh.mu.table.remove(l.hash(e.key), e)
		sh.mu.queues.remove(e)
	}
	keys = sh.mu.table.used
	sh.mu.Unlock()
	for k, tasks := range a.tasks {
		k.send(tasks)
	}
	return keys
}

// sweepEntry reports whether the entry can be forgotten.
func (l *leaser) sweepEntry(sh *shard, e *entry, wall time.Time, a *attempt) (forget bool) {
	k := l.linkOf(e)
	at := k.instant(wall)
	now := at.tick()
	length := int64(e.length) * microsPerSecond
	iv, known := k.clock.Load().At(at)
	rested := now.since(e.seen)
	idle := e.idle != 0 && rested >= int64(e.idle)*100
	for i := range e.holder.lots {
		if known {
			sh.mu.counts.expired += e.holder.Expire(i, iv, length)
		}
		w, n := e.holder.Surplus(i, l.keepBelow(e, idle))
		if late := (w+1)*length - iv.Earliest; known && n == 0 && length >= 4*lateMicros &&
			late > 0 && late < lateMicros && e.holder.lots[i].contended {
			w, n = e.holder.Shed(i, 1+uint64(2*e.demand.hits(late)))
		}
		if n > 0 {
			sh.mu.counts.returned += n
			a.add(k, giveBack(e.key, int64(e.length), w, n))
		}
	}
	return e.holder.Idle() && e.waiters == nil && rested > length/1000+forgetMillis
}

// keepBelow is the limit above which an entry's credits go back: nothing for
// an idle key, and what a lowered limit cannot use any more.
func (l *leaser) keepBelow(e *entry, idle bool) uint64 {
	if idle {
		return 0
	}
	return uint64(e.limit)
}

// close returns all credits and ends the exchanges, until ctx ends. What is
// not returned by then stays counted: peers admit less, never more.
func (l *leaser) close(ctx context.Context) error {
	l.stopOnce.Do(func() { close(l.stop) })
	l.sweeping.Wait()
	for i := range l.shards {
		var a attempt
		sh := &l.shards[i]
		sh.mu.Lock()
		for _, s := range sh.mu.table.entries {
			if s != nil {
				l.handBack(sh, s, &a)
			}
		}
		sh.mu.Unlock()
		for k, tasks := range a.tasks {
			k.send(tasks)
		}
	}
	err := l.main.close(ctx)
	if l.perSecond != l.main {
		if e := l.perSecond.close(ctx); err == nil {
			err = e
		}
	}
	return err
}
