package redisstore_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/gale-rls/gale-rls/internal/testenv"
	"github.com/gale-rls/gale-rls/pkg/gale/redisstore"
	"github.com/gale-rls/gale-rls/pkg/gale/storetest"
)

// open returns a store that has found its server.
func open(t *testing.T, c redisstore.Config) *redisstore.Store {
	t.Helper()
	s, err := redisstore.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	testenv.Eventually(t, 5*time.Second, "the server", func() bool { return s.Ready() == nil })
	return s
}

func TestStore(t *testing.T) {
	server := testenv.Redis(t)
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		return storetest.Harness{Store: open(t, redisstore.Config{Address: server.Addr})}
	})
}

func TestStoreOnAUnixSocket(t *testing.T) {
	server := testenv.Redis(t)
	if server.Socket == "" {
		testenv.Missing(t, "a Redis on a unix socket", "install redis-server")
	}
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		return storetest.Harness{Store: open(t, redisstore.Config{
			Address: server.Socket, PoolSize: 2, PipelineWindow: time.Millisecond, PipelineLimit: 8,
		})}
	})
}

func TestStoreOnAGivenClient(t *testing.T) {
	server := testenv.Redis(t)
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		client := redis.NewUniversalClient(&redis.UniversalOptions{
			Addrs: []string{server.Addr}, MaxRetries: -1, ContextTimeoutEnabled: true, Protocol: 2,
		})
		s, err := redisstore.NewWithClient(client, redisstore.Config{PoolSize: 3})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		testenv.Eventually(t, 5*time.Second, "the server", func() bool { return s.Ready() == nil })
		return storetest.Harness{Store: s}
	})
}
