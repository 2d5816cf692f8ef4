package rls

import (
	"context"
	"fmt"
	"os"
	"testing"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"

	"github.com/gale-rls/gale-rls/internal/invariants"
	"github.com/gale-rls/gale-rls/internal/stats"
	"github.com/gale-rls/gale-rls/pkg/gale"
)

// nothing decides that all is well, at no cost.
type nothing struct{}

func (nothing) Decide(_ context.Context, r *gale.Request) error {
	for i := range r.Decisions {
		r.Decisions[i] = gale.Decision{After: 1, Remaining: 4, Reset: 1e9}
	}
	return nil
}

// doNothing is the floor: a handler that builds the smallest valid answer.
type doNothing struct {
	rlsv3.UnimplementedRateLimitServiceServer
}

func (doNothing) ShouldRateLimit(_ context.Context, req *rlsv3.RateLimitRequest) (*rlsv3.RateLimitResponse, error) {
	response := &rlsv3.RateLimitResponse{OverallCode: codeOK}
	for range req.GetDescriptors() {
		response.Statuses = append(response.Statuses, &rlsv3.RateLimitResponse_DescriptorStatus{Code: codeOK})
	}
	return response, nil
}

// benchService is the door over the nothing engine.
func benchService(t testing.TB, c Config) *Service {
	t.Helper()
	rules, err := os.ReadFile("testdata/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s := NewService(nothing{}, stats.New(stats.Options{}), c)
	s.SetRules(load(t, string(rules)))
	return s
}

func benchRequest(t testing.TB, descriptors int, extra string) *rlsv3.RateLimitRequest {
	t.Helper()
	list := ""
	for i := range descriptors {
		if i > 0 {
			list += ","
		}
		list += fmt.Sprintf(`{"entries": [{"key": "user", "value": "u%d"}]%s}`, i, extra)
	}
	return request(t, `{"domain": "golden", "descriptors": [`+list+`]}`)
}

const benchOverride = `, "limit": {"requestsPerUnit": 5, "unit": "HOUR"}`

func BenchmarkShouldRateLimit(b *testing.B) {
	s := benchService(b, Config{NearLimitRatio: 0.8})
	for _, bc := range []struct {
		name    string
		handler rlsv3.RateLimitServiceServer
		req     *rlsv3.RateLimitRequest
	}{
		{"floor/descriptors=1", doNothing{}, benchRequest(b, 1, "")},
		{"gale/descriptors=1", s, benchRequest(b, 1, "")},
		{"gale/override", s, benchRequest(b, 1, benchOverride)},
		{"gale/unmatched", s, request(b, `{"domain": "golden", "descriptors": [{"entries": [{"key": "x"}]}]}`)},
		{"floor/descriptors=10", doNothing{}, benchRequest(b, 10, "")},
		{"gale/descriptors=10", s, benchRequest(b, 10, "")},
	} {
		b.Run(bc.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := bc.handler.ShouldRateLimit(context.Background(), bc.req); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkServer is a request through grpc-go, over memory: what the door
// costs beside what grpc-go costs.
func BenchmarkServer(b *testing.B) {
	floor := grpc.NewServer()
	rlsv3.RegisterRateLimitServiceServer(floor, doNothing{})
	registry := stats.New(stats.Options{})
	door := NewGRPCServer(benchService(b, Config{NearLimitRatio: 0.8}), NewHealth(false), registry, ServerConfig{})
	for _, bc := range []struct {
		name   string
		server *grpc.Server
	}{{"floor", floor}, {"gale", door}} {
		client := rlsv3.NewRateLimitServiceClient(serve(b, bc.server))
		for _, n := range []int{1, 10} {
			req := benchRequest(b, n, "")
			b.Run(fmt.Sprintf("%s/descriptors=%d", bc.name, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := client.ShouldRateLimit(context.Background(), req); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// TestAllocations: the answer is three allocations whatever it holds (the
// response, its list, and the memory of all statuses); all else is reused.
func TestAllocations(t *testing.T) {
	if invariants.Enabled {
		t.Skip("the race detector makes pools forget")
	}
	s := benchService(t, Config{NearLimitRatio: 0.8})
	for name, req := range map[string]*rlsv3.RateLimitRequest{
		"one":            benchRequest(t, 1, ""),
		"ten":            benchRequest(t, 10, ""),
		"ten overrides":  benchRequest(t, 10, benchOverride),
		"unmatched":      request(t, `{"domain": "golden", "descriptors": [{"entries": [{"key": "x"}]}]}`),
		"unknown domain": request(t, `{"domain": "elsewhere", "descriptors": [{"entries": [{"key": "x"}]}]}`),
	} {
		ctx := context.Background()
		got := testing.AllocsPerRun(1000, func() {
			if _, err := s.ShouldRateLimit(ctx, req); err != nil {
				t.Fatal(err)
			}
		})
		if got > 3 {
			t.Errorf("%s: %v allocations, want 3", name, got)
		}
	}
}
