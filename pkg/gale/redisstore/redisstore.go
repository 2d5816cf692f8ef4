package redisstore

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/gale-rls/gale-rls/pkg/gale"
)

// Store is a gale.Store on a Redis server. Safe for concurrent use.
type Store struct {
	client   redis.UniversalClient
	settings settings
	dialer   *dialer // nil when the client came from outside

	queue      chan *operation
	replicated chan *operation // waits for replicas, so not in others' way

	ready    atomic.Pointer[health]
	checked  atomic.Bool // the eviction policy
	stop     chan struct{}
	stopOnce sync.Once
	stopped  sync.WaitGroup
}

var _ gale.Store = (*Store)(nil)

// New returns a store on the server that c names. The server need not be
// there: it is looked for in the background. An error says what is wrong with
// c, all of it.
func New(c Config) (*Store, error) {
	s, err := c.check()
	if err != nil {
		return nil, err
	}
	redis.SetLogger(quiet{}) // its news are those of Ready and of errors
	d := newDialer(&s)
	client := redis.NewClient(&redis.Options{
		Network:  s.Network,
		Addr:     s.Address,
		Username: s.username,
		Password: s.password,
		DB:       s.DB,
		Protocol: 2,

		Dialer:                d.dial,
		OnConnect:             loadScripts,
		DialTimeout:           min(s.Timeout, maxDial),
		DialerRetries:         1,
		MaxConcurrentDials:    s.PoolSize + moreDials,
		ReadTimeout:           s.Timeout,
		WriteTimeout:          s.Timeout,
		ContextTimeoutEnabled: true,
		MaxRetries:            -1, // a step that is sent twice counts twice

		PoolSize:         driverPool,
		PipelinePoolSize: -1, // all connections are for pipelines
		PoolTimeout:      s.Timeout,
		ConnMaxIdleTime:  -1,
		DisableIdentity:  true,
	})
	store := newStore(client, s)
	store.dialer = d
	store.start()
	return store, nil
}

// quiet is the driver's log. The driver has one for the process.
type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

const (
	// maxDial ends attempts to connect that the network swallows, so that the
	// next one is soon: a second and two connect even over a bad one.
	maxDial = 2 * time.Second
	// moreDials leaves room for probes while all workers' attempts hang.
	moreDials = 16
)

// driverPool is never reached: connections are as many as workers, and two.
// After so many failures to connect the driver stops trying for seconds, and
// enforcement would be back that much later.
const driverPool = 4096

// NewWithClient returns a store on a client of any kind, which it owns and
// closes. The client MUST NOT repeat commands (MaxRetries -1), and should
// honour deadlines (ContextTimeoutEnabled) and have c.PoolSize connections and
// two more. Of c, what concerns connecting is not used.
func NewWithClient(client redis.UniversalClient, c Config) (*Store, error) {
	c.Address, c.Network = "given client", "unix"
	s, err := c.check()
	if err != nil {
		return nil, err
	}
	store := newStore(client, s)
	store.start()
	return store, nil
}

func newStore(client redis.UniversalClient, s settings) *Store {
	return &Store{
		client:     client,
		settings:   s,
		queue:      make(chan *operation, s.QueueSize),
		replicated: make(chan *operation, s.QueueSize),
		stop:       make(chan struct{}),
	}
}

func (s *Store) start() {
	s.ready.Store(&health{err: fmt.Errorf("%w: not connected yet", gale.ErrUnavailable)})
	for range s.settings.PoolSize {
		s.stopped.Go(func() { s.work(s.queue) })
	}
	s.stopped.Go(func() { s.work(s.replicated) })
	s.stopped.Go(s.monitor)
}

// Count implements gale.Store.
func (s *Store) Count(ctx context.Context, steps []gale.CountStep) error {
	if len(steps) == 0 {
		return s.unavailable(ctx, "count")
	}
	job := newCountJob(steps)
	if err := s.do(ctx, "count", s.queue, job); err != nil {
		return err
	}
	for i := range steps {
		steps[i].After = job.steps[i].After
	}
	return nil
}

// CountAll implements gale.Store. In a cluster all keys must be in one slot.
func (s *Store) CountAll(ctx context.Context, steps []gale.CountStep) (taken bool, err error) {
	if len(steps) == 0 {
		return true, s.unavailable(ctx, "count all")
	}
	job := newAllJob(steps)
	if err := s.do(ctx, "count all", s.queue, job); err != nil {
		return false, err
	}
	for i := range steps {
		steps[i].After = job.steps[i].After
	}
	return job.taken, nil
}

// Lease implements gale.Store.
func (s *Store) Lease(ctx context.Context, steps []gale.LeaseStep) error {
	if len(steps) == 0 {
		return s.unavailable(ctx, "lease")
	}
	job := newLeaseJob(steps, s.settings.ReplicaTimeout)
	queue := s.queue
	if job.replicated() {
		queue = s.replicated
	}
	if err := s.do(ctx, "lease", queue, job); err != nil {
		return err
	}
	copy(steps, job.steps)
	return nil
}

// Announce implements gale.Store.
func (s *Store) Announce(ctx context.Context, id string, ttl time.Duration) (live int, err error) {
	job := &announceJob{key: s.settings.KeyPrefix + "gale:replicas", id: id, ttl: ttl}
	if err := s.do(ctx, "announce", s.queue, job); err != nil {
		return 0, err
	}
	return job.live, nil
}

// Ready implements gale.Store: nil when the last ping was answered.
func (s *Store) Ready() error {
	if s.isClosed() {
		return errClosed
	}
	return s.ready.Load().err
}

// Close implements gale.Store. Operations under way end with an error.
func (s *Store) Close() error {
	var err error
	s.stopOnce.Do(func() {
		close(s.stop)
		err = s.client.Close()
	})
	s.stopped.Wait()
	return err
}

// Stats are totals since the start, and the present state.
type Stats struct {
	// Open connections of the moment; Opened since the start, and Closed by
	// this side.
	Open, Opened, Closed int64
	// Queued operations of the moment.
	Queued int
}

// Stats returns the connections and the queue. For a client that came from
// outside only the present connections are known.
func (s *Store) Stats() Stats {
	stats := Stats{Queued: len(s.queue) + len(s.replicated)}
	if s.dialer == nil {
		stats.Open = int64(s.client.PoolStats().TotalConns)
		return stats
	}
	stats.Closed = s.dialer.closed.Load()
	stats.Opened = s.dialer.opened.Load()
	stats.Open = stats.Opened - stats.Closed
	return stats
}
