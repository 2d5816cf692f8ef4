package descriptors

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
)

var ipv4 = regexp.MustCompile(`\d+\.\d+\.\d+\.\d+`)

// sanitiseNaively is the same by regular expression.
func sanitiseNaively(s string) string {
	s = strings.NewReplacer(":", "_", "|", "_", "\n", "_").Replace(s)
	return ipv4.ReplaceAllStringFunc(s, func(ip string) string { return strings.ReplaceAll(ip, ".", "_") })
}

func checkSanitise(t *testing.T, s string) {
	t.Helper()
	got := []byte(s)
	sanitise(got)
	if want := sanitiseNaively(s); string(got) != want {
		t.Errorf("%q: %q, want %q", s, got, want)
	}
}

func TestSanitise(t *testing.T) {
	for _, s := range []string{
		"", "d", "d.1", "d.a:b|c\nd", "d.10.0.0.1", "1.2.3", "1.2.3.4.5.6.7.8", "1.2.3.4.5.6.7.8.9", "1..2.3.4",
		"x999.999.999.999y", "1.2.3.4.", ".1.2.3.4", "1.2.3.", "12345.1.1.1", "1.2.3.4:5", "1.2:3.4.5.6", "1.2.3.x.4.5.6.7",
	} {
		checkSanitise(t, s)
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 20_000 {
		s := make([]byte, random.IntN(24))
		for i := range s {
			s[i] = "11.2.:a"[random.IntN(7)]
		}
		checkSanitise(t, string(s))
	}
}

// Names of statistics have no line breaks, which would end a statsd line.
func TestNamesHaveNoNewlines(t *testing.T) {
	tree := load(t, "domain: d\ndescriptors: [{key: k, detailed_metric: yes, rate_limit: {unit: hour}}]")
	entries := []Entry{{"k", "a\nb"}}
	var m Match
	tree.Match("d", entries, &m)
	if got := string(m.AppendStatName(nil, "d", entries)); got != "d.k_a_b" {
		t.Errorf("rule: %q", got)
	}
	if got := string(AppendOverrideStatName(nil, "d", entries)); got != "d.k_a_b" {
		t.Errorf("override: %q", got)
	}
	if got := string(m.AppendKey(nil, "", "d", entries)); got != "d_k_a\nb_" {
		t.Errorf("key: %q", got)
	}
}
