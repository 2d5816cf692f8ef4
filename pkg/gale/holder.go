package gale

// recheckMillis is how long a denial is believed before the ledger is asked
// again: peers may have handed credits back. It bounds what a flood on an
// empty key costs: one round trip per second and replica.
const recheckMillis = 1000

// Terms are one charge as its holder sees it.
type Terms struct {
	// Hits is what the request adds, 0 to peek; Limit its own limit.
	Hits, Limit uint64
	// Length is the window's length in microseconds.
	Length int64
}

// Outcome is what a Take came to.
type Outcome uint8

const (
	// Spent: the credits of every window it could be are paid.
	Spent Outcome = iota
	// Lacking: a lease is needed; nothing was spent.
	Lacking
	// Denied: the ledger has no room for it; nothing was spent.
	Denied
)

// Lack is what a window needs before the charge can be paid.
type Lack struct {
	Window int64
	// Need is how many credits are missing; 0 asks only what is free.
	Need uint64
}

// Answer is the result of a Take.
type Answer struct {
	Outcome Outcome
	// Window is the earliest window it could be.
	Window int64
	// Position is the last position spent in Window, 0 when nothing was.
	Position uint64
	// Held and Room are, once Spent, what is left for a request of this
	// limit: credits held of the last window it could be, and what its ledger
	// had left when it last answered.
	Held, Room uint64
	// Ahead: the lot that paid was leased before its window began.
	Ahead bool
	// Lacks says what to lease, when Lacking, and in which windows to look
	// again in the background, when Denied. Lacks beyond NumLacks are zero.
	Lacks    [2]Lack
	NumLacks int
	// Unplaced says that the store's time is too uncertain to pay for: more
	// than two windows are possible. Any exchange mends it.
	Unplaced bool
}

// Paid is what a Take spent, exactly, so that PutBack can undo it.
type Paid struct {
	windows [2]int64
	spans   [2][maxSpans]span
}

// Holder is the replica's side of one key: it says who may spend. It holds a
// lot for each of two windows, since a request that falls within a round trip
// of a boundary pays in both (bridging).
//
// It is a pure value: no clock, no lock, no I/O. The zero value holds nothing.
type Holder struct {
	lots [2]lot
}

// Take pays for one charge, or says why not. Every window that the store's
// time may lie in is paid (INV-3). Nothing is spent unless all is (INV-7).
// now only dates the memory of denials. paid may be nil when the charge is
// alone and will not be put back.
func (h *Holder) Take(iv Interval, now tick, t Terms, paid *Paid) (a Answer) {
	h.take(iv, now, t, paid, &a)
	return a
}

// take is Take without copying the answer, which costs a tenth of a decision.
// a is zero on entry.
func (h *Holder) take(iv Interval, now tick, t Terms, paid *Paid, a *Answer) {
	first := iv.Earliest / t.Length
	last := first
	if iv.Latest >= (first+1)*t.Length {
		last = first + 1
		if iv.Latest >= (first+2)*t.Length {
			a.Outcome, a.Window, a.Unplaced = Lacking, first, true
			return
		}
	}
	a.Window = first
	for w := first; w <= last; w++ {
		o, again := h.check(w, now, t)
		if o == Denied {
			if a.Outcome != Denied {
				a.NumLacks = 0
			}
			a.Outcome = Denied
			if again {
				a.lack(w, 1)
			}
			continue
		}
		if o == Lacking && a.Outcome != Denied {
			a.Outcome = Lacking
			a.lack(w, h.missing(w, t))
		}
	}
	if a.Outcome != Spent {
		return
	}
	if paid != nil {
		*paid = Paid{windows: [2]int64{first, last}}
	}
	for w := first; w <= last; w++ {
		l := h.find(w)
		if l == nil {
			continue // a peek at a limit that nothing is known of
		}
		a.Ahead = l.ahead
		a.Held, a.Room = l.held(t.Limit)-t.Hits, l.room(t.Limit)
		var spans *[maxSpans]span
		if paid != nil {
			spans = &paid.spans[w-first]
		}
		p := l.spend(t.Hits, t.Limit, spans)
		if w == first {
			a.Position = p
		}
	}
}

func (a *Answer) lack(w int64, need uint64) {
	a.Lacks[a.NumLacks] = Lack{w, need}
	a.NumLacks++
}

// check says what one window answers to the terms, and, for a denial, whether
// it is time to ask the ledger again in the background.
func (h *Holder) check(w int64, now tick, t Terms) (o Outcome, again bool) {
	if t.Hits > t.Limit {
		return Denied, false
	}
	l := h.find(w)
	if l == nil {
		return Lacking, false
	}
	held := l.held(t.Limit)
	if held >= max(t.Hits, 1) {
		return Spent, false
	}
	if l.checked == 0 {
		return Lacking, false
	}
	age := now.since(l.checked)
	if t.Hits == 0 { // a peek is true to what is known, within a recheck
		switch {
		case age >= recheckMillis:
			return Lacking, false
		case held == 0 && l.room(t.Limit) == 0:
			return Denied, false
		}
		return Spent, false
	}
	if t.Hits-held <= l.room(t.Limit) {
		return Lacking, false
	}
	// A key under flood is denied without waiting, and looked at again in the
	// background; one that rested has no fresh denial to go by.
	if age >= 2*recheckMillis && !l.pending {
		return Lacking, false
	}
	return Denied, age >= recheckMillis
}

