package descriptors

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// rule makes a file with one rule: n per hour for the key.
func rule(domain, key string, n int) string {
	return fmt.Sprintf("domain: %s\ndescriptors: [{key: %s, rate_limit: {unit: hour, requests_per_unit: %d}}]", domain, key, n)
}

// What a bad file does to its own domains and to those of others.
func TestBadFilesKeepThePreviousRules(t *testing.T) {
	broken := "domain: a\ndescriptors: [{key: k, rate_limit: {unit: eon}}]"
	for _, c := range []struct {
		name          string
		before, after map[string]string
		merge         bool
		want, bad     string // rules that hold, files that are reported
	}{
		{
			name:   "a bad file keeps its domain, others change",
			before: map[string]string{"a": rule("a", "k", 1), "b": rule("b", "k", 1)},
			after:  map[string]string{"a": broken, "b": rule("b", "k", 2), "c": rule("c", "k", 1)},
			want:   "a.k=1/HOUR b.k=2/HOUR c.k=1/HOUR", bad: "a",
		},
		{
			name:   "a file that is no YAML keeps the domain that it had",
			before: map[string]string{"a": rule("a", "k", 1), "b": rule("b", "k", 1)},
			after:  map[string]string{"a": "[", "b": rule("b", "k", 2)},
			want:   "a.k=1/HOUR b.k=2/HOUR", bad: "a",
		},
		{
			name:   "an empty file keeps the domain that it had",
			before: map[string]string{"a": rule("a", "k", 1)},
			after:  map[string]string{"a": ""},
			want:   "a.k=1/HOUR", bad: "a",
		},
		{
			name:   "a bad file with a new domain keeps the old one",
			before: map[string]string{"f": rule("b", "k", 1)},
			after:  map[string]string{"f": broken},
			want:   "b.k=1/HOUR", bad: "f",
		},
		{
			name:   "a domain that moved to a good file is that file's",
			before: map[string]string{"f": rule("b", "k", 1)},
			after:  map[string]string{"f": "[", "g": rule("b", "k", 2)},
			want:   "b.k=2/HOUR", bad: "f",
		},
		{
			name:   "nothing to keep",
			before: nil,
			after:  map[string]string{"a": broken, "b": rule("b", "k", 2)},
			want:   "b.k=2/HOUR", bad: "a",
		},
		{
			name:   "a domain of no file goes",
			before: map[string]string{"a": rule("a", "k", 1), "b": rule("b", "k", 1)},
			after:  map[string]string{"b": rule("b", "k", 1)},
			want:   "b.k=1/HOUR",
		},
		{
			name:   "the first file of a duplicate domain has it",
			before: map[string]string{"a": rule("a", "k", 1)},
			after:  map[string]string{"a": rule("a", "k", 2), "b": rule("a", "k", 3)},
			want:   "a.k=2/HOUR", bad: "b",
		},
		{
			name:   "the first file of a duplicate domain is bad",
			before: map[string]string{"a": rule("a", "k", 1)},
			after:  map[string]string{"a": broken, "b": rule("a", "k", 3)},
			want:   "a.k=1/HOUR", bad: "a b",
		},
		{
			name: "a bad part keeps the whole merged domain", merge: true,
			before: map[string]string{"a": rule("a", "k", 1), "b": rule("a", "l", 1), "c": rule("c", "k", 1)},
			after:  map[string]string{"a": broken, "b": rule("a", "l", 2), "c": rule("c", "k", 2)},
			want:   "a.k=1/HOUR a.l=1/HOUR c.k=2/HOUR", bad: "a",
		},
		{
			name: "an unreadable part keeps the whole merged domain", merge: true,
			before: map[string]string{"a": rule("a", "k", 1), "b": rule("a", "l", 1)},
			after:  map[string]string{"a": "[", "b": rule("a", "l", 2)},
			want:   "a.k=1/HOUR a.l=1/HOUR", bad: "a",
		},
		{
			name: "parts that do not fit together", merge: true,
			before: map[string]string{"a": rule("a", "k", 1), "b": rule("a", "l", 1)},
			after:  map[string]string{"a": rule("a", "k", 2), "b": rule("a", "k", 2)},
			want:   "a.k=1/HOUR a.l=1/HOUR", bad: "b",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := Options{MergeDomains: c.merge}
			before, err := Load(files(c.before), nil, o)
			if err != nil {
				t.Fatal(err)
			}
			tree, err := Load(files(c.after), before, o)
			var all Errors
			if errors.As(err, &all); strings.Join(all.Files(), " ") != c.bad {
				t.Errorf("bad files %v, want %s: %v", all.Files(), c.bad, err)
			}
			if got := limits(tree); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			// The same again: what was kept can be kept on.
			if again, _ := Load(files(c.after), tree, o); limits(again) != c.want {
				t.Errorf("again: %s", limits(again))
			}
			for i, r := range tree.Rules() {
				if r.Index != i {
					t.Errorf("rule %d has index %d", i, r.Index)
				}
			}
		})
	}
}

