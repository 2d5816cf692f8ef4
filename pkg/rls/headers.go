package rls

import (
	"strconv"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
)

// addHeaders tells the client about one limit: the last one that is over (and
// is no quota), else the first of those with the least remaining. Without any
// limit there is nothing to tell.
func (c *call) addHeaders(s *Service, response *rlsv3.RateLimitResponse) {
	told := c.toldLimit(response)
	if told == nil {
		return
	}
	response.ResponseHeadersToAdd = append(response.ResponseHeadersToAdd,
		header(s.config.HeaderLimit, uint64(told.GetCurrentLimit().GetRequestsPerUnit())),
		header(s.config.HeaderRemaining, uint64(told.GetLimitRemaining())),
		header(s.config.HeaderReset, uint64(told.GetDurationUntilReset().GetSeconds())),
	)
}

func (c *call) toldLimit(response *rlsv3.RateLimitResponse) *rlsv3.RateLimitResponse_DescriptorStatus {
	var over, least *rlsv3.RateLimitResponse_DescriptorStatus
	for i, status := range response.GetStatuses() {
		if status.GetCurrentLimit() == nil {
			continue
		}
		if status.GetCode() == codeOver && !isQuota(c.items[i].policy.Role) {
			over = status
		}
		if least == nil || status.GetLimitRemaining() < least.GetLimitRemaining() {
			least = status
		}
	}
	if over != nil {
		return over
	}
	return least
}

func header(name string, value uint64) *corev3.HeaderValue {
	return &corev3.HeaderValue{Key: name, Value: strconv.FormatUint(value, 10)}
}
