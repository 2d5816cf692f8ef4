package descriptors

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// agree checks one set of rules and some requests against the naive matcher,
// and returns how many requests had a limit.
func agree(t *testing.T, c *choices) (limited int) {
	t.Helper()
	var limits uint32
	naive := c.level(3, &limits)
	text := "domain: d\ndescriptors:\n" + naive.yaml("  ")
	tree, err := Load([]File{{Name: "f.yaml", Data: []byte(text)}}, nil, Options{})
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if len(tree.Rules()) != int(limits) {
		t.Fatalf("%d rules, want %d\n%s", len(tree.Rules()), limits, text)
	}
	var m Match
	for range 200 {
		entries := c.entries()
		tree.Match("d", entries, &m)
		way := naive.match(entries)
		if (m.Rule == nil) != (way == nil) {
			t.Fatalf("%v: rule %v, want %v\n%s", entries, m.Rule, way, text)
		}
		if way == nil {
			continue
		}
		limited++
		if want := way[len(way)-1].node.limit; m.Rule.RequestsPerUnit != want {
			t.Fatalf("%v: limit %d, want %d\n%s", entries, m.Rule.RequestsPerUnit, want, text)
		}
		if got, want := string(m.AppendKey([]byte("x"), "p:", "d", entries)), "xp:"+naiveKey("d", way, entries); got != want {
			t.Fatalf("%v: key %q, want %q\n%s", entries, got, want, text)
		}
		got, want := string(m.AppendStatName([]byte("x:"), "d", entries)), "x:"+naiveStatName("d", way, entries)
		if got != want {
			t.Fatalf("%v: name %q, want %q\n%s", entries, got, want, text)
		}
		if c := m.Rule.StatName; c != "" && "x:"+c != got {
			t.Fatalf("%v: constant name %q, want %q\n%s", entries, c, got, text)
		}
		explained(t, tree, entries, way)
	}
	return limited
}

// explained checks that Explain tells the same.
func explained(t *testing.T, tree *Tree, entries []Entry, way []naiveStep) {
	t.Helper()
	steps, m := tree.Explain("d", entries)
	if len(steps) != len(way) || m.Rule == nil {
		t.Fatalf("%v: explained as %v", entries, steps)
	}
	for i, s := range steps {
		how := way[i].how
		if how == "key" {
			how = "key only"
		}
		if s.How != how || s.Matched != way[i].node.final() || s.Position.Line == 0 || s.Why == "" {
			t.Fatalf("%v: step %d explained as %+v, want %s", entries, i, s, how)
		}
	}
}

func TestMatchAgreesWithNaiveMatcher(t *testing.T) {
	rounds := 100
	if testing.Short() {
		rounds = 20
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	data := make([]byte, 8192)
	limited := 0
	for range rounds {
		for i := range data {
			data[i] = byte(random.Uint32())
		}
		limited += agree(t, &choices{data: data})
	}
	if limited < rounds {
		t.Errorf("only %d requests of %d rule sets had a limit: this tests nothing", limited, rounds)
	}
	t.Logf("%d of %d requests had a limit", limited, 200*rounds)
}

func FuzzMatch(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte(strings.Repeat("gale", 200)))
	f.Fuzz(func(t *testing.T, data []byte) { agree(t, &choices{data: data}) })
}

// many makes n rules of one kind in one domain, and a request for the last.
// It goes around YAML, which takes seconds for so many.
func many(t testing.TB, n int, value func(i int) string, asked string) (*Tree, []Entry) {
	t.Helper()
	tenant := &descriptorSpec{path: "d.tenant", key: placed[string]{v: "tenant"}}
	for i := range n {
		tenant.descriptors = append(tenant.descriptors, &descriptorSpec{
			path: "d.tenant.path_" + value(i), key: placed[string]{v: "path"}, value: placed[string]{v: value(i)},
			limit: &limitSpec{requests: uint32(i + 1), unit: placed[string]{v: "hour"}, unitOK: true},
		})
	}
	tree := newTree(Options{})
	d, errs := compileDomain([]*fileSpec{{domain: placed[string]{v: "d"}, descriptors: []*descriptorSpec{tenant}}}, tree.gale)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	tree.domains["d"] = d
	tree.number()
	entries := []Entry{{"tenant", "acme"}, {"path", asked}}
	var m Match
	tree.Match("d", entries, &m)
	if m.Rule == nil || m.Rule.RequestsPerUnit != uint32(n) {
		t.Fatalf("%v found %v, want the last of %d rules", entries, m.Rule, n)
	}
	return tree, entries
}

