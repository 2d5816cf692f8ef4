package descriptors

import "time"

// Entry is one key and value of a descriptor, as Envoy sends it.
type Entry struct{ Key, Value string }

// Unit is a limit's unit of time. The numbers are those of the wire
// (RateLimitResponse.RateLimit.Unit). The zero value is no unit.
type Unit uint8

// Units, in the order of the wire.
const (
	UnitUnknown Unit = iota
	UnitSecond
	UnitMinute
	UnitHour
	UnitDay
	UnitMonth // 30 days
	UnitYear  // 365 days
	UnitWeek
)

// Mode is the `mode` of a gale block. The empty string is "not said".
type Mode string

// Modes that a rule may name.
const (
	ModeStrict     Mode = "strict"
	ModeCachedDeny Mode = "cached-deny"
	ModeLeased     Mode = "leased"
)

// OnUnavailable is the `on_unavailable` of a gale block. The empty string is
// "not said", which means error.
type OnUnavailable string

// What a rule may say about a store that cannot be asked.
const (
	OnUnavailableError      OnUnavailable = "error"
	OnUnavailableAllow      OnUnavailable = "allow"
	OnUnavailableDeny       OnUnavailable = "deny"
	OnUnavailableLocalShare OnUnavailable = "local-share"
)

// Lease is the `lease` block. Zero fields are "not said".
type Lease struct {
	Size       uint64        // credits; 0 is auto
	Max        uint64        // credits; 0 is the engine's default
	Prefetch   *bool         // nil is true
	IdleReturn time.Duration // 0 is the engine's default, negative is never
	Durability string        // "" or "default", or "replicated"
}

// Gale is the effective gale block of a rule: the rule's own, over its
// domain's, over the process default.
type Gale struct {
	Mode          Mode
	OnUnavailable OnUnavailable
	Lease         Lease
}

// Position is a place in a rule file; lines and columns count from 1.
type Position struct {
	File         string
	Line, Column int
}

// Rule is a node of the tree that carries a limit. It is immutable and
// shared: do not change what it points to.
type Rule struct {
	// Index numbers the rules of a Tree from 0, so that callers can keep
	// things beside rules in a slice.
	Index int
	// Domain and Path name the rule: Path is "domain.key_value.key…" (the
	// FullKey of /rlconfig).
	Domain, Path string
	Position     Position

	RequestsPerUnit uint32
	Unit            Unit
	Unlimited       bool
	Name            string
	Replaces        []string
	Shadow          bool
	Quota           bool
	DetailedMetric  bool
	// ShareThreshold, ValueToMetric are those of the rule's own level; levels
	// above keep theirs in the tree.
	ShareThreshold, ValueToMetric bool
	// Metadata is the rule's metadata as plain values (map[string]any,
	// []any, string, float64, bool, nil), without the reserved gale key; nil
	// when the rule has none.
	Metadata map[string]any
	Gale     Gale
	// StatName is the KEY of the rule's statistics when it does
	// not depend on the request, else "".
	StatName string
}

// Seconds returns the unit's length; 0 for UnitUnknown and undefined numbers.
func (u Unit) Seconds() int64 {
	switch u {
	case UnitSecond:
		return 1
	case UnitMinute:
		return 60
	case UnitHour:
		return 3600
	case UnitDay:
		return 86400
	case UnitWeek:
		return 604800
	case UnitMonth:
		return 2592000
	case UnitYear:
		return 31536000
	default:
		return 0
	}
}

// String returns the unit as the wire spells it: SECOND … WEEK, UNKNOWN.
func (u Unit) String() string {
	switch u {
	case UnitSecond:
		return "SECOND"
	case UnitMinute:
		return "MINUTE"
	case UnitHour:
		return "HOUR"
	case UnitDay:
		return "DAY"
	case UnitWeek:
		return "WEEK"
	case UnitMonth:
		return "MONTH"
	case UnitYear:
		return "YEAR"
	default:
		return "UNKNOWN"
	}
}
