package descriptors

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Dump writes a line for every rule, sorted by path, as /rlconfig shows them.
func (t *Tree) Dump(w io.Writer) error {
	rules := slices.Clone(t.rules)
	slices.SortStableFunc(rules, func(a, b *Rule) int { return strings.Compare(a.Path, b.Path) })
	buf := bufio.NewWriter(w)
	for _, r := range rules {
		// The reference's format: a comma or none is part of it.
		fmt.Fprintf(buf, "%s: unit=%s requests_per_unit=%d, shadow_mode: %t, quota_mode: %t\n",
			r.Path, r.Unit, r.RequestsPerUnit, r.Shadow, r.Quota)
	}
	return buf.Flush()
}