// crowds are the kinds of rules whose number must not matter.
func crowds(n int) map[string]func(t testing.TB) (*Tree, []Entry) {
	last := n - 1
	return map[string]func(t testing.TB) (*Tree, []Entry){
		"exact": func(t testing.TB) (*Tree, []Entry) {
			return many(t, n, func(i int) string { return fmt.Sprintf("/api/v%d/orders", i) }, fmt.Sprintf("/api/v%d/orders", last))
		},
		"prefix": func(t testing.TB) (*Tree, []Entry) {
			return many(t, n, func(i int) string { return fmt.Sprintf("/api/v%d/*", i) }, fmt.Sprintf("/api/v%d/orders/17", last))
		},
		"suffix": func(t testing.TB) (*Tree, []Entry) {
			return many(t, n, func(i int) string { return fmt.Sprintf("*.h%d.example.com", i) }, fmt.Sprintf("www.h%d.example.com", last))
		},
		"middle": func(t testing.TB) (*Tree, []Entry) {
			return many(t, n, func(i int) string { return fmt.Sprintf("/t%d/*/orders/*", i) }, fmt.Sprintf("/t%d/users/7/orders/9", last))
		},
	}
}

// Whatever the number of rules, a look-up compares few patterns.
func TestWildcardsCompareFew(t *testing.T) {
	for name, build := range crowds(100_000) {
		if name == "exact" {
			continue
		}
		tree, entries := build(t)
		w := &tree.domains["d"].root.nodes["tenant"].children.wild
		key := []byte("path_" + entries[1].Value)
		compared := 0
		for t, rest := &w.first, key; t != nil; t, rest = t.next(rest, false) {
			if t.last == nil {
				compared += len(t.items)
				continue
			}
			for u, rest := t.last, key; u != nil; u, rest = u.next(rest, true) {
				compared += len(u.items)
			}
		}
		if compared > 16 {
			t.Errorf("%s: %d patterns to compare", name, compared)
		}
	}
}

// Matching, the key and both kinds of names allocate nothing.
func TestAllocations(t *testing.T) {
	for _, n := range []int{10, 100_000} {
		for name, build := range crowds(n) {
			tree, entries := build(t)
			var m Match
			buf := []byte(strings.Repeat(" ", 1024))
			long := []Entry{entries[0], {entries[1].Key, strings.Repeat("x", 500)}}
			got := testing.AllocsPerRun(100, func() {
				tree.Match("d", entries, &m)
				buf = m.AppendKey(buf[:0], "", "d", entries)
				buf = m.AppendStatName(buf[:0], "d", entries)
				tree.Match("d", long, &m)
				tree.Match("unknown", entries, &m)
				buf = AppendOverrideKey(buf[:0], "", "d", entries)
				buf = AppendOverrideStatName(buf[:0], "d", entries)
			})
			if got != 0 {
				t.Errorf("%d %s rules: %v allocations, want 0", n, name, got)
			}
		}
	}
}

// A value far longer than usual does not stay in memory.
func TestMatchForgetsHugeValues(t *testing.T) {
	tree, entries := many(t, 10, func(i int) string { return fmt.Sprintf("/api/v%d/*", i) }, "/api/v9/x")
	var m Match
	tree.Match("d", []Entry{entries[0], {"path", strings.Repeat("x", 4<<20)}}, &m)
	tree.Match("d", []Entry{entries[0], {"path", strings.Repeat("x", 500)}}, &m)
	if cap(m.heap) > keepAtMost {
		t.Errorf("%d bytes are kept", cap(m.heap))
	}
}

func BenchmarkMatch(b *testing.B) {
	for _, n := range []int{10, 100_000} {
		for name, build := range crowds(n) {
			b.Run(fmt.Sprintf("rules=%d/kind=%s", n, name), func(b *testing.B) {
				tree, entries := build(b)
				var m Match
				var key []byte
				b.ReportAllocs()
				for b.Loop() {
					tree.Match("d", entries, &m)
					key = m.AppendKey(key[:0], "", "d", entries)
				}
			})
		}
	}
}

func BenchmarkLoad(b *testing.B) {
	var text strings.Builder
	text.WriteString("domain: d\ndescriptors:\n")
	for i := range 10_000 {
		fmt.Fprintf(&text, "  - {key: path, value: /api/v%d/*, rate_limit: {unit: hour, requests_per_unit: 5}}\n", i)
	}
	files := []File{{Name: "f.yaml", Data: []byte(text.String())}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Load(files, nil, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
