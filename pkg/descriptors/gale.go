package descriptors

import (
	"math"
	"slices"
	"strconv"
	"time"
)

// Ranges of a lease block.
const (
	minIdleReturn = 10 * time.Millisecond // below, returning costs more than it frees
	maxIdleReturn = 24 * time.Hour        // above, say never
)

// galeSpec is a gale block as written; nil and zero fields are "not said".
type galeSpec struct {
	at            place
	mode          Mode
	onUnavailable OnUnavailable
	lease         *leaseSpec
}

type leaseSpec struct {
	at                          place
	Lease                       // Size 0 is auto when sizeSaid
	sizeSaid, maxSaid, idleSaid bool
}

// over returns what holds where s stands, below inherited.
func (s *galeSpec) over(inherited Gale) Gale {
	if s == nil {
		return inherited
	}
	out := inherited
	if s.mode != "" {
		out.Mode = s.mode
	}
	if s.onUnavailable != "" {
		out.OnUnavailable = s.onUnavailable
	}
	if l := s.lease; l != nil {
		if l.sizeSaid {
			out.Lease.Size = l.Size
		}
		if l.maxSaid {
			out.Lease.Max = l.Max
		}
		if l.Prefetch != nil {
			out.Lease.Prefetch = l.Prefetch
		}
		if l.idleSaid {
			out.Lease.IdleReturn = l.IdleReturn
		}
		if l.Durability != "" {
			out.Lease.Durability = l.Durability
		}
	}
	return out
}

// effective returns what a rule gets: only leased rules have a lease.
func (g Gale) effective() Gale {
	if g.Mode != ModeLeased {
		g.Lease = Lease{}
	}
	return g
}

func (d decoder) gale(v *value, path string) *galeSpec {
	if v.isNull() {
		return nil
	}
	if v.kind != kindMap {
		d.add(v.place, path, "gale must be a map of mode, on_unavailable and lease, not %s", v.show())
		return nil
	}
	s := &galeSpec{at: v.place}
	for _, f := range v.fields {
		switch f.key.scalar.text {
		case "mode":
			s.mode = d.mode(f.value, path)
		case "on_unavailable":
			known := []string{"error", "allow", "deny", "local-share"}
			s.onUnavailable = OnUnavailable(d.word(f.value, path, "on_unavailable", known))
		case "lease":
			s.lease = d.lease(f.value, path)
		default:
			d.unknownGaleKey(f.key, path, "gale", []string{"mode", "on_unavailable", "lease"})
		}
	}
	return s
}

func (d decoder) unknownGaleKey(key *value, path, block string, known []string) {
	d.add(key.place, path, "unknown key '%s' in %s%s (known: %s)",
		key.show(), block, suggest(key.show(), known), list(known))
}

func (d decoder) mode(v *value, path string) Mode {
	known := []string{string(ModeStrict), string(ModeCachedDeny), string(ModeLeased)}
	if text := scalarTextOf(v); text == "async" || text == "federated" {
		d.add(v.place, path, "mode '%s' is not available in this version; use %s", text, list(known))
		return ""
	}
	return Mode(d.word(v, path, "mode", known))
}

// word reads one of the known words; "" when it is null or was reported.
func (d decoder) word(v *value, path, key string, known []string) string {
	if v.isNull() {
		return ""
	}
	if v.kind == kindScalar && slices.Contains(known, v.scalar.text) {
		return v.scalar.text
	}
	d.add(v.place, path, "%s must be %s, not '%s'%s", key, list(known), v.show(), suggest(v.show(), known))
	return ""
}

func (d decoder) lease(v *value, path string) *leaseSpec {
	if v.isNull() {
		return nil
	}
	if v.kind != kindMap {
		d.add(v.place, path, "lease must be a map of size, max, prefetch, idle_return and durability, not %s", v.show())
		return nil
	}
	s := &leaseSpec{at: v.place}
	for _, f := range v.fields {
		switch f.key.scalar.text {
		case "size":
			s.Size, s.sizeSaid = d.credits(f.value, path, "lease.size", true)
		case "max":
			s.Max, s.maxSaid = d.credits(f.value, path, "lease.max", false)
		case "prefetch":
			if b, ok := d.boolean(v, "prefetch", path); ok && !f.value.isNull() {
				s.Prefetch = &b.v
			}
		case "idle_return":
			s.IdleReturn, s.idleSaid = d.idleReturn(f.value, path)
		case "durability":
			s.Durability = d.word(f.value, path, "lease.durability", []string{"default", "replicated"})
		default:
			d.unknownGaleKey(f.key, path, "lease", []string{"size", "max", "prefetch", "idle_return", "durability"})
		}
	}
	if s.Max > 0 && s.Size > s.Max {
		d.add(v.get("size").place, path, "lease.size %d is more than lease.max %d", s.Size, s.Max)
	}
	return s
}

// credits reads a number of credits; auto is 0.
func (d decoder) credits(v *value, path, key string, auto bool) (uint64, bool) {
	if v.isNull() {
		return 0, false
	}
	if v.kind == kindScalar {
		if auto && v.scalar.text == "auto" {
			return 0, true
		}
		if v.scalar.typ == scalarInt && v.scalar.i >= 1 && v.scalar.i <= math.MaxUint32 {
			return uint64(v.scalar.i), true
		}
	}
	want := "a whole number from 1 to " + strconv.Itoa(math.MaxUint32)
	if auto {
		want = "auto or " + want
	}
	d.add(v.place, path, "%s must be %s, not '%s'", key, want, v.show())
	return 0, false
}

// idleReturn reads a duration; never is -1.
func (d decoder) idleReturn(v *value, path string) (time.Duration, bool) {
	if v.isNull() {
		return 0, false
	}
	if v.kind == kindScalar {
		if v.scalar.text == "never" {
			return -1, true
		}
		t, err := time.ParseDuration(v.scalar.text)
		if err == nil && t >= minIdleReturn && t <= maxIdleReturn {
			return t, true
		}
	}
	d.add(v.place, path, "lease.idle_return must be never or a duration from %s to %s such as 5s, not '%s'",
		minIdleReturn, maxIdleReturn, v.show())
	return 0, false
}
