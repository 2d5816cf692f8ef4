package descriptors

import "strings"

// AppendKey appends the counter key without its window:
// "<prefix><domain>_<key>_<value>_…_". A level whose wildcard shares its
// threshold puts the pattern in place of the value. It is for a match that
// found a rule; entries and domain are those of the look-up.
func (m *Match) AppendKey(dst []byte, prefix, domain string, entries []Entry) []byte {
	if m.node == nil {
		return AppendOverrideKey(dst, prefix, domain, entries)
	}
	dst = appendDomain(dst, prefix, domain)
	for i := range entries {
		e := &entries[i]
		if n := m.node.path[i]; n.sharedBy(e) {
			dst = n.appendPattern(dst, e)
		} else {
			dst = appendEntry(dst, e)
		}
		dst = append(dst, '_')
	}
	return dst
}

// AppendOverrideKey appends the counter key of a descriptor that brings its
// own limit: as AppendKey, with nothing shared.
func AppendOverrideKey(dst []byte, prefix, domain string, entries []Entry) []byte {
	dst = appendDomain(dst, prefix, domain)
	for i := range entries {
		dst = append(appendEntry(dst, &entries[i]), '_')
	}
	return dst
}

// AppendStatName appends the name of the rule's statistics, which may depend
// on the request; Rule.StatName is the same where it does not.
func (m *Match) AppendStatName(dst []byte, domain string, entries []Entry) []byte {
	if m.node == nil {
		return AppendOverrideStatName(dst, domain, entries)
	}
	start := len(dst)
	dst = append(dst, domain...)
	path := m.node.path
	shared := false
	for i := range entries {
		shared = shared || path[i].sharedBy(&entries[i])
	}
	for i := range entries {
		n, e := path[i], &entries[i]
		dst = append(dst, '.')
		switch {
		case n.sharedBy(e):
			dst = n.appendPattern(dst, e)
		case m.node.detailed && (e.Value != "" || !shared):
			dst = appendEntry(dst, e)
		case m.node.detailed:
			dst = append(dst, e.Key...)
		default:
			dst = n.appendSegment(dst, e)
		}
	}
	sanitise(dst[start:])
	return dst
}

// AppendOverrideStatName appends the name of the statistics of a descriptor
// that brings its own limit: "domain.key_value.key".
func AppendOverrideStatName(dst []byte, domain string, entries []Entry) []byte {
	start := len(dst)
	dst = append(dst, domain...)
	dst = append(dst, '.')
	for i := range entries {
		if i > 0 {
			dst = append(dst, '.')
		}
		dst = append(dst, entries[i].Key...)
		if entries[i].Value != "" {
			dst = append(dst, '_')
			dst = append(dst, entries[i].Value...)
		}
	}
	sanitise(dst[start:])
	return dst
}

func appendDomain(dst []byte, prefix, domain string) []byte {
	dst = append(dst, prefix...)
	dst = append(dst, domain...)
	return append(dst, '_')
}

func appendEntry(dst []byte, e *Entry) []byte {
	dst = append(dst, e.Key...)
	dst = append(dst, '_')
	return append(dst, e.Value...)
}

// appendPattern appends the entry's key and the pattern's value. Where the
// pattern does not begin with the entry's key, because it has a star there or
// an underscore elsewhere, it is appended whole.
func (n *node) appendPattern(dst []byte, e *Entry) []byte {
	if rest, ok := strings.CutPrefix(n.final, e.Key); ok && strings.HasPrefix(rest, "_") {
		return append(dst, n.final...)
	}
	dst = append(dst, e.Key...)
	dst = append(dst, '_')
	return append(dst, n.final...)
}

// appendSegment appends the name of a level of a rule without detailed_metric
// and without sharing on this level.
func (n *node) appendSegment(dst []byte, e *Entry) []byte {
	byKey := n.byKey(e)
	switch {
	case n.byValue && e.Value != "" && (byKey || n.pattern != nil):
		return appendEntry(dst, e)
	case byKey || n.pattern == nil:
		return append(dst, n.final...)
	default:
		return n.appendPattern(dst, e)
	}
}

// sharedBy tells whether the level's counter is shared for an entry that took
// this node: sharing is of the wildcard, not of the key alone, and not of the
// value that is the pattern itself.
func (n *node) sharedBy(e *Entry) bool { return n.share && !n.exactly(e) && !n.byKey(e) }

// exactly tells whether the entry's joined key and value are the node's.
func (n *node) exactly(e *Entry) bool {
	rest, ok := strings.CutPrefix(n.final, e.Key)
	return ok && len(rest) == len(e.Value)+1 && rest[0] == '_' && rest[1:] == e.Value
}

// byKey tells whether an entry that took this node did so by its key alone.
// Had the joined key and value been the node's, or fitted its pattern, that
// would have come first.
func (n *node) byKey(e *Entry) bool {
	return n.final == e.Key && (n.pattern == nil || !n.pattern.matchEntry(e))
}

// matchEntry is match for an entry whose key is the pattern's own text: a
// rule whose key has a star, asked for literally.
func (p *pattern) matchEntry(e *Entry) bool {
	return p.match([]byte(e.Key + "_" + e.Value))
}

// constantStatName returns the name that AppendStatName gives for every
// request, or "" when it depends on the request. Names of wildcards do: a
// pattern k_* also fits the entry (k_a, b), whose name is another.
func constantStatName(domain string, path []*node) string {
	if path[len(path)-1].detailed {
		return ""
	}
	name := []byte(domain)
	for _, n := range path {
		if n.byValue || n.pattern != nil {
			return ""
		}
		name = append(append(name, '.'), n.final...)
	}
	sanitise(name)
	return string(name)
}

// sanitise replaces what statsd would misread: colons, bars and newlines, and
// the dots of whatever looks like an IPv4 address.
func sanitise(name []byte) {
	for i, c := range name {
		if c == ':' || c == '|' || c == '\n' {
			name[i] = '_'
		}
	}
	for i := 0; i < len(name); i++ {
		if !digit(name[i]) {
			continue
		}
		var dots [3]int
		end := digitsEnd(name, i)
		first := end
		found := 0
		for found < 3 && end+1 < len(name) && name[end] == '.' && digit(name[end+1]) {
			dots[found] = end
			found++
			end = digitsEnd(name, end+1)
		}
		if found < 3 {
			i = first // no address begins within these digits either
			continue
		}
		for _, dot := range dots {
			name[dot] = '_'
		}
		i = end - 1
	}
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

func digitsEnd(s []byte, i int) int {
	for i < len(s) && digit(s[i]) {
		i++
	}
	return i
}
