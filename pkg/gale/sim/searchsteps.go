package sim

import (
	"fmt"

	"github.com/gale-rls/gale-rls/pkg/gale"
)

// step names what happened, for a trace.
type step struct {
	what    string
	holder  int8
	message message
	a, b    uint64
}

func (a step) String() string {
	s := a.what
	if a.holder >= 0 {
		s = fmt.Sprintf("holder %d: %s", a.holder, s)
	}
	if a.message.kind != nothing {
		s += ": " + a.message.String()
	}
	if a.a > 0 || a.b > 0 {
		s += fmt.Sprintf(" (%d, %d)", a.a, a.b)
	}
	return s
}

func windowNumber(i uint8) int64 {
	if i == farWindow {
		return firstWindow - 1000
	}
	return firstWindow + int64(i)
}

// windowIndex is the inverse; ok is false for a window outside the World.
func windowIndex(w int64) (i uint8, ok bool) {
	switch {
	case w == firstWindow-1000:
		return farWindow, true
	case w >= firstWindow && w < firstWindow+maxWindows:
		return uint8(w - firstWindow), true
	}
	return 0, false
}

// world is what happens without a holder's doing: time passes, a machine is
// suspended, a strict replica counts a hit.
func (x *explorer) world(s *state) {
	if int(s.tick) < x.w.End {
		n := *s
		n.tick++
		x.emit(step{what: "time passes", holder: -1}, &n, nil)
		for h := range x.w.Holders {
			if s.sleeps == 0 {
				break
			}
			n := *s
			n.tick, n.sleeps = n.tick+1, n.sleeps-1
			n.slept[h]++
			x.emit(step{what: "sleeps for a tick", holder: int8(h)}, &n, nil)
		}
	}
	if s.strict > 0 {
		n := *s
		w := x.w.window(int(s.tick))
		n.strict--
		n.counter[w]++
		n.paid[w]++
		if uint64(n.counter[w]) <= x.w.Limit {
			n.admitted[w]++
		}
		x.emit(step{what: "a strict replica counts a hit", holder: -1}, &n, nil)
	}
}

// network is what happens to messages.
func (x *explorer) network(s *state) {
	for i, p := range s.messages {
		if p == 0 || i > 0 && p == s.messages[i-1] {
			continue
		}
		m := unpack(p)
		n := *s
		n.messages[i] = 0
		switch m.kind {
		case request:
			x.execute(&n, m)
			x.loseRequest(&n, m)
		case reply:
			x.deliver(&n, m, reply)
			x.loseReply(&n, m)
		case orphan:
			x.executeOrphan(&n, m)
		case stray:
			x.deliver(&n, m, stray)
		case giveBack:
			x.executeReturn(&n, m)
		}
	}
}

// answer lets the ledger execute a lease.
func (x *explorer) answer(n *state, m message) message {
	ledger := gale.Ledger{}
	if m.window < maxWindows {
		ledger.Counter = uint64(n.counter[m.window])
	}
	t := gale.LeaseStep{
		Length: int64(x.w.PerWindow), Window: windowNumber(m.window), Limit: uint64(m.limit),
		Need: uint64(m.need), Want: uint64(m.want), Taper: x.w.Taper,
	}
	x.r.Lease(&ledger, &t, x.w.storeNanos(int(n.tick))/1000)
	if m.window < maxWindows {
		n.counter[m.window] = uint8(ledger.Counter)
	}
	m.kind, m.exec = reply, n.tick
	m.credits, m.counter, m.free = uint8(t.Grant), uint8(t.Counter), uint8(t.Free)
	if t.Stale {
		m.stale = 1
	}
	return m
}

func (x *explorer) execute(n *state, m message) {
	done := *n
	done.post(x.answer(&done, m))
	x.emit(step{what: "the ledger executes", holder: -1, message: m}, &done, nil)
	if n.dups > 0 && n.inFlight()+2 <= x.w.Messages {
		twice := *n
		twice.dups--
		copied := m
		copied.kind = orphan
		twice.post(m)
		twice.post(copied)
		x.emit(step{what: "the network doubles", holder: -1, message: m}, &twice, nil)
	}
}

// loseRequest: the holder gives up. The request may be gone, or still
// arrive.
func (x *explorer) loseRequest(n *state, m message) {
	if n.losses == 0 {
		return
	}
	lost := *n
	lost.losses--
	x.failed(&lost, m)
	x.emit(step{what: "given up and lost", holder: int8(m.holder), message: m}, &lost, nil)
	m.kind = orphan
	lost.post(m)
	x.emit(step{what: "given up, still under way", holder: int8(m.holder), message: m}, &lost, nil)
}

