package descriptors

import (
	"bytes"
	"regexp"
	"strconv"

	"gopkg.in/yaml.v3"
)

// Bounds of a file, so that a small file cannot become a large tree.
const (
	// maxYAMLDepth bounds nested lists and maps: two per descriptor level,
	// and what metadata needs.
	maxYAMLDepth = 400
	// maxAliased bounds the values that aliases add by being repeated. The
	// reference allows between 396,000 and 400,000.
	maxAliased = 400_000
)

// parse reads the first document of a file. It returns nil when the text is
// not YAML; other defects leave broken values behind. All are reported.
func parse(data []byte, r *report) *value {
	var doc yaml.Node
	data = firstDocument(bytes.TrimPrefix(data, []byte("\ufeff")))
	if err := yaml.Unmarshal(data, &doc); err != nil {
		r.add(placeOf(err.Error(), data), "", "error loading config file: %s", err)
		return nil
	}
	if len(doc.Content) == 0 {
		return &value{scalar: scalar{typ: scalarNull}, place: place{1, 1}}
	}
	c := converter{report: r, active: map[*yaml.Node]bool{}}
	return c.convert(doc.Content[0], 0)
}

// firstDocument cuts off all further documents, which are not to be looked
// at. The library reads only the first, but looks ahead.
func firstDocument(data []byte) []byte {
	begun := false
	for rest := data; len(rest) > 0; {
		line := rest
		if i := bytes.IndexByte(rest, '\n'); i >= 0 {
			line = rest[:i+1]
		}
		text := bytes.TrimSpace(line)
		marker := (bytes.HasPrefix(line, []byte("---")) || bytes.HasPrefix(line, []byte("..."))) &&
			(len(text) == 3 || len(line) > 3 && (line[3] == ' ' || line[3] == '\t'))
		switch {
		case marker && begun:
			return data[:len(data)-len(rest)]
		case marker, len(text) > 0 && text[0] != '#' && line[0] != '%':
			begun = true
		}
		rest = rest[len(line):]
	}
	return data
}

var (
	yamlLine   = regexp.MustCompile(`line (\d+):`)
	yamlAnchor = regexp.MustCompile(`unknown anchor '(.+)' referenced`)
)

// placeOf finds the place of a syntax error. The library says no line when it
// is the first, and none for an anchor that it does not know.
func placeOf(text string, data []byte) place {
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		n, _ := strconv.Atoi(m[1])
		return place{line: n}
	}
	if m := yamlAnchor.FindStringSubmatch(text); m != nil {
		if i := bytes.Index(data, []byte("*"+m[1])); i >= 0 {
			before := data[:i]
			return place{1 + bytes.Count(before, []byte("\n")), i - bytes.LastIndexByte(before, '\n')}
		}
	}
	return place{line: 1}
}

// converter makes values of yaml.Nodes.
type converter struct {
	*report
	active     map[*yaml.Node]bool // aliases being followed
	aliasDepth int
	aliased    int
	stopped    bool // too much aliasing: everything else is null
}

// fail reports a defect of YAML and returns the value that stands for it.
func (c *converter) fail(n *yaml.Node, format string, args ...any) *value {
	at := place{n.Line, n.Column}
	c.add(at, "", "error loading config file: yaml: "+format, args...)
	return &value{place: at, broken: true, scalar: scalar{typ: scalarNull}}
}

func (c *converter) convert(n *yaml.Node, depth int) *value {
	at := place{n.Line, n.Column}
	if c.stopped {
		return &value{place: at, broken: true, scalar: scalar{typ: scalarNull}}
	}
	if depth > maxYAMLDepth {
		return c.fail(n, "nested deeper than %d levels", maxYAMLDepth)
	}
	if c.aliasDepth > 0 {
		if c.aliased++; c.aliased > maxAliased {
			c.stopped = true
			return c.fail(n, "document contains excessive aliasing: aliases repeat more than %d values", maxAliased)
		}
	}
	switch n.Kind {
	case yaml.AliasNode:
		return c.alias(n, depth)
	case yaml.SequenceNode:
		v := &value{place: at, kind: kindList, items: make([]*value, 0, len(n.Content))}
		for _, item := range n.Content {
			v.items = append(v.items, c.convert(item, depth+1))
		}
		return v
	case yaml.MappingNode:
		return c.mapping(n, depth)
	default:
		s, err := resolve(n)
		if err != nil {
			return c.fail(n, "%s", err)
		}
		return &value{place: at, scalar: s}
	}
}

// alias converts what the alias stands for. Its place is the alias's own;
// what it contains keeps the place where it is written.
func (c *converter) alias(n *yaml.Node, depth int) *value {
	if n.Alias == nil || c.active[n.Alias] {
		return c.fail(n, "anchor '%s' value contains itself", n.Value)
	}
	c.active[n.Alias] = true
	c.aliasDepth++
	v := c.convert(n.Alias, depth+1)
	c.aliasDepth--
	delete(c.active, n.Alias)
	v.place = place{n.Line, n.Column}
	return v
}

func (c *converter) mapping(n *yaml.Node, depth int) *value {
	v := &value{place: place{n.Line, n.Column}, kind: kindMap, fields: make([]field, 0, len(n.Content)/2)}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if key.Kind == yaml.ScalarNode && key.Tag == "!!merge" {
			c.merge(v, n.Content[i+1], depth)
			continue
		}
		k := c.convert(key, depth+1)
		val := c.convert(n.Content[i+1], depth+1)
		if k.kind != kindScalar {
			c.fail(key, "invalid map key: a key is text, not a list or a map")
		} else if !k.broken {
			v.set(k, val)
		}
	}
	return v
}

// merge lays the maps behind `<<` over what v has so far; of a list of maps
// the earlier ones go first.
func (c *converter) merge(v *value, n *yaml.Node, depth int) {
	from := c.convert(n, depth+1)
	maps := []*value{from}
	if from.kind == kindList {
		maps = from.items
	}
	for i := len(maps) - 1; i >= 0; i-- {
		if maps[i].kind != kindMap {
			if !maps[i].broken {
				c.fail(n, "map merge requires map or sequence of maps as the value")
			}
			continue
		}
		for _, f := range maps[i].fields {
			v.set(f.key, f.value)
		}
	}
}
