package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/gale-rls/gale-rls"

// file is one Go file of the module.
type file struct {
	name  string // below the module, with slashes
	dir   string // its package's path below the module
	test  bool
	lines int
	ast   *ast.File
	fset  *token.FileSet
}

// load parses every Go file below the module's root.
func load(t *testing.T) []file {
	t.Helper()
	root := moduleRoot(t)
	var all []file
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if p != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(p, ".go") {
			return nil
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		src, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		fset := token.NewFileSet()
		tree, err := parser.ParseFile(fset, p, src, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(rel)
		all = append(all, file{
			name: name, dir: path.Dir(name), test: strings.HasSuffix(name, "_test.go"),
			lines: strings.Count(string(src), "\n"), ast: tree, fset: fset,
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		t.Fatal("no Go files found")
	}
	return all
}

func moduleRoot(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Path}} {{.Dir}}").Output()
	if err != nil {
		t.Fatalf("go list -m: %v", err)
	}
	name, dir, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	if name != module {
		t.Fatalf("the module is %s, these rules are about %s", name, module)
	}
	return dir
}

func (f file) imports() []string {
	var all []string
	for _, i := range f.ast.Imports {
		p, _ := strconv.Unquote(i.Path.Value)
		all = append(all, p)
	}
	return all
}

// covers reports whether pattern ("pkg/rls", "pkg/rls/...", "...") covers p.
func covers(pattern, p string) bool {
	below, wild := strings.CutSuffix(pattern, "...")
	if !wild {
		return pattern == p
	}
	return strings.HasPrefix(p+"/", below)
}

func coveredBy(patterns []string, p string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return covers(pattern, p) })
}

func TestEveryPackageHasARoom(t *testing.T) {
	known := map[string]bool{}
	for _, r := range rooms() {
		if known[r.path] {
			t.Errorf("rules.go names %s twice", r.path)
		}
		if known[r.path] = true; r.why == "" {
			t.Errorf("rules.go gives no reason for %s", r.path)
		}
	}
	seen := map[string]bool{}
	for _, f := range load(t) {
		if !known[f.dir] && !seen[f.dir] {
			seen[f.dir] = true
			t.Errorf("package %s has no row in internal/arch/rules.go: say there what it may import, and why", f.dir)
		}
	}
}

func TestImportsPointOneWay(t *testing.T) {
	for _, f := range load(t) {
		if f.test {
			continue
		}
		i := slices.IndexFunc(rooms(), func(r room) bool { return r.path == f.dir })
		if i < 0 {
			continue // told by TestEveryPackageHasARoom
		}
		r := rooms()[i]
		for _, p := range f.imports() {
			ours, ok := strings.CutPrefix(p, module+"/")
			if !ok || ours == "internal/invariants" || coveredBy(r.sees, ours) {
				continue
			}
			t.Errorf("%s imports %s: %s (%s)", f.name, ours, r.path+" may not", r.why)
		}
	}
}

// Besides the direct imports, nothing that is for tests may reach the binary
// by a detour.
func TestBinaryCarriesNoTestCode(t *testing.T) {
	if _, err := os.Stat(filepath.Join(moduleRoot(t), "cmd", "gale-rls")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "list", "-deps", "./cmd/gale-rls")
	cmd.Dir = moduleRoot(t)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list -deps: %v", err)
	}
	bad := []string{"testing", module + "/internal/testenv", module + "/internal/arch", module + "/pkg/gale/storetest"}
	for dep := range strings.Lines(string(out)) {
		if dep = strings.TrimSpace(dep); slices.Contains(bad, dep) {
			t.Errorf("cmd/gale-rls depends on %s; see: go mod why %[1]s", dep)
		}
	}
}

