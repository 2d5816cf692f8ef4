package sim

import "github.com/gale-rls/gale-rls/pkg/gale"

// holder is everything that holder h may do. The shell does less: it leases
// and tops up when its demand says so, and the search whenever it can.
func (x *explorer) holder(s *state, h int) {
	for _, hits := range x.w.Hits {
		for _, limit := range [2]uint64{x.w.Limit, x.w.Low} {
			if limit == 0 {
				continue
			}
			x.ask(s, h, hits, limit, 0, false)
			if x.w.PutBack && s.halves[h] == 0 {
				x.ask(s, h, hits, limit, 0, true)
			}
			if x.w.Lag && int(s.tick) > x.w.Start && s.slept[h] == 0 {
				x.ask(s, h, hits, limit, 1, false)
			}
		}
	}
	x.ahead(s, h)
	x.handBack(s, h)
	x.decide(s, h)
	if s.crashes > 0 {
		x.crash(s, h)
	}
}

// ask is a request, decided by a reading of the clocks that is lag ticks old.
// Its admission happens at that reading. With undecided it may be put back.
func (x *explorer) ask(s *state, h int, hits, limit uint64, lag int, undecided bool) {
	tick := int(s.tick) - lag
	now := x.r.Read(x.w.instant(h, tick, int(s.slept[h])))
	iv, known := x.r.Place(x.clocks.values[s.clocks[h]], now)
	a := step{what: "request", holder: int8(h), a: hits, b: limit}
	if !known {
		if g := x.w.guess(h, tick); lag == 0 {
			x.lease(a, s, h, g, 0, 0, limit, gale.Interval{})
		}
		return
	}
	old := x.holders.values[s.holders[h]]
	holder := old
	var paid gale.Paid
	t := gale.Terms{Hits: hits, Limit: limit, Length: x.w.length()}
	answer := x.r.Take(&holder, iv, x.w.date(now), t, &paid)
	err := x.justified(&old, &holder, answer, iv, hits, tick, &paid)
	if answer.Outcome == gale.Spent {
		n := *s
		n.holders[h] = x.number(holder)
		x.admit(&n, h, hits, limit, tick, &old, &holder)
		a.what = "admits"
		if undecided {
			a.what = "pays, undecided"
			n.halves[h] = x.halves.number(half{paid, uint8(hits), uint8(x.w.window(tick)), limit == x.w.Low})
		}
		x.emit(a, &n, err)
		return
	}
	if err != nil {
		x.emit(a, s, err)
	}
	if answer.Unplaced {
		if g, ok := windowIndex(answer.Window); ok {
			x.lease(a, s, h, g, 0, 0, limit, iv)
		}
		return
	}
	for _, lack := range answer.Lacks[:answer.NumLacks] {
		if w, ok := windowIndex(lack.Window); ok {
			x.leases(a, s, h, w, lack.Need, limit, iv)
		}
	}
}

// admit counts an admission in the window of the store that it fell in, and
// what it paid.
func (x *explorer) admit(n *state, h int, hits, limit uint64, tick int, before, after *gale.Holder) {
	w := x.w.window(tick)
	n.admitted[w] += uint8(hits)
	if limit == x.w.Low {
		n.low[w] += uint8(hits)
	}
	old, now := before.Lots(), after.Lots()
	for i := range old {
		if w, ok := windowIndex(old[i].Window); ok && w < maxWindows {
			n.paid[w] += uint8(old[i].Credits - now[i].Credits)
		}
	}
}

// leases tries every size.
func (x *explorer) leases(a step, s *state, h int, w uint8, need, limit uint64, iv gale.Interval) {
	tried := uint64(0)
	for _, want := range x.w.Wants {
		if want = max(want, need); want != tried {
			x.lease(a, s, h, w, need, want, limit, iv)
		}
		tried = want
	}
}

// lease starts a lease of one window, as the shell does.
func (x *explorer) lease(a step, s *state, h int, w uint8, need, want, limit uint64, iv gale.Interval) {
	if s.inFlight() >= x.w.Messages || w < maxWindows && int(w) > x.w.window(x.w.End) {
		return
	}
	n := *s
	holder := x.holders.values[s.holders[h]]
	begun, dropped, of := holder.Begin(windowNumber(w), iv, x.w.length())
	if !begun && !x.r.Crowded {
		return
	}
	n.holders[h] = x.number(holder)
	n.post(message{
		kind: request, holder: uint8(h), window: w, need: uint8(need), want: uint8(want),
		limit: uint8(limit), sent: s.tick, slept: s.slept[h],
	})
	if dropped > 0 {
		x.returned(&n, h, of, dropped)
	}
	a.what += ", leases"
	x.emit(a, &n, nil)
}