// A file that cannot be read is a bad file.
func TestUnreadableFile(t *testing.T) {
	before := load(t, rule("a", "k", 1))
	tree, err := Load([]File{{Name: "f.yaml", Err: errors.New("permission denied")}}, before, Options{})
	if err == nil || err.Error() != "f.yaml: error loading config file: permission denied" {
		t.Errorf("err = %v", err)
	}
	if got := limits(tree); got != "a.k=1/HOUR" {
		t.Errorf("rules %s", got)
	}
}

// Wildcards of merged files are tried in the order of the file names.
func TestFilesAreSorted(t *testing.T) {
	wild := "domain: d\ndescriptors: [{key: k, value: %q, rate_limit: {unit: hour, requests_per_unit: %d}}]"
	tree, err := Load([]File{
		{Name: "c", Data: []byte(fmt.Sprintf(wild, "*x*", 3))},
		{Name: "a", Data: []byte(fmt.Sprintf(wild, "*y*", 1))},
		{Name: "b", Data: []byte(fmt.Sprintf(wild, "*", 2))},
	}, nil, Options{MergeDomains: true})
	if err != nil {
		t.Fatal(err)
	}
	for value, want := range map[string]uint32{"xy": 1, "x": 2} {
		var m Match
		tree.Match("d", []Entry{{"k", value}}, &m)
		if m.Rule == nil || m.Rule.RequestsPerUnit != want || m.Rule.Position.File != string("abc"[want-1]) {
			t.Errorf("%s: %+v, want %d", value, m.Rule, want)
		}
	}
}

// All errors of all files, each with its place.
func TestAllErrorsAreReported(t *testing.T) {
	_, err := Load([]File{
		{Name: "b.yaml", Data: []byte("domain: b\ndescriptors:\n  - key: k\n    rate_limit:\n      unit: eon\n      requests_per_unit: -1\n      requests: 5\n  - value: v\n")},
		{Name: "a.yaml", Data: []byte("domain: a\nfoo: 1\n")},
	}, nil, Options{})
	want := []string{
		"a.yaml: config error, unknown key 'foo' (line 2, column 1, descriptor a)",
		"b.yaml: invalid rate limit unit 'eon': it is second, minute, hour, day, week, month or year (line 5, column 13, descriptor b.k)",
		"b.yaml: error loading config file: requests_per_unit must be a whole number from 0 to 4294967295, without quotes, not -1 (line 6, column 26, descriptor b.k)",
		"b.yaml: config error, unknown key 'requests' (line 7, column 7, descriptor b.k)",
		"b.yaml: descriptor has empty key (line 8, column 5, descriptor b)",
	}
	if err == nil || err.Error() != strings.Join(want, "\n") {
		t.Errorf("got\n%v\nwant\n%s", err, strings.Join(want, "\n"))
	}
	var one *Error
	if !errors.As(err, &one) || one.File != "a.yaml" || one.Line != 2 {
		t.Errorf("errors.As found %v", one)
	}
}

func TestDump(t *testing.T) {
	tree := load(t, `
domain: d
descriptors:
  - {key: z, shadow_mode: on, rate_limit: {unit: week, requests_per_unit: 3}}
  - {key: a, value: x*, quota_mode: on, rate_limit: {unlimited: true, requests_per_unit: 4}}
  - key: placeholder
    descriptors: [{key: b, rate_limit: {unit: year}}]
`)
	var b strings.Builder
	if err := tree.Dump(&b); err != nil {
		t.Fatal(err)
	}
	want := `d.a_x*: unit=UNKNOWN requests_per_unit=4, shadow_mode: false, quota_mode: true
d.placeholder.b: unit=YEAR requests_per_unit=0, shadow_mode: false, quota_mode: false
d.z: unit=WEEK requests_per_unit=3, shadow_mode: true, quota_mode: false
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}
