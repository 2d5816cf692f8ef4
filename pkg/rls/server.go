package rls

import (
	"context"
	"path"
	"time"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"

	"github.com/gale-rls/gale-rls/internal/stats"
)

// ServerConfig bounds what one gRPC client can ask for.
type ServerConfig struct {
	// MaxMessageBytes bounds a request; 0 means DefaultMaxMessageBytes.
	MaxMessageBytes int
	// MaxConcurrentStreams bounds the calls under way on one connection; 0
	// means no bound.
	MaxConcurrentStreams uint32
	// MaxConnectionAge ends connections so that clients spread again over the
	// replicas, MaxConnectionAgeGrace is what calls then still have; 0 means
	// for ever.
	MaxConnectionAge, MaxConnectionAgeGrace time.Duration
	// Credentials are those of TLS; nil means plain text.
	Credentials credentials.TransportCredentials
}

// DefaultMaxMessageBytes is grpc-go's own bound: some 100,000 entries.
const DefaultMaxMessageBytes = 4 << 20

// minPingInterval is how often a client may ping. grpc-go's default of five
// minutes closes the connections of proxies that ping every few seconds, which
// costs them the requests under way.
const minPingInterval = 5 * time.Second

// NewGRPCServer returns a server with the rate-limit service, health and
// reflection. It counts calls and their times in r.
func NewGRPCServer(s *Service, h *Health, r *stats.Registry, c ServerConfig) *grpc.Server {
	if c.MaxMessageBytes <= 0 {
		c.MaxMessageBytes = DefaultMaxMessageBytes
	}
	options := []grpc.ServerOption{
		grpc.ForceServerCodecV2(newRequestCodec()),
		grpc.MaxRecvMsgSize(c.MaxMessageBytes),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			MaxConnectionAge:      c.MaxConnectionAge,
			MaxConnectionAgeGrace: c.MaxConnectionAgeGrace,
		}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{
			MinTime:             minPingInterval,
			PermitWithoutStream: true,
		}),
		grpc.UnaryInterceptor(countCalls(r)),
	}
	if c.MaxConcurrentStreams > 0 {
		options = append(options, grpc.MaxConcurrentStreams(c.MaxConcurrentStreams))
	}
	if c.Credentials != nil {
		options = append(options, grpc.Creds(c.Credentials))
	}
	server := grpc.NewServer(options...)
	server.RegisterService(serviceDesc(), s)
	healthpb.RegisterHealthServer(server, h.grpc)
	reflection.Register(server)
	return server
}

// serviceDesc is the service with a handler of ours, which decodes into an
// incoming.
func serviceDesc() *grpc.ServiceDesc {
	return &grpc.ServiceDesc{
		ServiceName: "envoy.service.ratelimit.v3.RateLimitService",
		HandlerType: (*rlsv3.RateLimitServiceServer)(nil),
		Methods:     []grpc.MethodDesc{{MethodName: "ShouldRateLimit", Handler: handleShouldRateLimit}},
		Metadata:    "envoy/service/ratelimit/v3/rls.proto",
	}
}

//nolint:revive // grpc says what a handler takes, and in which order
func handleShouldRateLimit(srv any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) {
	in := new(incoming)
	if err := decode(in); err != nil {
		return nil, err // of the stream: it ended, or the message is too large
	}
	service := srv.(*Service)
	call := func(ctx context.Context, req any) (any, error) {
		if in.err != nil {
			return nil, service.fail(in.err)
		}
		return service.ShouldRateLimit(ctx, req.(*rlsv3.RateLimitRequest))
	}
	if interceptor == nil {
		return call(ctx, &in.req)
	}
	info := &grpc.UnaryServerInfo{Server: srv, FullMethod: rlsv3.RateLimitService_ShouldRateLimit_FullMethodName}
	return interceptor(ctx, &in.req, info, call)
}

// methodStats counts the calls of one method.
type methodStats struct {
	requests *stats.Counter
	times    *stats.Timer
}

// countCalls counts every unary call by its method's last name, as the service
// that we replace does: a failed one too.
func countCalls(r *stats.Registry) grpc.UnaryServerInterceptor {
	byMethod := make(map[string]methodStats)
	for _, full := range []string{
		rlsv3.RateLimitService_ShouldRateLimit_FullMethodName,
		healthpb.Health_Check_FullMethodName,
		healthpb.Health_List_FullMethodName,
	} {
		name := "ratelimit_server." + path.Base(full)
		byMethod[full] = methodStats{r.Counter(name + ".total_requests"), r.Timer(name + ".response_time")}
	}
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		count, ok := byMethod[info.FullMethod]
		if !ok {
			return handler(ctx, req)
		}
		begin := time.Now()
		answer, err := handler(ctx, req)
		count.requests.Add(1)
		count.times.Observe(time.Since(begin))
		return answer, err
	}
}
