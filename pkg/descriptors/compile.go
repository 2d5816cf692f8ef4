package descriptors

import (
	"strings"
)

// compiler builds one domain.
type compiler struct {
	*report
	domain *domain
}

// compileDomain builds a domain of its files, in order. The domain is to be
// used only if there are no errors.
func compileDomain(files []*fileSpec, inherited Gale) (*domain, Errors) {
	d := &domain{name: files[0].domain.v}
	var errs Errors
	// The domain's block may stand in any of the files that make it up, and
	// holds for the rules of all of them.
	d.gale = inherited
	var from *fileSpec
	for _, f := range files {
		d.sources = append(d.sources, f.file)
		if f.gale == nil {
			continue
		}
		r := &report{file: f.file.Name}
		if from != nil {
			r.add(f.gale.at, d.name, "domain '%s' has a gale block in %s already", d.name, from.file.Name)
		} else {
			from, d.gale = f, f.gale.over(inherited)
			checkLease(f.gale, d.gale, d.name, r)
		}
		errs = append(errs, r.errors...)
	}
	for _, f := range files {
		c := compiler{domain: d, report: &report{file: f.file.Name}}
		c.level(&d.root, nil, f.descriptors, d.name, d.gale)
		errs = append(errs, c.errors...)
	}
	d.root.index()
	return d, errs
}

// checkLease reports a lease block where nothing is leased.
func checkLease(s *galeSpec, g Gale, path string, r *report) {
	if s != nil && s.lease != nil && g.Mode != ModeLeased {
		r.add(s.lease.at, path, "lease has no effect in mode '%s': say mode: leased, or remove it", g.Mode)
	}
}

// level adds descriptors to a level, which sits below the nodes of path.
func (c *compiler) level(into *level, path []*node, specs []*descriptorSpec, parent string, inherited Gale) {
	for _, s := range specs {
		n := c.node(s)
		g := s.gale.over(inherited)
		checkLease(s.gale, g, s.path, c.report)
		here := append(path[:len(path):len(path)], n)
		if s.key.v != "" {
			if into.nodes[n.final] != nil {
				c.add(s.key.at, s.path, "duplicate descriptor composite key '%s'", parent+"."+n.final)
			} else {
				into.add(n)
			}
		}
		c.limit(s, n, here, g)
		if s.share.v && s.key.v != "" && n.pattern == nil {
			c.add(s.share.at, s.path, "share_threshold can only be used with wildcard values (containing '*'), but found key '%s'", n.final)
		}
		if len(s.descriptors) > 0 {
			n.children = &level{}
			c.level(n.children, here, s.descriptors, s.path, g)
			n.children.index()
		}
	}
}

func (c *compiler) node(s *descriptorSpec) *node {
	n := &node{
		final:    finalKey(s.key.v, s.value.v),
		detailed: s.detailed,
		byValue:  s.byValue,
		share:    s.share.v,
		position: Position{File: c.report.file, Line: s.at.line, Column: s.at.column},
	}
	if strings.Contains(n.final, "*") {
		n.pattern = newPattern(n.final)
	}
	return n
}

// limit checks the limit of a descriptor, if it has one, and makes the rule.
func (c *compiler) limit(s *descriptorSpec, n *node, path []*node, g Gale) {
	l := s.limit
	if l == nil {
		return
	}
	unit := parseUnit(l.unit.v)
	switch {
	case l.unlimited && unit != UnitUnknown:
		c.add(l.unit.at, s.path, "should not specify rate limit unit when unlimited")
	case !l.unlimited && unit == UnitUnknown && l.unitOK:
		c.add(l.unit.at, s.path, "invalid rate limit unit '%s': it is %s%s", l.unit.v, list(unitWords()), suggest(l.unit.v, unitWords()))
	}
	r := &Rule{
		Domain: c.domain.name, Path: s.path, Position: n.position,
		RequestsPerUnit: l.requests, Unit: unit, Unlimited: l.unlimited, Name: l.name,
		Shadow: s.shadow, Quota: s.quota, DetailedMetric: s.detailed,
		ShareThreshold: s.share.v, ValueToMetric: s.byValue,
		Metadata: s.metadata, Gale: g.effective(),
	}
	for _, name := range l.replaces {
		switch name.v {
		case "":
			c.add(name.at, s.path, "should not have an empty replaces entry")
		case l.name:
			c.add(name.at, s.path, "replaces should not contain name of same descriptor")
		}
		r.Replaces = append(r.Replaces, name.v)
	}
	n.rule, n.path = r, path
	r.StatName = constantStatName(c.domain.name, path)
	c.domain.rules = append(c.domain.rules, r)
}

func unitWords() []string {
	return []string{"second", "minute", "hour", "day", "week", "month", "year"}
}

// parseUnit reads a unit in any case; UnitUnknown for anything else.
func parseUnit(text string) Unit {
	upper := strings.ToUpper(text)
	for u := UnitSecond; u <= UnitWeek; u++ {
		if u.String() == upper {
			return u
		}
	}
	return UnitUnknown
}

func (l *level) add(n *node) {
	if l.nodes == nil {
		l.nodes = map[string]*node{}
	}
	l.nodes[n.final] = n
	l.longest = max(l.longest, len(n.final))
	if n.pattern != nil {
		l.wild.add(n)
	}
}

// index makes the level ready for matching.
func (l *level) index() { l.wild.index() }
