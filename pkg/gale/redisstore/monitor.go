package redisstore

import (
	"context"
	"fmt"
	"time"

	"github.com/gale-rls/gale-rls/pkg/gale"
)

const (
	// pingInterval is how often a healthy server is asked, and so how late
	// Ready tells that it is gone; pingRetry how often one that is gone is.
	pingInterval = time.Second
	pingRetry    = 200 * time.Millisecond
	pingTimeout  = 500 * time.Millisecond
)

// health is what the last ping found.
type health struct{ err error }

// Ping makes a round trip of its own, beside all that is queued.
func (s *Store) Ping(ctx context.Context) error {
	err := s.unavailable(ctx, "ping")
	if err != nil {
		return err
	}
	if err = s.client.Ping(ctx).Err(); err != nil {
		err = fmt.Errorf("ping: %w: %w", gale.ErrUnavailable, err)
	}
	before := s.ready.Swap(&health{err: err})
	s.tell(before.err, err)
	return err
}

// tell logs what has changed.
func (s *Store) tell(before, now error) {
	address := s.settings.Address
	switch {
	case now == nil && before != nil:
		s.settings.Log.Info("redis answers", "address", address)
	case now != nil && !s.isClosed() && (before == nil || before.Error() != now.Error()):
		s.settings.Log.Warn("redis does not answer", "address", address, "error", now)
	}
}

// monitor pings, so that Ready is true.
func (s *Store) monitor() {
	for {
		ctx, cancel := context.WithTimeout(context.Background(), pingTimeout)
		err := s.Ping(ctx)
		if err == nil && s.checked.CompareAndSwap(false, true) {
			s.checkEviction(ctx)
		}
		cancel()
		wait := pingInterval
		if err != nil {
			wait = pingRetry
		}
		timer := time.NewTimer(wait)
		select {
		case <-s.stop:
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

// checkEviction warns of a server that may forget counters when its memory is
// full. One that does not say is not asked again.
func (s *Store) checkEviction(ctx context.Context) {
	policy, err := s.client.ConfigGet(ctx, "maxmemory-policy").Result()
	if err != nil {
		s.settings.Log.Debug("redis does not tell its maxmemory-policy", "error", err)
		return
	}
	if p := policy["maxmemory-policy"]; p != "" && p != "noeviction" {
		s.settings.Log.Warn("redis may evict counters when its memory is full, and then admits more than the limits; "+
			"set maxmemory-policy to noeviction", "address", s.settings.Address, "maxmemory-policy", p)
	}
}
