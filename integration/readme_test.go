//go:build integration

package integration

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gale-rls/gale-rls/internal/testenv"
)

// TestReadme does what a newcomer does: starts the service without a setting
// and sends the printed line until it is refused. Ports differ, so that the
// test runs beside others.
func TestReadme(t *testing.T) {
	commands := shellBlocks(t)
	if commands[0] != "./scripts/run.sh" {
		t.Fatalf("README's first command is %q", commands[0])
	}
	ask := commands[1]
	if !strings.HasPrefix(ask, "curl ") || !strings.Contains(ask, "localhost:8080") {
		t.Fatalf("README's second command is %q", ask)
	}
	if _, err := exec.LookPath("curl"); err != nil {
		testenv.Missing(t, "curl", "install it")
	}
	needOfHour(t, time.Minute)

	g := testenv.Gale(t, testenv.GaleOptions{})
	ask = strings.ReplaceAll(ask, "localhost:8080", g.HTTP)
	for i, want := range []string{`"overallCode":"OK"`, `"overallCode":"OK"`, `"overallCode":"OVER_LIMIT"`} {
		out, err := exec.Command("sh", "-c", ask).Output()
		if err != nil {
			t.Fatalf("%s: %v", ask, err)
		}
		// The JSON library puts a space after a colon in some builds.
		if got := strings.ReplaceAll(string(out), ": ", ":"); !strings.Contains(got, want) {
			t.Errorf("answer %d is %s, want %s", i+1, got, want)
		}
	}
	if !strings.Contains(g.Log(), "memory") {
		t.Errorf("the service does not say that limits are in memory:\n%s", g.Log())
	}
}

// shellBlocks returns the commands of README's sh blocks, one each.
func shellBlocks(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(testenv.Root(t), "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, block := range strings.Split(string(text), "```sh\n")[1:] {
		command, _, _ := strings.Cut(block, "\n```")
		all = append(all, strings.TrimSpace(command))
	}
	if len(all) < 3 {
		t.Fatalf("README has %d commands", len(all))
	}
	return all
}
