package rls

import (
	"math"
	"time"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gale-rls/gale-rls/pkg/gale"
)

const (
	codeOK   = rlsv3.RateLimitResponse_OK
	codeOver = rlsv3.RateLimitResponse_OVER_LIMIT
)

// unlimitedRemaining is what an unlimited rule says to have left.
const unlimitedRemaining = math.MaxUint32

// statusMemory is a status with all that it may point to, so that the
// statuses of an answer are one allocation.
type statusMemory struct {
	status rlsv3.RateLimitResponse_DescriptorStatus
	limit  rlsv3.RateLimitResponse_RateLimit
	reset  durationpb.Duration
}

// answer builds the response from the decisions (INV-6).
func (c *call) answer(s *Service, req *rlsv3.RateLimitRequest) *rlsv3.RateLimitResponse {
	memory := make([]statusMemory, len(c.items))
	response := &rlsv3.RateLimitResponse{
		OverallCode: s.overallCode(&c.request),
		Statuses:    make([]*rlsv3.RateLimitResponse_DescriptorStatus, len(c.items)),
	}
	for i := range c.items {
		c.fillStatus(&c.items[i], &memory[i])
		response.Statuses[i] = &memory[i].status
	}
	if s.config.HeadersEnabled {
		c.addHeaders(s, response)
	}
	if s.config.IETFHeaders {
		c.addIETFHeaders(req, response)
	}
	if s.config.DynamicMetadata {
		response.DynamicMetadata = c.metadata(req, response)
	}
	return response
}

// overallCode refuses when one limit is over, or when there are quotas and all
// of them are. Global shadow mode turns a refusal into OK, and counts it.
func (s *Service) overallCode(r *gale.Request) rlsv3.RateLimitResponse_Code {
	r.Unenforced = false // it is decided: what would be enforced?
	switch {
	case !r.Refused():
		return codeOK
	case s.config.ShadowMode:
		s.globalShadow.Add(1)
		return codeOK
	default:
		return codeOver
	}
}

func (c *call) fillStatus(it *item, to *statusMemory) {
	to.status.Code = codeOK
	switch it.outcome {
	case outcomeNone:
	case outcomeUnlimited:
		to.status.LimitRemaining = unlimitedRemaining
	case outcomeCharged:
		it.fillLimit(&to.limit)
		to.status.CurrentLimit = &to.limit
		d := &c.request.Decisions[it.charge]
		to.reset.Seconds = int64(d.Reset / time.Second)
		to.status.DurationUntilReset = &to.reset
		if !d.Over {
			to.status.LimitRemaining = uint32(min(d.Remaining, math.MaxUint32))
		} else if !isShadow(it.policy.Role) {
			to.status.Code = codeOver
		}
	}
}

// fillLimit tells the limit that was applied. The numbers of our units are
// those of the wire.
func (it *item) fillLimit(to *rlsv3.RateLimitResponse_RateLimit) {
	if it.hasOverride {
		to.RequestsPerUnit = it.override.requests
		to.Unit = rlsv3.RateLimitResponse_RateLimit_Unit(it.override.unit)
		if it.override.multiplier != 0 {
			to.UnitMultiplier = wrapperspb.UInt32(it.override.multiplier)
		}
		return
	}
	to.Name = it.rule.Name
	to.RequestsPerUnit = it.rule.RequestsPerUnit
	to.Unit = rlsv3.RateLimitResponse_RateLimit_Unit(it.rule.Unit)
}
