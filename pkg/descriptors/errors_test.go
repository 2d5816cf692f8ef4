package descriptors

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
)

// rejected is a configuration that envoyproxy/ratelimit rejects.
type rejected struct {
	Name          string            `json:"name"`
	Env           map[string]string `json:"env"`
	Files         map[string]string `json:"files"`
	ErrorContains string            `json:"error_contains"`
	Exact         string            `json:"exact"`
}

func files(content map[string]string) []File {
	var out []File
	for name, text := range content {
		out = append(out, File{Name: name, Data: []byte(text)})
	}
	return out
}

func rejectedByReference(t testing.TB) []rejected {
	t.Helper()
	data, err := os.ReadFile("testdata/config-errors.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []rejected
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	return cases
}

// Every recorded text stands directly behind a file's name, and every error
// has a place.
func TestErrorsOfTheReference(t *testing.T) {
	cases := rejectedByReference(t)
	if len(cases) != 107 {
		t.Fatalf("%d cases, want 107", len(cases))
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			tree, err := Load(files(c.Files), nil, Options{MergeDomains: c.Env["MERGE_DOMAIN_CONFIG"] == "true"})
			var all Errors
			if !errors.As(err, &all) {
				t.Fatalf("err = %v, want Errors", err)
			}
			want := []string{c.Exact[:strings.Index(c.Exact, ":")] + ": " + c.ErrorContains}
			if strings.HasPrefix(c.Exact, "<file>") {
				want = nil
				for name := range c.Files {
					want = append(want, name+": "+c.ErrorContains)
				}
			}
			if !slices.ContainsFunc(want, func(w string) bool { return strings.Contains(err.Error(), w) }) {
				t.Errorf("got  %s\nwant %s", err, want)
			}
			for _, e := range all {
				if e.Line == 0 {
					t.Errorf("%s: no line", e)
				}
			}
			if tree == nil {
				t.Error("no tree")
			}
			if testing.Verbose() {
				t.Log(err)
			}
		})
	}
}