func TestOutsideLibrariesStayInTheirPlace(t *testing.T) {
	for _, f := range load(t) {
		if f.test {
			continue
		}
		for _, p := range f.imports() {
			for _, v := range visitors() {
				visits := p == v.prefix || strings.HasPrefix(p, strings.TrimSuffix(v.prefix, "/")+"/") ||
					(strings.HasPrefix(p, v.prefix) && strings.Contains(v.prefix, "."))
				if visits && !coveredBy(v.at, f.dir) && !slices.Contains(v.at, path.Base(f.name)) {
					t.Errorf("%s imports %s, which only %v may: %s", f.name, p, v.at, v.why)
				}
			}
		}
	}
}

func TestPureFilesStayPure(t *testing.T) {
	for _, f := range load(t) {
		if f.test || (!coveredBy(pure(), f.dir) && !slices.Contains(pure(), f.name)) {
			continue
		}
		for _, p := range f.imports() {
			if slices.Contains(impure(), p) {
				t.Errorf("%s is pure and imports %s", f.name, p)
			}
		}
		for _, c := range calls(f, "time", "Now", "Sleep", "After", "Since", "Until", "NewTimer", "AfterFunc") {
			t.Errorf("%s is pure and calls time.%s: take the time as an argument", f.at(c), c.Sel.Name)
		}
	}
}

func TestFilesFitTheirRoom(t *testing.T) {
	excused := longFiles()
	for _, f := range load(t) {
		why, long := excused[f.name]
		switch {
		case f.test:
		case f.lines > maxLines && !long:
			t.Errorf("%s has %d lines, more than %d: is it one thing?", f.name, f.lines, maxLines)
		case f.lines <= maxLines && long:
			t.Errorf("%s is not long any more: take it off longFiles (%s)", f.name, why)
		}
	}
}

func TestNoInit(t *testing.T) {
	for _, f := range load(t) {
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				t.Errorf("%s: no init(): what runs before main cannot be tested or configured", f.at(fn))
			}
		}
	}
}

// A package whose tests run in bubbles may have fakes that sleep there.
func TestTestsDoNotSleep(t *testing.T) {
	excused, bubbles := realSleeps(), map[string]bool{}
	all := load(t)
	for _, f := range all {
		if f.test && slices.Contains(f.imports(), "testing/synctest") {
			bubbles[f.dir] = true
		}
	}
	for _, f := range all {
		if !f.test || bubbles[f.dir] || excused[f.name] != "" {
			continue
		}
		for _, c := range calls(f, "time", "Sleep") {
			t.Errorf("%s: time.Sleep in a test: use testing/synctest, or testenv.Eventually for real servers", f.at(c))
		}
	}
}

func TestPackageNamesSayWhatIsInside(t *testing.T) {
	for _, f := range load(t) {
		if slices.Contains(vagueNames(), f.ast.Name.Name) || slices.Contains(vagueNames(), path.Base(f.dir)) {
			t.Errorf("%s: package %s: a name that says nothing", f.name, f.ast.Name.Name)
		}
	}
}

// calls returns the uses of so named functions of an imported package.
func calls(f file, pkg string, names ...string) []*ast.SelectorExpr {
	var all []*ast.SelectorExpr
	ast.Inspect(f.ast, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && slices.Contains(names, s.Sel.Name) {
			if x, ok := s.X.(*ast.Ident); ok && x.Name == pkg {
				all = append(all, s)
			}
		}
		return true
	})
	return all
}

// at is the place of n as an editor jumps to it.
func (f file) at(n ast.Node) string {
	return f.name + ":" + strconv.Itoa(f.fset.Position(n.Pos()).Line)
}

func TestCovers(t *testing.T) {
	for _, c := range []struct {
		pattern, path string
		want          bool
	}{
		{"pkg/rls", "pkg/rls", true},
		{"pkg/rls", "pkg/rls/xds", false},
		{"pkg/rls/...", "pkg/rls", true},
		{"pkg/rls/...", "pkg/rls/xds", true},
		{"pkg/rls/...", "pkg/rlsx", false},
		{"...", "pkg/rls", true},
	} {
		if got := covers(c.pattern, c.path); got != c.want {
			t.Errorf("covers(%q, %q) = %v", c.pattern, c.path, got)
		}
	}
}
