package gale

import (
	"sync"
)

const (
	// maxShards, a power of two, is many more than there are cores, so that
	// two of them seldom want the same lock, or the same line of memory.
	maxShards = 4096
	// minShardKeys is the least room of a shard: smaller ones would fill
	// unevenly and evict long before all are full.
	minShardKeys = 128
)

// shardsFor returns how many shards so many keys get: a power of two.
func shardsFor(keys int) int {
	n := maxShards
	for n > 1 && keys/n < minShardKeys {
		n /= 2
	}
	return n
}

// entry is one leased key. Its shard's lock guards it. Its size is counted:
// a million of them fit in 300 MiB with their keys (BenchmarkMemory).
type entry struct {
	key        string
	holder     Holder
	demand     demand
	waiters    chan struct{} // closed when an exchange lands; nil when nobody waits
	prev, next *entry        // of its queue
	limit      uint32        // the rule's limit when last charged
	length     uint32        // the window's length in seconds
	seen       tick          // when it was last charged
	mark       uint32        // below so many credits, look whether to top up
	due        tick          // and from then on
	idle       uint16        // IdleReturn in tenths of a second, 0 for never
	freq       uint8         // see queue
	in         uint8         // which queue
	perSecond  bool
}

// wake lets the waiting requests look again.
func (e *entry) wake() {
	if e.waiters != nil {
		close(e.waiters)
		e.waiters = nil
	}
}

// shard is a part of the keys, with a lock of its own.
type shard struct {
	mu struct {
		sync.Mutex
		table  table
		queues queues
		counts counts
	}
	_ [64]byte // no false sharing with the neighbour's lock
}

// table finds entries by key: open addressing with linear probing, since the
// hash is known already and a Go map would compute its own. At most three
// quarters full. The zero value is empty.
type table struct {
	entries []*entry // nil where free
	// tags hold a byte of each entry's hash, so that a probe seldom reads an
	// entry in vain.
	tags []uint8
	used int
	hash func(key string) uint64 // set by newLeaser
}

// tag is a byte of the hash that chooses neither shard nor place.
func tag(hash uint64) uint8 { return uint8(hash >> 32) }

func (t *table) find(hash uint64, key []byte) *entry {
	if t.used == 0 {
		return nil
	}
	mask := uint64(len(t.entries) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		e := t.entries[i]
		if e == nil {
			return nil
		}
		if t.tags[i] == tag(hash) && e.key == string(key) {
			return e
		}
	}
}

// insert adds an entry that is not in the table.
func (t *table) insert(hash uint64, e *entry) {
	if 4*(t.used+1) > 3*len(t.entries) {
		old := t.entries
		n := max(8, 2*len(old))
		t.entries, t.tags = make([]*entry, n), make([]uint8, n)
		for _, e := range old {
			if e != nil {
				t.place(t.hash(e.key), e)
			}
		}
	}
	t.place(hash, e)
	t.used++
}

func (t *table) place(hash uint64, e *entry) {
	mask := uint64(len(t.entries) - 1)
	i := hash & mask
	for t.entries[i] != nil {
		i = (i + 1) & mask
	}
	t.entries[i], t.tags[i] = e, tag(hash)
}

// remove takes an entry out; what was pushed past its place moves back.
func (t *table) remove(hash uint64, e *entry) {
	mask := uint64(len(t.entries) - 1)
	i := hash & mask
	for t.entries[i] != e {
		if t.entries[i] == nil {
			return
		}
		i = (i + 1) & mask
	}
	t.used--
	for j := (i + 1) & mask; t.entries[j] != nil; j = (j + 1) & mask {
		// Place j may move to i unless its home lies after i, cyclically.
		if home := t.hash(t.entries[j].key) & mask; (j-home)&mask >= (j-i)&mask {
			t.entries[i], t.tags[i] = t.entries[j], t.tags[j]
			i = j
		}
	}
	t.entries[i] = nil
}
