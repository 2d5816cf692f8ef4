package rls

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/gale-rls/gale-rls/internal/stats"
	"github.com/gale-rls/gale-rls/pkg/descriptors"
	"github.com/gale-rls/gale-rls/pkg/gale"
)

// counters is a Decider that counts strictly in memory, in windows that never
// end: Reset is the whole window.
type counters struct {
	mu     sync.Mutex
	counts map[string]uint64
	// err, if set, is what every call returns.
	err error
	// reason, if set, is the reason of all refusals.
	reason gale.Reason
	calls  int
}

func (c *counters) Decide(_ context.Context, r *gale.Request) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls++
	if c.err != nil {
		return c.err
	}
	if c.counts == nil {
		c.counts = make(map[string]uint64)
	}
	for i := range r.Charges {
		if err := c.decideLocked(&r.Charges[i], &r.Decisions[i]); err != nil {
			return err
		}
	}
	return nil
}

func (c *counters) decideLocked(charge *gale.Charge, d *gale.Decision) error {
	key, limit := fmt.Sprintf("%s%d", charge.Key, charge.Policy.Limit.Window), charge.Policy.Limit
	count := c.counts[key]
	if charge.Refund {
		count -= min(count, charge.Hits)
	} else if count += charge.Hits; count > 1<<63-1 {
		return fmt.Errorf("count %s: %w", charge.Key, gale.ErrOverflow)
	}
	c.counts[key] = count
	*d = gale.Decision{
		Over:      count > limit.Hits && !charge.Refund,
		After:     count,
		Remaining: limit.Hits - min(limit.Hits, count),
		Reset:     time.Duration(limit.Window) * time.Second,
	}
	if d.Over {
		d.Reason = c.reason
	}
	return nil
}

// load compiles one file of rules.
func load(t testing.TB, yaml string) *descriptors.Tree {
	t.Helper()
	tree, err := descriptors.Load([]descriptors.File{{Name: "test.yaml", Data: []byte(yaml)}}, nil, descriptors.Options{})
	if err != nil {
		t.Fatalf("rules: %v", err)
	}
	return tree
}

// newTestService returns a service with these rules, its decider and its
// statistics.
func newTestService(t testing.TB, c Config, yaml string) (*Service, *counters, *stats.Registry) {
	t.Helper()
	decider, registry := new(counters), stats.New(stats.Options{})
	s := NewService(decider, registry, c)
	s.SetRules(load(t, yaml))
	return s, decider, registry
}

// request parses protobuf JSON.
func request(t testing.TB, text string) *rlsv3.RateLimitRequest {
	t.Helper()
	req := new(rlsv3.RateLimitRequest)
	if err := protojson.Unmarshal([]byte(text), req); err != nil {
		t.Fatalf("request %s: %v", text, err)
	}
	return req
}
