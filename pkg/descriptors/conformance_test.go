package descriptors

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// recorded is a scenario of what envoyproxy/ratelimit answers, as far as it
// concerns rules: integration/testdata/conformance/README.md has the format.
type recorded struct {
	Name  string            `json:"name"`
	Env   map[string]string `json:"env"`
	Files map[string]string `json:"files"`
	Steps []struct {
		Request *recordedRequest `json:"request"`
		Reload  json.RawMessage  `json:"reload"`
		Expect  struct {
			Code     string `json:"grpc_code"`
			Response struct {
				Statuses []struct {
					CurrentLimit *struct {
						Name            string `json:"name"`
						RequestsPerUnit uint32 `json:"requestsPerUnit"`
						Unit            string `json:"unit"`
					} `json:"currentLimit"`
				} `json:"statuses"`
			} `json:"response"`
		} `json:"expect"`
	} `json:"steps"`
	Redis     []recordedKey `json:"redis"`
	PerSecond []recordedKey `json:"redis_per_second"`
	Statsd    []string      `json:"statsd"`
}

type recordedKey struct {
	Key string `json:"key"`
}

type recordedRequest struct {
	Domain      string `json:"domain"`
	Descriptors []struct {
		Entries []Entry         `json:"entries"`
		Limit   json.RawMessage `json:"limit"`
	} `json:"descriptors"`
}

// The rules that the recorded requests hit, the counters and the statistics
// that they name are those that were recorded.
func TestConformance(t *testing.T) {
	// Other categories are about counting, and drop limits for other reasons.
	for _, category := range []string{"match", "accept", "merge", "share", "key", "stats", "value", "override", "duplicate", "unit"} {
		paths, err := filepath.Glob("../../integration/testdata/conformance/" + category + "-*.json")
		if err != nil || len(paths) == 0 {
			t.Fatalf("no scenarios for %s (%v)", category, err)
		}
		for _, path := range paths {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var s recorded
			if err := json.Unmarshal(data, &s); err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			switch s.Name {
			case "accept-dot-files-ignored": // the business of filesource
			case "override-not-replaced", "stats-no-rule-no-stats": // drop limits after matching
			default:
				t.Run(s.Name, func(t *testing.T) { replay(t, s) })
			}
		}
	}
}

func replay(t *testing.T, s recorded) {
	tree, err := Load(files(s.Files), nil, Options{MergeDomains: s.Env["MERGE_DOMAIN_CONFIG"] == "true"})
	if err != nil && s.Name != "stats-config-load-error" {
		t.Fatal(err)
	}
	keys, names := map[string]bool{}, map[string]bool{}
	for i, step := range s.Steps {
		if step.Reload != nil {
			return
		}
		if step.Request == nil || step.Expect.Code != "OK" {
			continue
		}
		statuses := step.Expect.Response.Statuses
		for j, d := range step.Request.Descriptors {
			var m Match
			domain := step.Request.Domain
			tree.Match(domain, d.Entries, &m)
			if !m.DomainKnown {
				continue
			}
			var key, name []byte
			switch {
			case d.Limit != nil:
				key = AppendOverrideKey(nil, s.Env["CACHE_KEY_PREFIX"], domain, d.Entries)
				name = AppendOverrideStatName(nil, domain, d.Entries)
			case m.Rule == nil || m.Rule.Unlimited:
				if j < len(statuses) && statuses[j].CurrentLimit != nil {
					t.Errorf("step %d, descriptor %d: no limit, want %v", i, j, *statuses[j].CurrentLimit)
				}
				continue
			default:
				key = m.AppendKey(nil, s.Env["CACHE_KEY_PREFIX"], domain, d.Entries)
				name = m.AppendStatName(nil, domain, d.Entries)
				if c := m.Rule.StatName; c != "" && c != string(name) {
					t.Errorf("StatName %q, AppendStatName %q", c, name)
				}
				if j >= len(statuses) {
					break
				}
				want := statuses[j].CurrentLimit
				if want == nil || want.RequestsPerUnit != m.Rule.RequestsPerUnit || want.Unit != m.Rule.Unit.String() || want.Name != m.Rule.Name {
					t.Errorf("step %d, descriptor %d: %d per %s, want %v", i, j, m.Rule.RequestsPerUnit, m.Rule.Unit, want)
				}
			}
			keys[string(key)+"<window>"] = true
			names[string(name)] = true
		}
	}
	compareRecorded(t, s, keys, names)
}

func compareRecorded(t *testing.T, s recorded, keys, names map[string]bool) {
	for _, r := range append(s.Redis, s.PerSecond...) {
		if !keys[r.Key] {
			t.Errorf("counter %q was not named", r.Key)
		}
		delete(keys, r.Key)
	}
	if len(s.Redis) > 0 && len(keys) > 0 {
		t.Errorf("counters %v are not recorded", keys)
	}
	for _, line := range s.Statsd {
		name, isHits := strings.CutPrefix(line, "ratelimit.service.rate_limit.")
		name, _, found := strings.Cut(name, ".total_hits")
		if !isHits || !found {
			continue
		}
		if !names[name] {
			t.Errorf("statistics %q were not named: %v", name, names)
		}
		delete(names, name)
	}
	// Its newline cuts the recorded line in two; ours is an underscore.
	delete(names, "match-whitespace-is-significant.k_a_")
	if len(names) > 0 {
		t.Errorf("statistics %v are not recorded", names)
	}
}
