package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"sync"

	"github.com/gale-rls/gale-rls/config"
	"github.com/gale-rls/gale-rls/internal/settings"
	"github.com/gale-rls/gale-rls/internal/stats"
	"github.com/gale-rls/gale-rls/pkg/descriptors"
	"github.com/gale-rls/gale-rls/pkg/descriptors/filesource"
	"github.com/gale-rls/gale-rls/pkg/rls"
)

// ruleSource is where rules come from.
type ruleSource struct {
	// about names it in the log.
	about string
	read  func() ([]descriptors.File, error)
	// watch calls changed after each change until ctx ends; nil for a
	// source that does not change.
	watch func(ctx context.Context, changed func())
}

// openRules returns the source that the settings name: a folder, or, when
// none was named and the default one is not there, the rules we ship. It
// begins to watch, so that nothing is missed between reading and watching.
func openRules(s settings.Source, log *slog.Logger) (ruleSource, error) {
	if _, err := os.Stat(s.Root); !s.RootSet && errors.Is(err, fs.ErrNotExist) {
		return ruleSource{about: "the binary (RUNTIME_ROOT is not set)", read: shippedRules}, nil
	}
	c := filesource.Config{
		Root: s.Root, Subdirectory: s.Subdirectory, AppDirectory: s.AppDirectory,
		IgnoreDotFiles: s.IgnoreDotFiles, WatchRoot: s.WatchRoot,
	}
	folder := path.Join(s.Root, s.Subdirectory, s.AppDirectory)
	watcher, err := filesource.NewWatcher(c, log)
	if err != nil {
		return ruleSource{}, fmt.Errorf("the rules cannot be watched: %w; "+
			"create %s, or point RUNTIME_ROOT, RUNTIME_SUBDIRECTORY and RUNTIME_APPDIRECTORY to where the rules are", err, folder)
	}
	return ruleSource{
		about: folder,
		read:  func() ([]descriptors.File, error) { return filesource.Read(c) },
		watch: watcher.Run,
	}, nil
}

// shippedRules returns the rules in config/rules.
func shippedRules() ([]descriptors.File, error) {
	entries, err := fs.ReadDir(config.Rules, "rules")
	if err != nil {
		return nil, err
	}
	var files []descriptors.File
	for _, e := range entries {
		data, err := fs.ReadFile(config.Rules, path.Join("rules", e.Name()))
		if err != nil {
			return nil, err
		}
		files = append(files, descriptors.File{Name: e.Name(), Data: data})
	}
	return files, nil
}

// ruleLoader brings rules from the source into the service.
type ruleLoader struct {
	source  ruleSource
	options descriptors.Options
	service *rls.Service
	health  *rls.Health
	log     *slog.Logger
	good    *stats.Counter // config_load_success
	bad     *stats.Counter // config_load_error
	files   fileStats

	mu   sync.Mutex // one load at a time: changes and SIGHUP may meet
	last *descriptors.Tree
}

// load reads all files and takes over what is good of them: the domains of a
// bad file keep the rules they had. With nothing good there is no
// configuration, and every request is an error.
func (l *ruleLoader) load() {
	l.mu.Lock()
	defer l.mu.Unlock()
	files, err := l.source.read()
	l.files.count(files, err)
	if err != nil {
		l.bad.Add(1)
		l.log.Error("Error loading new configuration: " + err.Error())
		return
	}
	tree, err := descriptors.Load(files, l.last, l.options)
	if err != nil {
		for _, line := range errorLines(err) {
			l.log.Error("Error loading new configuration: " + line)
		}
	}
	if err == nil || l.last != nil || len(tree.Domains()) > 0 {
		l.last = tree
		l.service.SetRules(tree)
		l.health.RulesLoaded(len(tree.Domains()))
	}
	// Counted last: who waits for a counter may then rely on the rules.
	if err != nil {
		l.bad.Add(1)
		return
	}
	l.good.Add(1)
	if len(files) == 0 {
		l.log.Warn("No rule files found: every request is answered OK", "rules", l.source.about)
	}
	l.log.Info("Successfully loaded new configuration",
		"rules", l.source.about, "files", len(files), "domains", len(tree.Domains()), "limits", len(tree.Rules()))
}

// fileStats are the figures about reading files, under the names that they have
// in envoyproxy/ratelimit.
type fileStats struct {
	attempts, failures *stats.Counter
	values             *stats.Gauge
}

func newFileStats(r *stats.Registry) fileStats {
	return fileStats{
		attempts: r.Counter("runtime.load_attempts"), failures: r.Counter("runtime.load_failures"),
		values: r.Gauge("runtime.num_values"),
	}
}

func (f fileStats) count(files []descriptors.File, err error) {
	f.attempts.Add(1)
	if err != nil {
		f.failures.Add(1)
		return
	}
	for _, one := range files {
		if one.Err != nil {
			f.failures.Add(1)
		}
	}
	f.values.Set(int64(len(files)))
}

// errorLines returns one line for each defect.
func errorLines(err error) []string {
	var all descriptors.Errors
	if !errors.As(err, &all) {
		return []string{err.Error()}
	}
	lines := make([]string, len(all))
	for i, one := range all {
		lines[i] = one.Error()
	}
	return lines
}
