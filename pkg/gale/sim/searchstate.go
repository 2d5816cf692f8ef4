package sim

import (
	"fmt"
	"strings"

	"github.com/gale-rls/gale-rls/pkg/gale"
)

// state is one state of a World. Holders, clocks and half-made decisions are
// interned: a state is small, and states are equal when what they mean is.
type state struct {
	holders [maxHolders]uint32
	clocks  [maxHolders]uint32
	halves  [maxHolders]uint32
	// messages are sorted: the network has no order.
	messages [maxMessages]uint64
	// Per window: the ledger's counter; hits admitted in it, and those for
	// requests of the low limit; credits paid, and credits that nobody has
	// any more (lost or expired).
	counter, admitted, low, paid, gone [maxWindows]uint8
	slept                              [maxHolders]uint8
	tick                               uint8
	crashes, losses, dups, sleeps      uint8
	strict                             uint8
}

// half is a request that was paid, while the rest of its charges is still
// undecided.
type half struct {
	paid   gale.Paid
	hits   uint8
	window uint8 // in which it counts as admitted
	low    bool
}

// What a message is.
const (
	nothing uint8 = iota
	request       // a lease on its way to the ledger
	reply         // its answer on its way back
	orphan        // a lease whose holder does not wait any more
	stray         // an answer that arrives though its lease is settled
	giveBack
)

// message is one message in the network, packed into 64 bits in a state.
type message struct {
	kind, holder, window, need, want, limit uint8
	// sent is the tick of its sending, slept how long the holder had slept.
	sent, slept uint8
	// The answer: credits is also what a giveBack carries; exec is the tick
	// at which the ledger answered.
	credits, counter, free, exec, stale uint8
}

func (m message) pack() uint64 {
	p := uint64(0)
	for _, f := range [...]uint8{m.kind, m.holder, m.window, m.need, m.want, m.limit, m.sent, m.slept,
		m.credits, m.counter, m.free, m.exec, m.stale} {
		if f > 15 {
			panic("sim: a World's numbers are at most 15")
		}
		p = p<<4 | uint64(f)
	}
	return p
}

func unpack(p uint64) (m message) {
	fields := [...]*uint8{&m.kind, &m.holder, &m.window, &m.need, &m.want, &m.limit, &m.sent, &m.slept,
		&m.credits, &m.counter, &m.free, &m.exec, &m.stale}
	for i := len(fields) - 1; i >= 0; i-- {
		*fields[i] = uint8(p & 15)
		p >>= 4
	}
	return m
}

// settle sorts the messages, so that equal networks are equal states.
func (s *state) settle() {
	m := &s.messages
	for i := 1; i < len(m); i++ {
		for j := i; j > 0 && m[j] > m[j-1]; j-- {
			m[j], m[j-1] = m[j-1], m[j]
		}
	}
}

// inFlight counts the messages.
func (s *state) inFlight() (n int) {
	for _, p := range s.messages {
		if p != 0 {
			n++
		}
	}
	return n
}

// post puts a message into the network. The caller has seen to the room.
func (s *state) post(m message) {
	for i, p := range s.messages {
		if p == 0 {
			s.messages[i] = m.pack()
			return
		}
	}
	panic("sim: no room in the network")
}

// fingerprint identifies a state: 128 bits, so that among 10^8 states two are
// taken for one with a probability below 10^-22.
type fingerprint [2]uint64

func (s *state) fingerprint() fingerprint {
	a, b := uint64(0x9e3779b97f4a7c15), uint64(0xd1b54a32d192ed03)
	mix := func(v uint64) {
		a = (a ^ v) * 0xff51afd7ed558ccd
		a ^= a >> 32
		b = (b + v) * 0xc4ceb9fe1a85ec53
		b ^= b >> 29
	}
	bytes := func(v *[maxWindows]uint8) uint64 {
		return uint64(v[0]) | uint64(v[1])<<8 | uint64(v[2])<<16
	}
	for i := range s.holders {
		mix(uint64(s.holders[i])<<32 | uint64(s.clocks[i]))
	}
	mix(uint64(s.halves[0])<<40 | uint64(s.halves[1])<<20 | uint64(s.halves[2]))
	for _, p := range s.messages {
		mix(p)
	}
	mix(bytes(&s.counter)<<24 | bytes(&s.admitted))
	mix(bytes(&s.low)<<24 | bytes(&s.paid))
	mix(bytes(&s.gone)<<24 | uint64(s.slept[0])<<16 | uint64(s.slept[1])<<8 | uint64(s.slept[2]))
	mix(uint64(s.tick)<<40 | uint64(s.crashes)<<32 | uint64(s.losses)<<24 | uint64(s.dups)<<16 |
		uint64(s.sleeps)<<8 | uint64(s.strict))
	return fingerprint{a, b}
}

