package descriptors

import (
	"strconv"
	"unicode/utf8"
)

// metadataAndGale reads the free-form metadata of a node without the
// reserved key, and the gale block, in whichever of its two spellings.
func (d decoder) metadataAndGale(v *value, path string, level keyLevel) (map[string]any, *galeSpec) {
	block := v.get("gale")
	meta := v.get("metadata")
	if !meta.isNull() && meta.kind != kindMap {
		if level == levelDescriptor { // elsewhere metadata has no meaning
			d.typeError(meta, path, "metadata", "a map")
		}
		meta = nil
	}
	if meta.isNull() {
		return nil, d.gale(block, path)
	}
	inner := meta.get("gale")
	if block != nil && inner != nil {
		d.add(inner.place, path, "gale and metadata.gale mean the same: keep one of them")
		inner = nil
	}
	if block == nil {
		block = inner
	}
	if level != levelDescriptor {
		return nil, d.gale(block, path)
	}
	return d.metadata(meta, path), d.gale(block, path)
}

// metadata converts the top level: its keys are text as it stands in the
// file. nil when there is nothing but the reserved key.
func (d decoder) metadata(v *value, path string) map[string]any {
	var out map[string]any
	for _, f := range v.fields {
		if f.key.scalar.typ == scalarText && f.key.scalar.text == "gale" {
			continue
		}
		if out == nil {
			out = make(map[string]any, len(v.fields))
		}
		d.checkUTF8(f.key, path)
		out[f.key.scalar.text] = d.plain(f.value, path)
	}
	return out
}

// plain converts a value to the types of a protobuf Struct.
func (d decoder) plain(v *value, path string) any {
	switch v.kind {
	case kindMap:
		out := make(map[string]any, len(v.fields))
		for _, f := range v.fields {
			d.checkUTF8(f.key, path)
			out[f.key.scalar.String()] = d.plain(f.value, path)
		}
		return out
	case kindList:
		out := make([]any, len(v.items))
		for i, item := range v.items {
			out[i] = d.plain(item, path)
		}
		return out
	}
	switch v.scalar.typ {
	case scalarNull:
		return nil
	case scalarBool:
		return v.scalar.b
	case scalarInt:
		return float64(v.scalar.i)
	case scalarFloat:
		return v.scalar.f
	default:
		d.checkUTF8(v, path)
		return v.scalar.text
	}
}

// checkUTF8 reports text that no protobuf string can hold. Only !!binary
// can bring it into a file.
func (d decoder) checkUTF8(v *value, path string) {
	if !utf8.ValidString(v.scalar.text) {
		d.add(v.place, path, "error parsing metadata: invalid UTF-8 in string: %s", strconv.QuoteToASCII(v.scalar.text))
	}
}
