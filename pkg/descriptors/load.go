package descriptors

import (
	"slices"
	"strings"
)

// File is a rule file. Name is what errors call it, such as "basic.yaml".
// One that could not be read has Err, and counts as a file with a defect.
type File struct {
	Name string
	Data []byte
	Err  error
}

// Options are what the process says about all rules.
type Options struct {
	// MergeDomains lets several files give rules of one domain.
	MergeDomains bool
	// DefaultMode is the mode of rules that say nothing; "" is strict.
	DefaultMode Mode
}

// Load compiles rule files, in the order of their names.
//
// If any file has a defect the error is Errors, with every defect of every
// file, and the tree is still usable: it has the domains of the files without
// defects. A domain that a defective file defines, alone or together with
// others, is as it was in previous; it is absent where previous is nil or has
// no such domain. A defective file whose domain cannot be told stands for the
// domains that it defined in previous. The tree is never nil.
func Load(files []File, previous *Tree, o Options) (*Tree, error) {
	files = slices.Clone(files)
	slices.SortStableFunc(files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	l := loader{options: o, tree: newTree(o), specs: map[string][]*fileSpec{}}
	for _, f := range files {
		l.read(f)
	}
	for _, name := range l.order {
		l.compile(name)
	}
	if previous != nil {
		l.keep(previous)
	}
	l.tree.number()
	if len(l.errors) > 0 {
		l.errors.sort()
		return l.tree, l.errors
	}
	return l.tree, nil
}

func newTree(o Options) *Tree {
	if o.DefaultMode == "" {
		o.DefaultMode = ModeStrict
	}
	return &Tree{domains: map[string]*domain{}, gale: Gale{Mode: o.DefaultMode}}
}

// loader is one run of Load.
type loader struct {
	options Options
	tree    *Tree
	errors  Errors
	specs   map[string][]*fileSpec // by domain
	order   []string               // domains as they first appear
	bad     []*fileSpec
}

func (l *loader) read(f File) {
	spec, errs := decode(f)
	name := spec.domain.v
	if first := l.specs[name]; name != "" && len(first) > 0 && !l.options.MergeDomains {
		r := report{file: f.Name}
		r.add(spec.domain.at, name, "duplicate domain '%s' in config file: %s defines it too; MERGE_DOMAIN_CONFIG=true merges them",
			name, first[0].file.Name)
		errs = append(errs, r.errors...)
		spec.bad = true
	}
	l.errors = append(l.errors, errs...)
	if spec.bad {
		l.bad = append(l.bad, spec)
	}
	if name == "" {
		return
	}
	if l.specs[name] == nil {
		l.order = append(l.order, name)
	}
	l.specs[name] = append(l.specs[name], spec)
}

// compile builds a domain of its files, and puts it into the tree if all of
// them are good. All are checked, so that all errors are reported at once.
func (l *loader) compile(name string) {
	specs := l.specs[name]
	if !l.options.MergeDomains {
		for _, duplicate := range specs[1:] {
			_, errs := compileDomain([]*fileSpec{duplicate}, l.tree.gale)
			l.errors = append(l.errors, errs...)
		}
		specs = specs[:1]
	}
	d, errs := compileDomain(specs, l.tree.gale)
	l.errors = append(l.errors, errs...)
	good := true
	for _, s := range specs {
		if !s.bad && slices.ContainsFunc(errs, func(e *Error) bool { return e.File == s.file.Name }) {
			s.bad = true
			l.bad = append(l.bad, s)
		}
		good = good && !s.bad
	}
	if good {
		l.tree.domains[name] = d
	}
}

// keep takes the domains of bad files over from the previous tree. They are
// compiled again, because rules are numbered anew and are immutable.
func (l *loader) keep(previous *Tree) {
	for _, spec := range l.bad {
		if name := spec.domain.v; name != "" {
			l.restore(previous.domains[name], false)
		}
		for _, name := range previous.Domains() {
			d := previous.domains[name]
			if slices.ContainsFunc(d.sources, func(f File) bool { return f.Name == spec.file.Name }) {
				// With merging, the unreadable file may hold a part of the
				// domain still, so that the other part alone will not do.
				l.restore(d, spec.domain.v == "" && l.options.MergeDomains)
			}
		}
	}
}

// restore puts a domain of the previous tree into this one, unless this one
// has it and replace is not asked for.
func (l *loader) restore(d *domain, replace bool) {
	if d == nil || l.tree.domains[d.name] != nil && !replace {
		return
	}
	var specs []*fileSpec
	for _, f := range d.sources {
		spec, _ := decode(f)
		specs = append(specs, spec)
	}
	if again, errs := compileDomain(specs, l.tree.gale); len(errs) == 0 {
		l.tree.domains[d.name] = again
	}
}
