package testenv

import (
	_ "embed" // for versions.env
	"strings"
	"testing"
)

//go:embed versions.env
var versionsFile string

// EnvoyNewest is the version of Envoy that every scenario runs on.
func EnvoyNewest(t testing.TB) string { return pinned(t, "ENVOY_NEWEST") }

// EnvoyOldest is the oldest version of Envoy that we support.
func EnvoyOldest(t testing.TB) string { return pinned(t, "ENVOY_OLDEST") }

func pinned(t testing.TB, name string) string {
	t.Helper()
	for line := range strings.Lines(versionsFile) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), name+"="); ok {
			return v
		}
	}
	t.Fatalf("versions.env does not say %s", name)
	return ""
}
