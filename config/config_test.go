package config_test

import (
	"io/fs"
	"os"
	"testing"

	"github.com/gale-rls/gale-rls/config"
	"github.com/gale-rls/gale-rls/pkg/descriptors"
)

// load compiles the files of a folder, as RUNTIME_WATCH_ROOT=false would.
func load(t *testing.T, files fs.FS) *descriptors.Tree {
	t.Helper()
	names, err := fs.Glob(files, "*.yaml")
	if err != nil || len(names) == 0 {
		t.Fatalf("no files (%v)", err)
	}
	var all []descriptors.File
	for _, name := range names {
		data, err := fs.ReadFile(files, name)
		all = append(all, descriptors.File{Name: name, Data: data, Err: err})
	}
	tree, err := descriptors.Load(all, nil, descriptors.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// What the comments in the files say about them.
func TestShippedRules(t *testing.T) {
	rules, err := fs.Sub(config.Rules, "rules")
	if err != nil {
		t.Fatal(err)
	}
	shipped, tour := load(t, rules), load(t, os.DirFS("tour"))
	entries := func(kv ...string) []descriptors.Entry {
		var out []descriptors.Entry
		for i := 0; i < len(kv); i += 2 {
			out = append(out, descriptors.Entry{Key: kv[i], Value: kv[i+1]})
		}
		return out
	}
	for _, c := range []struct {
		tree    *descriptors.Tree
		domain  string
		entries []descriptors.Entry
		path    string // "" for no limit
		mode    descriptors.Mode
	}{
		{shipped, "gale", entries("hello", "you"), "gale.hello", "strict"},
		{shipped, "gale", entries("tenant", "a", "route", "export"), "gale.tenant.route_export", "strict"},
		{shipped, "gale", entries("tenant", "a", "route", "other"), "", ""},
		{shipped, "gale", entries("generic_key", "internal"), "gale.generic_key_internal", "strict"},
		{tour, "tour", entries("path", "/static/logo.png"), "tour.path_/static/*.png", "strict"},
		{tour, "tour", entries("path", "/static/logo.svg"), "tour.path_/static/*", "strict"},
		{tour, "tour", entries("tenant", "acme", "path", "/login"), "tour.tenant.path_/login", "strict"},
		{tour, "tour", entries("tenant", "batch"), "", ""},
		{tour, "tour", entries("tenant", "batch", "path", "/login"), "", ""},
		{tour, "tour", entries("login", "u"), "tour.login", "cached-deny"},
		{tour, "tour", entries("search", "u", "index", "i"), "tour.search.index", "leased"},
		{tour, "tour", entries("upload", "u"), "tour.upload", "cached-deny"},
		{tour, "tour", entries("status", "500"), "tour.status_500", "strict"},
	} {
		var m descriptors.Match
		c.tree.Match(c.domain, c.entries, &m)
		switch {
		case m.Rule == nil && c.path != "":
			t.Errorf("%v: no rule, want %s", c.entries, c.path)
		case m.Rule != nil && (m.Rule.Path != c.path || m.Rule.Gale.Mode != c.mode):
			t.Errorf("%v: %s %s, want %s %s", c.entries, m.Rule.Path, m.Rule.Gale.Mode, c.path, c.mode)
		}
	}
}
