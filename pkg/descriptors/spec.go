package descriptors

import (
	"math"
	"strconv"
)

// fileSpec is what a file says, types checked, meaning not yet.
type fileSpec struct {
	file        File
	bad         bool
	domain      placed[string]
	gale        *galeSpec
	descriptors []*descriptorSpec
}

// descriptorSpec is one item of a descriptors list. Its path ends in its
// final key, unless it has no key.
type descriptorSpec struct {
	at          place
	path        string
	key         placed[string]
	value       placed[string]
	limit       *limitSpec
	shadow      bool
	quota       bool
	detailed    bool
	byValue     bool // value_to_metric
	share       placed[bool]
	metadata    map[string]any
	gale        *galeSpec
	descriptors []*descriptorSpec
}

// limitSpec is a rate_limit map.
type limitSpec struct {
	requests  uint32
	unit      placed[string]
	unitOK    bool // false: the type of unit or unlimited was wrong, which is reported
	unlimited bool
	name      string
	replaces  []placed[string]
}

// maxDepth is how deep descriptors may be nested. Envoy sends no descriptor
// of nearly as many entries; the bound keeps recursion short.
const maxDepth = 128

// maxPaths bounds the paths of a file's descriptors, in bytes together: long
// keys that aliases repeat would take memory that the file does not.
const maxPaths = 256 << 20

// decoder turns values into specs and reports wrong types.
type decoder struct {
	*report

	room *int // bytes left for paths
}

// decode reads a file. Of a file that is not YAML only the name is known.
func decode(f File) (*fileSpec, Errors) {
	r := &report{file: f.Name}
	spec := &fileSpec{file: f}
	if f.Err != nil {
		r.add(place{}, "", "error loading config file: %s", f.Err)
		spec.bad = true
		return spec, r.errors
	}
	root := parse(f.Data, r)
	switch {
	case root == nil || root.broken:
	case root.kind == kindMap:
		checkKeys(root, r)
		room := maxPaths
		d := decoder{r, &room}
		d.root(root, spec)
	case root.isNull():
		r.add(root.place, "", errEmptyDomain)
	default:
		r.add(root.place, "", "error loading config file: a rule file is a map with a domain and its descriptors, not %s", root.show())
	}
	spec.bad = len(r.errors) > 0
	return spec, r.errors
}

const errEmptyDomain = "config file cannot have empty domain"

func (d decoder) root(v *value, spec *fileSpec) {
	var ok bool
	spec.domain, ok = d.text(v, "domain", "")
	if ok && spec.domain.v == "" {
		d.add(spec.domain.at, "", errEmptyDomain)
	}
	_, spec.gale = d.metadataAndGale(v, spec.domain.v, levelDomain)
	spec.descriptors = d.descriptors(v, spec.domain.v, 1)
}

func (d decoder) descriptors(v *value, parent string, depth int) []*descriptorSpec {
	list := v.get("descriptors")
	if list.isNull() {
		return nil
	}
	if list.kind != kindList {
		d.typeError(list, parent, "descriptors", "a list of descriptors")
		return nil
	}
	if depth > maxDepth && len(list.items) > 0 {
		d.add(list.place, parent, "error loading config file: descriptors are nested deeper than %d levels", maxDepth)
		return nil
	}
	specs := make([]*descriptorSpec, 0, len(list.items))
	for _, item := range list.items {
		if item.kind != kindMap { // reported by checkKeys
			continue
		}
		if *d.room < 0 {
			break
		}
		specs = append(specs, d.descriptor(item, parent, depth))
	}
	return specs
}

