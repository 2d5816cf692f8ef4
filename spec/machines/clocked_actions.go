package machines

func (c Clocked) next(s ClockedState, emit func(ClockedState)) {
	c.tick(s, emit)
	for h := range c.Holders {
		c.take(s, h, emit)
		c.carryOver(s, h, emit)
		c.crash(s, h, emit)
		c.returnArrives(s, h, emit)
		for w := range clockedWindows {
			c.ask(s, h, w, emit)
			c.abandon(s, h, w, emit)
			c.sendBack(s, h, w, emit)
			for id := 1; id <= c.Asks; id++ {
				for kind := range kinds {
					c.execute(s, h, w, id, kind, emit)
					c.receive(s, h, w, id, kind, emit)
				}
			}
		}
	}
}

// tick advances the store's clock by one, and each holder's by one but for
// its drift.
func (c Clocked) tick(s ClockedState, emit func(ClockedState)) {
	if int(s.time)+1 >= c.horizon() {
		return
	}
	s.time++
	var slip func(h int, s ClockedState)
	slip = func(h int, s ClockedState) {
		if h == c.Holders {
			emit(s)
			return
		}
		slip(h+1, s)
		if s.slip[h] != 0 {
			return
		}
		for d := 1; d <= c.Drift; d++ {
			for _, by := range []int{-d, d} {
				t := s
				t.slip[h] = int8(by)
				slip(h+1, t)
			}
		}
	}
	slip(0, s)
}

// ask sends a lease of window w: one that it could be, the next one, or any
// while the holder knows no time.
func (c Clocked) ask(s ClockedState, h, w int, emit func(ClockedState)) {
	if int(s.asks[h][w]) >= c.Asks || c.asked(&s) >= c.Total || s.sent[h][w] != notSent {
		return
	}
	if s.offset[h].valid && (w < c.window(c.earliest(&s, h)) || w > c.window(c.latest(&s, h))+1) {
		return
	}
	s.asks[h][w]++
	s.sent[h][w] = int8(c.clock(&s, h))
	s.requests |= 1 << slot(h, w, int(s.asks[h][w]), 0)
	emit(s)
}

func (c Clocked) asked(s *ClockedState) int {
	sum := 0
	for h := range c.Holders {
		for w := range clockedWindows {
			sum += int(s.asks[h][w])
		}
	}
	return sum
}

// abandon stops waiting; what may still arrive is ignored.
func (c Clocked) abandon(s ClockedState, h, w int, emit func(ClockedState)) {
	if s.sent[h][w] == notSent {
		return
	}
	c.forget(&s, h, w)
	emit(s)
}

// forget stops waiting for the reply of a window. One that nobody waits for
// is ignored whenever it comes, so what it grants is counted as gone at once.
func (c Clocked) forget(s *ClockedState, h, w int) {
	if s.sent[h][w] == notSent {
		return
	}
	s.sent[h][w] = notSent
	if c.Rule == RetryOnce {
		return
	}
	for kind := range kinds {
		at := slot(h, w, int(s.asks[h][w]), kind)
		s.gone[w] += s.replies[at].grant
		s.replies[at] = reply{}
	}
}

// execute is the ledger's: grant clamp(want, need, taper) of the current
// window or the next. The request is used up, lost instead, or duplicated.
func (c Clocked) execute(s ClockedState, h, w, id, kind int, emit func(ClockedState)) {
	bit := uint32(1) << slot(h, w, id, kind)
	if s.requests&bit == 0 {
		return
	}
	s.requests &^= bit
	free := c.Limit - int(s.counter[w])
	grant := 0
	if now := c.window(int(s.time)); (w == now || w == now+1) && free >= 1 {
		grant = min(c.Batch, max(1, (free+c.Taper-1)/c.Taper))
	}
	if c.Rule != RetryOnce || kind == 0 {
		s.counter[w] += int8(grant)
	}
	if c.awaited(&s, h, w, id) {
		s.replies[slot(h, w, id, kind)] = reply{there: true, grant: uint8(grant), at: s.time}
	} else {
		s.gone[w] += uint8(grant)
	}
	emit(s)
	if int(s.dups) < c.Dups && kind == 0 {
		s.dups++
		s.requests |= 1 << slot(h, w, id, 1)
		emit(s)
	}
}

