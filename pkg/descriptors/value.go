package descriptors

import (
	"strings"
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

// identity tells keys apart: by text, and text from what looks the same.
func (v *value) identity() string {
	if v.scalar.typ == scalarText {
		return "s" + v.scalar.text
	}
	return "o" + v.scalar.text
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
