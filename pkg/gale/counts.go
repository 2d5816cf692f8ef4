package gale

import (
	"cmp"
	"fmt"
	"io"
	"math/bits"
	"slices"
	"sync/atomic"
	"text/tabwriter"
	"time"
)

// sizeBuckets is the number of powers of two that lease sizes are counted in:
// up to 1, 2, 4, … 2^15 credits, and beyond.
const sizeBuckets = 17

// counts are one shard's figures; its lock guards them. INV-2 for the whole
// replica: granted = spent + held + returned + expired (lost ones were never
// held by it).
type counts struct {
	leasesGranted, leasesRefused, leasesStale, leasesFailed uint64
	ahead, aheadSpent, evicted                              uint64
	granted, spent, returned, expired, lost                 uint64
	decisions                                               [NumReasons]uint64
	sizes                                                   [sizeBuckets]uint64
	wanted                                                  uint64
}

func (c *counts) want(n uint64) {
	c.wanted += n
	c.sizes[min(bits.Len64(max(n, 1)-1), sizeBuckets-1)]++
}

// waitCounts are the figures of the slow path, where requests wait.
type waitCounts struct {
	waits, waitedNanos, late atomic.Uint64
}

// LeaseStats are the totals of leased mode since the start, and its state.
type LeaseStats struct {
	// Leases by what came of them. Stale ones asked for a window that was
	// over, or told the time to a replica that did not know it.
	Granted, Refused, Stale, Failed uint64
	// Ahead are the granted ones that were pre-leases; AheadSpent the hits
	// paid from them.
	Ahead, AheadSpent uint64
	// Credits: CreditsGranted = CreditsSpent + CreditsReturned +
	// CreditsExpired + Held. CreditsLost were granted and not held: a replica
	// of the store did not acknowledge them.
	CreditsGranted, CreditsSpent, CreditsReturned, CreditsExpired, CreditsLost uint64
	// Waits are requests that waited for a lease, Waited how long in all,
	// Late those whose deadline came first.
	Waits, Late uint64
	Waited      time.Duration
	// Decisions by Reason.
	Decisions [NumReasons]uint64
	// Sizes counts leases asked for by size: up to 1, 2, 4, … and beyond;
	// Wanted is the sum.
	Sizes  [sizeBuckets]uint64
	Wanted uint64
	// Evicted are keys that were forgotten for want of room.
	Evicted uint64
	// Keys and Held are the present keys and the credits they hold.
	Keys, Held uint64
	// Exchanges are round trips of leases and returns, by all stores;
	// ClockRestarts how often a store's time did not fit what was known.
	Exchanges, ExchangesFailed, ClockRestarts uint64
}

// LeaseStats returns the totals of leased mode. It takes every shard's lock
// in turn and looks at every key: for a scrape, not for a request.
func (e *Engine) LeaseStats() LeaseStats {
	l := e.leased
	s := LeaseStats{
		Waits:  l.waits.waits.Load(),
		Late:   l.waits.late.Load(),
		Waited: time.Duration(l.waits.waitedNanos.Load()),
	}
	for i := range l.shards {
		sh := &l.shards[i]
		sh.mu.Lock()
		s.add(&sh.mu.counts)
		s.Keys += uint64(sh.mu.table.used)
		for _, slot := range sh.mu.table.entries {
			if slot != nil {
				s.Held += slot.holder.Held()
			}
		}
		sh.mu.Unlock()
	}
	for _, k := range l.links() {
		s.Exchanges += k.stats.exchanges.Load()
		s.ExchangesFailed += k.stats.failed.Load()
		s.ClockRestarts += k.stats.restarts.Load()
	}
	return s
}

func (s *LeaseStats) add(c *counts) {
	s.Granted += c.leasesGranted
	s.Refused += c.leasesRefused
	s.Stale += c.leasesStale
	s.Failed += c.leasesFailed
	s.Ahead += c.ahead
	s.AheadSpent += c.aheadSpent
	s.CreditsGranted += c.granted
	s.CreditsSpent += c.spent
	s.CreditsReturned += c.returned
	s.CreditsExpired += c.expired
	s.CreditsLost += c.lost
	s.Evicted += c.evicted
	s.Wanted += c.wanted
	for i, n := range c.decisions {
		s.Decisions[i] += n
	}
	for i, n := range c.sizes {
		s.Sizes[i] += n
	}
}

// links returns the ways to the stores, each once.
func (l *leaser) links() []*link {
	if l.perSecond == l.main {
		return []*link{l.main}
	}
	return []*link{l.main, l.perSecond}
}

// hotKeys is how many keys the page of leases shows.
const hotKeys = 50

// hotKey is one line of the page of leases.
type hotKey struct {
	key, holder          string
	rate                 float32
	held, limit, seconds uint64
	offered              float32
	rested               time.Duration
}

// WriteLeases prints the hottest leased keys with what is held of their
// windows, for people. It takes every shard's lock in turn.
func (e *Engine) WriteLeases(w io.Writer) error {
	l := e.leased
	now := l.main.instant(time.Now()).tick()
	var keys []hotKey
	for i := range l.shards {
		sh := &l.shards[i]
		sh.mu.Lock()
		for _, s := range sh.mu.table.entries {
			if s != nil {
				keys = hottest(keys, s, now)
			}
		}
		sh.mu.Unlock()
	}
	if len(keys) > hotKeys {
		keys = sortHot(keys)[:hotKeys]
	}
	keys = sortHot(keys)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "KEY\tHITS/S\tLIMIT\tWINDOW\tHELD\tASKED\tRESTED\tLOTS")
	for _, k := range keys {
		fmt.Fprintf(t, "%q\t%.1f\t%d\t%ds\t%d\t%.0f\t%v\t%s\n",
			k.key, k.rate, k.limit, k.seconds, k.held, k.offered, k.rested, k.holder)
	}
	return t.Flush()
}

// hottest adds an entry, and drops the cooler half when there are too many.
func hottest(keys []hotKey, e *entry, now tick) []hotKey {
	keys = append(keys, hotKey{
		key: e.key, holder: e.holder.String(), rate: e.demand.rate,
		held: e.holder.Held(), limit: uint64(e.limit), seconds: uint64(e.length),
		offered: e.demand.offered,
		rested:  time.Duration(now.since(e.seen)) * time.Millisecond,
	})
	if len(keys) >= 4*hotKeys {
		keys = sortHot(keys)[:hotKeys]
	}
	return keys
}

func sortHot(keys []hotKey) []hotKey {
	slices.SortFunc(keys, func(a, b hotKey) int {
		return cmp.Or(cmp.Compare(b.rate, a.rate), cmp.Compare(a.key, b.key))
	})
	return keys
}
