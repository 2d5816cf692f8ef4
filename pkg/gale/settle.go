package gale

import "errors"

// settle turns the answers of one store into decisions.
func (s *strict) settle(r *Request, c *strictCall, b *batch) error {
	if b.err != nil {
		return s.settleFailed(r, c, b)
	}
	var earlier keySum
	for j := range b.steps {
		step := &b.steps[j]
		i := b.charges[j]
		charge, name := &r.Charges[i], c.name(i)
		limit := charge.Policy.Limit
		d := Decision{Reason: ReasonStore, Reset: windowAt(c.now, limit).reset()}
		if step.Op == CountRefund {
			s.settleRefund(&d, step, charge, name)
			r.Decisions[i] = d
			continue
		}
		value := step.After // of the counter, as far as it really moved
		after := step.After // of the counter, if this charge were taken
		switch b.hold {
		case spared:
			after = plusHits(value, charge.Hits)
		case reverted:
			value = minusHits(value, earlier.add(b.steps, j))
		case counted:
		}
		if after > limit.Hits {
			d.Over, d.After = true, after
			if s.cached(charge) {
				s.cache.remember(name, c.now, windowAt(c.now, limit).end, value)
			}
		} else {
			d.After, d.Remaining = value, limit.Hits-value
		}
		r.Decisions[i] = d
	}
	return nil
}

func (s *strict) settleRefund(d *Decision, step *CountStep, charge *Charge, name []byte) {
	d.Reason = ReasonRefund
	d.After = step.After
	d.Remaining = minusHits(charge.Policy.Limit.Hits, step.After)
	s.cache.forget(name)
}

// settleFailed answers the charges of a store that could not be asked, or
// returns why the request fails.
func (s *strict) settleFailed(r *Request, c *strictCall, b *batch) error {
	if !errors.Is(b.err, ErrUnavailable) {
		return b.err
	}
	for _, i := range b.charges {
		charge := &r.Charges[i]
		d, ok := s.fallback.decide(charge, c.name(i), windowAt(c.now, charge.Policy.Limit))
		if !ok {
			return b.err
		}
		if charge.Refund {
			s.cache.forget(c.name(i))
		}
		r.Decisions[i] = d
	}
	return nil
}
