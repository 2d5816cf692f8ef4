package descriptors

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestGaleIsInherited(t *testing.T) {
	yes, no := true, false
	const text = `
domain: d
gale: {mode: leased, on_unavailable: allow, lease: {size: 50, prefetch: no}}
descriptors:
  - key: plain
    rate_limit: {unit: hour}
    descriptors:
      - key: below
        rate_limit: {unit: hour}
  - key: own
    gale:
      on_unavailable: local-share
      lease: {size: auto, max: 70, prefetch: yes, idle_return: 1m, durability: replicated}
    rate_limit: {unit: hour}
    descriptors:
      - key: below
        metadata: {gale: {lease: {idle_return: never}}}
        rate_limit: {unit: hour}
      - key: strict
        gale: {mode: strict, on_unavailable: error}
        rate_limit: {unit: hour}
  - key: placeholder
    metadata: {gale: {mode: cached-deny}}
    descriptors:
      - key: below
        rate_limit: {unlimited: true}
`
	want := map[string]Gale{
		"d.plain":             {ModeLeased, OnUnavailableAllow, Lease{Size: 50, Prefetch: &no}},
		"d.plain.below":       {ModeLeased, OnUnavailableAllow, Lease{Size: 50, Prefetch: &no}},
		"d.own":               {ModeLeased, OnUnavailableLocalShare, Lease{0, 70, &yes, time.Minute, "replicated"}},
		"d.own.below":         {ModeLeased, OnUnavailableLocalShare, Lease{0, 70, &yes, -1, "replicated"}},
		"d.own.strict":        {ModeStrict, OnUnavailableError, Lease{}},
		"d.placeholder.below": {ModeCachedDeny, OnUnavailableAllow, Lease{}},
	}
	tree := load(t, text)
	for _, r := range tree.Rules() {
		if !reflect.DeepEqual(r.Gale, want[r.Path]) {
			t.Errorf("%s: %+v, want %+v", r.Path, r.Gale, want[r.Path])
		}
	}
	if got := tree.DomainGale("d"); got.Mode != ModeLeased || got.Lease.Size != 50 {
		t.Errorf("domain: %+v", got)
	}
	if got := tree.DomainGale("unknown"); got != (Gale{Mode: ModeStrict}) {
		t.Errorf("unknown domain: %+v", got)
	}
}

func TestDefaultMode(t *testing.T) {
	files := []File{{Name: "f.yaml", Data: []byte(`
domain: d
descriptors:
  - {key: a, rate_limit: {unit: hour}}
  - {key: b, rate_limit: {unit: hour}, gale: {mode: strict}}
  - {key: c, rate_limit: {unit: hour}, gale: {lease: {max: 5}}}
`)}}
	tree, err := Load(files, nil, Options{DefaultMode: ModeLeased})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []Mode{ModeLeased, ModeStrict, ModeLeased} {
		if got := tree.Rules()[i].Gale.Mode; got != want {
			t.Errorf("rule %d: %s, want %s", i, got, want)
		}
	}
	if _, err := Load(files, nil, Options{}); err == nil || !strings.Contains(err.Error(), "lease has no effect in mode 'strict'") {
		t.Errorf("lease without leased mode: %v", err)
	}
}

