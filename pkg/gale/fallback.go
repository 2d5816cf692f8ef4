package gale

import (
	"bytes"
	"strconv"
	"time"
)

// fallback answers charges whose store could not be asked in time, as their
// Policy.OnUnavailable says.
//
// A local share is the limit divided by the number of live replicas, counted
// here per key and window. So all replicas together admit at most the limit
// in a window, as long as none of them underestimates the others; what the
// store had counted before it went is not known and comes on top.
//
// Safe for concurrent use.
type fallback struct {
	shares *windowTable
	fleet  *fleet
}

// decide answers a charge of the counter key. ok is false when the policy is
// UnavailableError: the whole request fails.
func (f *fallback) decide(c *Charge, key []byte, w localWindow) (d Decision, ok bool) {
	limit := c.Policy.Limit.Hits
	d = Decision{Reset: w.reset()}
	if c.Policy.OnUnavailable == UnavailableError {
		return d, false
	}
	if c.Refund {
		if c.Policy.OnUnavailable == UnavailableLocalShare {
			f.shares.sub(key, c.Hits)
		}
		d.Reason, d.Remaining = ReasonRefund, limit
		return d, true
	}
	switch c.Policy.OnUnavailable {
	case UnavailableAllow:
		d.Reason = ReasonFallbackAllow
		d.After = min(c.Hits, limit)
		d.Remaining = minusHits(limit, c.Hits)
	case UnavailableLocalShare:
		f.share(&d, c, key, w)
	default:
		d.Reason = ReasonFallbackDeny
		d.Over = true
		d.After = plusHits(limit, c.Hits)
	}
	return d, true
}

// decideKeyless is decide for a charge whose counter has not been named, at
// the time now. The error is ErrUnavailable.
func (f *fallback) decideKeyless(c *Charge, now time.Time) (Decision, error) {
	w := windowAt(wall(now).Unix(), c.Policy.Limit)
	key := strconv.AppendInt(bytes.Clone(c.Key), w.start, 10)
	d, ok := f.decide(c, key, w)
	if !ok {
		return d, ErrUnavailable
	}
	return d, nil
}

// share takes the charge's hits from this replica's share.
func (f *fallback) share(d *Decision, c *Charge, key []byte, w localWindow) {
	limit := c.Policy.Limit.Hits
	share := limit / uint64(f.fleet.estimate())
	after, fits := f.shares.add(key, w.now, w.end, c.Hits, share)
	d.Reason = ReasonFallbackShare
	if !fits {
		d.Over = true
		d.After = plusHits(limit, c.Hits)
		return
	}
	d.After = after
	d.Remaining = minusHits(share, after)
}

// putBack undoes decide for a request that was refused by another charge.
func (f *fallback) putBack(c *Charge, key []byte, d *Decision) {
	if d.Reason == ReasonFallbackShare && !d.Over {
		f.shares.sub(key, c.Hits)
	}
}

// localWindow is a window by this replica's wall clock, in Unix seconds:
// start <= now < end.
type localWindow struct{ now, start, end int64 }

func windowAt(now int64, l Limit) localWindow {
	length := max(l.Window, 1)
	start := now - now%length
	return localWindow{now: now, start: start, end: start + length}
}

// reset is the time to the window's end, at least a second.
func (w localWindow) reset() time.Duration {
	return time.Duration(w.end-w.now) * time.Second
}
