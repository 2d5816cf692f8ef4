package gale

import "time"

// Mode says how a charge is decided. The zero value is ModeStrict.
type Mode uint8

const (
	// ModeStrict moves the shared counter for every request.
	ModeStrict Mode = iota
	// ModeCachedDeny is strict, with known denials answered locally.
	ModeCachedDeny
	// ModeLeased spends credits that were leased ahead.
	ModeLeased
)

// Unavailable says what a charge is answered when the store cannot be asked
// in time. The zero value is UnavailableError.
type Unavailable uint8

const (
	// UnavailableError fails the whole request with ErrUnavailable, so that
	// the caller's own failure mode decides.
	UnavailableError Unavailable = iota
	// UnavailableAllow admits.
	UnavailableAllow
	// UnavailableDeny refuses.
	UnavailableDeny
	// UnavailableLocalShare admits this replica's share of the limit, which
	// is the limit divided by the estimated number of live replicas.
	UnavailableLocalShare
)

// Role says what a charge's refusal means for its request. The zero value is
// RoleLimit.
type Role uint8

const (
	// RoleLimit refuses the request.
	RoleLimit Role = iota
	// RoleQuota refuses the request only together with all other quotas.
	RoleQuota
	// RoleShadow never refuses the request.
	RoleShadow
	// RoleShadowQuota never refuses, and counts as a quota that passes.
	RoleShadowQuota
)

// Limit is so many hits in each window.
type Limit struct {
	// Hits is the number of hits a window admits. 0 admits only peeks.
	Hits uint64
	// Window is the window's length in seconds, at least 1. Windows are
	// aligned to the Unix epoch.
	Window int64
}

// LeasePolicy is what a rule says about leasing. The zero value is the
// default: learned size, top-up and pre-lease on.
type LeasePolicy struct {
	// Size is the number of credits to ask for at once; 0 lets the learner
	// of gale/sizing choose.
	Size uint64
	// Max bounds what is asked for at once; 0 means DefaultLeaseMax.
	Max uint64
	// NoPrefetch switches topping up and pre-leasing off.
	NoPrefetch bool
	// IdleReturn is how long a key may rest before its credits are handed
	// back; 0 means DefaultIdleReturn, a negative value never.
	IdleReturn time.Duration
	// Replicated makes credits count only once a replica of the store has
	// acknowledged the grant.
	Replicated bool
}

const (
	// DefaultLeaseMax bounds one lease: large enough for a key of a million
	// hits per minute to lease about once per second.
	DefaultLeaseMax = 10000
	// DefaultIdleReturn is how long a silent key keeps its credits.
	DefaultIdleReturn = 5 * time.Second
)

// Policy is what is known of a charge before the request: a compiled rule.
// It is immutable once used.
type Policy struct {
	Limit         Limit
	Mode          Mode
	Role          Role
	OnUnavailable Unavailable
	// PerSecond sends the charge to the per-second store where there is one.
	PerSecond bool
	Lease     LeasePolicy
}

// Charge is one limit that a request is charged to.
type Charge struct {
	// Key names the counter, without the window: prefix, domain and entries,
	// ending in "_". The window's start in Unix seconds is appended to it.
	// The engine does not keep it after Decide returns.
	Key []byte
	// Policy is not changed, and is not kept after Decide returns.
	Policy *Policy
	// Hits is what the request adds; 0 is a peek, which adds nothing.
	// At most math.MaxInt64.
	Hits uint64
	// Refund takes Hits off the counter, at least to 0, and is always OK.
	Refund bool
}

// Reason says why a decision came out as it did. It labels metrics.
type Reason uint8

const (
	// ReasonStore: the shared counter decided.
	ReasonStore Reason = iota
	// ReasonLocalCredit: paid with credits held here.
	ReasonLocalCredit
	// ReasonDenyCache: a remembered denial.
	ReasonDenyCache
	// ReasonExhausted: the ledger has nothing left for it in this window.
	ReasonExhausted
	// ReasonRefund: hits were given back.
	ReasonRefund
	// ReasonFallbackAllow, -Deny, -Share: the store could not be asked.
	ReasonFallbackAllow
	ReasonFallbackDeny
	ReasonFallbackShare
	numReasons
)

// NumReasons is the number of reasons; each Reason is below it.
const NumReasons = int(numReasons)

// String returns the reason as metrics and logs spell it.
func (r Reason) String() string {
	if int(r) < len(reasonNames) {
		return reasonNames[r]
	}
	return "invalid"
}

var reasonNames = [...]string{
	"store", "local_credit", "deny_cache", "exhausted", "refund",
	"fallback_allow", "fallback_deny", "fallback_share",
}

// Decision is the answer for one charge. A refusal is a Decision, never an
// error.
type Decision struct {
	// Over is true when the charge does not fit its limit. The role does not
	// change it: a shadow charge is Over too.
	Over   bool
	Reason Reason
	// After is the counter after this charge, the base of the near-limit and
	// over-limit statistics. In leased mode it is the position of the last
	// credit spent, or the limit plus the hits when refused.
	After uint64
	// Remaining is what is left of the limit: exact in strict mode; in leased
	// mode what this replica holds plus what the ledger had left when it last
	// answered, an upper bound that peers may have used since.
	Remaining uint64
	// Reset is the time to the window's end in whole seconds, at least one.
	Reset time.Duration
}

// Request is everything that one call is charged to, and the answers.
type Request struct {
	Charges []Charge
	// Decisions has the length of Charges and is filled by Decide.
	Decisions []Decision
	// FreeQuota says that the request carries a quota descriptor without a
	// limit, which always passes (global QUOTA_MODE).
	FreeQuota bool
	// Unenforced says that the request is not refused whatever the charges
	// say (global SHADOW_MODE), so that all charges are counted.
	Unenforced bool

	// leased is what a leased decision remembers of itself. Reuse the Request
	// and it costs no allocation.
	leased leasedScratch
}

// Refused reports whether the decisions refuse the request: one limit is
// over, or there are quotas and all of them are.
func (r *Request) Refused() bool {
	quotas, over := 0, 0
	if r.FreeQuota {
		quotas++
	}
	for i := range r.Charges {
		switch r.Charges[i].Policy.Role {
		case RoleLimit:
			if r.Decisions[i].Over {
				return !r.Unenforced
			}
		case RoleQuota:
			quotas++
			if r.Decisions[i].Over {
				over++
			}
		case RoleShadowQuota:
			quotas++
		case RoleShadow:
		}
	}
	return quotas > 0 && quotas == over && !r.Unenforced
}
