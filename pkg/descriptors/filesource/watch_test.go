package filesource

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// watched runs a watcher, and keeps what Read returned after each change.
type watched struct {
	t    *testing.T
	seen chan string
}

func watch(t *testing.T, c Config) *watched {
	t.Helper()
	w, err := NewWatcher(c, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	seen := make(chan string, 100)
	go func() {
		defer close(done)
		w.Run(ctx, func() {
			files, err := Read(c)
			if err != nil {
				seen <- "error"
				return
			}
			seen <- content(files)
		})
	}()
	t.Cleanup(func() {
		cancel()
		select {
		case <-done:
		case <-time.After(10 * time.Second):
			t.Error("Run does not end")
		}
	})
	return &watched{t: t, seen: seen}
}

// until waits for a change after which the files are as wanted, and returns
// how many changes it took.
func (w *watched) until(want string) int {
	w.t.Helper()
	deadline := time.After(10 * time.Second)
	got := "no change"
	for n := 1; ; n++ {
		select {
		case got = <-w.seen:
			if got == want {
				return n
			}
		case <-deadline:
			w.t.Fatalf("got %q, want %q", got, want)
		}
	}
}

// quiet fails if a change is told within several times the debounce.
func (w *watched) quiet() {
	w.t.Helper()
	select {
	case got := <-w.seen:
		w.t.Fatalf("told a change that is none: %q", got)
	case <-time.After(5 * DefaultDebounce):
	}
}

func TestWatchDirectory(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "config")
	write(t, filepath.Join(dir, "a.yaml"), "1")
	w := watch(t, Config{Root: root, AppDirectory: "config"})

	write(t, filepath.Join(dir, "a.yaml"), "2")
	w.until("a.yaml=2")
	write(t, filepath.Join(dir, "b.yaml"), "3")
	w.until("a.yaml=2 b.yaml=3")
	if err := os.Rename(filepath.Join(dir, "b.yaml"), filepath.Join(dir, "c.yaml")); err != nil {
		t.Fatal(err)
	}
	w.until("a.yaml=2 c.yaml=3")
	if err := os.Remove(filepath.Join(dir, "c.yaml")); err != nil {
		t.Fatal(err)
	}
	w.until("a.yaml=2")
	if err := os.Chmod(filepath.Join(dir, "a.yaml"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.until("a.yaml=2")
	write(t, filepath.Join(dir, "sub", "deep", "d.yaml"), "4")
	w.until("a.yaml=2 sub.deep.d.yaml=4")
	write(t, filepath.Join(dir, "sub", "deep", "d.yaml"), "5")
	w.until("a.yaml=2 sub.deep.d.yaml=5")

	write(t, filepath.Join(root, "beside.yaml"), "x")
	w.quiet()
}

// A new directory in the place of the old one is a change, and is watched.
func TestWatchReplacedDirectory(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "config")
	write(t, filepath.Join(dir, "a.yaml"), "1")
	write(t, filepath.Join(root, "next", "a.yaml"), "2")
	w := watch(t, Config{Root: root, AppDirectory: "config"})
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(root, "next"), dir); err != nil {
		t.Fatal(err)
	}
	w.until("a.yaml=2")
	write(t, filepath.Join(dir, "a.yaml"), "3")
	w.until("a.yaml=3")
}

func TestWatchConfigMap(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "..2024_01", "a.yaml"), "1")
	write(t, filepath.Join(dir, "..2024_01", "b.yaml"), "1")
	link(t, "..2024_01", filepath.Join(dir, "..data"))
	link(t, "..data/a.yaml", filepath.Join(dir, "a.yaml"))
	link(t, "..data/b.yaml", filepath.Join(dir, "b.yaml"))
	c := Config{Root: dir, IgnoreDotFiles: true}
	if got := read(t, c); got != "a.yaml=1 b.yaml=1" {
		t.Fatalf("before: %q", got)
	}
	w := watch(t, c)
	for _, version := range []string{"2", "3"} {
		next := "..2024_0" + version
		write(t, filepath.Join(dir, next, "a.yaml"), version)
		write(t, filepath.Join(dir, next, "b.yaml"), version)
		link(t, next, filepath.Join(dir, "..data"))
		w.until("a.yaml=" + version + " b.yaml=" + version)
	}
}

func TestWatchRoot(t *testing.T) {
	top := t.TempDir()
	file := func(release string) string { return filepath.Join(top, release, "ratelimit", "config", "a.yaml") }
	write(t, file("r1"), "1")
	write(t, file("r2"), "2")
	write(t, file("r3"), "3")
	root := filepath.Join(top, "current")
	link(t, "r1", root)
	// A slash at the end does not matter.
	w := watch(t, Config{Root: root + "/", Subdirectory: "ratelimit", AppDirectory: "config", WatchRoot: true})
	link(t, "r2", root)
	w.until("config.a.yaml=2")
	link(t, "r3", root)
	w.until("config.a.yaml=3")
	write(t, file("r3"), "edited in place")
	w.quiet()
}

// Many events within the debounce are one change, and a stream of them that
// does not end is told all the same.
func TestDebounce(t *testing.T) {
	dir := t.TempDir()
	w := watch(t, Config{Root: dir, Debounce: 500 * time.Millisecond})
	stop := make(chan struct{})
	wrote := make(chan int)
	go func() {
		n := 0
		for ; ; n++ {
			select {
			case <-stop:
				wrote <- n
				return
			case <-time.After(5 * time.Millisecond):
				_ = os.WriteFile(filepath.Join(dir, "a.yaml"), []byte(strings.Repeat("x", n)), 0o644)
			}
		}
	}()
	var got string
	select {
	case got = <-w.seen:
	case <-time.After(10 * time.Second):
		t.Error("no change is told while events keep coming")
	}
	close(stop)
	n := <-wrote
	told := 1
	if want := "a.yaml=" + strings.Repeat("x", n-1); got != want {
		told += w.until(want)
	}
	// A machine so slow that writes are as far apart as the debounce shows
	// nothing.
	if n >= 20 && told > n/4 {
		t.Errorf("%d writes were told as %d changes", n, told)
	}
}

func TestWatchWhatIsNotThere(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	for _, c := range []Config{
		{Root: missing, AppDirectory: "config"},
		{Root: filepath.Join(missing, "current"), Subdirectory: "ratelimit", AppDirectory: "config", WatchRoot: true},
	} {
		err := Watch(t.Context(), c, nil, func() {})
		if err == nil || !strings.Contains(err.Error(), "unable to watch file ("+missing) {
			t.Errorf("WatchRoot %t: %v", c.WatchRoot, err)
		}
	}
}

func TestWatchEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Watch(ctx, Config{Root: t.TempDir()}, nil, func() {}); err != nil {
		t.Error(err)
	}
}
