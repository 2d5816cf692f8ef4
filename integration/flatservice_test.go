//go:build integration

package integration

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"

	"github.com/gale-rls/gale-rls/internal/stats"
	"github.com/gale-rls/gale-rls/internal/stats/mapping"
	"github.com/gale-rls/gale-rls/internal/stats/promsink"
	"github.com/gale-rls/gale-rls/pkg/descriptors"
	"github.com/gale-rls/gale-rls/pkg/gale"
	"github.com/gale-rls/gale-rls/pkg/gale/memstore"
	"github.com/gale-rls/gale-rls/pkg/rls"
)

// TestFlatMemoryInProcess is TestFlatMemory without the wire, which takes
// most of the time: the service, the engine, the store in memory, and the
// statistics with Prometheus, put together as the binary does.
func TestFlatMemoryInProcess(t *testing.T) {
	for name, request := range map[string]func(int) *rlsv3.RateLimitRequest{
		"override keys": overrides, "unknown domains": unknownDomain,
	} {
		t.Run(name, func(t *testing.T) {
			service := floodService(t)
			should := func(ctx context.Context, r *rlsv3.RateLimitRequest, _ ...grpc.CallOption) (*rlsv3.RateLimitResponse, error) {
				return service.ShouldRateLimit(ctx, r)
			}
			batch := len(request(0).GetDescriptors())
			send(t, should, request, batch, 0, floodWarm)
			before := ownHeap(t)
			start := time.Now()
			send(t, should, request, batch, floodWarm, floodWarm+flood)
			took := time.Since(start)
			after := ownHeap(t)
			t.Logf("after %7d names: %.1f MiB live heap", floodWarm, mib(before))
			t.Logf("after %7d names: %.1f MiB live heap, in %v", floodWarm+flood, mib(after), took.Round(time.Millisecond))
			if grown := after - before; grown > allowedHeap {
				t.Errorf("the live heap grew by %.1f MiB", mib(grown))
			}
			runtime.KeepAlive(service)
		})
	}
}

func floodService(t *testing.T) *rls.Service {
	t.Helper()
	registry := stats.New(stats.Options{})
	sink, err := promsink.New(registry, prometheus.NewRegistry(), promsink.Config{Mapping: mapping.BuiltIn(false)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var flushes sync.WaitGroup
	flushes.Go(func() {
		if err := registry.Run(ctx, sink, floodFlush, time.Second); err != nil {
			t.Error(err)
		}
	})
	engine, err := gale.NewEngine(memstore.New(memstore.Config{MaxKeys: 20_000}), nil, gale.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		flushes.Wait()
		if err := engine.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	tree, err := descriptors.Load([]descriptors.File{{Name: "flood.yaml", Data: []byte(floodRules)}}, nil, descriptors.Options{})
	if err != nil {
		t.Fatal(err)
	}
	service := rls.NewService(engine, registry, rls.Config{})
	service.SetRules(tree)
	return service
}

// ownHeap is the live heap of this process.
func ownHeap(t *testing.T) int64 {
	t.Helper()
	return atRest(t, func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	})
}
