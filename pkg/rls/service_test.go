package rls

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/proto"

	"github.com/gale-rls/gale-rls/internal/stats"
	"github.com/gale-rls/gale-rls/pkg/gale"
)

const oneRule = `
domain: d
descriptors:
  - {key: k, rate_limit: {unit: minute, requests_per_unit: 2}}
`

const oneRequest = `{"domain": "d", "descriptors": [{"entries": [{"key": "k", "value": "v"}]}]}`

func TestNoRulesYet(t *testing.T) {
	registry := stats.New(stats.Options{})
	s := NewService(new(counters), registry, Config{})
	if s.Rules() != nil {
		t.Error("rules before SetRules")
	}
	_, err := s.ShouldRateLimit(t.Context(), request(t, oneRequest))
	if got, want := errorText(err), "Unknown: no rate limit configuration loaded"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	s.SetRules(load(t, oneRule))
	if _, err := s.ShouldRateLimit(t.Context(), request(t, oneRequest)); err != nil {
		t.Error(err)
	}
	if got := registry.Counter(nameServiceError).Value(); got != 1 {
		t.Errorf("%d service errors, want 1", got)
	}
}

// TestStoreError: the hits have been counted when the store fails, and the
// error is the store's, with its words.
func TestStoreError(t *testing.T) {
	s, decider, registry := newTestService(t, Config{}, oneRule)
	decider.err = fmt.Errorf("count d_k_v_: %w", gale.ErrUnavailable)
	response, err := s.ShouldRateLimit(t.Context(), request(t, oneRequest))
	if response != nil {
		t.Errorf("a response beside the error: %v", response)
	}
	if got, want := errorText(err), "Unknown: count d_k_v_: store unavailable"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for name, want := range map[string]uint64{nameStoreError: 1, nameServiceError: 0} {
		if got := registry.Counter(name).Value(); got != want {
			t.Errorf("%s is %d, want %d", name, got, want)
		}
	}
	rule := registry.Rule("d.k")
	if rule.TotalHits.Value() != 1 || rule.WithinLimit.Value() != 0 || rule.OverLimit.Value() != 0 {
		t.Error("want total_hits 1 and no outcome")
	}
}

func TestLocallyKnownDenial(t *testing.T) {
	s, decider, registry := newTestService(t, Config{}, oneRule)
	decider.reason = gale.ReasonDenyCache
	for range 3 {
		if _, err := s.ShouldRateLimit(t.Context(), request(t, oneRequest)); err != nil {
			t.Fatal(err)
		}
	}
	if got := registry.Rule("d.k").OverLimitWithLocalCache.Value(); got != 1 {
		t.Errorf("over_limit_with_local_cache is %d, want 1", got)
	}
}

// TestNothingToDecide: the engine is not asked for what has no limit.
func TestNothingToDecide(t *testing.T) {
	s, decider, _ := newTestService(t, Config{QuotaMode: true}, oneRule)
	decider.err = errors.New("must not be asked")
	for _, text := range []string{
		`{"domain": "d", "descriptors": [{"entries": [{"key": "other"}]}]}`,
		`{"domain": "elsewhere", "descriptors": [{"entries": [{"key": "k"}], "limit": {"unit": "HOUR"}}]}`,
	} {
		response, err := s.ShouldRateLimit(t.Context(), request(t, text))
		if err != nil || response.GetOverallCode() != codeOK {
			t.Errorf("%s: %v, %v", text, response, err)
		}
	}
}

// TestUnknownDomainName: the caller's text becomes part of a name, and must not
// become a line, a type or a level of its own.
func TestUnknownDomainName(t *testing.T) {
	s, _, registry := newTestService(t, Config{}, oneRule)
	for _, domain := range []string{"x:10.0.0.1|z", "a\nb:1|c"} {
		req := &rlsv3.RateLimitRequest{Domain: domain, Descriptors: []*commonv3.RateLimitDescriptor{{}, {}}}
		if _, err := s.ShouldRateLimit(t.Context(), req); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"x_10_0_0_1_z", "a_b_1_c"} {
		name = "ratelimit.service.rate_limit." + name + ".domain_not_found"
		if got := registry.Dynamic([]byte(name)).Value(); got != 2 {
			t.Errorf("%s is %d, want 2\n%s", name, got, statsText(t, registry))
		}
	}
}

