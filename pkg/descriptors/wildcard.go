package descriptors

import (
	"bytes"
	"strings"
)

// pattern is a final key with stars, cut at the stars. A star stands for any
// number of bytes, none included.
type pattern struct {
	prefix, suffix []byte   // before the first star, after the last
	middle         [][]byte // between stars, without empty ones
	literal        int      // total length of all of these
}

func newPattern(final string) *pattern {
	parts := strings.Split(final, "*")
	last := len(parts) - 1
	p := &pattern{prefix: []byte(parts[0]), suffix: []byte(parts[last]), literal: len(final) - last}
	for _, part := range parts[1:last] {
		if part != "" {
			p.middle = append(p.middle, []byte(part))
		}
	}
	return p
}

// match tells whether all of s fits. Taking each middle part where it first
// occurs leaves the most room for those after it.
func (p *pattern) match(s []byte) bool {
	if len(s) < p.literal || !bytes.HasPrefix(s, p.prefix) || !bytes.HasSuffix(s, p.suffix) {
		return false
	}
	s = s[len(p.prefix) : len(s)-len(p.suffix)]
	for _, part := range p.middle {
		i := bytes.Index(s, part)
		if i < 0 {
			return false
		}
		s = s[i+len(part):]
	}
	return true
}

// wildcards finds the first pattern, in file order, that fits.
//
// Patterns are indexed by their prefix, and those with the same prefix by
// their suffix. A look-up costs at most one walk along the key for the
// prefixes, one more for each prefix that fits and has many patterns, and one
// comparison for each pattern of which both ends fit. So the cost does not
// grow with patterns that begin or end otherwise; it grows linearly with
// patterns that have both ends in common, such as "*a*", "*b*".
type wildcards struct {
	nodes []*node // in file order
	byEnd bool    // whether index built prefixes
	first trie    // of prefixes; its groups index suffixes
}

// scanAtMost is the number of patterns up to which comparing them all is
// cheaper than walking an index.
const scanAtMost = 8

func (w *wildcards) add(n *node) { w.nodes = append(w.nodes, n) }

func (w *wildcards) index() {
	if len(w.nodes) <= scanAtMost {
		return
	}
	w.byEnd = true
	for i, n := range w.nodes {
		w.first.insert(n.pattern.prefix, false, int32(i))
	}
	w.first.each(func(t *trie) {
		if len(t.items) <= scanAtMost {
			return
		}
		t.last = &trie{}
		for _, i := range t.items {
			t.last.insert(w.nodes[i].pattern.suffix, true, i)
		}
	})
}

// find returns the first node whose pattern fits key, or nil.
func (w *wildcards) find(key []byte) *node {
	if !w.byEnd {
		for _, n := range w.nodes {
			if n.pattern.match(key) {
				return n
			}
		}
		return nil
	}
	best := int32(len(w.nodes))
	for t, rest := &w.first, key; t != nil; t, rest = t.next(rest, false) {
		if t.last == nil {
			best = w.scan(t.items, key, best)
			continue
		}
		for u, rest := t.last, key; u != nil; u, rest = u.next(rest, true) {
			best = w.scan(u.items, key, best)
		}
	}
	if int(best) == len(w.nodes) {
		return nil
	}
	return w.nodes[best]
}

// scan returns the first of items that fits, if it is before best.
func (w *wildcards) scan(items []int32, key []byte, best int32) int32 {
	for _, i := range items {
		if i >= best {
			break
		}
		if w.nodes[i].pattern.match(key) {
			return i
		}
	}
	return best
}

// trie is a radix tree over the beginnings of keys, or, backward, over their
// ends.
type trie struct {
	label    []byte // in reading direction
	firsts   []byte // first bytes of the children's labels
	children []*trie
	items    []int32 // patterns that end here, in file order
	last     *trie   // items by suffix, if there are many
}

// at returns the i-th byte of s in reading direction.
func at(s []byte, i int, backward bool) byte {
	if backward {
		return s[len(s)-1-i]
	}
	return s[i]
}

// next returns the child along s, which is what is left to read, and what is
// left after it; nil if there is none.
func (t *trie) next(s []byte, backward bool) (*trie, []byte) {
	if len(s) == 0 || len(t.firsts) == 0 {
		return nil, nil
	}
	i := bytes.IndexByte(t.firsts, at(s, 0, backward))
	if i < 0 {
		return nil, nil
	}
	child := t.children[i]
	n := len(child.label)
	if n > len(s) || child.common(s, backward) < n {
		return nil, nil
	}
	if backward {
		return child, s[:len(s)-n]
	}
	return child, s[n:]
}

// common returns how many bytes of the label s begins with.
func (t *trie) common(s []byte, backward bool) int {
	n := min(len(t.label), len(s))
	for i := range n {
		if t.label[i] != at(s, i, backward) {
			return i
		}
	}
	return n
}

func (t *trie) insert(s []byte, backward bool, item int32) {
	if len(s) == 0 {
		t.items = append(t.items, item)
		return
	}
	i := bytes.IndexByte(t.firsts, at(s, 0, backward))
	if i < 0 {
		label := make([]byte, len(s))
		for j := range label {
			label[j] = at(s, j, backward)
		}
		t.firsts = append(t.firsts, label[0])
		t.children = append(t.children, &trie{label: label, items: []int32{item}})
		return
	}
	child := t.children[i]
	n := child.common(s, backward)
	if n < len(child.label) { // split: what is common becomes a node of its own
		lower := *child
		lower.label = child.label[n:]
		*child = trie{label: child.label[:n], firsts: []byte{lower.label[0]}, children: []*trie{&lower}}
	}
	if backward {
		s = s[:len(s)-n]
	} else {
		s = s[n:]
	}
	child.insert(s, backward, item)
}

func (t *trie) each(f func(*trie)) {
	f(t)
	for _, child := range t.children {
		child.each(f)
	}
}
