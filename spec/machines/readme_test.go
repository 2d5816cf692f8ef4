package machines_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestReadme holds spec/README.md to the tree: the counts that it tabulates
// are those that the models expect, every model is in it, and the tests and
// methods that it names exist.
func TestReadme(t *testing.T) {
	readme := read(t, "../README.md")
	plain := strings.ReplaceAll(readme, ",", "")
	paths, err := filepath.Glob("../*.cfg")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no models found: %v", err)
	}
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".cfg")
		_, suffix, _ := strings.Cut(name, "_")
		if !strings.Contains(readme, "`"+name+"`") && !strings.Contains(readme, "`_"+suffix+"`") {
			t.Errorf("model %s is not in spec/README.md", name)
		}
		m := readModel(t, path)
		if m.violates != "" {
			continue
		}
		row := "| `" + name + "`"
		for _, what := range []string{"distinct", "generated", "depth"} {
			row += " | " + strconv.Itoa(m.counts[what])
		}
		if !strings.Contains(plain, row+" |") {
			t.Errorf("spec/README.md has no row %q", row)
		}
	}
	code := sources(t, ".", "../trilemma", "../../pkg/gale", "../../pkg/gale/sim")
	for _, name := range regexp.MustCompile("`(Test[A-Za-z]+)`").FindAllStringSubmatch(readme, -1) {
		if !strings.Contains(code, "func "+name[1]+"(") {
			t.Errorf("spec/README.md names %s, which does not exist", name[1])
		}
	}
	for _, name := range regexp.MustCompile("`gale\\.([A-Za-z]+)\\.([A-Za-z]+)`").FindAllStringSubmatch(readme, -1) {
		if !regexp.MustCompile(`func \(\w+ \*?` + name[1] + `\) ` + name[2] + `\(`).MatchString(code) {
			t.Errorf("spec/README.md names gale.%s.%s, which does not exist", name[1], name[2])
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// sources is all Go code in the directories.
func sources(t *testing.T, dirs ...string) string {
	t.Helper()
	var all strings.Builder
	for _, dir := range dirs {
		paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(paths) == 0 {
			t.Fatalf("no code in %s: %v", dir, err)
		}
		for _, path := range paths {
			all.WriteString(read(t, path))
		}
	}
	return all.String()
}
