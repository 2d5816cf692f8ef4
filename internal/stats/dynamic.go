package stats

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
)

// series is one name in a bounded set: a single counter, or the six of a rule.
type series struct {
	key   string      // as it is looked up
	name  string      // key, clean; almost always the same string
	used  atomic.Bool // since the hand last passed
	cells []Counter
	rule  RuleCounters // points into cells; empty for a single counter
}

// boundedSet holds at most so many series, by key. Full shards evict by second
// chance: the hand passes over series used since it last came by.
type boundedSet struct {
	seed   maphash.Seed
	shards []shard
	newFor func(key string) *series
	// evict takes a series that has left the set. Called with a shard locked.
	evict func(*series)
}

type shard struct {
	mu   sync.RWMutex
	by   map[string]*series
	ring []*series
	hand int
	max  int
}

// maxShards is enough that cores adding to different names rarely meet.
const maxShards = 32

func newBoundedSet(size int, newFor func(string) *series, evict func(*series)) *boundedSet {
	n := maxShards
	if size < 64*maxShards {
		n = 1 // small sets are for tests and tiny machines: keep them exact
	}
	b := &boundedSet{seed: maphash.MakeSeed(), shards: make([]shard, n), newFor: newFor, evict: evict}
	for i := range b.shards {
		b.shards[i].by = make(map[string]*series)
		b.shards[i].max = max(size/n, 1)
	}
	return b
}

// maxNameBytes bounds the memory of one name; a longer one is cut there, and
// counts together with all that begin like it.
const maxNameBytes = 2 << 10

func (b *boundedSet) get(key []byte) *series {
	key = key[:min(len(key), maxNameBytes)]
	s := &b.shards[maphash.Bytes(b.seed, key)%uint64(len(b.shards))]
	s.mu.RLock()
	e := s.by[string(key)]
	s.mu.RUnlock()
	if e == nil {
		return b.add(s, string(key))
	}
	if !e.used.Load() {
		e.used.Store(true)
	}
	return e
}

func (b *boundedSet) add(s *shard, key string) *series {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.by[key]; e != nil {
		e.used.Store(true)
		return e
	}
	e := b.newFor(key)
	s.by[key] = e
	if len(s.ring) < s.max {
		s.ring = append(s.ring, e)
		return e
	}
	for s.ring[s.hand].used.Swap(false) {
		s.hand = (s.hand + 1) % len(s.ring)
	}
	old := s.ring[s.hand]
	s.ring[s.hand] = e
	s.hand = (s.hand + 1) % len(s.ring)
	delete(s.by, old.key)
	b.evict(old)
	return e
}

// all returns the series now in the set.
func (b *boundedSet) all() []*series {
	var out []*series
	for i := range b.shards {
		s := &b.shards[i]
		s.mu.RLock()
		out = append(out, s.ring...)
		s.mu.RUnlock()
	}
	return out
}
