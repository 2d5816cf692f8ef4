package gale

import (
	"hash/maphash"
	"math"
	"math/bits"
	"sync"
)

// windowTable holds one number per counter until the counter's window ends.
// It is bounded, sharded, and looked up without allocation. Times are Unix
// seconds.
//
// Safe for concurrent use.
type windowTable struct {
	seed     maphash.Seed
	mask     uint64
	perShard int
	shards   []tableShard
}

type tableShard struct {
	mu      sync.Mutex
	index   map[string]int32
	entries []tableEntry
	free    []int32
	hand    int
	// earliest is at most the earliest end of all entries, so that a full
	// shard is not searched for ended windows before there can be one.
	earliest int64
	// removed counts what made room: entries of ended windows, and others.
	removed struct{ ended, live uint64 }
}

type tableEntry struct {
	key   string
	end   int64 // the window's end
	count uint64
	used  bool // since the hand last passed
}

// newWindowTable makes a table of at most size entries; size is at least 1.
func newWindowTable(size int) *windowTable {
	// Shards of at least 64 entries, so that the bound does not bite early
	// in one of them while others are empty; at most 64 shards.
	shards := 1
	if size >= 128 {
		shards = min(64, 1<<(bits.Len(uint(size/64))-1))
	}
	t := &windowTable{
		seed:     maphash.MakeSeed(),
		mask:     uint64(shards - 1),
		perShard: (size + shards - 1) / shards,
		shards:   make([]tableShard, shards),
	}
	for i := range t.shards {
		t.shards[i].index = map[string]int32{}
	}
	return t
}

func (t *windowTable) shard(key []byte) *tableShard {
	return &t.shards[maphash.Bytes(t.seed, key)&t.mask]
}

// get returns the number of key, if it has one and its window goes on.
func (t *windowTable) get(key []byte, now int64) (count uint64, found bool) {
	s := t.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	i, found := s.index[string(key)]
	if !found || s.entries[i].end <= now {
		return 0, false
	}
	s.entries[i].used = true
	return s.entries[i].count, true
}

// put sets the number of key until end. A full table gives up an entry whose
// window is over, or else one that was not looked up lately.
func (t *windowTable) put(key []byte, now, end int64, count uint64) {
	s := t.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.entry(key); e != nil {
		e.end, e.count = end, count
		s.earliest = min(s.earliest, end)
		return
	}
	if len(s.index) >= t.perShard {
		s.evict(now)
	}
	s.insert(key, end, count)
}

// add moves the number of key by hits if that makes it at most limit, and
// returns the number it would have had. fits is false as well when the table
// is full of windows that go on: nothing is forgotten to make room.
func (t *windowTable) add(key []byte, now, end int64, hits, limit uint64) (after uint64, fits bool) {
	s := t.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entry(key)
	if e != nil && e.end <= now {
		e.count, e.end = 0, end
		s.earliest = min(s.earliest, end)
	}
	after = hits
	if e != nil {
		after = plusHits(e.count, hits)
	}
	if after > limit {
		return after, false
	}
	if e != nil {
		e.count = after
		return after, true
	}
	if hits == 0 {
		return 0, true
	}
	if len(s.index) >= t.perShard && !s.evictEnded(now) {
		return after, false
	}
	s.insert(key, end, after)
	return after, true
}

// sub takes hits off the number of key, at least to 0, and returns it.
func (t *windowTable) sub(key []byte, hits uint64) (after uint64) {
	s := t.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entry(key)
	if e == nil {
		return 0
	}
	e.count = minusHits(e.count, hits)
	return e.count
}

// drop forgets key.
func (t *windowTable) drop(key []byte) {
	s := t.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if i, found := s.index[string(key)]; found {
		s.remove(i)
	}
}

// tableSize is the number of entries, those of ended windows included, and
// how many were removed to make room.
type tableSize struct {
	entries     int
	ended, live uint64
}

func (t *windowTable) size() tableSize {
	var n tableSize
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		n.entries += len(s.index)
		n.ended += s.removed.ended
		n.live += s.removed.live
		s.mu.Unlock()
	}
	return n
}

func (s *tableShard) entry(key []byte) *tableEntry {
	if i, found := s.index[string(key)]; found {
		return &s.entries[i]
	}
	return nil
}

func (s *tableShard) insert(key []byte, end int64, count uint64) {
	e := tableEntry{key: string(key), end: end, count: count}
	if len(s.index) == 0 || end < s.earliest {
		s.earliest = end
	}
	if n := len(s.free); n > 0 {
		i := s.free[n-1]
		s.free = s.free[:n-1]
		s.entries[i] = e
		s.index[e.key] = i
		return
	}
	s.entries = append(s.entries, e)
	s.index[e.key] = int32(len(s.entries) - 1)
}

func (s *tableShard) remove(i int32) {
	delete(s.index, s.entries[i].key)
	s.entries[i] = tableEntry{}
	s.free = append(s.free, i)
}

// evict makes room in a full shard: an ended window if there is one, else the
// first entry from the hand on that was not used since the hand last passed.
func (s *tableShard) evict(now int64) {
	if s.evictEnded(now) {
		return
	}
	for {
		i := s.hand % len(s.entries)
		s.hand = i + 1
		if e := &s.entries[i]; e.used {
			e.used = false
			continue
		}
		s.remove(int32(i))
		s.removed.live++
		return
	}
}

// evictEnded removes one entry of an ended window from a full shard.
func (s *tableShard) evictEnded(now int64) bool {
	if s.earliest > now {
		return false
	}
	earliest := int64(math.MaxInt64)
	for range s.entries {
		i := s.hand % len(s.entries)
		s.hand = i + 1
		if e := &s.entries[i]; e.end <= now && e.key != "" {
			s.remove(int32(i))
			s.removed.ended++
			return true
		} else if e.key != "" {
			earliest = min(earliest, e.end)
		}
	}
	s.earliest = earliest
	return false
}

// plusHits is a+b, or the largest uint64 if that is too small for it.
func plusHits(a, b uint64) uint64 {
	sum, carry := bits.Add64(a, b, 0)
	if carry != 0 {
		return ^uint64(0)
	}
	return sum
}

// minusHits is a-b, or 0 if b is larger.
func minusHits(a, b uint64) uint64 {
	if b >= a {
		return 0
	}
	return a - b
}