func TestGaleErrors(t *testing.T) {
	for _, c := range []struct{ block, want string }{
		{"gale: {mod: strict}", "unknown key 'mod' in gale; did you mean 'mode'? (known: mode, on_unavailable or lease) (line 4, column 12, descriptor d.k)"},
		{"gale: {mode: lease}", "mode must be strict, cached-deny or leased, not 'lease'; did you mean 'leased'? (line 4, column 18, descriptor d.k)"},
		{"gale: {mode: Strict}", "not 'Strict'; did you mean 'strict'?"},
		{"gale: {mode: async}", "mode 'async' is not available in this version; use strict, cached-deny or leased"},
		{"gale: {mode: federated}", "mode 'federated' is not available in this version"},
		{"gale: {mode: [strict]}", "mode must be strict, cached-deny or leased, not '[strict]'"},
		{"gale: leased", "gale must be a map of mode, on_unavailable and lease, not leased"},
		{"gale: {on_unavailable: localshare}", "did you mean 'local-share'?"},
		{"gale: {on_unavailable: yes}", "on_unavailable must be error, allow, deny or local-share, not 'true'"},
		{"gale: {mode: strict, lease: {size: 5}}", "lease has no effect in mode 'strict': say mode: leased, or remove it (line 4, column 33, descriptor d.k)"},
		{"gale: {lease: {}}", "lease has no effect in mode 'strict'"},
		{"gale: {mode: leased, lease: 5}", "lease must be a map"},
		{"gale: {mode: leased, lease: {sise: 5}}", "unknown key 'sise' in lease; did you mean 'size'?"},
		{"gale: {mode: leased, lease: {size: 0}}", "lease.size must be auto or a whole number from 1 to 4294967295, not '0'"},
		{"gale: {mode: leased, lease: {size: -1}}", "lease.size must be auto or"},
		{"gale: {mode: leased, lease: {size: 1.5}}", "lease.size must be auto or"},
		{"gale: {mode: leased, lease: {max: auto}}", "lease.max must be a whole number from 1 to 4294967295, not 'auto'"},
		{"gale: {mode: leased, lease: {max: 4294967296}}", "lease.max must be a whole number"},
		{"gale: {mode: leased, lease: {size: 7, max: 6}}", "lease.size 7 is more than lease.max 6 (line 4, column 40, descriptor d.k)"},
		{"gale: {mode: leased, lease: {prefetch: maybe}}", "prefetch must be true or false"},
		{"gale: {mode: leased, lease: {idle_return: 5}}", "lease.idle_return must be never or a duration from 10ms to 24h0m0s such as 5s, not '5'"},
		{"gale: {mode: leased, lease: {idle_return: 1ms}}", "lease.idle_return must be"},
		{"gale: {mode: leased, lease: {idle_return: 25h}}", "lease.idle_return must be"},
		{"gale: {mode: leased, lease: {durability: none}}", "lease.durability must be default or replicated, not 'none'"},
		{"metadata: {gale: {modes: strict}}", "unknown key 'modes' in gale; did you mean 'mode'? (known: mode, on_unavailable or lease) (line 4, column 23, descriptor d.k)"},
		{"metadata: {gale: text}", "gale must be a map"},
		{"gale: {}\n    metadata: {gale: {}}", "gale and metadata.gale mean the same: keep one of them (line 5, column 22, descriptor d.k)"},
		{"rate_limit: {unit: hour, gale: {}}", "config error, unknown key 'gale' here: it stands on the domain or on a descriptor (line 4, column 30, descriptor d.k)"},
		{"rate_limit: {unit: hour, replaces: [{name: x, gale: {}}]}", "unknown key 'gale' here"},
		{"gales: {}", "config error, unknown key 'gales'; did you mean 'gale'?"},
	} {
		got := defects(t, "domain: d\ndescriptors:\n  - key: k\n    "+c.block+"\n")
		if !strings.HasPrefix(got, "f.yaml: ") || !strings.Contains(got, c.want) || strings.Contains(got, "\n") {
			t.Errorf("%s\ngot  %s\nwant %s", c.block, got, c.want)
		}
	}
	for _, c := range []struct{ text, want string }{
		{"domain: d\ngale: {mode: strict, lease: {size: 5}}", "lease has no effect in mode 'strict': say mode: leased, or remove it (line 2, column 29, descriptor d)"},
		{"domain: d\ngale: {mode: async}", "mode 'async' is not available"},
		{"domain: d\nmetadata: {gale: {mode: x}}", "mode must be"},
		{"domain: d\ngale: {}\nmetadata: {gale: {}}", "mean the same"},
	} {
		if got := defects(t, c.text); !strings.Contains(got, c.want) {
			t.Errorf("%s\ngot  %s\nwant %s", c.text, got, c.want)
		}
	}
}

// A file that envoyproxy/ratelimit accepts stays acceptable: metadata of a
// domain, or misplaced, means nothing there.
func TestMetadataElsewhereIsIgnored(t *testing.T) {
	load(t, "domain: d\nmetadata: text\ndescriptors: [{key: k, rate_limit: {unit: hour, metadata: [gale]}}]")
}
