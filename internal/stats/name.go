package stats

import (
	"maps"
	"slices"
	"strings"
)

// cleanName returns name with everything that would break a statsd line (line
// ends and other control characters, ':' and '|') as '_'. Rules and callers
// have their names cleaned where they are made; this is the last door, so that
// no caller can write a line of its own.
func cleanName(name string) string {
	if strings.IndexFunc(name, breaksLine) < 0 {
		return name
	}
	return strings.Map(func(r rune) rune {
		if breaksLine(r) {
			return '_'
		}
		return r
	}, name)
}

func breaksLine(r rune) bool { return r < ' ' || r == 0x7f || r == ':' || r == '|' }

// TagSuffix returns how tags travel in a statsd name: ".__key=value", by key.
func TagSuffix(tags map[string]string) string {
	clean := strings.NewReplacer(".", "_", ":", "_", "|", "_", "\n", "_", "\r", "_")
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(tags)) {
		b.WriteString(".__" + clean.Replace(k) + "=" + clean.Replace(tags[k]))
	}
	return b.String()
}

// reservedTags are those that the statistics library of envoyproxy/ratelimit
// keeps for itself; using one is counted there, and here.
var reservedTags = []string{
	"asg", "az", "backend", "canary", "host", "period", "region", "shard",
	"window", "source", "project", "facet", "envoyservice",
}
