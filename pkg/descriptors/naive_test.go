package descriptors

import (
	"fmt"
	"strings"
)

// The naive matcher is compat with no thought for speed: maps of joined
// strings, and a scan over wildcards. What the tree says must be the same.

// naiveNode is a descriptor.
type naiveNode struct {
	key, value                string
	detailed, byValue, shared bool
	limit                     uint32 // 0 is none; else unique
	level                     *naiveLevel
}

type naiveLevel struct {
	nodes map[string]*naiveNode
	order []*naiveNode
}

func (n *naiveNode) final() string {
	if n.value == "" {
		return n.key
	}
	return n.key + "_" + n.value
}

// naiveStep is what one entry met; how is exact, wildcard or key.
type naiveStep struct {
	node *naiveNode
	how  string
}

// glob matches one star or byte after the other, with backtracking.
func glob(pattern, s string) bool {
	if pattern == "" {
		return s == ""
	}
	if pattern[0] != '*' {
		return s != "" && s[0] == pattern[0] && glob(pattern[1:], s[1:])
	}
	for i := 0; i <= len(s); i++ {
		if glob(pattern[1:], s[i:]) {
			return true
		}
	}
	return false
}

func (l *naiveLevel) step(e Entry) (naiveStep, bool) {
	joined := e.Key + "_" + e.Value
	if n := l.nodes[joined]; n != nil {
		return naiveStep{n, "exact"}, true
	}
	for _, n := range l.order {
		if strings.Contains(n.final(), "*") && glob(n.final(), joined) {
			return naiveStep{n, "wildcard"}, true
		}
	}
	if n := l.nodes[e.Key]; n != nil {
		return naiveStep{n, "key"}, true
	}
	return naiveStep{}, false
}

// match returns the way to the node that decides; nil when there is no limit.
func (l *naiveLevel) match(entries []Entry) []naiveStep {
	var way []naiveStep
	for _, e := range entries {
		if l == nil {
			return nil
		}
		step, ok := l.step(e)
		if !ok {
			return nil
		}
		way = append(way, step)
		l = step.node.level
	}
	if len(way) == 0 || way[len(way)-1].node.limit == 0 {
		return nil
	}
	return way
}

// patternOf is key_<pattern>, with the pattern's key cut off where it is the
// entry's.
func patternOf(n *naiveNode, e Entry) string {
	return e.Key + "_" + strings.TrimPrefix(n.final(), e.Key+"_")
}

func naiveKey(domain string, way []naiveStep, entries []Entry) string {
	key := domain + "_"
	for i, e := range entries {
		if way[i].how == "wildcard" && way[i].node.shared {
			key += patternOf(way[i].node, e) + "_"
		} else {
			key += e.Key + "_" + e.Value + "_"
		}
	}
	return key
}

func naiveStatName(domain string, way []naiveStep, entries []Entry) string {
	shared := false
	for _, s := range way {
		shared = shared || s.how == "wildcard" && s.node.shared
	}
	name := domain
	for i, e := range entries {
		s := way[i]
		full := e.Key + "_" + e.Value
		switch {
		case s.how == "wildcard" && s.node.shared:
			name += "." + patternOf(s.node, e)
		case way[len(way)-1].node.detailed && e.Value == "" && shared:
			name += "." + e.Key
		case way[len(way)-1].node.detailed:
			name += "." + full
		case s.how == "exact":
			name += "." + full
		case s.node.byValue && e.Value != "":
			name += "." + full
		case s.how == "wildcard" && s.node.byValue:
			name += "." + patternOf(s.node, e)
		case s.how == "wildcard":
			name += "." + patternOf(s.node, e)
		default:
			name += "." + e.Key
		}
	}
	return name
}

// choices turns bytes into choices; when they are used up it chooses zero.
type choices struct{ data []byte }

func (c *choices) below(n int) int {
	if len(c.data) == 0 {
		return 0
	}
	v := int(c.data[0])
	c.data = c.data[1:]
	return v % n
}

// text strings together letters that make joins and patterns collide.
func (c *choices) text(tokens []string, most int) string {
	var out string
	for range c.below(most + 1) {
		out += tokens[c.below(len(tokens))]
	}
	return out
}

// level makes descriptors without duplicates, and counts limits up.
func (c *choices) level(depth int, limits *uint32) *naiveLevel {
	l := &naiveLevel{nodes: map[string]*naiveNode{}}
	for range 1 + c.below(24) {
		n := &naiveNode{
			key:   "k" + c.text([]string{"a", "_", "b", "*"}, 2),
			value: c.text([]string{"a", "b", "*", "_", "ab"}, 4),
		}
		if l.nodes[n.final()] != nil {
			continue
		}
		flags := c.below(32)
		n.detailed, n.byValue = flags&1 != 0, flags&2 != 0
		n.shared = flags&4 != 0 && strings.Contains(n.final(), "*")
		if flags&24 != 0 {
			*limits++
			n.limit = *limits
		}
		if depth > 1 && c.below(3) == 0 {
			n.level = c.level(depth-1, limits)
		}
		l.nodes[n.final()] = n
		l.order = append(l.order, n)
	}
	return l
}

func (l *naiveLevel) yaml(indent string) string {
	var b strings.Builder
	for _, n := range l.order {
		fmt.Fprintf(&b, "%s- key: %q\n%s  value: %q\n", indent, n.key, indent, n.value)
		fmt.Fprintf(&b, "%s  detailed_metric: %t\n%s  value_to_metric: %t\n%s  share_threshold: %t\n",
			indent, n.detailed, indent, n.byValue, indent, n.shared)
		if n.limit > 0 {
			fmt.Fprintf(&b, "%s  rate_limit: {unit: hour, requests_per_unit: %d}\n", indent, n.limit)
		}
		if n.level != nil {
			fmt.Fprintf(&b, "%s  descriptors:\n%s", indent, n.level.yaml(indent+"    "))
		}
	}
	return b.String()
}

func (c *choices) entries() []Entry {
	out := make([]Entry, 1+c.below(3))
	for i := range out {
		out[i].Key = "k" + c.text([]string{"a", "_", "b", "*"}, 2)
		out[i].Value = c.text([]string{"a", "b", "_", "ab", "*"}, 5)
	}
	return out
}
