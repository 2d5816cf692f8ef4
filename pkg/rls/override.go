package rls

import (
	"fmt"
	"math"
	"strings"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"

	"github.com/gale-rls/gale-rls/pkg/descriptors"
)

// override is a limit that the request brought.
type override struct {
	requests   uint32
	unit       descriptors.Unit
	multiplier uint32 // 0 when not said, which means 1
	window     int64  // seconds
}

// maxOverrideWindow bounds unit times multiplier: what is longer overflows
// the store's times to live, and is a mistake in any case.
const maxOverrideWindow = 100 * 31536000

// readOverride validates the limit in a descriptor; why is empty if it is good.
func readOverride(limit *commonv3.RateLimitDescriptor_RateLimitOverride) (o override, why string) {
	if limit.GetUnit() < 1 || limit.GetUnit() > math.MaxUint8 ||
		descriptors.Unit(limit.GetUnit()).Seconds() == 0 {
		return o, fmt.Sprintf("limit.unit is %v; want SECOND, MINUTE, HOUR, DAY, WEEK (7), MONTH or YEAR", limit.GetUnit())
	}
	o = override{requests: limit.GetRequestsPerUnit(), unit: descriptors.Unit(limit.GetUnit())}
	o.window = o.unit.Seconds()
	if m := limit.GetUnitMultiplier(); m != nil {
		if m.GetValue() == 0 {
			return o, "limit.unit_multiplier is 0; want 1 or more, or none"
		}
		o.multiplier = m.GetValue()
		if o.window > maxOverrideWindow/int64(o.multiplier) {
			return o, fmt.Sprintf("limit.unit_multiplier is %d, and so many times %s is longer than 100 years", o.multiplier, o.unit)
		}
		o.window *= int64(o.multiplier)
	}
	return o, ""
}

// overrideText is the limit as protobuf text, in one fixed spelling.
func overrideText(limit *commonv3.RateLimitDescriptor_RateLimitOverride) string {
	var parts []string
	if n := limit.GetRequestsPerUnit(); n != 0 {
		parts = append(parts, fmt.Sprintf("requests_per_unit:%d", n))
	}
	if u := limit.GetUnit(); u != 0 {
		parts = append(parts, fmt.Sprintf("unit:%v", u))
	}
	if m := limit.GetUnitMultiplier(); m != nil {
		parts = append(parts, fmt.Sprintf("unit_multiplier:{value:%d}", m.GetValue()))
	}
	return strings.Join(parts, " ")
}
