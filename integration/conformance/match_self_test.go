//go:build integration

package conformance

import (
	"testing"
	"time"
)

// A comparison that lets everything pass would make all scenarios green:
// here it has to see each kind of difference, and nothing else.
func TestComparisonSeesDifferences(t *testing.T) {
	at := time.Unix(7000, 0) // 200 s before the end of an hour
	for _, c := range []struct {
		want, got string
		same      bool
	}{
		{`{"overallCode":"OK"}`, `{"overallCode":"OK"}`, true},
		{`{"overallCode":"OK"}`, `{"overallCode":"OVER_LIMIT"}`, false},
		{`{"overallCode":"OK"}`, `{}`, false},
		{`{}`, `{"overallCode":"OK"}`, false},
		{`{"limitRemaining":0}`, `{}`, true},
		{`{"limitRemaining":4}`, `{"limitRemaining":5}`, false},
		{`{"statuses":[{"code":"OK"}]}`, `{"statuses":[{"code":"OK"},{"code":"OK"}]}`, false},
		{`{"statuses":[{}]}`, `{"statuses":[{"code":"OK"}]}`, false},
		{`{"durationUntilReset":"window:3600"}`, `{"durationUntilReset":"200s"}`, true},
		{`{"durationUntilReset":"window:3600"}`, `{"durationUntilReset":"199s"}`, true},
		{`{"durationUntilReset":"window:3600"}`, `{"durationUntilReset":"3400s"}`, false},
		{`{"durationUntilReset":"window:3600"}`, `{}`, false},
		{`{"value":"window:3600"}`, `{"value":"201"}`, true},
		{`{"limit":"unit:HOUR  requests_per_unit:4"}`, `{"limit":"unit:HOUR requests_per_unit:4"}`, true},
		{`{"name":"a  b"}`, `{"name":"a b"}`, false},
		{`{"metadata":{"a":{"b":1}}}`, `{"metadata":{"a":{"b":1,"c":2}}}`, false},
	} {
		var found problems
		matchBody(t, &found, "answer", []byte(c.want), []byte(c.got), at)
		if same := len(found) == 0; same != c.same {
			t.Errorf("%s and %s: same is %v: %q", c.want, c.got, same, found)
		}
	}
}

func TestStatisticsAreComparedCompletely(t *testing.T) {
	want := []string{"ratelimit.service.rate_limit.d.k.total_hits:2|c", "ratelimit.localcache.hitCount:1|g"}
	counters := map[string]uint64{"ratelimit.service.rate_limit.d.k.total_hits": 2, "ratelimit.go.mallocs": 9}
	gauges := map[string]int64{"ratelimit.localcache.hitCount": 1, "ratelimit.localcache.entryCount": 7}
	var found problems
	if matchStatsd(&found, want, counters, gauges); len(found) != 0 {
		t.Errorf("equal statistics differ: %q", found)
	}
	counters["ratelimit.service.rate_limit.d.k.total_hits"] = 3
	counters["ratelimit.service.call.should_rate_limit.redis_error"] = 1
	if matchStatsd(&found, want, counters, gauges); len(found) != 3 {
		t.Errorf("a wrong, a missing and an additional counter: %q", found)
	}
}

func TestStoresAreComparedCompletely(t *testing.T) {
	want := []storedKey{{Key: "d_k_v_<window>", Window: 3600, Value: "3", TTLBetween: [2]int64{3590, 3899}}}
	at := time.Unix(7000, 0)
	for _, c := range []struct {
		got  map[string]stored
		same bool
	}{
		{map[string]stored{"d_k_v_3600": {"3", 3700}}, true},
		{map[string]stored{"d_k_v_3600": {"4", 3700}}, false},
		{map[string]stored{"d_k_v_3600": {"3", -1}}, false},
		{map[string]stored{"d_k_v_7200": {"3", 3700}}, false},
		{map[string]stored{"d_k_v_3600": {"3", 3700}, "more": {"1", 3700}}, false},
		{map[string]stored{}, false},
	} {
		var found problems
		matchStore(&found, "redis", want, c.got, at, at.Add(time.Second))
		if same := len(found) == 0; same != c.same {
			t.Errorf("%v: same is %v: %q", c.got, same, found)
		}
	}
}
