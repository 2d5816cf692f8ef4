package descriptors

import (
	"fmt"
	"strings"
	"testing"
)

func TestExplain(t *testing.T) {
	tree := load(t, `domain: d
descriptors:
  - key: tenant
    rate_limit: {unit: hour}
    descriptors:
      - key: path
        value: /a/*
        rate_limit: {unit: hour}
      - key: path
        value: /a/b
  - key: tenant
    value: x
`)
	for _, c := range []struct {
		entries []Entry
		want    []string // how, what and where, and a part of why
		rule    string
	}{
		{[]Entry{{"tenant", "t"}}, []string{"key only tenant 3 its rate_limit applies"}, "d.tenant"},
		{[]Entry{{"tenant", "t"}, {"path", "/a/x"}}, []string{"key only tenant 3 takes any", "wildcard path_/a/* 6 first wildcard"}, "d.tenant.path_/a/*"},
		{[]Entry{{"tenant", "t"}, {"path", "/a/b"}}, []string{"key only tenant 3 takes any", "exact path_/a/b 9 no rate_limit"}, ""},
		{[]Entry{{"tenant", "t"}, {"path", "/b"}}, []string{"key only tenant 3 takes any", `nothing  0 no descriptor "path_/b"`}, ""},
		{[]Entry{{"tenant", "x"}, {"path", "/a/b"}}, []string{"exact tenant_x 11 no descriptors below", "nothing  0 more entries than"}, ""},
		{[]Entry{{"other", "x"}, {"path", "/a/b"}}, []string{`nothing  0 no descriptor "other_x"`}, ""},
		{nil, nil, ""},
	} {
		steps, m := tree.Explain("d", c.entries)
		if len(steps) != len(c.want) {
			t.Errorf("%v: %+v", c.entries, steps)
			continue
		}
		for i, s := range steps {
			got := fmt.Sprintf("%s %s %d ", s.How, s.Matched, s.Position.Line)
			if !strings.HasPrefix(c.want[i], got) || !strings.Contains(s.Why, strings.TrimPrefix(c.want[i], got)) || s.Entry != c.entries[i] {
				t.Errorf("%v: step %d is %s(%s), want %s", c.entries, i, got, s.Why, c.want[i])
			}
		}
		switch {
		case m.Rule == nil && c.rule != "" || m.Rule != nil && m.Rule.Path != c.rule:
			t.Errorf("%v: rule %+v, want %q", c.entries, m.Rule, c.rule)
		case !m.DomainKnown:
			t.Errorf("%v: domain not known", c.entries)
		}
	}
	if steps, m := tree.Explain("unknown", []Entry{{"a", "b"}}); steps != nil || m.DomainKnown || m.Rule != nil {
		t.Errorf("unknown domain: %v %v", steps, m.Rule)
	}
}
