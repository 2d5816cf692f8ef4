package redisstore_test

import (
	"testing"
	"time"

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
	eventually(t, 5*time.Second, func() bool { return s.Ready() == nil })
	return s
}

func eventually(t *testing.T, within time.Duration, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(within); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v", within)
		}
	}
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
		t.Skip("the server has no unix socket")
	}
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		return storetest.Harness{Store: open(t, redisstore.Config{
			Address: server.Socket, PoolSize: 2, PipelineWindow: time.Millisecond, PipelineLimit: 8,
		})}
	})
}
