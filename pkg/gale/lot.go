package gale

import (
	"fmt"

	"github.com/gale-rls/gale-rls/internal/invariants"
)

// maxSpans bounds the separate ranges of credits in a lot: what is left of
// the last lease, a top-up, and what a refused request put back. Beyond that
// ranges are joined (see place), so memory per key is fixed.
const maxSpans = 3

// span is a range of credits, as positions on the ledger's counter; it is
// empty when next is 0. Positions start at 1 and never exceed a limit, which
// the rules hold below 2^32.
type span struct{ next, last uint32 }

func (s span) size() uint64 {
	if s.next == 0 {
		return 0
	}
	return uint64(s.last-s.next) + 1
}

// usable is how many of the span's credits lie at or below the limit.
func (s span) usable(limit uint64) uint64 {
	if s.next == 0 || uint64(s.next) > limit {
		return 0
	}
	return min(uint64(s.last), limit) - uint64(s.next) + 1
}

// lot is what a holder has of one window, and what it knows of the ledger's
// counter there. The zero value belongs to window 0 and knows nothing.
type lot struct {
	// index numbers the window; in seconds it fits until the year 2106.
	index uint32
	// spans ascend by next, and empty ones come last. They may overlap: a
	// position that a peer handed back is granted again, and only how many
	// credits lie at or below a limit counts (INV-1).
	spans [maxSpans]span
	// counter is the ledger's counter when it last answered, at most
	// 2^32-1; checked is when that was, 0 for never.
	counter uint32
	checked tick
	// pending: a lease of this window is in flight (INV-5).
	pending bool
	// contended: at its last answer the ledger was on course to run dry
	// before the window ends.
	contended bool
	// ahead: the lot was leased before its window began.
	ahead bool
}

// w returns the lot's window.
func (l *lot) w() int64 { return int64(l.index) }

// tick is a monotonic time in milliseconds from an origin of the shell's; it
// wraps after 49 days, so only differences count. 0 stands for never.
type tick uint32

func (t tick) since(earlier tick) int64 { return int64(int32(t - earlier)) }

// held is how many credits the lot has for a request of that limit.
func (l *lot) held(limit uint64) uint64 {
	n := uint64(0)
	for i := range l.spans {
		n += l.spans[i].usable(limit)
	}
	return n
}

// room is what the ledger had left of the limit when it last answered.
func (l *lot) room(limit uint64) uint64 {
	if limit <= uint64(l.counter) {
		return 0
	}
	return limit - uint64(l.counter)
}

// spend takes hits credits of positions up to limit, lowest first, and notes
// them in paid unless that is nil. The caller has checked that so many are
// held.
func (l *lot) spend(hits, limit uint64, paid *[maxSpans]span) (position uint64) {
	if hits == 0 {
		return 0
	}
	emptied := false
	for i := range l.spans {
		s := &l.spans[i]
		take := min(hits, s.usable(limit))
		if take == 0 {
			continue
		}
		position = uint64(s.next) + take - 1
		if paid != nil {
			paid[i] = span{s.next, uint32(position)}
		}
		emptied = emptied || position == uint64(s.last)
		s.next = uint32(position) + 1 // 0 after the last position there is
		hits -= take
		if hits == 0 {
			break
		}
	}
	if invariants.Enabled {
		invariants.Check(hits == 0, "INV-3: ", hits, " hits are not paid by ", l)
	}
	if emptied || l.spans[1].next != 0 {
		l.compact()
	}
	return position
}

// compact drops spans that spending emptied, and restores their order, which
// spending from overlapping ones upsets.
func (l *lot) compact() {
	var kept [maxSpans]span
	n := 0
	for _, s := range l.spans {
		if s.next == 0 || s.next > s.last {
			continue
		}
		i := n
		for ; i > 0 && kept[i-1].next > s.next; i-- {
			kept[i] = kept[i-1]
		}
		kept[i] = s
		n++
	}
	l.spans = kept
}

// place adds a span. If there are too many it makes room first, so that a key
// whose credits are scattered makes progress with every grant.
func (l *lot) place(s span) (homeless uint64) {
	joined := *l
	if homeless = l.add(s); homeless == 0 || !joined.join() {
		return homeless
	}
	*l = joined
	return l.add(s)
}

// join makes one span of two that do not overlap, the highest such, by moving
// the lower one's credits up to the other. A credit may pass for one of a
// higher position: fewer requests can spend it, and INV-1 holds for all that
// can. It reports whether there were two such spans.
func (l *lot) join() bool {
	for i := maxSpans - 1; i > 0; i-- {
		a, b := l.spans[i-1], l.spans[i]
		if a.next == 0 || b.next == 0 || a.last >= b.next {
			continue
		}
		l.spans[i-1] = span{b.next - uint32(a.size()), b.last}
		l.spans[i] = span{}
		l.compact()
		return true
	}
	return false
}

// add puts a span in its place, merging neighbours. It returns how many
// credits found no place; they are the highest ones.
func (l *lot) add(s span) (homeless uint64) {
	if s.next == 0 {
		return 0
	}
	var all [maxSpans + 1]span
	n, placed := 0, false
	for _, have := range l.spans {
		if have.next == 0 {
			break
		}
		if !placed && s.next < have.next {
			n, placed = merge(all[:], n, s), true
		}
		n = merge(all[:], n, have)
	}
	if !placed {
		merge(all[:], n, s)
	}
	copy(l.spans[:], all[:maxSpans])
	return all[maxSpans].size()
}

// merge appends a span to the first n of the ascending spans.
func merge(all []span, n int, s span) int {
	if n > 0 && all[n-1].last+1 == s.next {
		all[n-1].last = s.last
		return n
	}
	all[n] = s
	return n + 1
}

// cutAbove removes the credits at positions above limit and returns how many.
func (l *lot) cutAbove(limit uint64) (n uint64) {
	for i := range l.spans {
		s := &l.spans[i]
		out := s.size() - s.usable(limit)
		n += out
		if out == s.size() {
			*s = span{}
		} else {
			s.last -= uint32(out)
		}
	}
	l.compact()
	return n
}

// String draws the lot: "w12[3-5 9] counter=20 pending".
func (l *lot) String() string {
	s := fmt.Sprintf("w%d[", l.w())
	for i, p := range l.spans {
		switch {
		case p.next == 0:
			continue
		case i > 0:
			s += " "
		}
		if p.next == p.last {
			s += fmt.Sprint(p.next)
		} else {
			s += fmt.Sprintf("%d-%d", p.next, p.last)
		}
	}
	s += "]"
	if l.checked != 0 {
		s += fmt.Sprintf(" counter=%d", l.counter)
	}
	if l.pending {
		s += " pending"
	}
	return s
}
