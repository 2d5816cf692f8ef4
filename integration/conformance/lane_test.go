//go:build integration

package conformance

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/gale-rls/gale-rls/internal/testenv"
)

// lane is where one scenario runs at a time: with Redis, both Redis servers
// are the lane's own and are emptied between scenarios, so that what is in
// them afterwards is the scenario's.
type lane struct {
	redis, perSecond *testenv.RedisServer // nil: the store in memory
}

// lanes are so many processes at a time.
const lanes = 4

// openLanes returns the lanes of one kind of store.
func openLanes(t *testing.T, store string) chan *lane {
	t.Helper()
	free := make(chan *lane, lanes)
	for range lanes {
		l := &lane{}
		if store == "redis" {
			l.redis, l.perSecond = testenv.Redis(t), testenv.Redis(t)
			if !l.redis.Owned() {
				testenv.Missing(t, "a Redis of the test's own", "unset GALE_TEST_REDIS")
			}
		}
		free <- l
	}
	return free
}

// fill puts addresses into a recorded setting.
func (l *lane) fill(v string) string {
	if l.perSecond != nil {
		v = strings.ReplaceAll(v, "{redis_per_second}", l.perSecond.Addr)
	}
	return v
}

// empty removes all keys.
func (l *lane) empty(t *testing.T) {
	t.Helper()
	for _, s := range []*testenv.RedisServer{l.redis, l.perSecond} {
		if s == nil {
			continue
		}
		c := redis.NewClient(&redis.Options{Addr: s.Addr})
		if err := c.FlushAll(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		_ = c.Close()
	}
}

// presence is the one key that gale-rls keeps beside the counters: which
// replicas live (docs/compatibility.md). It follows CACHE_KEY_PREFIX.
const presence = "gale:replicas"

// contents reads all keys of a Redis, so that a counter too many is found.
func contents(t *testing.T, s *testenv.RedisServer) map[string]stored {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: s.Addr})
	defer func() { _ = c.Close() }()
	keys, err := c.Keys(t.Context(), "*").Result()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]stored{}
	for _, key := range keys {
		if strings.HasSuffix(key, presence) {
			continue
		}
		value, err := c.Get(t.Context(), key).Result()
		if err != nil {
			t.Fatalf("%s: %v", key, err)
		}
		left, err := c.TTL(t.Context(), key).Result()
		if err != nil {
			t.Fatalf("%s: %v", key, err)
		}
		all[key] = stored{value, int64(left / time.Second)}
	}
	return all
}
