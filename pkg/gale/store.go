package gale

import (
	"context"
	"errors"
	"time"
)

// ErrUnavailable is returned, wrapped with the operation and the cause, when
// a store could not be asked or did not answer in time. Whether the operation
// took effect is then unknown.
var ErrUnavailable = errors.New("store unavailable")

// CountOp is what a CountStep does to its counter.
type CountOp uint8

const (
	// CountAdd adds Hits and renews the time to live.
	CountAdd CountOp = iota
	// CountRefund subtracts Hits, at least to 0; a counter that does not
	// exist stays so.
	CountRefund
)

// CountStep is one strict move of one counter.
type CountStep struct {
	// Key is the counter's whole name, window included.
	Key string
	Op  CountOp
	// Hits is at most math.MaxInt64; 0 reads (and creates) the counter.
	Hits uint64
	// Limit is used by CountAll only.
	Limit uint64
	// Bystander marks a step of CountAll that moves with the others and
	// refuses none: a shadow rule, or one quota of several.
	Bystander bool
	// TTL is the counter's time to live from now, in seconds, at least 1.
	TTL int64
	// After is the counter after the step. Result.
	After uint64
}

// LeaseStep asks the ledger of one key and window for credits, or hands
// credits back.
type LeaseStep struct {
	// Key is the counter's name without the window, ending in "_".
	Key string
	// Length is the window's length in seconds; Window is its index: start
	// divided by Length.
	Length, Window int64
	// Return hands back so many credits of this window; the other request
	// fields are then not used. A return is at most once: it is never
	// repeated, for a second execution would admit beyond the limit.
	Return uint64
	// Limit is the limit in hits. Want is how much is asked for at best, Need
	// the least that is of use; Need <= Want. Want 0 only reads Free.
	Limit, Want, Need uint64
	// Taper divides what is free: a grant is at most max(Need, ceil(free/Taper)).
	// 0 means 1: no taper.
	Taper uint64
	// Replicated makes the store wait for a replica's acknowledgement; see
	// Store.Lease.
	Replicated bool

	// Results. Grant is the number of credits granted, 0 when refused; they
	// are the positions Counter-Grant+1 ... Counter. Free is what the limit
	// has left after the grant. Stale says that Window is neither the
	// store's current window nor its next one; nothing was written.
	Grant, Counter, Free uint64
	Stale                bool
	// Lost says that the grant happened and must not be spent (a replica did
	// not acknowledge in time).
	Lost bool
	// StoreMicros is the store's clock, in microseconds since the Unix epoch,
	// when this step was executed. Also set for a stale or a refused one.
	StoreMicros int64
}

// Store is a shared ledger. Implementations MUST pass gale/storetest.
//
// All methods are safe for concurrent use, and return by the context's
// deadline and by the store's own bound per operation, whichever is earlier.
// An error wraps ErrUnavailable; then none, some or all of the steps may have
// been executed, and results are undefined. Steps MUST NOT be repeated by the
// store on its own. A Store DOES NOT keep the slices or strings of bytes it
// was handed after it returns.
type Store interface {
	// Count executes the steps in order, in one round trip, and sets After.
	// An overflow beyond math.MaxInt64 is ErrOverflow, and only that step is
	// without effect.
	Count(ctx context.Context, steps []CountStep) error
	// CountAll takes all steps or none, atomically, in one round trip: if
	// After would exceed Limit for any step that is not a Bystander, nothing
	// is written, taken is false, and After is what each counter would have
	// become. Several steps may name one counter. Refund steps are not
	// allowed. (A cluster does this per slot; see redisstore.)
	CountAll(ctx context.Context, steps []CountStep) (taken bool, err error)
	// Lease executes the steps in one round trip; each step is atomic by
	// itself. A lease of the store's current window or the next is granted
	// clamp(Want, Need, max(Need, ceil(free/Taper))) if free >= Need, else
	// refused with Free set; a refusal writes nothing. With Replicated, a
	// grant that no replica acknowledged in time has Lost set.
	Lease(ctx context.Context, steps []LeaseStep) error
	// Announce tells the other replicas that replica id lives for the next
	// ttl, and returns how many live, this one included. ttl <= 0 withdraws.
	Announce(ctx context.Context, id string, ttl time.Duration) (live int, err error)
	// Ready returns nil when the store can be asked now. It does not block
	// on the network.
	Ready() error
	// Close ends all work; later calls return ErrUnavailable. Idempotent.
	Close() error
}

// ErrOverflow is returned when a counter would exceed math.MaxInt64.
var ErrOverflow = errors.New("counter overflow")