// intern numbers values; number 0 is the zero value.
type intern[T comparable] struct {
	numbers map[T]uint32
	values  []T
}

func newIntern[T comparable]() *intern[T] {
	var zero T
	return &intern[T]{map[T]uint32{zero: 0}, []T{zero}}
}

func (n *intern[T]) number(v T) uint32 {
	if i, ok := n.numbers[v]; ok {
		return i
	}
	i := uint32(len(n.values))
	n.numbers[v] = i
	n.values = append(n.values, v)
	return i
}

// number interns a holder.
func (x *explorer) number(h gale.Holder) uint32 { return x.holders.number(h.Canonical()) }

// fingerprints is a set, by open addressing: the zero fingerprint is never
// added. Half of a search's time goes by here.
type fingerprints struct {
	slots []fingerprint
	n     int
}

// add reports whether f is new.
func (t *fingerprints) add(f fingerprint) bool {
	if 2*t.n >= len(t.slots) {
		old := t.slots
		t.slots = make([]fingerprint, max(1<<12, 4*len(old)))
		for _, g := range old {
			if g != (fingerprint{}) {
				*t.slot(g) = g
			}
		}
	}
	s := t.slot(f)
	if *s == f {
		return false
	}
	*s = f
	t.n++
	return true
}

func (t *fingerprints) slot(f fingerprint) *fingerprint {
	mask := uint64(len(t.slots) - 1)
	for i := f[0] & mask; ; i = (i + 1) & mask {
		if s := &t.slots[i]; *s == f || *s == (fingerprint{}) {
			return s
		}
	}
}

// draw prints a state for a trace.
func (x *explorer) draw(s *state) string {
	var b strings.Builder
	fmt.Fprintf(&b, "tick %d (window %d) counters %v admitted %v", s.tick, x.w.window(int(s.tick)),
		s.counter, s.admitted)
	if x.w.Low > 0 {
		fmt.Fprintf(&b, " low %v", s.low)
	}
	for h := range x.w.Holders {
		holder := x.holders.values[s.holders[h]]
		clock := x.clocks.values[s.clocks[h]]
		fmt.Fprintf(&b, "\n    holder %d: %s", h, strings.ReplaceAll(holder.String(), fmt.Sprint("w", firstWindow/10), "w"))
		if iv, ok := clock.At(x.w.instant(h, int(s.tick), int(s.slept[h]))); ok {
			fmt.Fprintf(&b, ", store in [%s, %s]", x.tickOf(iv.Earliest), x.tickOf(iv.Latest))
		}
	}
	for _, p := range s.messages {
		if p != 0 {
			fmt.Fprintf(&b, "\n    in flight: %s", unpack(p))
		}
	}
	return b.String()
}

// tickOf says a store's time in ticks.
func (x *explorer) tickOf(micros int64) string {
	return fmt.Sprintf("%.4f", float64(micros*1000-x.w.storeNanos(0)+x.w.Phase)/tickNanos)
}

func (m message) String() string {
	switch m.kind {
	case giveBack:
		return fmt.Sprintf("return of %d credits of window %d", m.credits, m.window)
	case request, orphan:
		return fmt.Sprintf("lease by holder %d, window %d, need %d want %d limit %d, sent at %d",
			m.holder, m.window, m.need, m.want, m.limit, m.sent)
	}
	return fmt.Sprintf("answer to holder %d, window %d: %d granted, counter %d, at tick %d",
		m.holder, m.window, m.credits, m.counter, m.exec)
}
