package descriptors

// Match is the result of one look-up. Reuse it: after its first use with a
// long key a look-up allocates nothing. A Match belongs to one goroutine at a
// time, and a used one must not be copied.
type Match struct {
	// Rule is the rule that decides, nil when none does.
	Rule *Rule
	// DomainKnown is false when the tree has no such domain.
	DomainKnown bool

	node   *node // that carries Rule
	inline [128]byte
	heap   []byte // for keys that do not fit inline
}

// keepAtMost bounds what a Match keeps between look-ups, so that one huge
// value does not stay for ever.
const keepAtMost = 64 << 10

// Match finds the rule of a descriptor.
//
// On each level an entry takes the descriptor whose key_value is the entry's,
// else the first in file order whose wildcard fits, else the one that has the
// entry's key and no value. What is taken is final: there is no way back to
// another branch. The rule is that of the last entry's descriptor.
//
// Key and value are compared joined by an underscore, so that the entry
// (a, b_c) and the rule key a_b, value c do match, as in the reference.
//
// The cost grows with the number of entries and the length of their keys and
// values. It does not grow with the number of exact rules; for wildcards see
// the package comment.
func (t *Tree) Match(name string, entries []Entry, m *Match) {
	m.Rule, m.node, m.DomainKnown = nil, nil, false
	d := t.domains[name]
	if d == nil {
		return
	}
	m.DomainKnown = true
	last := len(entries) - 1
	for l, i := &d.root, 0; i <= last; i++ {
		n := m.step(l, &entries[i])
		if n == nil {
			return
		}
		if i == last {
			if n.rule != nil {
				m.Rule, m.node = n.rule, n
			}
			return
		}
		if l = n.children; l == nil {
			return
		}
	}
}

// step finds the descriptor of a level for an entry, nil if there is none.
func (m *Match) step(l *level, e *Entry) *node {
	size := len(e.Key) + 1 + len(e.Value)
	if wild := len(l.wild.nodes) > 0; wild || size <= l.longest {
		joined := m.join(e, size)
		if n := l.nodes[string(joined)]; n != nil {
			return n
		}
		if wild {
			if n := l.wild.find(joined); n != nil {
				return n
			}
		}
	}
	return l.nodes[e.Key]
}

// join returns key_value in memory that is valid until the next call.
func (m *Match) join(e *Entry, size int) []byte {
	buf := m.inline[:0]
	if size > len(m.inline) {
		if cap(m.heap) < size || cap(m.heap) > keepAtMost {
			m.heap = make([]byte, 0, size)
		}
		buf = m.heap
	}
	buf = append(buf, e.Key...)
	buf = append(buf, '_')
	return append(buf, e.Value...)
}
