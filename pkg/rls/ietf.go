package rls

import (
	"strconv"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
)

// policyState is one member of the two fields: a policy, and its state.
type policyState struct {
	name         string
	quota, left  uint32
	window, till int64 // seconds
}

// addIETFHeaders adds RateLimit-Policy and RateLimit as structured fields
// (draft-ietf-httpapi-ratelimit-headers), one member per limit of the answer:
//
//	RateLimit-Policy: "per-ip";q=100;w=60
//	RateLimit: "per-ip";r=42;t=17
//
// A policy is named like the limit, else like its rule's path. The path of an
// override is domain and keys only: values may be secrets.
func (c *call) addIETFHeaders(req *rlsv3.RateLimitRequest, response *rlsv3.RateLimitResponse) {
	states := c.policyStates(req, response)
	if len(states) == 0 {
		return
	}
	var policies, limits []byte
	for i := range states {
		p := &states[i]
		if i > 0 {
			policies = append(policies, ", "...)
			limits = append(limits, ", "...)
		}
		policies = appendSFString(policies, p.name)
		policies = appendSFParameter(policies, ";q=", int64(p.quota))
		policies = appendSFParameter(policies, ";w=", p.window)
		limits = appendSFString(limits, p.name)
		limits = appendSFParameter(limits, ";r=", int64(p.left))
		limits = appendSFParameter(limits, ";t=", p.till)
	}
	response.ResponseHeadersToAdd = append(response.ResponseHeadersToAdd,
		&corev3.HeaderValue{Key: "RateLimit-Policy", Value: string(policies)},
		&corev3.HeaderValue{Key: "RateLimit", Value: string(limits)},
	)
}

// policyStates lists the limits of an answer in order. Limits of one name
// (two descriptors may hit one rule) are told once, by the one with the least
// left: a client cannot tell them apart.
func (c *call) policyStates(req *rlsv3.RateLimitRequest, response *rlsv3.RateLimitResponse) []policyState {
	var states []policyState
	at := make(map[string]int)
	for i, status := range response.GetStatuses() {
		it := &c.items[i]
		if it.outcome != outcomeCharged {
			continue
		}
		p := policyState{
			name:   it.policyName(req, i),
			quota:  status.GetCurrentLimit().GetRequestsPerUnit(),
			window: it.policy.Limit.Window,
			left:   status.GetLimitRemaining(),
			till:   status.GetDurationUntilReset().GetSeconds(),
		}
		j, seen := at[p.name]
		switch {
		case !seen:
			at[p.name] = len(states)
			states = append(states, p)
		case p.left < states[j].left:
			states[j] = p
		}
	}
	return states
}

func (it *item) policyName(req *rlsv3.RateLimitRequest, i int) string {
	switch {
	case it.rule != nil && it.rule.Name != "":
		return it.rule.Name
	case it.rule != nil:
		return it.rule.Path
	}
	var b strings.Builder
	b.WriteString(req.GetDomain())
	for _, e := range req.GetDescriptors()[i].GetEntries() {
		b.WriteByte('.')
		b.WriteString(e.GetKey())
	}
	return b.String()
}

// appendSFString appends a structured-field string: printable ASCII in quotes.
// Other characters have no spelling there, and become '?'.
func appendSFString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r < ' ' || r > '~':
			dst = append(dst, '?')
		default:
			dst = append(dst, byte(r))
		}
	}
	return append(dst, '"')
}

func appendSFParameter(dst []byte, name string, value int64) []byte {
	return strconv.AppendInt(append(dst, name...), value, 10)
}
