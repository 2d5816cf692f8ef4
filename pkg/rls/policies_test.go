package rls

import (
	"testing"
	"time"

	"github.com/gale-rls/gale-rls/internal/stats"
	"github.com/gale-rls/gale-rls/pkg/gale"
)

func TestBindRules(t *testing.T) {
	tree := load(t, `
domain: d
gale: {mode: cached-deny, on_unavailable: deny}
descriptors:
  - {key: plain, rate_limit: {unit: second, requests_per_unit: 7}}
  - key: leased
    quota_mode: true
    rate_limit: {unit: week, requests_per_unit: 8}
    gale: {mode: leased, on_unavailable: local-share, lease: {size: 10, max: 20, prefetch: false, idle_return: 3s, durability: replicated}}
  - {key: open, shadow_mode: true, rate_limit: {unit: day, requests_per_unit: 9}, gale: {mode: strict, on_unavailable: allow}}
  - {key: both, shadow_mode: true, quota_mode: true, rate_limit: {unit: hour, requests_per_unit: 1}, gale: {mode: strict, on_unavailable: error}}
  - {key: detailed, detailed_metric: true, rate_limit: {unit: hour, requests_per_unit: 1}}
  - {key: free, rate_limit: {unlimited: true}}
`)
	set := bindRules(tree, stats.New(stats.Options{}), false)
	want := map[string]gale.Policy{
		"d.plain": {
			Limit: gale.Limit{Hits: 7, Window: 1}, PerSecond: true,
			Mode: gale.ModeCachedDeny, OnUnavailable: gale.UnavailableDeny,
		},
		"d.leased": {
			Limit: gale.Limit{Hits: 8, Window: 604800}, Role: gale.RoleQuota,
			Mode: gale.ModeLeased, OnUnavailable: gale.UnavailableLocalShare,
			Lease: gale.LeasePolicy{Size: 10, Max: 20, NoPrefetch: true, IdleReturn: 3 * time.Second, Replicated: true},
		},
		"d.open": {Limit: gale.Limit{Hits: 9, Window: 86400}, Role: gale.RoleShadow, OnUnavailable: gale.UnavailableAllow},
		"d.both": {Limit: gale.Limit{Hits: 1, Window: 3600}, Role: gale.RoleShadowQuota},
		"d.detailed": {
			Limit: gale.Limit{Hits: 1, Window: 3600},
			Mode:  gale.ModeCachedDeny, OnUnavailable: gale.UnavailableDeny,
		},
		"d.free": {},
	}
	for _, rule := range tree.Rules() {
		bound := set.rules[rule.Index]
		if bound.policy != want[rule.Path] {
			t.Errorf("%s: got %+v, want %+v", rule.Path, bound.policy, want[rule.Path])
		}
		fixed := rule.Path != "d.free" && rule.Path != "d.detailed"
		if fixed != (bound.counters != nil) {
			t.Errorf("%s: counters %v", rule.Path, bound.counters)
		}
	}
}

// TestOverridePolicy: an override is decided in the mode of its domain.
func TestOverridePolicy(t *testing.T) {
	tree := load(t, "domain: d\ngale: {mode: leased, on_unavailable: allow}\n")
	o := override{requests: 3, unit: 1, window: 10}
	for quotaMode, role := range map[bool]gale.Role{false: gale.RoleLimit, true: gale.RoleQuota} {
		want := gale.Policy{
			Limit: gale.Limit{Hits: 3, Window: 10}, PerSecond: true, Role: role,
			Mode: gale.ModeLeased, OnUnavailable: gale.UnavailableAllow,
		}
		if got := overridePolicy(tree.DomainGale("d"), o, quotaMode); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}
