package descriptors

import "slices"

// referenceKeys are the keys of the language. As in the reference the check
// does not know levels: a key that stands on the wrong one has no effect.
func referenceKeys() []string {
	return []string{
		"domain", "key", "value", "descriptors", "rate_limit", "unit", "requests_per_unit", "unlimited",
		"shadow_mode", "quota_mode", "name", "replaces", "detailed_metric", "value_to_metric",
		"share_threshold", "metadata",
	}
}

// keyLevel says what kind of map is being checked: only the domain and its
// descriptors take a gale block.
type keyLevel uint8

const (
	levelDomain keyLevel = iota
	levelDescriptor
	levelOther
)

type keyChecker struct {
	*report
	known []string
}

// checkKeys reports unknown keys, lists of anything but maps, and scalars
// that no field takes, anywhere outside of metadata and gale.
func checkKeys(root *value, r *report) {
	c := keyChecker{report: r, known: referenceKeys()}
	path := ""
	if d := root.get("domain"); d != nil && d.kind == kindScalar && d.scalar.typ != scalarNull {
		path = d.scalar.text
	}
	c.check(root, levelDomain, path)
}

func (c *keyChecker) check(v *value, level keyLevel, path string) {
	for _, f := range v.fields {
		if f.key.scalar.typ != scalarText {
			c.add(f.key.place, path, "config error, key is not of type string: %s", f.key.show())
			continue
		}
		key := f.key.scalar.text
		switch {
		case key == "metadata":
			continue
		case key == "gale" && level != levelOther:
			continue
		case key == "gale":
			c.add(f.key.place, path, "config error, unknown key 'gale' here: it stands on the domain or on a descriptor")
			continue
		case !slices.Contains(c.known, key):
			c.add(f.key.place, path, "config error, unknown key '%s'%s", key, suggest(key, append(c.known, "gale")))
			continue
		}
		c.checkValue(key, f.value, level, path)
	}
}

func (c *keyChecker) checkValue(key string, v *value, level keyLevel, path string) {
	switch v.kind {
	case kindMap:
		c.check(v, levelOther, path)
	case kindList:
		below := levelOther
		if key == "descriptors" && level != levelOther {
			below = levelDescriptor
		}
		for _, item := range v.items {
			if item.kind != kindMap {
				if !item.broken {
					c.add(item.place, path, "config error, yaml file contains list of type other than map: %s", item.show())
				}
				continue
			}
			itemPath := path
			if below == levelDescriptor {
				itemPath = descriptorPath(path, item)
			}
			c.check(item, below, itemPath)
		}
	default:
		if v.scalar.typ == scalarFloat {
			c.add(v.place, path, "error checking config: %s is %s, a number that %s cannot have; text needs quotes", key, v.scalar.text, key)
		}
	}
}

// descriptorPath returns the path of a descriptor that may be defective.
func descriptorPath(parent string, v *value) string {
	key, val := scalarTextOf(v.get("key")), scalarTextOf(v.get("value"))
	if key == "" {
		return parent
	}
	return parent + "." + finalKey(key, val)
}

func scalarTextOf(v *value) string {
	if v.isNull() || v.kind != kindScalar {
		return ""
	}
	return v.scalar.text
}

// finalKey is the name of a descriptor on its level.
func finalKey(key, value string) string {
	if value == "" {
		return key
	}
	return key + "_" + value
}
