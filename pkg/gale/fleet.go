package gale

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	// fleetInterval is how often a replica says that it lives, fleetTTL how
	// long that is believed: two lost announcements do not make the others
	// underestimate.
	fleetInterval = 5 * time.Second
	fleetTTL      = 16 * time.Second
	// fleetMemory is how many answers the estimate looks back: a minute.
	// The largest of them counts, so the estimate errs high while replicas
	// come and go, and a share of the limit errs low.
	fleetMemory = 12
)

// fleet announces this replica to the others, and estimates how many live.
//
// While the store is gone there are no answers, and the estimate stays.
type fleet struct {
	store Store
	id    string
	log   *slog.Logger
	stop  chan struct{}
	done  chan struct{}
	once  sync.Once

	mu struct {
		sync.Mutex
		answers [fleetMemory]int // a ring
		next    int
	}
}

// newFleet starts announcing id; an empty id is not announced.
func newFleet(store Store, id string, log *slog.Logger) *fleet {
	f := &fleet{
		store: store, id: id, log: log,
		stop: make(chan struct{}), done: make(chan struct{}),
	}
	if id == "" {
		close(f.done)
		return f
	}
	go f.run()
	return f
}

// estimate returns the number of live replicas, this one included.
func (f *fleet) estimate() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	live := 1
	for _, n := range f.mu.answers {
		live = max(live, n)
	}
	return live
}

func (f *fleet) note(live int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.answers[f.mu.next] = live
	f.mu.next = (f.mu.next + 1) % fleetMemory
}

func (f *fleet) run() {
	defer close(f.done)
	ticker := time.NewTicker(fleetInterval)
	defer ticker.Stop()
	for {
		f.announce()
		select {
		case <-f.stop:
			return
		case <-ticker.C:
		}
	}
}

func (f *fleet) announce() {
	ctx, cancel := context.WithTimeout(context.Background(), fleetInterval/2)
	defer cancel()
	live, err := f.store.Announce(ctx, f.id, fleetTTL)
	if err != nil {
		f.log.Debug("announcing this replica", "error", err)
		return
	}
	f.note(live)
}

// close withdraws the announcement, so that the others' shares grow again.
func (f *fleet) close(ctx context.Context) {
	if f.id == "" {
		return
	}
	f.once.Do(func() { close(f.stop) })
	select {
	case <-f.done:
		_, err := f.store.Announce(ctx, f.id, 0)
		if err != nil {
			f.log.Debug("withdrawing this replica", "error", err)
		}
	case <-ctx.Done():
	}
}
