package rls

import (
	"math"

	"github.com/gale-rls/gale-rls/internal/stats"
	"github.com/gale-rls/gale-rls/pkg/gale"
)

// countArrivals counts the hits before they are decided, so that they are
// counted also when the store fails.
func (c *call) countArrivals() {
	for i := range c.items {
		it := &c.items[i]
		if it.outcome != outcomeCharged {
			continue
		}
		hits := c.request.Charges[it.charge].Hits
		if it.refunds != nil {
			it.refunds.Add(hits)
			continue
		}
		it.counters.TotalHits.Add(hits)
	}
}

func (c *call) countDecisions(s *Service) {
	for i := range c.items {
		it := &c.items[i]
		if it.outcome != outcomeCharged {
			continue
		}
		charge, decision := &c.request.Charges[it.charge], &c.request.Decisions[it.charge]
		s.decisions.add(charge.Policy.Mode, decision)
		if !charge.Refund {
			countDecision(it.counters, charge, decision, s.config.NearLimitRatio)
		}
	}
}

// countDecision spreads the hits of one charge over the statistics of its
// rule: hits up to the near limit, between it and the limit, and beyond. With
// L the limit, A the counter after the hits, B before them, N the near limit:
//
//	over, remembered here   over_limit += h, over_limit_with_local_cache += h
//	over, B >= L            over_limit += h
//	over, B <  L            near_limit += L - max(N, B), over_limit += A - L
//	within, B >= N          within_limit += h, near_limit += h
//	within, A > N           within_limit += h, near_limit += A - N
//	within                  within_limit += h
//
// What is over counts as shadow_mode too if the rule is in shadow mode.
func countDecision(to *stats.RuleCounters, c *gale.Charge, d *gale.Decision, nearLimitRatio float32) {
	hits, limit, after := c.Hits, c.Policy.Limit.Hits, d.After
	before := after - min(after, hits)
	if !d.Over {
		to.WithinLimit.Add(hits)
		near := nearLimit(limit, nearLimitRatio)
		switch {
		case after <= near || after > limit:
			// After is beyond the limit only where no counter decided
			// (fallback); then nothing is known of near.
		case before >= near:
			to.NearLimit.Add(hits)
		default:
			to.NearLimit.Add(after - near)
		}
		return
	}
	over := hits
	switch {
	case d.Reason == gale.ReasonDenyCache:
		to.OverLimitWithLocalCache.Add(hits)
	case before < limit && after > limit:
		over = after - limit
		to.NearLimit.Add(limit - min(limit, max(nearLimit(limit, nearLimitRatio), before)))
	}
	to.OverLimit.Add(over)
	if isShadow(c.Policy.Role) {
		to.ShadowMode.Add(over)
	}
}

// nearLimit computes in 32-bit floats, inexact above 2^24, because the
// dashboards of the service we replace do.
func nearLimit(limit uint64, ratio float32) uint64 {
	near := math.Floor(float64(float32(limit) * ratio))
	if near <= 0 || math.IsNaN(near) {
		return 0
	}
	if near >= math.MaxUint64 {
		return math.MaxUint64
	}
	return uint64(near)
}
