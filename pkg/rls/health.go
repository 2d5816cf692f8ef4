package rls

import (
	"sync"

	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

// healthService is the name under which gRPC health tells the state. The
// empty name is always SERVING, as in the service that we replace: it says
// that the process answers, not that it can enforce.
const healthService = "ratelimit"

// Health says whether the service can enforce limits. It begins unhealthy, and
// is healthy while the store can be asked, rules are loaded, and the process
// is not about to end.
type Health struct {
	grpc       *health.Server
	needDomain bool

	mu struct {
		sync.Mutex
		store, rules, draining bool
	}
}

// NewHealth returns a Health that still lacks a store and rules. With
// needDomain, rules without a domain do not count as loaded
// (HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED).
func NewHealth(needDomain bool) *Health {
	h := &Health{grpc: health.NewServer(), needDomain: needDomain}
	h.update(func() {})
	return h
}

// SetStore says whether the store can be asked.
func (h *Health) SetStore(ok bool) { h.update(func() { h.mu.store = ok }) }

// RulesLoaded says that rules were loaded, and how many domains they have.
// Rules that are rejected change nothing.
func (h *Health) RulesLoaded(domains int) {
	h.update(func() { h.mu.rules = domains > 0 || !h.needDomain })
}

// Drain says that the process is about to end. It cannot be taken back.
func (h *Health) Drain() { h.update(func() { h.mu.draining = true }) }

// Failing names what keeps the service from being healthy; empty if it is.
func (h *Health) Failing() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.failingLocked()
}

// OK reports whether the service is healthy.
func (h *Health) OK() bool { return len(h.Failing()) == 0 }

func (h *Health) failingLocked() []string {
	var failing []string
	if !h.mu.store {
		failing = append(failing, "the store cannot be asked")
	}
	if !h.mu.rules {
		failing = append(failing, "no rules are loaded")
	}
	if h.mu.draining {
		failing = append(failing, "shutting down")
	}
	return failing
}

// update changes the state, and tells gRPC under the same lock, so that two
// changes are told in the order in which they happened.
func (h *Health) update(change func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change()
	state := healthpb.HealthCheckResponse_NOT_SERVING
	if len(h.failingLocked()) == 0 {
		state = healthpb.HealthCheckResponse_SERVING
	}
	h.grpc.SetServingStatus(healthService, state)
}