func (d decoder) descriptor(v *value, parent string, depth int) *descriptorSpec {
	s := &descriptorSpec{at: v.place, path: descriptorPath(parent, v)}
	if *d.room -= len(s.path); *d.room < 0 {
		d.add(s.at, "", "error loading config file: keys and values are too long: the paths of all descriptors take more than %d bytes", maxPaths)
		return s
	}
	var keyOK bool
	s.key, keyOK = d.text(v, "key", s.path)
	s.value, _ = d.text(v, "value", s.path)
	if keyOK && s.key.v == "" {
		d.add(s.key.at, s.path, "descriptor has empty key")
	}
	s.limit = d.limit(v, s.path)
	s.shadow = d.flag(v, "shadow_mode", s.path)
	s.quota = d.flag(v, "quota_mode", s.path)
	s.detailed = d.flag(v, "detailed_metric", s.path)
	s.byValue = d.flag(v, "value_to_metric", s.path)
	s.share, _ = d.boolean(v, "share_threshold", s.path)
	s.metadata, s.gale = d.metadataAndGale(v, s.path, levelDescriptor)
	s.descriptors = d.descriptors(v, s.path, depth+1)
	return s
}

func (d decoder) limit(v *value, path string) *limitSpec {
	m := v.get("rate_limit")
	if m.isNull() {
		return nil
	}
	if m.kind != kindMap {
		d.typeError(m, path, "rate_limit", "a map with unit and requests_per_unit")
		return nil
	}
	var s limitSpec
	s.requests = d.requests(m, path)
	s.unit, s.unitOK = d.text(m, "unit", path)
	unlimited, ok := d.boolean(m, "unlimited", path)
	s.unlimited, s.unitOK = unlimited.v, s.unitOK && ok
	name, _ := d.text(m, "name", path)
	s.name = name.v
	replaces := m.get("replaces")
	if replaces.isNull() {
		return &s
	}
	if replaces.kind != kindList {
		d.typeError(replaces, path, "replaces", "a list of {name: …}")
		return &s
	}
	for _, item := range replaces.items {
		if item.kind == kindMap {
			if name, ok := d.text(item, "name", path); ok {
				s.replaces = append(s.replaces, name)
			}
		}
	}
	return &s
}

// text reads a field that holds text; numbers and booleans count as what
// they look like in the file. The place is the value's, or the map's.
func (d decoder) text(v *value, key, path string) (placed[string], bool) {
	f := v.get(key)
	if f == nil {
		return placed[string]{at: v.place}, true
	}
	out := placed[string]{at: f.place}
	switch {
	case f.broken:
		return out, false
	case f.kind == kindMap:
		d.typeError(f, path, key, "text")
		return out, false
	case f.kind == kindList:
		d.typeError(f, path, key, "text")
		return out, false
	case f.scalar.typ != scalarNull:
		out.v = f.scalar.text
	}
	return out, true
}

func (d decoder) flag(v *value, key, path string) bool {
	b, _ := d.boolean(v, key, path)
	return b.v
}

// boolean reads true or false; false when it is missing.
func (d decoder) boolean(v *value, key, path string) (placed[bool], bool) {
	f := v.get(key)
	if f.isNull() {
		return placed[bool]{at: v.place}, true
	}
	if f.kind != kindScalar || f.scalar.typ != scalarBool {
		if f.kind != kindScalar || f.scalar.typ != scalarFloat { // floats were reported
			d.typeError(f, path, key, "true or false, without quotes")
		}
		return placed[bool]{at: f.place}, false
	}
	return placed[bool]{v: f.scalar.b, at: f.place}, true
}

func (d decoder) requests(v *value, path string) uint32 {
	f := v.get("requests_per_unit")
	if f.isNull() {
		return 0
	}
	if f.kind == kindScalar && f.scalar.typ == scalarFloat {
		return 0 // reported
	}
	if f.kind != kindScalar || f.scalar.typ != scalarInt || f.scalar.i < 0 || f.scalar.i > math.MaxUint32 {
		d.typeError(f, path, "requests_per_unit", "a whole number from 0 to "+strconv.Itoa(math.MaxUint32)+", without quotes")
		return 0
	}
	return uint32(f.scalar.i)
}

// typeError reports that a field holds a value of the wrong type.
func (d decoder) typeError(f *value, path, key, want string) {
	if f.broken {
		return
	}
	got := f.show()
	if f.kind == kindScalar && f.scalar.typ == scalarText {
		got = strconv.Quote(got)
	}
	d.add(f.place, path, "error loading config file: %s must be %s, not %s", key, want, got)
}
