package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"github.com/gale-rls/gale-rls/internal/settings"
	"github.com/gale-rls/gale-rls/internal/stats"
	"github.com/gale-rls/gale-rls/pkg/gale"
	"github.com/gale-rls/gale-rls/pkg/gale/memstore"
	"github.com/gale-rls/gale-rls/pkg/gale/redisstore"
)

// openStores makes the store, or the store and the one for limits per second.
// Neither need be there yet.
func (a *app) openStores() error {
	s := a.settings
	if s.Store == settings.StoreMemory {
		a.stores = []gale.Store{memstore.New(memstore.Config{MaxKeys: s.Counting.MaxKeys})}
		a.storeName = "memory"
		return nil
	}
	a.storeName = "Redis " + hideCredentials(s.Redis.Main.URL)
	if err := a.openRedis("REDIS_", "ratelimit.redis_pool", s.Redis.Main); err != nil {
		return err
	}
	if !s.Redis.UsePerSecond {
		return nil
	}
	a.storeName += " and " + hideCredentials(s.Redis.PerSecond.URL)
	return a.openRedis("REDIS_PERSECOND_", "ratelimit.redis_per_second_pool", s.Redis.PerSecond)
}

func (a *app) openRedis(prefix, statName string, n settings.RedisNode) error {
	s := a.settings
	c := redisstore.Config{
		Network: n.Network, Address: n.URL, Auth: n.Auth,
		PoolSize: n.PoolSize, Timeout: n.Timeout,
		PipelineWindow: n.PipelineWindow, PipelineLimit: n.PipelineLimit,
		KeyPrefix: s.Counting.KeyPrefix, Log: a.log,
	}
	if n.TLS {
		t, err := redisstore.TLSFiles{
			Certificate: s.Redis.ClientCert, Key: s.Redis.ClientKey, Authorities: s.Redis.CACert,
			SkipHostname: s.Redis.SkipHostnameVerification,
		}.Config()
		if err != nil {
			return fmt.Errorf("%sTLS is true, and its files cannot be used: %w; correct REDIS_TLS_CLIENT_CERT, REDIS_TLS_CLIENT_KEY and REDIS_TLS_CACERT", prefix, err)
		}
		c.TLS = t
	}
	store, err := redisstore.New(c)
	if err != nil {
		// The address may hold a password, and the library's error the address.
		text := strings.ReplaceAll(err.Error(), n.URL, hideCredentials(n.URL))
		return errors.New(prefix + "URL=" + hideCredentials(n.URL) + ": " + text)
	}
	a.stores = append(a.stores, store)
	watchPool(a.registry, statName, store.Stats)
	return nil
}

// watchPool brings the figures of a connection pool up to date at each flush.
func watchPool(r *stats.Registry, name string, read func() redisstore.Stats) {
	active := r.Gauge(name + ".cx_active")
	total, closed := r.Counter(name+".cx_total"), r.Counter(name+".cx_local_close")
	r.OnFlush(func() {
		s := read()
		active.Set(s.Open)
		total.Add(growth(total, uint64(s.Opened)))
		closed.Add(growth(closed, uint64(s.Closed)))
	})
}

// growth is what c lacks to be total; a total that fell adds nothing.
func growth(c *stats.Counter, total uint64) uint64 {
	if have := c.Value(); total > have {
		return total - have
	}
	return 0
}

// watchEngine brings the figures of the deny cache up to date at each flush,
// where strict rules use it, under the names that the local cache of
// envoyproxy/ratelimit has.
func (a *app) watchEngine() {
	if a.settings.Counting.DenyCacheBytes <= 0 {
		return
	}
	const prefix = "ratelimit.localcache."
	hits, misses := a.registry.Gauge(prefix+"hitCount"), a.registry.Gauge(prefix+"missCount")
	lookups, entries := a.registry.Gauge(prefix+"lookupCount"), a.registry.Gauge(prefix+"entryCount")
	a.registry.OnFlush(func() {
		s := a.engine.Stats().DenyCache
		hits.Set(int64(s.Hits))
		misses.Set(int64(s.Misses))
		lookups.Set(int64(s.Lookups))
		entries.Set(int64(s.Entries))
	})
}

// perSecondStore is the second store, or nil.
func (a *app) perSecondStore() gale.Store {
	if len(a.stores) > 1 {
		return a.stores[1]
	}
	return nil
}

// about is the line that says what runs.
func (a *app) about() string {
	counted := "counters in " + a.storeName
	if a.settings.Store == settings.StoreMemory {
		counted = "counters in the memory of this process, so that limits are per process; REDIS_URL=host:port shares them"
	}
	return version() + " serves Envoy rate limits: rules from " + a.loader.source.about + ", " + counted
}

// hideCredentials takes user and password out of a Redis address.
func hideCredentials(address string) string {
	scheme, rest, ok := strings.Cut(address, "://")
	if !ok {
		scheme, rest = "", address
	} else {
		scheme += "://"
	}
	if at := strings.LastIndex(rest, "@"); at >= 0 {
		rest = "***@" + rest[at+1:]
	}
	if host, query, ok := strings.Cut(rest, "?"); ok && query != "" {
		rest = host + "?***" // may hold username= and password=
	}
	return scheme + rest
}

func randomID() string { return strings.ToLower(rand.Text()[:8]) }
