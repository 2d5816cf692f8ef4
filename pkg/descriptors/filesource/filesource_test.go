package filesource

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gale-rls/gale-rls/pkg/descriptors"
)

// write makes a file and the directories above it.
func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// link makes or replaces a symbolic link, by rename as publishers do.
func link(t *testing.T, to, path string) {
	t.Helper()
	if err := os.Symlink(to, path+".new"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// content shows files as "name=data name=data", or "name!" for an error.
func content(files []descriptors.File) string {
	var out []string
	for _, f := range files {
		if f.Err != nil {
			out = append(out, f.Name+"!")
			continue
		}
		out = append(out, f.Name+"="+string(f.Data))
	}
	return strings.Join(out, " ")
}

func read(t *testing.T, c Config) string {
	t.Helper()
	files, err := Read(c)
	if err != nil {
		t.Fatal(err)
	}
	return content(files)
}

func TestReadDirectory(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "ratelimit", "config")
	c := Config{Root: root, Subdirectory: "ratelimit", AppDirectory: "config"}
	if got := read(t, c); got != "" {
		t.Errorf("missing directory: %q", got)
	}
	write(t, filepath.Join(dir, "b.yaml"), "B")
	write(t, filepath.Join(dir, "a"), "A")
	write(t, filepath.Join(dir, ".dot"), "D")
	write(t, filepath.Join(dir, "sub", "deeper", "c.conf"), "C")
	write(t, filepath.Join(dir, "..2024", "b.yaml"), "H")
	write(t, filepath.Join(root, "outside.yaml"), "O")
	write(t, filepath.Join(root, "elsewhere", "x.yaml"), "X")
	link(t, filepath.Join(root, "outside.yaml"), filepath.Join(dir, "linked.yaml"))
	link(t, filepath.Join(root, "elsewhere"), filepath.Join(dir, "linkeddir"))
	if got, want := read(t, c), "..2024.b.yaml=H .dot=D a=A b.yaml=B linked.yaml=O sub.deeper.c.conf=C"; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	c.IgnoreDotFiles = true
	if got, want := read(t, c), "a=A b.yaml=B linked.yaml=O sub.deeper.c.conf=C"; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	c.AppDirectory = "config/sub"
	if got, want := read(t, c), "deeper.c.conf=C"; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestReadWatchRoot(t *testing.T) {
	top := t.TempDir()
	release := filepath.Join(top, "release-1")
	write(t, filepath.Join(release, "ratelimit", "config", "b.yaml"), "B")
	write(t, filepath.Join(release, "ratelimit", "config", "sub", "a.yaml"), "A")
	write(t, filepath.Join(release, "ratelimit", "config.yaml"), "C")
	write(t, filepath.Join(release, "ratelimit", "other", "o.yaml"), "O")
	root := filepath.Join(top, "current")
	link(t, release, root)
	c := Config{Root: root + "/", Subdirectory: "ratelimit", AppDirectory: "config", WatchRoot: true}
	if got, want := read(t, c), "config.b.yaml=B config.sub.a.yaml=A config.yaml=C"; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	// As in the reference: names have dots, so this never fits.
	c.AppDirectory = "config/sub"
	if got := read(t, c); got != "" {
		t.Errorf("nested application directory: %q", got)
	}
	c.AppDirectory, c.Subdirectory = "config", ""
	if got := read(t, c); got != "" {
		t.Errorf("no subdirectory: %q", got)
	}
}

func TestUnreadableFilesAreReported(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "good.yaml"), "domain: good")
	link(t, "nowhere", filepath.Join(dir, "dangling.yaml"))
	link(t, "loop.yaml", filepath.Join(dir, "loop.yaml"))
	files, err := Read(Config{Root: dir})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := content(files), "dangling.yaml! good.yaml=domain: good loop.yaml!"; got != want {
		t.Fatalf("got %q, want %q", got, want)
	}
	if !errors.Is(files[0].Err, fs.ErrNotExist) {
		t.Errorf("dangling link: %v", files[0].Err)
	}
	tree, err := descriptors.Load(files, nil, descriptors.Options{})
	if err == nil || !strings.Contains(err.Error(), "dangling.yaml: error loading config file: ") {
		t.Errorf("load: %v", err)
	}
	if got := strings.Join(tree.Domains(), " "); got != "good" {
		t.Errorf("domains %q", got)
	}
}

func TestReadErrors(t *testing.T) {
	dir := t.TempDir()
	link(t, "loop", filepath.Join(dir, "loop"))
	if _, err := Read(Config{Root: dir, AppDirectory: "loop"}); err == nil {
		t.Error("a loop of links is not a missing directory")
	}
	write(t, filepath.Join(dir, "file"), "F")
	if got := read(t, Config{Root: dir, AppDirectory: "file"}); got != ".=F" {
		t.Errorf("a file in place of the directory: %q", got)
	}
}

// A pipe would block a reader for ever.
func TestPipesAreNotRead(t *testing.T) {
	dir := t.TempDir()
	if err := makePipe(filepath.Join(dir, "pipe")); err != nil {
		t.Skipf("no pipes here: %v", err)
	}
	done := make(chan string, 1)
	go func() {
		files, _ := Read(Config{Root: dir})
		done <- content(files)
	}()
	select {
	case got := <-done:
		if got != "" {
			t.Errorf("got %q", got)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("reading blocks")
	}
}
