package memstore

import (
	"context"
	"fmt"
	"hash/maphash"
	"math"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gale-rls/gale-rls/pkg/gale"
)

// DefaultMaxKeys takes about 200 MB when full, with keys of 60 bytes.
const DefaultMaxKeys = 1_000_000

// leaseGrace is how long, in seconds, a leased counter outlives its window:
// long enough for late returns. The clock does not go back, so nothing else
// asks for it again.
const leaseGrace = 10

// Config is how a Store is made. The zero value is valid.
type Config struct {
	// MaxKeys bounds the counters. 0 means DefaultMaxKeys.
	MaxKeys int
	// ClockOffset is added to the machine's clock. For tests: replicas must
	// not rely on the store's clock being their own.
	ClockOffset time.Duration
}

// Store is a gale.Store in memory. Safe for concurrent use.
type Store struct {
	seed    maphash.Seed
	perKeys int // counters that a shard may have
	shards  [shardCount]shard

	began  time.Time    // wall and monotonic clock at the start
	jumped atomic.Int64 // by how much the wall clock was set forward since, in microseconds
	offset atomic.Int64 // of tests, in microseconds
	closed atomic.Bool

	fleet struct {
		sync.Mutex
		until map[string]int64 // microseconds of the store's clock, by replica
	}
}

var _ gale.Store = (*Store)(nil)

// New returns an empty store.
func New(c Config) *Store {
	if c.MaxKeys <= 0 {
		c.MaxKeys = DefaultMaxKeys
	}
	s := &Store{
		seed:    maphash.MakeSeed(),
		perKeys: max(1, (c.MaxKeys+shardCount-1)/shardCount),
		began:   time.Now(),
	}
	s.offset.Store(c.ClockOffset.Microseconds())
	for i := range s.shards {
		s.shards[i].index = map[string]int32{}
	}
	s.fleet.until = map[string]int64{}
	return s
}

// Advance moves the store's clock forward. For tests.
func (s *Store) Advance(d time.Duration) {
	s.offset.Add(max(d, 0).Microseconds())
}

// micros is the store's clock, in microseconds since the Unix epoch: the
// monotonic clock, and what the wall clock was set forward, or the machine
// slept, meanwhile.
func (s *Store) micros() int64 {
	const tolerance = 10_000 // between two readings of the two clocks
	now := time.Now()
	steady := s.began.UnixMicro() + now.Sub(s.began).Microseconds()
	jumped := s.jumped.Load()
	for ahead := now.UnixMicro() - steady; ahead > jumped+tolerance; jumped = s.jumped.Load() {
		s.jumped.CompareAndSwap(jumped, ahead)
	}
	return steady + jumped + s.offset.Load()
}

func (s *Store) unavailable(ctx context.Context, operation string) error {
	if s.closed.Load() {
		return fmt.Errorf("%s: %w: store is closed", operation, gale.ErrUnavailable)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s: %w: %w", operation, gale.ErrUnavailable, err)
	}
	return nil
}

// Count implements gale.Store.
func (s *Store) Count(ctx context.Context, steps []gale.CountStep) error {
	if err := s.unavailable(ctx, "count"); err != nil {
		return err
	}
	now := s.micros() / microsPerSecond
	var overflow error
	for i := range steps {
		step := &steps[i]
		sh := &s.shards[s.shardOf(step.Key)]
		sh.mu.Lock()
		if !sh.count(step, now, s.perKeys) {
			overflow = fmt.Errorf("count %q: %w", step.Key, gale.ErrOverflow)
		}
		sh.mu.Unlock()
	}
	return overflow
}

// count executes one step. It returns false if the counter would overflow.
func (sh *shard) count(step *gale.CountStep, now int64, maxKeys int) bool {
	if step.Op == gale.CountRefund {
		step.After = 0
		if c := sh.find(step.Key, now); c != nil {
			c.ledger.Return(step.Hits)
			step.After = c.ledger.Counter
		}
		return true
	}
	c := sh.create(step.Key, now, maxKeys)
	c.expires = now + max(step.TTL, 1)
	if step.Hits > math.MaxInt64 || c.ledger.Counter > math.MaxInt64-step.Hits {
		return false
	}
	c.ledger.Counter += step.Hits
	step.After = c.ledger.Counter
	return true
}

