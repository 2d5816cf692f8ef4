package rls

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"

	"github.com/gale-rls/gale-rls/internal/stats"
)

// rawCodec sends bytes as they are, as a client that does not check its text.
type rawCodec struct{}

func (rawCodec) Marshal(v any) ([]byte, error)   { return v.([]byte), nil }
func (rawCodec) Unmarshal(b []byte, v any) error { *v.(*[]byte) = b; return nil }
func (rawCodec) Name() string                    { return "proto" }
func rawCall(c *grpc.ClientConn, wire []byte) error {
	var answer []byte
	return c.Invoke(context.Background(), rlsv3.RateLimitService_ShouldRateLimit_FullMethodName, wire, &answer, grpc.ForceCodec(rawCodec{}))
}

// startServer serves over memory and returns a connection to it.
func startServer(t testing.TB, s *Service, h *Health, registry *stats.Registry, c ServerConfig) *grpc.ClientConn {
	t.Helper()
	return serve(t, NewGRPCServer(s, h, registry, c))
}

func serve(t testing.TB, server *grpc.Server) *grpc.ClientConn {
	t.Helper()
	listener := bufconn.Listen(1 << 20)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	conn, err := grpc.NewClient("passthrough:test",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func TestServerAnswersAndCounts(t *testing.T) {
	s, _, registry := newTestService(t, Config{}, oneRule)
	conn := startServer(t, s, NewHealth(false), registry, ServerConfig{
		MaxConcurrentStreams: 100, MaxConnectionAge: time.Hour, MaxConnectionAgeGrace: time.Minute,
	})
	client := rlsv3.NewRateLimitServiceClient(conn)
	for i, want := range []rlsv3.RateLimitResponse_Code{codeOK, codeOK, codeOver} {
		response, err := client.ShouldRateLimit(t.Context(), request(t, oneRequest))
		if err != nil || response.GetOverallCode() != want {
			t.Errorf("request %d: %v, %v, want %v", i, response, err, want)
		}
	}
	if _, err := client.ShouldRateLimit(t.Context(), new(rlsv3.RateLimitRequest)); status.Code(err) != codes.Unknown {
		t.Errorf("empty request: %v", err)
	}
	if _, err := healthpb.NewHealthClient(conn).Check(t.Context(), new(healthpb.HealthCheckRequest)); err != nil {
		t.Error(err)
	}
	for name, want := range map[string]uint64{"ShouldRateLimit": 4, "Check": 1, "List": 0} {
		if got := registry.Counter("ratelimit_server." + name + ".total_requests").Value(); got != want {
			t.Errorf("%s: %d total requests, want %d", name, got, want)
		}
	}
	if text := statsText(t, registry); !strings.Contains(text, "ratelimit_server.ShouldRateLimit.response_time") {
		t.Errorf("no response time in\n%s", text)
	}
}

// TestServerUnreadableRequests: what is not UTF-8, or not protobuf, is the
// client's error, and the answer says where.
func TestServerUnreadableRequests(t *testing.T) {
	s, _, registry := newTestService(t, Config{}, oneRule)
	conn := startServer(t, s, NewHealth(false), registry, ServerConfig{MaxMessageBytes: 1 << 10})

	good, err := proto.Marshal(request(t, `{"domain": "DD", "descriptors": [{}, {"entries": [{"key": "a", "value": "b"}, {"key": "KK", "value": "VV"}], "hitsAddend": "5"}], "hitsAddend": 7}`))
	if err != nil {
		t.Fatal(err)
	}
	spoilt := func(what string) []byte { return []byte(strings.Replace(string(good), what, "\xff\xfe", 1)) }
	for _, tc := range []struct {
		name, want string
		wire       []byte
	}{
		{"good", "", good},
		{"domain", "InvalidArgument: request cannot be read: domain is not valid UTF-8", spoilt("DD")},
		{"key", "InvalidArgument: request cannot be read: descriptors[1]: entries[1].key is not valid UTF-8", spoilt("KK")},
		{"value", "InvalidArgument: request cannot be read: descriptors[1]: entries[1].value is not valid UTF-8", spoilt("VV")},
	} {
		if err := rawCall(conn, tc.wire); errorText(err) != tc.want {
			t.Errorf("%s: got %q, want %q", tc.name, errorText(err), tc.want)
		}
	}
	err = rawCall(conn, []byte("no protobuf"))
	if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "request cannot be read: ") {
		t.Errorf("not protobuf: %v", err)
	}
	if got := registry.Counter(nameServiceError).Value(); got != 4 {
		t.Errorf("%d service errors, want 4", got)
	}
	if err := rawCall(conn, make([]byte, 2<<10)); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("too large: %v", err)
	}
}

func TestServerReflection(t *testing.T) {
	s, _, registry := newTestService(t, Config{}, oneRule)
	conn := startServer(t, s, NewHealth(false), registry, ServerConfig{})
	stream, err := reflectionpb.NewServerReflectionClient(conn).ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ask := &reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_FileContainingSymbol{
		FileContainingSymbol: "envoy.service.ratelimit.v3.RateLimitService",
	}}
	if err := stream.Send(ask); err != nil {
		t.Fatal(err)
	}
	answer, err := stream.Recv()
	if err != nil || len(answer.GetFileDescriptorResponse().GetFileDescriptorProto()) == 0 {
		t.Errorf("the service cannot be described: %v, %v", answer.GetErrorResponse(), err)
	}
}

func TestHealthOverGRPC(t *testing.T) {
	s, _, registry := newTestService(t, Config{}, oneRule)
	h := NewHealth(true)
	client := healthpb.NewHealthClient(startServer(t, s, h, registry, ServerConfig{}))
	check := func(when, service string, want healthpb.HealthCheckResponse_ServingStatus) {
		t.Helper()
		answer, err := client.Check(t.Context(), &healthpb.HealthCheckRequest{Service: service})
		if err != nil || answer.GetStatus() != want {
			t.Errorf("%s: %q is %v, %v, want %v", when, service, answer.GetStatus(), err, want)
		}
	}
	const bad, good = healthpb.HealthCheckResponse_NOT_SERVING, healthpb.HealthCheckResponse_SERVING
	check("at start", "ratelimit", bad)
	h.SetStore(true)
	check("without rules", "ratelimit", bad)
	h.RulesLoaded(0)
	check("with no domain", "ratelimit", bad)
	h.RulesLoaded(2)
	check("complete", "ratelimit", good)
	h.SetStore(false)
	check("without store", "ratelimit", bad)
	h.SetStore(true)
	check("store is back", "ratelimit", good)
	h.Drain()
	check("draining", "ratelimit", bad)
	check("draining", "", good)
	_, err := client.Check(t.Context(), &healthpb.HealthCheckRequest{Service: "other"})
	if got, want := errorText(err), "NotFound: unknown service"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
