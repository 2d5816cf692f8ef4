package rls

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
)

// Every kind of descriptor that the overall code depends on, each with a limit
// that is over (…0) or not (…9).
const overallRules = `
domain: d
descriptors:
  - {key: rate0, rate_limit: {unit: hour, requests_per_unit: 0}}
  - {key: rate9, rate_limit: {unit: hour, requests_per_unit: 99999}}
  - {key: quota0, quota_mode: true, rate_limit: {unit: hour, requests_per_unit: 0}}
  - {key: quota9, quota_mode: true, rate_limit: {unit: hour, requests_per_unit: 99999}}
  - {key: shadow0, shadow_mode: true, rate_limit: {unit: hour, requests_per_unit: 0}}
  - {key: shadowquota0, shadow_mode: true, quota_mode: true, rate_limit: {unit: hour, requests_per_unit: 0}}
  - {key: unlimited, rate_limit: {unlimited: true}}
`

var overallKinds = []string{
	"rate0", "rate9", "quota0", "quota9", "shadow0", "shadowquota0", "unlimited",
	"unmatched", "override0", "override9",
}

// naiveOverall is the overall code by the words of the specification: over the
// statuses and what kinds they have.
func naiveOverall(kinds []string, statuses []*rlsv3.RateLimitResponse_DescriptorStatus, quotaMode, shadowMode bool) (code rlsv3.RateLimitResponse_Code, shadowed bool) {
	failedRates, quotas, failedQuotas := 0, 0, 0
	for i, kind := range kinds {
		over := statuses[i].GetCode() == codeOver
		isQuota := kind != "unlimited" && (quotaMode || strings.Contains(kind, "quota"))
		switch {
		case isQuota && over:
			quotas++
			failedQuotas++
		case isQuota:
			quotas++
		case over:
			failedRates++
		}
	}
	if failedRates == 0 && (quotas == 0 || quotas != failedQuotas) {
		return codeOK, false
	}
	if shadowMode {
		return codeOK, true
	}
	return codeOver, false
}

func TestOverallCode(t *testing.T) {
	for _, quotaMode := range []bool{false, true} {
		for _, shadowMode := range []bool{false, true} {
			t.Run(fmt.Sprintf("quota=%v shadow=%v", quotaMode, shadowMode), func(t *testing.T) {
				s, _, registry := newTestService(t, Config{QuotaMode: quotaMode, ShadowMode: shadowMode}, overallRules)
				global := registry.Counter(nameGlobalShadow)
				for _, kinds := range combinations(overallKinds, 3) {
					before := global.Value()
					response, err := s.ShouldRateLimit(t.Context(), overallRequest(t, kinds))
					if err != nil {
						t.Fatalf("%v: %v", kinds, err)
					}
					want, shadowed := naiveOverall(kinds, response.GetStatuses(), quotaMode, shadowMode)
					if got := response.GetOverallCode(); got != want {
						t.Errorf("%v: overall code %v, want %v", kinds, got, want)
					}
					if counted := global.Value() != before; counted != shadowed {
						t.Errorf("%v: counted as global shadow: %v, want %v", kinds, counted, shadowed)
					}
					checkStatuses(t, kinds, response)
				}
			})
		}
	}
}

// checkStatuses checks the statuses' own codes, which no mode of the process
// changes.
func checkStatuses(t *testing.T, kinds []string, response *rlsv3.RateLimitResponse) {
	t.Helper()
	for i, status := range response.GetStatuses() {
		want := codeOK
		if strings.HasSuffix(kinds[i], "0") && !strings.Contains(kinds[i], "shadow") {
			want = codeOver
		}
		if status.GetCode() != want {
			t.Errorf("%v: status %d is %v, want %v", kinds, i, status.GetCode(), want)
		}
		if limited := kinds[i] != "unlimited" && kinds[i] != "unmatched"; limited != (status.GetCurrentLimit() != nil) {
			t.Errorf("%v: status %d has limit %v", kinds, i, status.GetCurrentLimit())
		}
	}
}

// combinations returns all sequences of 1 to n of the words.
func combinations(words []string, n int) [][]string {
	all := [][]string{}
	last := [][]string{nil}
	for range n {
		var next [][]string
		for _, begin := range last {
			for _, w := range words {
				next = append(next, append(slices.Clone(begin), w))
			}
		}
		all = append(all, next...)
		last = next
	}
	return all
}

func overallRequest(t *testing.T, kinds []string) *rlsv3.RateLimitRequest {
	var list []string
	for _, kind := range kinds {
		limit := ""
		if n, ok := strings.CutPrefix(kind, "override"); ok {
			limit = fmt.Sprintf(`, "limit": {"requestsPerUnit": %s, "unit": "HOUR"}`, map[string]string{"0": "0", "9": "99999"}[n])
		}
		list = append(list, fmt.Sprintf(`{"entries": [{"key": %q, "value": "v"}]%s}`, kind, limit))
	}
	return request(t, fmt.Sprintf(`{"domain": "d", "descriptors": [%s]}`, strings.Join(list, ",")))
}
