package descriptors

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"

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

// kind is the kind of a value.
type kind uint8

const (
	kindScalar kind = iota
	kindList
	kindMap
)

// value is a YAML value with aliases and merge keys resolved and duplicate
// keys decided (the later wins), which is how the reference reads YAML.
type value struct {
	place
	kind   kind
	broken bool   // an error was reported for it; read as null
	scalar scalar // kindScalar
	items  []*value
	fields []field // in order of first appearance
	index  map[string]int
}

type field struct{ key, value *value }

// get returns the value of a text key; nil if there is none.
func (v *value) get(key string) *value {
	if i, ok := v.find("s" + key); ok {
		return v.fields[i].value
	}
	return nil
}

// isNull also holds for a missing value.
func (v *value) isNull() bool {
	return v == nil || v.kind == kindScalar && (v.broken || v.scalar.typ == scalarNull)
}

// identity tells keys apart as the reference's map does: by type and value.
func (v *value) identity() string {
	if v.scalar.typ == scalarText {
		return "s" + v.scalar.text
	}
	return strconv.Itoa(int(v.scalar.typ)) + v.scalar.String()
}

func (v *value) find(identity string) (int, bool) {
	if v.index != nil {
		i, ok := v.index[identity]
		return i, ok
	}
	for i := range v.fields {
		if v.fields[i].key.identity() == identity {
			return i, true
		}
	}
	return 0, false
}

// set adds a field, or replaces the value of the equal key. A repeated
// rate_limit or metadata map is laid over the earlier one, field by field.
func (v *value) set(key, val *value) {
	identity := key.identity()
	if i, ok := v.find(identity); ok {
		old := v.fields[i].value
		if (identity == "srate_limit" || identity == "smetadata") && old.kind == kindMap && val.kind == kindMap {
			merged := &value{place: val.place, kind: kindMap}
			for _, part := range [][]field{old.fields, val.fields} {
				for _, f := range part {
					merged.set(f.key, f.value)
				}
			}
			val = merged
		}
		v.fields[i] = field{key, val}
		return
	}
	v.fields = append(v.fields, field{key, val})
	switch n := len(v.fields); {
	case v.index != nil:
		v.index[identity] = n - 1
	case n == 16: // from here on a map is cheaper than comparing
		v.index = make(map[string]int, 2*n)
		for i := range v.fields {
			v.index[v.fields[i].key.identity()] = i
		}
	}
}

// parse reads the first document of a file. It returns nil when the text is
// not YAML; other defects leave broken values behind. All are reported.
func parse(data []byte, r *report) *value {
	var doc yaml.Node
	if err := yaml.Unmarshal(bytes.TrimPrefix(data, []byte("\ufeff")), &doc); err != nil {
		r.add(placeOf(err.Error(), data), "", "error loading config file: %s", err)
		return nil
	}
	if len(doc.Content) == 0 {
		return &value{scalar: scalar{typ: scalarNull}, place: place{1, 1}}
	}
	c := converter{report: r, active: map[*yaml.Node]bool{}}
	return c.convert(doc.Content[0], 0)
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

// show prints a value in an error, shortened.
func (v *value) show() string {
	var b strings.Builder
	v.showTo(&b)
	text := []rune(b.String())
	if len(text) > 80 {
		return string(text[:80]) + "…"
	}
	return string(text)
}

func (v *value) showTo(b *strings.Builder) {
	switch {
	case b.Len() > 400:
	case v.kind == kindScalar:
		b.WriteString(v.scalar.String())
	case v.kind == kindList:
		b.WriteByte('[')
		for i, item := range v.items {
			if i > 0 {
				b.WriteByte(' ')
			}
			item.showTo(b)
		}
		b.WriteByte(']')
	default:
		b.WriteString("map[")
		for i, f := range v.fields {
			if i > 0 {
				b.WriteByte(' ')
			}
			f.key.showTo(b)
			b.WriteByte(':')
			f.value.showTo(b)
		}
		b.WriteByte(']')
	}
}
