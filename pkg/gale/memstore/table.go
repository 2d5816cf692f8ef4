package memstore

import (
	"hash/maphash"
	"strings"
	"sync"

	"github.com/gale-rls/gale-rls/pkg/gale"
)

// shardCount is a power of two, and small enough for a shardSet.
const shardCount = 64

// maxWarmth is how often the eviction hand passes over a counter that was
// used that often since it came.
const maxWarmth = 3

// shard is a part of the counters. Everything is guarded by mu.
type shard struct {
	mu       sync.Mutex
	index    map[string]int32 // into counters
	counters []counter
	free     []int32 // unused positions in counters
	hand     int
	_        [24]byte // keeps neighbours' locks apart
}

// counter is one limit in one window.
type counter struct {
	key     string // empty: this position is free
	ledger  gale.Ledger
	expires int64 // Unix seconds of the store's clock
	warmth  uint8
}

// shardSet is a set of shards, to lock several in one order.
type shardSet uint64

func (t *shardSet) add(i int) { *t |= 1 << i }

func (t shardSet) lock(s *Store) {
	for i := range s.shards {
		if t&(1<<i) != 0 {
			s.shards[i].mu.Lock()
		}
	}
}

func (t shardSet) unlock(s *Store) {
	for i := range s.shards {
		if t&(1<<i) != 0 {
			s.shards[i].mu.Unlock()
		}
	}
}

func (s *Store) shardOf(key string) int {
	return int(maphash.String(s.seed, key) & (shardCount - 1))
}

// find returns the counter key, or nil if there is none or it has expired.
// The pointer is good until the next create.
func (sh *shard) find(key string, now int64) *counter {
	i, found := sh.index[key]
	if !found || sh.counters[i].expires <= now {
		return nil
	}
	c := &sh.counters[i]
	c.warmth = min(c.warmth+1, maxWarmth)
	return c
}

// create returns the counter key, new and unused if there is none or it has
// expired. It makes room first if there are maxKeys already.
func (sh *shard) create(key string, now int64, maxKeys int) *counter {
	if c := sh.find(key, now); c != nil {
		return c
	}
	if i, found := sh.index[key]; found {
		c := &sh.counters[i]
		*c = counter{key: c.key}
		return c
	}
	sh.sweep(now)
	if len(sh.index) >= maxKeys {
		sh.evict(now)
	}
	key = strings.Clone(key) // it may be part of something larger
	if n := len(sh.free); n > 0 {
		i := sh.free[n-1]
		sh.free = sh.free[:n-1]
		sh.counters[i].key = key
		sh.index[key] = i
		return &sh.counters[i]
	}
	sh.counters = append(sh.counters, counter{key: key})
	i := len(sh.counters) - 1
	sh.index[key] = int32(i)
	return &sh.counters[i]
}

// sweep looks at two counters, and removes those that have expired. Each new
// counter pays for that, so expired ones go twice as fast as new ones come.
func (sh *shard) sweep(now int64) {
	for range min(2, len(sh.counters)) {
		i := sh.advance()
		if c := &sh.counters[i]; c.key != "" && c.expires <= now {
			sh.remove(i)
		}
	}
}

// evict removes one counter: the first from the hand on that has expired or
// is cold. Passing over a warm one cools it, so this ends.
func (sh *shard) evict(now int64) {
	for {
		i := sh.advance()
		c := &sh.counters[i]
		switch {
		case c.key == "":
		case c.expires <= now || c.warmth == 0:
			sh.remove(i)
			return
		default:
			c.warmth--
		}
	}
}

func (sh *shard) advance() int {
	i := sh.hand % len(sh.counters)
	sh.hand = i + 1
	return i
}

func (sh *shard) remove(i int) {
	delete(sh.index, sh.counters[i].key)
	sh.counters[i] = counter{}
	sh.free = append(sh.free, int32(i))
}