// CountAll implements gale.Store.
func (s *Store) CountAll(ctx context.Context, steps []gale.CountStep) (taken bool, err error) {
	if err := s.unavailable(ctx, "count all"); err != nil {
		return false, err
	}
	now := s.micros() / microsPerSecond
	var set shardSet
	for i := range steps {
		set.add(s.shardOf(steps[i].Key))
	}
	set.lock(s)
	defer set.unlock(s)
	fits := true
	var overflow error
	var earlier sums
	for i := range steps {
		step := &steps[i]
		counter := uint64(0)
		if c := s.shards[s.shardOf(step.Key)].find(step.Key, now); c != nil {
			counter = c.ledger.Counter
		}
		step.After = plus(counter, earlier.add(steps, i))
		if step.After > step.Limit && !step.Bystander {
			fits = false
		}
		if step.After > math.MaxInt64 {
			step.After = math.MaxInt64
			overflow = fmt.Errorf("count all %q: %w", step.Key, gale.ErrOverflow)
		}
	}
	if !fits {
		return false, nil
	}
	if overflow != nil {
		return false, overflow
	}
	for i := range steps {
		s.shards[s.shardOf(steps[i].Key)].count(&steps[i], now, s.perKeys)
	}
	return true, nil
}

// Lease implements gale.Store.
func (s *Store) Lease(ctx context.Context, steps []gale.LeaseStep) error {
	if err := s.unavailable(ctx, "lease"); err != nil {
		return err
	}
	var name []byte
	for i := range steps {
		step := &steps[i]
		if step.Length < 1 || step.Length > math.MaxInt64/microsPerSecond {
			return fmt.Errorf("lease %q: window of %d seconds: %w", step.Key, step.Length, gale.ErrUnavailable)
		}
		name = append(name[:0], step.Key...)
		name = strconv.AppendInt(name, step.Window*step.Length, 10)
		key := string(name)
		sh := &s.shards[s.shardOf(key)]
		sh.mu.Lock()
		sh.lease(step, key, s.micros(), s.perKeys)
		sh.mu.Unlock()
	}
	return nil
}

// lease executes one step on the counter key. What is refused, stale or only
// read creates no counter.
func (sh *shard) lease(step *gale.LeaseStep, key string, micros int64, maxKeys int) {
	now := micros / microsPerSecond
	found := sh.find(key, now)
	if step.Return > 0 {
		step.Grant, step.Counter, step.Free = 0, 0, 0
		step.Stale, step.Lost, step.StoreMicros = false, false, micros
		if found != nil {
			found.ledger.Return(step.Return)
			step.Counter = found.ledger.Counter
		}
		return
	}
	var ledger gale.Ledger
	if found != nil {
		ledger = found.ledger
	}
	ledger.Lease(step, micros)
	if step.Grant == 0 {
		return
	}
	if found == nil {
		found = sh.create(key, now, maxKeys)
	}
	found.ledger = ledger
	found.expires = max(found.expires, (step.Window+1)*step.Length+leaseGrace)
}

// Announce implements gale.Store.
func (s *Store) Announce(ctx context.Context, id string, ttl time.Duration) (live int, err error) {
	if err := s.unavailable(ctx, "announce"); err != nil {
		return 0, err
	}
	now := s.micros()
	s.fleet.Lock()
	defer s.fleet.Unlock()
	if ttl > 0 {
		s.fleet.until[id] = now + ttl.Microseconds()
	} else {
		delete(s.fleet.until, id)
	}
	for other, until := range s.fleet.until {
		if until <= now {
			delete(s.fleet.until, other)
		}
	}
	return len(s.fleet.until), nil
}

// Ready implements gale.Store.
func (s *Store) Ready() error { return s.unavailable(context.Background(), "ready") }

// Close implements gale.Store.
func (s *Store) Close() error {
	s.closed.Store(true)
	return nil
}

// Len returns the number of counters, expired ones included that were not
// removed yet.
func (s *Store) Len() int {
	n := 0
	for i := range s.shards {
		s.shards[i].mu.Lock()
		n += len(s.shards[i].index)
		s.shards[i].mu.Unlock()
	}
	return n
}
