//go:build integration

package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// problems collects the differences of one scenario.
type problems []string

func (p *problems) add(format string, args ...any) {
	*p = append(*p, fmt.Sprintf(format, args...))
}

// decode parses JSON and keeps numbers as they are written.
func decode(b []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	err := d.Decode(&v)
	return v, err
}

// matchJSON compares a recorded answer with one of ours, as values; absent
// members are zero. at is the time of the answer, for placeholders.
func matchJSON(p *problems, path string, want, got any, at time.Time) {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok && !(zero(got) && len(w) == 0) {
			p.add("%s: want %v, got %v", path, want, got)
			return
		}
		keys := maps.Clone(w)
		maps.Copy(keys, g)
		for _, k := range slices.Sorted(maps.Keys(keys)) {
			matchJSON(p, path+"."+k, w[k], g[k], at)
		}
	case []any:
		g, _ := got.([]any)
		if len(g) != len(w) {
			p.add("%s: want %d elements %v, got %d %v", path, len(w), w, len(g), got)
			return
		}
		for i := range w {
			matchJSON(p, fmt.Sprintf("%s[%d]", path, i), w[i], g[i], at)
		}
	case string:
		if !matchText(path, w, got, at) {
			p.add("%s: want %q, got %v", path, w, show(got))
		}
	default:
		if want != got && !(zero(want) && zero(got)) {
			p.add("%s: want %v, got %v", path, show(want), show(got))
		}
	}
}

func show(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}

var spaces = regexp.MustCompile(` +`)

func matchText(path, want string, got any, at time.Time) bool {
	text, ok := got.(string)
	if window, found := strings.CutPrefix(want, "window:"); found && ok {
		length, err := strconv.ParseInt(window, 10, 64)
		left, err2 := strconv.ParseInt(strings.TrimSuffix(text, "s"), 10, 64)
		d := left - (length - at.Unix()%length)
		return err == nil && err2 == nil && d >= -1 && d <= 1
	}
	if strings.HasSuffix(path, ".limit") {
		// The recorded text is a library's, whose spaces are not stable.
		return ok && spaces.ReplaceAllString(want, " ") == spaces.ReplaceAllString(text, " ")
	}
	return (ok && want == text) || (got == nil && zero(want))
}

// zero reports whether v is what an absent member means.
func zero(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case bool:
		return !v
	case string:
		return v == "" || v == "0" || v == "0s" || v == "UNKNOWN"
	case json.Number:
		return v == "0"
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	default:
		return false
	}
}

// counted are the counters that a scenario lists completely.
func counted(name string) bool {
	for _, prefix := range []string{
		"ratelimit.service.rate_limit.", "ratelimit.service.call.",
		"ratelimit.service.config_load_", "ratelimit.service.global_shadow_mode",
		"ratelimit_server.ShouldRateLimit.total_requests",
	} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// gauged are the gauges that a scenario lists completely.
func gauged(name string) bool {
	for _, g := range []string{"hitCount", "missCount", "lookupCount"} {
		if name == "ratelimit.localcache."+g || strings.HasPrefix(name, "ratelimit.localcache."+g+".__") {
			return true
		}
	}
	return false
}

// matchStatsd compares counters and gauges with the recorded lines.
func matchStatsd(p *problems, want []string, counters map[string]uint64, gauges map[string]int64) {
	got := map[string]bool{}
	for name, v := range counters {
		if counted(name) {
			got[fmt.Sprintf("%s:%d|c", name, v)] = true
		}
	}
	for name, v := range gauges {
		if gauged(name) {
			got[fmt.Sprintf("%s:%d|g", name, v)] = true
		}
	}
	for _, w := range want {
		if !got[w] {
			p.add("statsd: missing %s", w)
		}
		delete(got, w)
	}
	for _, g := range slices.Sorted(maps.Keys(got)) {
		p.add("statsd: not expected %s", g)
	}
}

// stored is a counter as it is in Redis.
type stored struct {
	value string
	ttl   int64
}

// matchStore compares all keys of a Redis with the recorded ones. A recorded
// window is any that began before until and had not ended by from.
func matchStore(p *problems, where string, want []storedKey, got map[string]stored, from, until time.Time) {
	rest := maps.Clone(got)
	for _, w := range want {
		key, v, found := findKey(w, rest, from, until)
		if !found {
			p.add("%s: no key %s", where, w.Key)
			continue
		}
		delete(rest, key)
		if v.value != w.Value {
			p.add("%s: %s is %s, want %s", where, key, v.value, w.Value)
		}
		if v.ttl < w.TTLBetween[0] || v.ttl > w.TTLBetween[1] {
			p.add("%s: %s lives for %ds, want %d to %d", where, key, v.ttl, w.TTLBetween[0], w.TTLBetween[1])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(rest)) {
		p.add("%s: not expected %s = %s", where, key, rest[key].value)
	}
}

func findKey(w storedKey, got map[string]stored, from, until time.Time) (string, stored, bool) {
	if w.Window == 0 {
		v, ok := got[w.Key]
		return w.Key, v, ok
	}
	for start := from.Unix() / w.Window * w.Window; start <= until.Unix(); start += w.Window {
		key := strings.ReplaceAll(w.Key, "<window>", strconv.FormatInt(start, 10))
		if v, ok := got[key]; ok {
			return key, v, true
		}
	}
	return "", stored{}, false
}
