package descriptors

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// load compiles one file of the domain d, which must be good.
func load(t *testing.T, text string) *Tree {
	t.Helper()
	tree, err := Load([]File{{Name: "f.yaml", Data: []byte(text)}}, nil, Options{})
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return tree
}

// defects compiles one file and returns what is wrong with it.
func defects(t *testing.T, text string) string {
	t.Helper()
	_, err := Load([]File{{Name: "f.yaml", Data: []byte(text)}}, nil, Options{})
	if err == nil {
		return ""
	}
	return err.Error()
}

// limits shows rules as "path=requests/unit".
func limits(tree *Tree) string {
	var out []string
	for _, r := range tree.Rules() {
		out = append(out, fmt.Sprintf("%s=%d/%s", r.Path, r.RequestsPerUnit, r.Unit))
	}
	return strings.Join(out, " ")
}

// How the reference reads YAML: YAML 1.1 words and numbers, the later of two
// equal keys, merges in the order in which they stand, one document.
func TestYAMLAsTheReferenceReadsIt(t *testing.T) {
	for _, c := range []struct{ name, rules, want string }{
		{"octal, hex, binary, underscore, sign", `
  - {key: a, rate_limit: {unit: hour, requests_per_unit: 010}}
  - {key: b, rate_limit: {unit: hour, requests_per_unit: 0o10}}
  - {key: c, rate_limit: {unit: hour, requests_per_unit: 0x10}}
  - {key: d, rate_limit: {unit: hour, requests_per_unit: 0b10}}
  - {key: e, rate_limit: {unit: hour, requests_per_unit: 1_0}}
  - {key: f, rate_limit: {unit: hour, requests_per_unit: +7}}
  - {key: g, rate_limit: {unit: hour, requests_per_unit: !!int "9"}}`,
			"d.a=8/HOUR d.b=8/HOUR d.c=16/HOUR d.d=2/HOUR d.e=10/HOUR d.f=7/HOUR d.g=9/HOUR"},
		{"words and numbers as text", `
  - {key: on, value: 1:30, rate_limit: {unit: hour}}
  - {key: yes, value: 2020-01-01, rate_limit: {unit: hour}}
  - {key: 0x1F, value: 007, rate_limit: {unit: hour}}
  - {key: !!str 5, value: !!binary aGk=, rate_limit: {unit: hour}}
  - {key: k, value: ~, rate_limit: {unit: hour}}`,
			"d.on_1:30=0/HOUR d.yes_2020-01-01=0/HOUR d.0x1F_007=0/HOUR d.5_hi=0/HOUR d.k=0/HOUR"},
		{"a merge key after a key overrides it", `
  - {key: a, rate_limit: &l {unit: hour, requests_per_unit: 5}}
  - {key: b, rate_limit: {requests_per_unit: 7, <<: *l}}
  - {key: c, rate_limit: {<<: *l, requests_per_unit: 7}}
  - {key: e, rate_limit: {<<: [{unit: day}, *l]}}`,
			"d.a=5/HOUR d.b=5/HOUR d.c=7/HOUR d.e=5/DAY"},
		{"a second rate_limit is laid over the first", `
  - {key: a, rate_limit: {unit: hour, requests_per_unit: 5}, rate_limit: {unit: day}}
  - {key: b, rate_limit: {unit: hour, requests_per_unit: 5}, rate_limit: null}`,
			"d.a=5/DAY"},
		{"a descriptor by alias", `
  - &x {key: a, rate_limit: {unit: hour, requests_per_unit: 5}}
  - {key: b, descriptors: [*x]}`,
			"d.a=5/HOUR d.b.a=5/HOUR"},
		{"nothing below and no limit", `
  - {key: a, descriptors: [], rate_limit: null}
  - {key: b, descriptors: ~, rate_limit: ~, metadata: ~, gale: ~}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := limits(load(t, "domain: d\ndescriptors:"+c.rules+"\n")); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestOnlyTheFirstDocumentIsRead(t *testing.T) {
	for _, second := range []string{"domain: other", "[not, rules", "\t%", "...\n---\nx: *nowhere"} {
		tree := load(t, "\ufeffdomain: d\r\ndescriptors:\r\n  - {key: a, rate_limit: {unit: hour}}\r\n---\r\n"+second)
		if got := limits(tree); got != "d.a=0/HOUR" {
			t.Errorf("%q: %s", second, got)
		}
	}
}

func TestMetadata(t *testing.T) {
	tree := load(t, `
domain: d
descriptors:
  - key: a
    metadata: {text: x, n: 0x10, f: 1.5, yes: on, no: ~, date: 2020-01-01, list: [1, {7: s}], <<: {m: {on: 1}},
               gale: {mode: cached-deny}}
    rate_limit: {unit: hour}
  - key: b
    metadata: {gale: {mode: cached-deny}}
    rate_limit: {unit: hour}
  - key: c
    metadata: {}
    rate_limit: {unit: hour}
`)
	want := map[string]any{
		"text": "x", "n": 16.0, "f": 1.5, "yes": true, "no": nil, "date": "2020-01-01",
		"list": []any{1.0, map[string]any{"7": "s"}}, "m": map[string]any{"true": 1.0},
	}
	rules := tree.Rules()
	if !reflect.DeepEqual(rules[0].Metadata, want) {
		t.Errorf("got  %v\nwant %v", rules[0].Metadata, want)
	}
	for _, r := range rules[1:] {
		if r.Metadata != nil {
			t.Errorf("%s: metadata %v, want none", r.Path, r.Metadata)
		}
	}
	if rules[0].Gale.Mode != ModeCachedDeny || rules[1].Gale.Mode != ModeCachedDeny {
		t.Error("metadata.gale has no effect")
	}
}

// Files that are small and would be large, and other attacks, are errors.
func TestHostileFiles(t *testing.T) {
	var bomb strings.Builder
	bomb.WriteString("a0: &a0 [{key: k}]\n")
	for i := 1; i < 12; i++ {
		fmt.Fprintf(&bomb, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 10), ","))
	}
	deep := func(n int) string {
		text := "domain: d\ndescriptors: "
		for range n {
			text += "[{key: k, descriptors: "
		}
		return text + "[]" + strings.Repeat("}]", n)
	}
	if err := defects(t, deep(maxDepth)); err != "" {
		t.Errorf("%d levels: %s", maxDepth, err)
	}
	for _, c := range []struct{ name, text, want string }{
		{"bomb", bomb.String(), "excessive aliasing"},
		{"many levels", deep(maxDepth + 1), "nested deeper than 128 levels"},
		{"very many levels", deep(3000), "nested deeper than"},
		{"brackets", "domain: d\nmetadata: " + strings.Repeat("[", 100_000), "error loading config file: "},
		{"indents", strings.Repeat("- ", 20_000), "error loading config file: "},
		{"braces", strings.Repeat("{a: ", 9_000), "error loading config file: "},
		{"long keys repeated", "domain: &d " + strings.Repeat("x", 1<<20) + "\ndescriptors: [" + strings.Repeat("{key: a, value: *d},", 400) + "]", "keys and values are too long"},
		{"self", "domain: d\ndescriptors: &x [{key: k, descriptors: *x}]", "anchor 'x' value contains itself"},
		{"self merge", "domain: d\ndescriptors:\n  - &x {key: k, <<: *x}", "anchor 'x' value contains itself"},
		{"map as key", "domain: d\n? {a: b}\n: c\n", "invalid map key"},
		{"merge of text", "domain: d\ndescriptors: [{key: k, <<: text}]", "map merge requires map"},
		{"bad base64", "domain: d\ndescriptors: [{key: !!binary '%'}]", "invalid base64"},
		{"bad tag", "domain: !!int d\n", "cannot decode `d` as a !!int"},
		{"not UTF-8", "domain: \xff\n", "error loading config file: yaml: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := defects(t, c.text)
			if !strings.Contains(got, c.want) {
				t.Errorf("got %.300q, want %q", got, c.want)
			}
		})
	}
}

func FuzzLoad(f *testing.F) {
	f.Add([]byte("domain: d\ndescriptors:\n  - key: a\n    value: x*\n    rate_limit: {unit: hour, requests_per_unit: 1}\n"), false)
	f.Add([]byte("domain: d\ngale: {mode: leased, lease: {size: 5, idle_return: 5s}}\ndescriptors: [{key: a, metadata: {gale: {mode: strict}}}]"), true)
	f.Add([]byte("domain: &a d\ndescriptors: [&b {key: *a, <<: {value: b}, rate_limit: {unlimited: yes, replaces: [{name: x}]}}, *b]"), true)
	for _, c := range rejectedByReference(f) {
		for _, text := range c.Files {
			f.Add([]byte(text), len(c.Env) > 0)
		}
	}
	previous, err := Load([]File{{Name: "f.yaml", Data: []byte("domain: d\ndescriptors: [{key: a}]")}}, nil, Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte, merge bool) {
		files := []File{{Name: "f.yaml", Data: data}, {Name: "g.yaml", Data: data}, {Name: "h.yaml", Data: []byte("domain: sound")}}
		tree, err := Load(files, previous, Options{MergeDomains: merge})
		if err == nil && len(tree.Domains()) == 0 {
			t.Fatal("neither domains nor an error")
		}
		var dump strings.Builder
		if err := tree.Dump(&dump); err != nil || strings.Count(dump.String(), ": unit=") < len(tree.Rules()) {
			t.Fatalf("%v: %s", err, dump.String())
		}
		var m Match
		for i, r := range tree.Rules() {
			if r.Index != i || r.Gale.Mode == "" || !r.Unlimited && r.Unit == UnitUnknown {
				t.Fatalf("rule %d: %+v", i, r)
			}
			entries := []Entry{{"a", r.Name}, {strings.TrimPrefix(r.Path, r.Domain+"."), ""}, {"a", "xyz"}}
			for j := range entries {
				tree.Match(r.Domain, entries[j:], &m)
				m.AppendKey(nil, "", r.Domain, entries[j:])
				m.AppendStatName(nil, r.Domain, entries[j:])
				tree.Explain(r.Domain, entries[j:])
			}
		}
	})
}
