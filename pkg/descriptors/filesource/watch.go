package filesource

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// DefaultDebounce is long enough to see one change where a publisher
	// makes several steps, and short beside everything else in a rollout.
	DefaultDebounce = 100 * time.Millisecond
	// maxDelay bounds how long a stream of events can put a change off.
	maxDelay = 10 * DefaultDebounce
)

// Watch calls changed after each change of the rule files, from this
// goroutine, until ctx ends; then it returns nil. It returns an error at once
// when what is to be watched cannot be. To miss no change between the first
// Read and the watch, use NewWatcher before the Read.
func Watch(ctx context.Context, c Config, log *slog.Logger, changed func()) error {
	w, err := NewWatcher(c, log)
	if err != nil {
		return err
	}
	w.Run(ctx, changed)
	return nil
}

// Watcher notices changes from its making on.
type Watcher struct {
	config Config
	log    *slog.Logger
	notify *fsnotify.Watcher
	// target is the root link, or the directory of the files. Its parent is
	// watched for it.
	target string
}

// NewWatcher begins to watch: the parent of Root with WatchRoot, else the
// directory of the files, which must exist. Run must be called to end it. A
// nil log says nothing.
func NewWatcher(c Config, log *slog.Logger) (*Watcher, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	if c.Debounce <= 0 {
		c.Debounce = DefaultDebounce
	}
	target := c.Root
	if !c.WatchRoot {
		target = c.base()
	} else if c.Subdirectory == "" {
		log.Warn("no rule files are read: RUNTIME_WATCH_ROOT is true and RUNTIME_SUBDIRECTORY is not set")
	}
	target, err := filepath.Abs(target)
	if err != nil {
		return nil, fmt.Errorf("unable to watch file (%s): %w", target, err)
	}
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("unable to watch file (%s): %w", target, err)
	}
	w := &Watcher{config: c, log: log, notify: notify, target: target}
	if err := w.begin(); err != nil {
		_ = notify.Close() // the reason is err
		return nil, err
	}
	return w, nil
}

func (w *Watcher) begin() error {
	parent := filepath.Dir(w.target)
	err := w.notify.Add(parent)
	if w.config.WatchRoot {
		if err != nil {
			return fmt.Errorf("unable to watch file (%s): %w", parent, err)
		}
		return nil
	}
	if err != nil { // a mount point's parent may be closed to us
		w.log.Info("the replacement of the rule directory will not be noticed", "directory", w.target, "error", err)
	}
	return w.follow()
}

// follow watches the directories that there are now. Watches of directories
// that are gone end by themselves.
func (w *Watcher) follow() error {
	if w.config.WatchRoot {
		return nil
	}
	base, err := filepath.EvalSymlinks(w.target)
	if err != nil {
		return fmt.Errorf("unable to watch file (%s): %w", w.target, err)
	}
	var failed error
	err = w.config.walk(base, func(string, string, error) {}, func(path string) {
		// A path may have been watched for a directory that another has
		// replaced since: only a fresh watch is sure to be of this one.
		_ = w.notify.Remove(path)
		if err := w.notify.Add(path); err != nil && failed == nil {
			failed = fmt.Errorf("unable to watch file (%s): %w", path, err)
		}
	})
	if err != nil {
		return fmt.Errorf("unable to watch file (%s): %w", w.target, err)
	}
	return failed
}

// Run calls changed after each change, from this goroutine, until ctx ends.
// It is to be called once.
func (w *Watcher) Run(ctx context.Context, changed func()) {
	defer func() { _ = w.notify.Close() }() // nothing was written
	quiet := time.NewTimer(0)
	<-quiet.C
	var first time.Time // of the events not told yet; zero if there are none
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-w.notify.Events:
			if !w.concerns(e) {
				continue
			}
			first = w.delay(quiet, first)
		case err := <-w.notify.Errors:
			// Events may have been lost, so this counts as one.
			w.log.Warn("watching rule files", "error", err)
			first = w.delay(quiet, first)
		case <-quiet.C:
			first = time.Time{}
			if err := w.follow(); err != nil {
				w.log.Warn("watching rule files", "error", err)
			}
			changed()
		}
	}
}

// delay puts the telling off, and returns when the first event was.
func (w *Watcher) delay(quiet *time.Timer, first time.Time) time.Time {
	now := time.Now()
	if first.IsZero() {
		first = now
	}
	quiet.Reset(max(0, min(w.config.Debounce, first.Add(maxDelay).Sub(now))))
	return first
}

// concerns tells whether an event may change what Read returns. Names with
// dots do, even if files with dots are ignored: "..data" is one.
func (w *Watcher) concerns(e fsnotify.Event) bool {
	if filepath.Dir(e.Name) == filepath.Dir(w.target) {
		return e.Name == w.target && (!w.config.WatchRoot || e.Has(fsnotify.Create) || e.Has(fsnotify.Write))
	}
	return !w.config.WatchRoot
}
