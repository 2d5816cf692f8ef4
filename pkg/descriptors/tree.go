package descriptors

import (
	"maps"
	"slices"
)

// Tree is a set of compiled rules. It is immutable: any number of goroutines
// may read it.
type Tree struct {
	domains map[string]*domain
	rules   []*Rule
	gale    Gale // of domains that the tree does not have
}

// domain is one name space.
type domain struct {
	name    string
	gale    Gale // the default for its rules, and what overrides get
	root    level
	rules   []*Rule // in file order
	sources []File  // what it was made of, for the tree after this one
}

// level holds the descriptors of one descriptors list.
type level struct {
	nodes   map[string]*node // by final key, wildcards too
	longest int              // length of the longest final key
	wild    wildcards
}

// node is a descriptor of the rule files.
type node struct {
	final    string // key, or key_value
	pattern  *pattern
	detailed bool
	byValue  bool // value_to_metric
	share    bool
	position Position
	rule     *Rule   // nil without a limit
	path     []*node // from the first level to this node; nil without a limit
	children *level  // nil without children
}

// Rules returns all rules; a rule's Index is its position.
func (t *Tree) Rules() []*Rule { return t.rules }

// Domains returns the names of all domains, sorted.
func (t *Tree) Domains() []string { return slices.Sorted(maps.Keys(t.domains)) }

// DomainGale returns what holds in a domain where no rule says otherwise,
// which is what a limit in the request gets. An unknown domain has the
// process default.
func (t *Tree) DomainGale(name string) Gale {
	if d := t.domains[name]; d != nil {
		return d.gale.effective()
	}
	return t.gale
}

// number gives the rules their indexes.
func (t *Tree) number() {
	for _, name := range t.Domains() {
		for _, r := range t.domains[name].rules {
			r.Index = len(t.rules)
			t.rules = append(t.rules, r)
		}
	}
}