// receive takes a reply, or ignores it when it is not the one waited for.
func (c Clocked) receive(s ClockedState, h, w, id, kind int, emit func(ClockedState)) {
	at := slot(h, w, id, kind)
	r := s.replies[at]
	if !r.there {
		return
	}
	s.replies[at] = reply{}
	s.lot[h][w] += r.grant
	if s.sent[h][w] != notSent && int(s.asks[h][w]) == id {
		c.exchange(&s, h, int(s.sent[h][w]), int(r.at))
		c.forget(&s, h, w)
	}
	emit(s)
	if c.Rule == SpendTwice && int(s.dups) < c.Dups {
		s.dups++
		s.lot[h][w] += r.grant
		emit(s)
	}
}

// awaited reports whether a reply to this ask would be taken.
func (c Clocked) awaited(s *ClockedState, h, w, id int) bool {
	return c.Rule == RetryOnce || s.sent[h][w] != notSent && int(s.asks[h][w]) == id
}

// exchange narrows the bracket: the store's time was at, between sent and now.
func (c Clocked) exchange(s *ClockedState, h, sent, at int) {
	low, high := at-c.clock(s, h)-c.Drift, at-sent+c.Drift
	switch c.Rule {
	case NarrowLate:
		high--
	case NarrowEarly:
		low++
	}
	b := &s.offset[h]
	if b.valid {
		low, high = max(low, int(b.low)), min(high, int(b.high))
	}
	*b = bracket{valid: true, low: int8(low), high: int8(high)}
}

// take admits one hit, and pays in every window that it could be.
func (c Clocked) take(s ClockedState, h int, emit func(ClockedState)) {
	if !s.offset[h].valid && c.Rule != WallClock {
		return
	}
	first, last := c.window(c.earliest(&s, h)), c.window(c.latest(&s, h))
	switch c.Rule {
	case AnyWindow:
		for w := range clockedWindows {
			c.pay(s, h, w, w, emit)
		}
	case NoBridge:
		for w := first; w <= last; w++ {
			c.pay(s, h, w, w, emit)
		}
	default:
		c.pay(s, h, first, last, emit)
	}
}

func (c Clocked) pay(s ClockedState, h, first, last int, emit func(ClockedState)) {
	if first < 0 || last >= clockedWindows || first > last {
		return
	}
	for w := first; w <= last; w++ {
		if s.lot[h][w] == 0 {
			return
		}
		s.lot[h][w]--
		s.spent[w]++
	}
	now := c.window(int(s.time))
	s.admitted[now]++
	s.unpaid = s.unpaid || now < first || now > last
	emit(s)
}

// carryOver is the mistake of the original: what is left of a lot whose
// window is over moves to the next one.
func (c Clocked) carryOver(s ClockedState, h int, emit func(ClockedState)) {
	if c.Rule != CarryOver || s.lot[h][0] == 0 || !s.offset[h].valid || c.window(c.earliest(&s, h)) <= 0 {
		return
	}
	s.lot[h][1] += s.lot[h][0]
	s.lot[h][0] = 0
	emit(s)
}

// sendBack returns a lot, once per message.
func (c Clocked) sendBack(s ClockedState, h, w int, emit func(ClockedState)) {
	if s.lot[h][w] == 0 || int(s.returns[h]) >= c.Returns || s.back[h].credits > 0 {
		return
	}
	s.back[h] = returned{credits: s.lot[h][w], window: int8(w)}
	s.lot[h][w] = 0
	s.returns[h]++
	emit(s)
}

func (c Clocked) returnArrives(s ClockedState, h int, emit func(ClockedState)) {
	b := s.back[h]
	if b.credits == 0 {
		return
	}
	s.counter[b.window] -= int8(b.credits)
	if c.Rule == DoubleReturn && int(s.dups) < c.Dups {
		again := s
		again.dups++
		emit(again)
	}
	s.back[h] = returned{}
	emit(s)
}

// crash forgets all that a holder has in memory.
func (c Clocked) crash(s ClockedState, h int, emit func(ClockedState)) {
	if !c.Crashes {
		return
	}
	for w := range clockedWindows {
		s.gone[w] += s.lot[h][w]
		s.lot[h][w] = 0
		c.forget(&s, h, w)
	}
	s.offset[h] = bracket{}
	emit(s)
}