// ahead tops up and leases the next window.
func (x *explorer) ahead(s *state, h int) {
	if !x.w.TopUp && !x.w.Prelease {
		return
	}
	now := x.r.Read(x.w.instant(h, int(s.tick), int(s.slept[h])))
	iv, known := x.r.Place(x.clocks.values[s.clocks[h]], now)
	if !known {
		return
	}
	w := iv.Latest / x.w.length()
	if i, ok := windowIndex(w); ok && x.w.TopUp {
		x.leases(step{what: "tops up", holder: int8(h)}, s, h, i, 1, x.w.Limit, iv)
	}
	if i, ok := windowIndex(w + 1); ok && x.w.Prelease {
		x.leases(step{what: "looks ahead", holder: int8(h)}, s, h, i, 1, x.w.Limit, iv)
	}
}

// handBack expires what is over and returns what is held: all of it, what a
// lower limit cannot use, all but one.
func (x *explorer) handBack(s *state, h int) {
	now := x.r.Read(x.w.instant(h, int(s.tick), int(s.slept[h])))
	iv, known := x.r.Place(x.clocks.values[s.clocks[h]], now)
	for i, l := range x.lots(s, h) {
		if known && x.w.Return {
			n, holder := *s, x.holders.values[s.holders[h]]
			expired := holder.Expire(i, iv, x.w.length())
			if w, ok := windowIndex(l.Window); ok && w < maxWindows {
				n.gone[w] += uint8(expired)
			}
			if n.holders[h] = x.number(holder); n.holders[h] != s.holders[h] {
				x.emit(step{what: "expires a lot", holder: int8(h)}, &n, nil)
			}
		}
		if !x.w.Return || l.Credits == 0 || s.inFlight() >= x.w.Messages {
			continue
		}
		x.handOver(s, h, func(holder *gale.Holder) (int64, uint64) { return holder.Surplus(i, 0) })
		if x.w.Low > 0 {
			x.handOver(s, h, func(holder *gale.Holder) (int64, uint64) { return holder.Surplus(i, x.w.Low) })
		}
		if l.Credits > 1 {
			x.handOver(s, h, func(holder *gale.Holder) (int64, uint64) { return holder.Shed(i, 1) })
		}
	}
}

func (x *explorer) lots(s *state, h int) [2]gale.LotView {
	holder := x.holders.values[s.holders[h]]
	return holder.Lots()
}

func (x *explorer) handOver(s *state, h int, take func(*gale.Holder) (w int64, n uint64)) {
	n, holder := *s, x.holders.values[s.holders[h]]
	w, credits := take(&holder)
	if credits == 0 {
		return
	}
	n.holders[h] = x.number(holder)
	x.returned(&n, h, w, credits)
	x.emit(step{what: "hands back", holder: int8(h), a: credits}, &n, nil)
}

// decide ends a half-made decision: it stands, or is put back.
func (x *explorer) decide(s *state, h int) {
	if s.halves[h] == 0 {
		return
	}
	stands := *s
	stands.halves[h] = 0
	x.emit(step{what: "the request passes", holder: int8(h)}, &stands, nil)
	n, d := stands, x.halves.values[s.halves[h]]
	holder := x.holders.values[s.holders[h]]
	n.admitted[d.window] -= d.hits
	if d.low {
		n.low[d.window] -= d.hits
	}
	for w := range uint8(maxWindows) {
		n.paid[w] -= uint8(d.paid.Credits(windowNumber(w)))
	}
	for _, lack := range holder.PutBack(&d.paid) {
		x.returned(&n, h, lack.Window, lack.Need)
	}
	n.holders[h] = x.number(holder)
	x.emit(step{what: "the request is refused elsewhere, and put back", holder: int8(h)}, &n, nil)
}

// crash: a holder forgets everything, and what is under way to it is lost.
func (x *explorer) crash(s *state, h int) {
	n := *s
	n.crashes--
	for _, l := range x.lots(s, h) {
		if w, ok := windowIndex(l.Window); ok && w < maxWindows {
			n.gone[w] += uint8(l.Credits)
		}
	}
	for i, p := range n.messages {
		m := unpack(p)
		if int(m.holder) != h {
			continue
		}
		switch m.kind {
		case request:
			m.kind = orphan
			n.messages[i] = m.pack()
		case reply, stray:
			n.lose(m)
			n.messages[i] = 0
		}
	}
	n.holders[h], n.clocks[h], n.halves[h] = 0, 0, 0
	x.emit(step{what: "crashes", holder: int8(h)}, &n, nil)
}
