package rls

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/gale-rls/gale-rls/internal/stats"
	"github.com/gale-rls/gale-rls/pkg/descriptors"
	"github.com/gale-rls/gale-rls/pkg/gale"
)

// Names of the statistics, as in envoyproxy/ratelimit.
const (
	rulePrefix       = "ratelimit.service.rate_limit."
	nameServiceError = "ratelimit.service.call.should_rate_limit.service_error"
	nameStoreError   = "ratelimit.service.call.should_rate_limit.redis_error"
	nameGlobalShadow = "ratelimit.service.global_shadow_mode"
)

// Decider decides all charges of a request. *gale.Engine is one.
type Decider interface {
	// Decide fills r.Decisions. An error means that the request cannot be
	// answered; it keeps nothing of r after it returns.
	Decide(ctx context.Context, r *gale.Request) error
}

// Service answers ShouldRateLimit.
type Service struct {
	rlsv3.UnimplementedRateLimitServiceServer

	decider Decider
	stats   *stats.Registry
	config  Config
	rules   atomic.Pointer[ruleSet]
	calls   sync.Pool // of *call

	decisions decisionCounts

	serviceErrors, storeErrors, globalShadow *stats.Counter
}

// NewService returns a Service without rules: until SetRules, every request
// is an error.
func NewService(d Decider, r *stats.Registry, c Config) *Service {
	return &Service{
		decider:       d,
		stats:         r,
		config:        c.withDefaults(),
		calls:         sync.Pool{New: func() any { return new(call) }},
		serviceErrors: r.Counter(nameServiceError),
		storeErrors:   r.Counter(nameStoreError),
		globalShadow:  r.Counter(nameGlobalShadow),
	}
}

// SetRules replaces the rules. Requests under way end with those they began
// with.
func (s *Service) SetRules(t *descriptors.Tree) {
	s.rules.Store(bindRules(t, s.stats, s.config.QuotaMode))
}

// Rules returns the rules in use, nil before the first SetRules.
func (s *Service) Rules() *descriptors.Tree {
	if rules := s.rules.Load(); rules != nil {
		return rules.tree
	}
	return nil
}

// ShouldRateLimit decides one request. An error is a gRPC status; a refusal
// is an answer.
func (s *Service) ShouldRateLimit(ctx context.Context, req *rlsv3.RateLimitRequest) (*rlsv3.RateLimitResponse, error) {
	rules, err := s.check(req)
	if err != nil {
		return nil, s.fail(err)
	}
	c := s.calls.Get().(*call)
	defer s.release(c)
	if err := c.read(s, rules, req); err != nil {
		return nil, s.fail(err)
	}
	if !c.domainKnown {
		c.countUnknownDomain(s, req.GetDomain(), len(c.items))
	}
	if len(c.request.Charges) > 0 {
		c.countArrivals()
		if err := s.decider.Decide(ctx, &c.request); err != nil {
			return nil, s.fail(&storeError{err})
		}
		c.countDecisions(s)
	}
	return c.answer(s, req), nil
}

// check refuses what is wrong with a request as a whole, in the order of the
// service we replace.
func (s *Service) check(req *rlsv3.RateLimitRequest) (*ruleSet, error) {
	if req.GetDomain() == "" {
		return nil, errNoDomain
	}
	n := len(req.GetDescriptors())
	if n == 0 {
		return nil, errNoDescriptors
	}
	if n > s.config.MaxDescriptors {
		return nil, &invalidError{-1, fmt.Sprintf("request has %d descriptors; want at most %d (GALE_MAX_DESCRIPTORS)", n, s.config.MaxDescriptors)}
	}
	rules := s.rules.Load()
	if rules == nil {
		return nil, errNoRules
	}
	return rules, nil
}

func (s *Service) release(c *call) {
	if c.reset() {
		s.calls.Put(c)
	}
}
