package gale

import "sync/atomic"

// denyCache remembers counters that refused, until their window ends, so
// that what must be refused again is refused without the store.
//
// It remembers the counter's value, not the refusal: a charge is refused only
// if it does not fit its own limit on top of that value. So a refused call of
// many hits does not refuse a cheap one that fits, and a raised limit, by an
// override or by a reload, counts at once. Counters only fall by refunds:
// those made here are forgotten here, those made by other replicas count
// when the window ends.
//
// Safe for concurrent use.
type denyCache struct {
	table        *windowTable
	hits, misses atomic.Uint64
	stored       atomic.Uint64
}

// DenyCacheStats are totals since the start, and the present size.
type DenyCacheStats struct {
	// Lookups is Hits and Misses together. A charge that the remembered
	// value does not refuse is a miss.
	Lookups, Hits, Misses uint64
	// Stored counts the denials that were remembered.
	Stored uint64
	// Expired and Evicted counters made room for others: their window had
	// ended, or not.
	Expired, Evicted uint64
	// Entries is the number of counters remembered, those included whose
	// window has ended and whose room was not needed yet.
	Entries int
}

func newDenyCache(keys int) *denyCache {
	return &denyCache{table: newWindowTable(keys)}
}

// refuses reports whether hits on top of what is remembered of key exceed
// limit, and what the counter would then be.
func (d *denyCache) refuses(key []byte, now int64, hits, limit uint64) (after uint64, refused bool) {
	count, found := d.table.get(key, now)
	after = plusHits(count, hits)
	if !found || after <= limit {
		d.misses.Add(1)
		return 0, false
	}
	d.hits.Add(1)
	return after, true
}

// remember notes that the counter key has the value count, in a window that
// ends at end.
func (d *denyCache) remember(key []byte, now, end int64, count uint64) {
	d.table.put(key, now, end, count)
	d.stored.Add(1)
}

// forget drops what is known of key: hits were given back.
func (d *denyCache) forget(key []byte) { d.table.drop(key) }

func (d *denyCache) stats() DenyCacheStats {
	size := d.table.size()
	s := DenyCacheStats{
		Hits:    d.hits.Load(),
		Misses:  d.misses.Load(),
		Stored:  d.stored.Load(),
		Expired: size.ended,
		Evicted: size.live,
		Entries: size.entries,
	}
	s.Lookups = s.Hits + s.Misses
	return s
}
