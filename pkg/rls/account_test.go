package rls

import (
	"math/rand/v2"
	"testing"

	"github.com/gale-rls/gale-rls/internal/stats"
	"github.com/gale-rls/gale-rls/pkg/gale"
)

// counted is what one decision adds to a rule's statistics.
type counted struct{ within, near, over, cached, shadow uint64 }

func count(t *testing.T, c gale.Charge, d gale.Decision, ratio float32) counted {
	t.Helper()
	to := stats.New(stats.Options{}).Rule("rule")
	countDecision(to, &c, &d, ratio)
	if got := to.TotalHits.Value(); got != 0 {
		t.Errorf("total_hits moved by %d: it is counted on arrival", got)
	}
	return counted{
		to.WithinLimit.Value(), to.NearLimit.Value(), to.OverLimit.Value(),
		to.OverLimitWithLocalCache.Value(), to.ShadowMode.Value(),
	}
}

func TestCountDecision(t *testing.T) {
	const limit = 10 // the near limit is 8
	over := func(after uint64) gale.Decision { return gale.Decision{Over: true, After: after} }
	cached := gale.Decision{Over: true, Reason: gale.ReasonDenyCache}
	for _, tc := range []struct {
		name string
		hits uint64
		role gale.Role
		d    gale.Decision
		want counted
	}{
		{"below near", 3, gale.RoleLimit, gale.Decision{After: 8}, counted{within: 3}},
		{"partly near", 3, gale.RoleLimit, gale.Decision{After: 9}, counted{within: 3, near: 1}},
		{"wholly near", 2, gale.RoleLimit, gale.Decision{After: 10}, counted{within: 2, near: 2}},
		{"over from near", 3, gale.RoleLimit, over(12), counted{near: 1, over: 2}},
		{"over from below near", 9, gale.RoleLimit, over(11), counted{near: 2, over: 1}},
		{"wholly over", 3, gale.RoleLimit, over(13), counted{over: 3}},
		{"known over", 3, gale.RoleLimit, cached, counted{over: 3, cached: 3}},
		{"shadow, partly", 3, gale.RoleShadow, over(12), counted{near: 1, over: 2, shadow: 2}},
		{"shadow quota, wholly", 3, gale.RoleShadowQuota, over(13), counted{over: 3, shadow: 3}},
		{"shadow, known over", 3, gale.RoleShadow, cached, counted{over: 3, cached: 3, shadow: 3}},
		{"shadow, within", 3, gale.RoleShadow, gale.Decision{After: 5}, counted{within: 3}},
		{"quota", 3, gale.RoleQuota, over(13), counted{over: 3}},
		{"peek within", 0, gale.RoleLimit, gale.Decision{After: 9}, counted{}},
		{"peek over", 0, gale.RoleLimit, over(15), counted{}},
		{"refused without counter", 3, gale.RoleLimit,
			gale.Decision{Over: true, Reason: gale.ReasonFallbackDeny}, counted{over: 3}},
		{"allowed beyond the counter", 3, gale.RoleLimit,
			gale.Decision{After: 50, Reason: gale.ReasonFallbackAllow}, counted{within: 3}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			policy := &gale.Policy{Limit: gale.Limit{Hits: limit, Window: 60}, Role: tc.role}
			got := count(t, gale.Charge{Policy: policy, Hits: tc.hits}, tc.d, 0.8)
			if got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

// TestCountDecisionHitByHit compares with placing every single hit: up to the
// near limit, up to the limit, or beyond.
func TestCountDecisionHitByHit(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		limit, before, hits := random.Uint64N(30), random.Uint64N(40), random.Uint64N(40)
		ratio := float32(random.IntN(11)) / 10
		near, after := nearLimit(limit, ratio), before+hits
		var want counted
		for k := before + 1; k <= after; k++ {
			switch {
			case k > limit:
				want.over++
			case k > near:
				want.near++
			}
		}
		if after <= limit {
			want.within = hits
		}
		policy := &gale.Policy{Limit: gale.Limit{Hits: limit, Window: 60}}
		got := count(t, gale.Charge{Policy: policy, Hits: hits}, gale.Decision{Over: after > limit, After: after}, ratio)
		if got != want {
			t.Fatalf("limit %d, %d hits after %d, ratio %v: got %+v, want %+v", limit, hits, before, ratio, got, want)
		}
	}
}

func TestNearLimit(t *testing.T) {
	for _, tc := range []struct {
		limit uint64
		ratio float32
		want  uint64
	}{
		{10, 0.8, 8}, {100, 0.29, 29}, {7, 0.8, 5}, {0, 0.8, 0}, {10, 0, 0}, {10, 1, 10},
		{16777217, 1, 16777216}, // 32-bit floats are inexact above 2^24
		{10, -1, 0}, {1 << 63, 1e30, 1<<64 - 1},
	} {
		if got := nearLimit(tc.limit, tc.ratio); got != tc.want {
			t.Errorf("nearLimit(%d, %v) = %d, want %d", tc.limit, tc.ratio, got, tc.want)
		}
	}
}
