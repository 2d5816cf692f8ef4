package gale

import "fmt"

// What a holder tells of itself; nothing here changes it.

// Remaining is what a request of that limit could still have in window w: the
// credits held here plus what the ledger had left. known is false when the
// ledger never told.
func (h *Holder) Remaining(w int64, limit uint64) (n uint64, known bool) {
	l := h.find(w)
	if l == nil {
		return limit, false
	}
	return min(l.held(limit)+l.room(limit), limit), l.checked != 0
}

// level is what a top-up looks at: the credits of window w for a request of
// that limit, what the ledger had left, and whether no lease is in flight.
func (h *Holder) level(w int64, limit uint64) (held, room uint64, idle bool) {
	l := h.find(w)
	if l == nil {
		return 0, limit, true
	}
	return l.held(limit), l.room(limit), !l.pending
}

// contended reports whether the ledger was on course to run dry in window w,
// or in the one before.
func (h *Holder) contended(w int64) bool {
	for i := range h.lots {
		if l := &h.lots[i]; l.contended && (l.w() == w || l.w() == w-1) {
			return true
		}
	}
	return false
}

// exhausted reports whether a charge that lacks credits was known to find no
// room, however long ago: while the ledger cannot be asked, that holds to the
// window's end.
func (h *Holder) exhausted(a *Answer, t Terms) bool {
	l := h.find(a.Window)
	return l != nil && l.checked != 0 && max(t.Hits, 1) > l.held(t.Limit)+l.room(t.Limit)
}

// Held is how many credits all lots have together.
func (h *Holder) Held() uint64 {
	return h.lots[0].held(^uint64(0)) + h.lots[1].held(^uint64(0))
}

// Pending reports whether any lease is in flight.
func (h *Holder) Pending() bool { return h.lots[0].pending || h.lots[1].pending }

// Idle reports whether it holds nothing and waits for nothing.
func (h *Holder) Idle() bool { return !h.Pending() && h.Held() == 0 }

func (h *Holder) find(w int64) *lot {
	for i := range h.lots {
		l := &h.lots[i]
		if l.w() == w && (l.pending || l.checked != 0 || l.spans[0].next != 0) {
			return l
		}
	}
	return nil
}

// String draws the holder: "w12[3-5 9] counter=20 | w13[] pending".
func (h *Holder) String() string {
	return fmt.Sprintf("%s | %s", &h.lots[0], &h.lots[1])
}