// missing is how many credits the window lacks for the terms.
func (h *Holder) missing(w int64, t Terms) uint64 {
	held := uint64(0)
	if l := h.find(w); l != nil {
		held = l.held(t.Limit)
	}
	return t.Hits - min(held, t.Hits)
}

// PutBack undoes a Take: what was spent is held again. Credits of a lot that
// is gone by now are given back by the caller: they are returned, by window.
func (h *Holder) PutBack(paid *Paid) (homeless [2]Lack) {
	for i := range paid.spans {
		w := paid.windows[i]
		homeless[i].Window = w
		l := h.find(w)
		for _, s := range paid.spans[i] {
			if l == nil {
				homeless[i].Need += s.size()
			} else {
				homeless[i].Need += l.place(s)
			}
		}
		if paid.windows[0] == paid.windows[1] {
			break
		}
	}
	*paid = Paid{}
	return homeless
}

// Begin notes that a lease of window w is in flight (INV-5) and makes a lot
// for it. ok is false when one is in flight already. dropped is what the lot
// that had to go still held, of window droppedOf.
func (h *Holder) Begin(w int64, iv Interval, length int64) (ok bool, dropped uint64, droppedOf int64) {
	l := h.find(w)
	if l != nil {
		if l.pending {
			return false, 0, 0
		}
		l.pending = true
		return true, 0, 0
	}
	l = h.victim(w, iv, length)
	if l == nil {
		return false, 0, 0
	}
	for _, s := range l.spans {
		dropped += s.size()
	}
	droppedOf = l.w()
	*l = lot{index: uint32(w), pending: true}
	return true, dropped, droppedOf
}

// victim is the lot that gives its place to window w: an unused one, one
// whose window cannot be now, the older one. A lot with a lease in flight
// stays.
func (h *Holder) victim(w int64, iv Interval, length int64) *lot {
	first, last := iv.Earliest/length, iv.Latest/length
	var best *lot
	rank := -1
	for i := range h.lots {
		l := &h.lots[i]
		r := 1
		switch {
		case l.pending:
			continue
		case l.checked == 0 && l.spans[0].next == 0: // unused, or its only lease failed
			r = 4
		case l.w() < first:
			r = 3
		case l.w() > last+1:
			r = 2
		}
		if r > rank || r == rank && l.w() < best.w() {
			best, rank = l, r
		}
	}
	return best
}

// Granted lands the answer to a lease of window w: the credits are held, what
// the ledger has left is remembered, and the lease is no longer in flight.
// homeless credits found no place and are to be returned.
func (h *Holder) Granted(s *LeaseStep, now tick) (homeless uint64) {
	l := h.find(s.Window)
	if l == nil {
		if s.Lost {
			return 0
		}
		return s.Grant
	}
	l.pending = false
	if s.Stale {
		return 0
	}
	l.checked = max(now, 1)
	l.counter = uint32(min(s.Counter, uint64(^uint32(0))))
	length := s.Length * microsPerSecond
	elapsed := max(s.StoreMicros-s.Window*length, 0)
	l.ahead = s.StoreMicros < s.Window*length
	l.contended = s.Free == 0 || float64(s.Counter)*float64(length-elapsed) > float64(s.Free)*float64(elapsed)
	if s.Grant == 0 || s.Lost || s.Counter > uint64(^uint32(0)) {
		return 0
	}
	return l.place(span{uint32(s.Counter-s.Grant) + 1, uint32(s.Counter)})
}

// Failed lands the failure of a lease of window w: whether it was granted is
// unknown, so nothing is held and nothing is known.
func (h *Holder) Failed(w int64) {
	if l := h.find(w); l != nil {
		l.pending = false
	}
}

// Refunded notes that the ledger's counter of window w went down by n.
func (h *Holder) Refunded(w int64, n uint64) {
	if l := h.find(w); l != nil {
		l.counter -= uint32(min(n, uint64(l.counter)))
	}
}

// Surplus removes and returns what lot i has of credits above limit; with
// limit 0 all of it. The caller hands it back to the ledger.
func (h *Holder) Surplus(i int, limit uint64) (w int64, n uint64) {
	return h.lots[i].w(), h.lots[i].cutAbove(limit)
}

// Shed is Surplus for credits beyond keep, whatever their position; the
// highest go first.
func (h *Holder) Shed(i int, keep uint64) (w int64, n uint64) {
	l := &h.lots[i]
	held := l.held(^uint64(0))
	if held <= keep {
		return l.w(), 0
	}
	n = held - keep
	for j, left := maxSpans-1, n; j >= 0 && left > 0; j-- {
		s := &l.spans[j]
		if out := min(left, s.size()); out == s.size() {
			*s, left = span{}, left-out
		} else {
			s.last, left = s.last-uint32(out), 0
		}
	}
	l.compact()
	return l.w(), n
}

// Expire drops lot i if its window is over for certain, and returns what it
// still held.
func (h *Holder) Expire(i int, iv Interval, length int64) (expired uint64) {
	l := &h.lots[i]
	if l.pending || l.w() >= iv.Earliest/length {
		return 0
	}
	for _, s := range l.spans {
		expired += s.size()
	}
	*l = lot{}
	return expired
}
