package filesource

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gale-rls/gale-rls/pkg/descriptors"
)

// Config says where rule files are. The names in capitals are the settings
// that it comes from.
type Config struct {
	Root         string // RUNTIME_ROOT
	Subdirectory string // RUNTIME_SUBDIRECTORY
	AppDirectory string // RUNTIME_APPDIRECTORY
	// IgnoreDotFiles skips files and directories whose name begins with a
	// dot: RUNTIME_IGNOREDOTFILES.
	IgnoreDotFiles bool
	// WatchRoot is the layout with a symbolic link: RUNTIME_WATCH_ROOT.
	WatchRoot bool
	// Debounce is how long it must be quiet before a change is told; 0 is
	// DefaultDebounce.
	Debounce time.Duration
}

// base returns the directory that is walked; "" when there is none.
func (c Config) base() string {
	if !c.WatchRoot {
		return filepath.Join(c.Root, c.Subdirectory, c.AppDirectory)
	}
	if c.Subdirectory == "" {
		return ""
	}
	return filepath.Join(c.Root, c.Subdirectory)
}

// Read returns the rule files, by name. Names are paths below the directory
// with dots for slashes. A directory that does not exist has no files; one
// that cannot be read is an error. A file that cannot be read has Err.
func Read(c Config) ([]descriptors.File, error) {
	base := c.base()
	if base == "" {
		return nil, nil
	}
	// Resolving links once keeps a walk within one release when the link to
	// it is swapped meanwhile.
	base, err := filepath.EvalSymlinks(base)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("rule files: %w", err)
	}
	var files []descriptors.File
	err = c.walk(base, func(path, name string, walkErr error) {
		if c.WatchRoot && !strings.HasPrefix(name, c.AppDirectory+".") {
			return
		}
		f := descriptors.File{Name: name, Err: walkErr}
		if walkErr == nil {
			f.Data, f.Err = os.ReadFile(path)
		}
		if errors.Is(f.Err, fs.ErrNotExist) && !isLink(path) {
			return // removed since the directory was listed
		}
		files = append(files, f)
	}, nil)
	if err != nil {
		return nil, fmt.Errorf("rule files: %w", err)
	}
	slices.SortStableFunc(files, func(a, b descriptors.File) int { return strings.Compare(a.Name, b.Name) })
	return files, nil
}

// walk calls file for every file below base, and for what cannot be listed,
// and directory, which may be nil, for every directory, base included.
func (c Config) walk(base string, file func(path, name string, err error), directory func(path string)) error {
	return filepath.WalkDir(base, func(path string, entry fs.DirEntry, err error) error {
		name := "."
		if rel, relErr := filepath.Rel(base, path); relErr == nil && rel != "." {
			name = strings.ReplaceAll(rel, string(filepath.Separator), ".")
		}
		switch {
		case path == base && err != nil:
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		case path != base && c.IgnoreDotFiles && strings.HasPrefix(filepath.Base(path), "."):
			if entry != nil && entry.IsDir() {
				return fs.SkipDir
			}
		case err != nil:
			if !errors.Is(err, fs.ErrNotExist) {
				file(path, name, err)
			}
		case entry.IsDir():
			if directory != nil {
				directory(path)
			}
		case isFile(path, entry):
			file(path, name, nil)
		}
		return nil
	})
}

// isFile tells whether a directory entry is to be read. A link that leads
// nowhere is: reading it says why.
func isFile(path string, entry fs.DirEntry) bool {
	if entry.Type()&fs.ModeSymlink == 0 {
		return entry.Type().IsRegular()
	}
	info, err := os.Stat(path)
	return err != nil || info.Mode().IsRegular()
}

func isLink(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}