func (x *explorer) failed(n *state, m message) {
	h := x.holders.values[n.holders[m.holder]]
	h.Failed(windowNumber(m.window))
	n.holders[m.holder] = x.number(h)
}

func (s *state) lose(m message) {
	if m.window < maxWindows {
		s.gone[m.window] += m.credits
	}
}

func (x *explorer) loseReply(n *state, m message) {
	if x.r.RepeatReplies && n.dups > 0 && n.inFlight()+2 <= x.w.Messages {
		twice := *n
		twice.dups--
		again := m
		again.kind = stray
		twice.post(m)
		twice.post(again)
		x.emit(step{what: "the network doubles", holder: -1, message: m}, &twice, nil)
	}
	if n.losses == 0 {
		return
	}
	lost := *n
	lost.losses--
	if x.r.Retries && n.inFlight()+2 <= x.w.Messages {
		// The retry is answered from memory; the first answer was only late.
		late := m
		late.kind = stray
		lost.post(m)
		lost.post(late)
		x.emit(step{what: "asks again, and is answered from memory", holder: int8(m.holder), message: m}, &lost, nil)
		return
	}
	x.failed(&lost, m)
	lost.lose(m)
	x.emit(step{what: "answer lost", holder: int8(m.holder), message: m}, &lost, nil)
}

func (x *explorer) executeOrphan(n *state, m message) {
	x.emit(step{what: "lost", holder: -1, message: m}, n, nil)
	done := *n
	done.lose(x.answer(&done, m))
	x.emit(step{what: "the ledger executes, and nobody waits", holder: -1, message: m}, &done, nil)
}

// deliver lands an answer. A stray one tells the holder nothing: the shell
// settles each exchange once. Only broken rules credit it.
func (x *explorer) deliver(n *state, m message, kind uint8) {
	h := int(m.holder)
	holder := x.holders.values[n.holders[h]]
	clock := x.clocks.values[n.clocks[h]]
	now := x.r.Read(x.w.instant(h, int(n.tick), int(n.slept[h])))
	if kind == reply {
		sent := x.r.Read(x.w.instant(h, int(m.sent), int(m.slept)))
		clock, _ = clock.Observe(sent, now, x.w.storeNanos(int(m.exec))/1000)
	}
	iv, _ := x.r.Place(clock, now)
	t := gale.LeaseStep{
		Length: int64(x.w.PerWindow), Window: windowNumber(m.window), Limit: uint64(m.limit),
		Need: uint64(m.need), Want: uint64(m.want), Grant: uint64(m.credits),
		Counter: uint64(m.counter), Free: uint64(m.free), Stale: m.stale == 1,
		StoreMicros: x.w.storeNanos(int(m.exec)) / 1000,
	}
	done := *n
	homeless := x.r.Land(&holder, &t, x.w.date(now), iv)
	done.holders[h], done.clocks[h] = x.number(holder), x.clocks.number(clock)
	x.returned(&done, h, t.Window, homeless)
	x.emit(step{what: "lands", holder: int8(h), message: m}, &done, nil)
}

// returned sends credits back. Where the network is full they are lost.
func (x *explorer) returned(n *state, h int, w int64, credits uint64) {
	i, ok := windowIndex(w)
	if credits == 0 || !ok || i >= maxWindows {
		return
	}
	m := message{kind: giveBack, holder: uint8(h), window: i, credits: uint8(credits)}
	if n.inFlight() >= x.w.Messages {
		n.lose(m)
		return
	}
	n.post(m)
}

func (x *explorer) executeReturn(n *state, m message) {
	ledger := gale.Ledger{Counter: uint64(n.counter[m.window])}
	ledger.Return(uint64(m.credits))
	done := *n
	done.counter[m.window] = uint8(ledger.Counter)
	x.emit(step{what: "the ledger executes", holder: -1, message: m}, &done, nil)
	if n.losses == 0 {
		return
	}
	lost := *n
	lost.losses--
	lost.lose(m)
	x.emit(step{what: "lost", holder: -1, message: m}, &lost, nil)
	if x.r.RepeatReturns {
		done.losses--
		done.post(m)
		x.emit(step{what: "executed, and sent again", holder: -1, message: m}, &done, nil)
	}
}
