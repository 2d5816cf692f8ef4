package machines_test

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/gale-rls/gale-rls/spec/machines"
)

// model is one .cfg of spec: what TLC is given, and what it must find.
type model struct {
	module     string
	constants  map[string]string
	invariants []string
	// violates names the invariant that must be refuted; else the counts
	// that are given must come out.
	violates string
	counts   map[string]int
}

func readModel(t *testing.T, path string) model {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	module, _, _ := strings.Cut(strings.TrimSuffix(filepath.Base(path), ".cfg"), "_")
	m := model{module: module, constants: map[string]string{}, counts: map[string]int{}}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		if expect, ok := strings.CutPrefix(line, `\* EXPECT `); ok {
			m.expect(t, strings.Fields(expect))
		} else if invariants, ok := strings.CutPrefix(line, "INVARIANTS "); ok {
			m.invariants = strings.Fields(invariants)
		} else if name, value, ok := strings.Cut(line, " = "); ok {
			m.constants[name] = value
		}
	}
	return m
}

func (m *model) expect(t *testing.T, words []string) {
	t.Helper()
	for i := 0; i+1 < len(words); i += 2 {
		if words[i] == "violates" {
			m.violates = words[i+1]
			continue
		}
		n, err := strconv.Atoi(words[i+1])
		if err != nil {
			t.Fatalf("EXPECT %s: %v", strings.Join(words, " "), err)
		}
		m.counts[words[i]] = n
	}
	if m.violates == "" && len(m.counts) == 0 {
		t.Fatalf("EXPECT %s: nothing expected", strings.Join(words, " "))
	}
}

func (m model) number(t *testing.T, name string) int {
	t.Helper()
	n, err := strconv.Atoi(m.constants[name])
	if err != nil {
		t.Fatalf("constant %s: %v", name, err)
	}
	return n
}

func (m model) members(name string) int { return len(strings.Split(m.constants[name], ",")) }

// TestTwinsAgreeWithTLC runs the Go twin of every model that TLC is given
// (scripts/spec.sh), and expects of it what is expected of TLC.
func TestTwinsAgreeWithTLC(t *testing.T) {
	paths, err := filepath.Glob("../*.cfg")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no models found: %v", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".cfg"), func(t *testing.T) {
			m := readModel(t, path)
			switch m.module {
			case "DistributedLeasing", "GaleWindowCoupledLeasing":
				agree(t, m, leasingOf(t, m).Machine())
			case "GaleClockedLeasing":
				agree(t, m, clockedOf(t, m).Machine())
			default:
				t.Fatalf("module %s has no twin", m.module)
			}
		})
	}
}

func agree[S comparable](t *testing.T, m model, machine machines.Machine[S]) {
	t.Helper()
	r := machines.Explore(machine)
	t.Logf("%v; %v", r, r.Err)
	if m.violates != "" {
		if r.Err == nil {
			t.Errorf("%s must be refuted, and holds in all %d states", m.violates, r.Distinct)
		} else if testing.Verbose() {
			t.Logf("refuted:%s", trace(r.Trace))
		}
		return
	}
	if r.Err != nil {
		t.Fatalf("violated: %v\nat the end of %s", r.Err, trace(r.Trace))
	}
	got := map[string]int{"distinct": r.Distinct, "generated": r.Generated, "depth": r.Depth}
	for what, want := range m.counts {
		if got[what] != want {
			t.Errorf("%s: %d, want %d", what, got[what], want)
		}
	}
}

func trace[S comparable](states []S) string {
	var b strings.Builder
	for i, s := range states {
		fmt.Fprintf(&b, "\n%3d %v", i+1, s)
	}
	return b.String()
}

func leasingOf(t *testing.T, m model) machines.Leasing {
	l := machines.Leasing{
		Nodes: m.members("Nodes"), Limit: m.number(t, "Limit"), Batch: m.number(t, "Batch"),
		Coupled: m.module == "GaleWindowCoupledLeasing",
		Return:  m.constants["WithReturn"] == "TRUE",
	}
	switch m.violates {
	case "OvershootTight":
		l.Bound = l.MaxAdmitted() - 1
	case "WithinLimit":
		l.Bound = l.Limit
	}
	return l
}

func clockedOf(t *testing.T, m model) machines.Clocked {
	ahead := m.number(t, "Ahead")
	c := machines.Clocked{
		Rule:    machines.Rule(strings.Trim(m.constants["Rule"], `"`)),
		Holders: m.members("Holders"), Length: m.number(t, "Length"),
		Limit: m.number(t, "Limit"), Batch: m.number(t, "Batch"), Taper: m.number(t, "Taper"),
		Asks: m.number(t, "Asks"), Total: m.number(t, "Total"),
		Drift: m.number(t, "Drift"), Offset: [2]int{ahead, 2 * ahead},
		Dups: m.number(t, "Dups"), Returns: m.number(t, "Returns"),
		Crashes: m.constants["Crashes"] == "TRUE",
	}
	if m.violates == "AdmittedTight" {
		c.Bound = c.Limit - 1
	}
	return c
}