// TestInvalidText: a request need not have come through a decoder that checks.
func TestInvalidText(t *testing.T) {
	s, _, _ := newTestService(t, Config{}, oneRule)
	entry := func(key, value string) *commonv3.RateLimitDescriptor {
		return &commonv3.RateLimitDescriptor{Entries: []*commonv3.RateLimitDescriptor_Entry{{Key: "k"}, {Key: key, Value: value}}}
	}
	for want, req := range map[string]*rlsv3.RateLimitRequest{
		"InvalidArgument: domain is not valid UTF-8":                           {Domain: "\xff", Descriptors: []*commonv3.RateLimitDescriptor{nil}},
		"InvalidArgument: descriptors[1]: entries[1].key is not valid UTF-8":   {Domain: "d", Descriptors: []*commonv3.RateLimitDescriptor{nil, entry("\xff", "")}},
		"InvalidArgument: descriptors[0]: entries[1].value is not valid UTF-8": {Domain: "d", Descriptors: []*commonv3.RateLimitDescriptor{entry("k", "a\xc3")}},
	} {
		_, err := s.ShouldRateLimit(t.Context(), req)
		if got := errorText(err); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestLargeRequest: as many descriptors as are allowed are answered one by one;
// one more is refused as a whole.
func TestLargeRequest(t *testing.T) {
	s, decider, _ := newTestService(t, Config{}, oneRule)
	req := &rlsv3.RateLimitRequest{Domain: "d"}
	for i := range DefaultMaxDescriptors {
		req.Descriptors = append(req.Descriptors, &commonv3.RateLimitDescriptor{
			Entries: []*commonv3.RateLimitDescriptor_Entry{{Key: "k", Value: fmt.Sprint(i)}},
		})
	}
	response, err := s.ShouldRateLimit(t.Context(), req)
	if err != nil || len(response.GetStatuses()) != DefaultMaxDescriptors {
		t.Fatalf("%d statuses, %v", len(response.GetStatuses()), err)
	}
	if decider.calls != 1 {
		t.Errorf("%d decisions for one request, want 1", decider.calls)
	}
	req.Descriptors = append(req.Descriptors, nil)
	_, err = s.ShouldRateLimit(t.Context(), req)
	if want := "InvalidArgument: request has 10001 descriptors; want at most 10000 (GALE_MAX_DESCRIPTORS)"; errorText(err) != want {
		t.Errorf("got %q, want %q", errorText(err), want)
	}
}

// TestReloadUnderTraffic runs requests of several shapes on shared working
// memory while rules change; the race detector is the judge. Every answer must
// be that of its own request.
func TestReloadUnderTraffic(t *testing.T) {
	s, _, _ := newTestService(t, Config{DynamicMetadata: true, HeadersEnabled: true, IETFHeaders: true}, overallRules)
	rules := `
domain: d
descriptors:
  - {key: m, metadata: {shared: {m: 1}}, rate_limit: {unit: hour, requests_per_unit: 99999}}
  - {key: n, metadata: {shared: {n: 1}}, rate_limit: {unit: hour, requests_per_unit: 99999}}
`
	both := request(t, `{"domain": "d", "descriptors": [{"entries": [{"key": "m"}]}, {"entries": [{"key": "n"}]}]}`)
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			for range 50 {
				s.SetRules(load(t, rules))
				response, err := s.ShouldRateLimit(t.Context(), both)
				if err != nil || len(response.GetStatuses()) != 2 {
					t.Errorf("%v, %v", response, err)
				}
				if _, err := proto.Marshal(response); err != nil {
					t.Error(err)
				}
				s.SetRules(load(t, overallRules))
				response, err = s.ShouldRateLimit(t.Context(), request(t, oneRequest))
				if err != nil || len(response.GetStatuses()) != 1 {
					t.Errorf("%v, %v", response, err)
				}
			}
		})
	}
	workers.Wait()
}
