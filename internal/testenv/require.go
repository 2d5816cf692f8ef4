package testenv

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Missing ends the test because a server cannot be had: as a failure where
// servers are required, as a skip elsewhere. what names the server, how says
// what to do about it.
func Missing(t testing.TB, what, how string) {
	t.Helper()
	if required() {
		t.Fatalf("%s is not available, and this run requires it: %s", what, how)
	}
	t.Skipf("SKIPPED, NOT TESTED: %s is not available: %s", what, how)
}

// required reports whether a missing server is a failure.
func required() bool {
	switch strings.ToLower(os.Getenv("CI")) {
	case "", "0", "false":
	default:
		return true
	}
	return os.Getenv("GALE_REQUIRE_SERVERS") != ""
}

// Root returns the folder of go.mod.
func Root(t testing.TB) string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		t.Fatalf("go env GOMOD: %v", err)
	}
	mod := strings.TrimSpace(string(out))
	if mod == "" || mod == os.DevNull {
		t.Fatal("the test does not run inside the module")
	}
	return filepath.Dir(mod)
}

// pollEvery is how often Eventually looks: often enough to not be noticed in
// a test that starts processes, rarely enough to not be load.
const pollEvery = 5 * time.Millisecond

// Eventually waits until ok holds, and fails the test if it does not within
// so long. what completes the sentence "waited for ...".
func Eventually(t testing.TB, within time.Duration, what string, ok func() bool) {
	t.Helper()
	if !poll(within, ok) {
		t.Fatalf("waited %v for %s", within, what)
	}
}

// poll reports whether ok came to hold in time.
func poll(within time.Duration, ok func() bool) bool {
	deadline := time.Now().Add(within)
	for !ok() {
		if time.Now().After(deadline) {
			return false
		}
		time.Sleep(pollEvery)
	}
	return true
}
