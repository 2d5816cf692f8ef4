package rls

import (
	"github.com/gale-rls/gale-rls/internal/stats"
	"github.com/gale-rls/gale-rls/pkg/descriptors"
	"github.com/gale-rls/gale-rls/pkg/gale"
)

// ruleSet is one loaded configuration, in the shape that requests need. It is
// immutable.
type ruleSet struct {
	tree *descriptors.Tree
	// rules stand at their Rule.Index.
	rules []boundRule
}

// boundRule is what a rule means to the engine and to the statistics.
type boundRule struct {
	policy gale.Policy
	// counters is nil when their name depends on the request.
	counters *stats.RuleCounters
}

func bindRules(t *descriptors.Tree, r *stats.Registry, quotaMode bool) *ruleSet {
	rules := t.Rules()
	set := &ruleSet{tree: t, rules: make([]boundRule, len(rules))}
	for _, rule := range rules {
		if rule.Unlimited {
			continue // never charged, never counted
		}
		bound := &set.rules[rule.Index]
		bound.policy = rulePolicy(rule, quotaMode)
		if rule.StatName != "" {
			bound.counters = r.Rule(rule.StatName)
		}
	}
	return set
}

func rulePolicy(rule *descriptors.Rule, quotaMode bool) gale.Policy {
	p := modePolicy(rule.Gale)
	p.Limit = gale.Limit{Hits: uint64(rule.RequestsPerUnit), Window: rule.Unit.Seconds()}
	p.PerSecond = rule.Unit == descriptors.UnitSecond
	p.Role = roleOf(rule.Shadow, rule.Quota || quotaMode)
	return p
}

// overridePolicy is the policy of a limit that the request brought: the mode
// is the domain's, shadow and quota are off (except process-wide).
func overridePolicy(g descriptors.Gale, o override, quotaMode bool) gale.Policy {
	p := modePolicy(g)
	p.Limit = gale.Limit{Hits: uint64(o.requests), Window: o.window}
	p.PerSecond = o.unit == descriptors.UnitSecond
	p.Role = roleOf(false, quotaMode)
	return p
}

// modePolicy is the part of a policy that the gale block says.
func modePolicy(g descriptors.Gale) gale.Policy {
	return gale.Policy{
		Mode:          modeOf(g.Mode),
		OnUnavailable: unavailableOf(g.OnUnavailable),
		Lease: gale.LeasePolicy{
			Size:       g.Lease.Size,
			Max:        g.Lease.Max,
			NoPrefetch: g.Lease.Prefetch != nil && !*g.Lease.Prefetch,
			IdleReturn: g.Lease.IdleReturn,
			Replicated: g.Lease.Durability == "replicated",
		},
	}
}

func modeOf(m descriptors.Mode) gale.Mode {
	switch m {
	case descriptors.ModeCachedDeny:
		return gale.ModeCachedDeny
	case descriptors.ModeLeased:
		return gale.ModeLeased
	default:
		return gale.ModeStrict
	}
}

func unavailableOf(u descriptors.OnUnavailable) gale.Unavailable {
	switch u {
	case descriptors.OnUnavailableAllow:
		return gale.UnavailableAllow
	case descriptors.OnUnavailableDeny:
		return gale.UnavailableDeny
	case descriptors.OnUnavailableLocalShare:
		return gale.UnavailableLocalShare
	default:
		return gale.UnavailableError
	}
}

func roleOf(shadow, quota bool) gale.Role {
	switch {
	case shadow && quota:
		return gale.RoleShadowQuota
	case shadow:
		return gale.RoleShadow
	case quota:
		return gale.RoleQuota
	default:
		return gale.RoleLimit
	}
}

func isShadow(r gale.Role) bool { return r == gale.RoleShadow || r == gale.RoleShadowQuota }

func isQuota(r gale.Role) bool { return r == gale.RoleQuota || r == gale.RoleShadowQuota }
