package sim

import (
	"fmt"

	"github.com/gale-rls/gale-rls/pkg/gale"
)

// Invariant names one of the invariants of package gale.
type Invariant string

// The invariants that a search checks.
const (
	INV1 Invariant = "INV-1"
	INV2 Invariant = "INV-2"
	INV3 Invariant = "INV-3"
	INV4 Invariant = "INV-4"
	INV5 Invariant = "INV-5"
	INV7 Invariant = "INV-7"
)

// Invariants returns all that a search checks.
func Invariants() []Invariant { return []Invariant{INV1, INV2, INV3, INV4, INV5, INV7} }

func (x *explorer) checks(i Invariant) bool {
	for _, c := range x.check {
		if c == i {
			return true
		}
	}
	return false
}

// violated returns what a state violates, or nil.
func (x *explorer) violated(s *state) error {
	for _, c := range x.check {
		var err error
		switch c {
		case INV1:
			err = x.noOvershoot(s)
		case INV2:
			err = x.balanced(s)
		case INV4:
			err = x.placed(s)
		case INV5:
			err = x.oneLease(s)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", c, err)
		}
	}
	return nil
}

// noOvershoot is INV-1: in no window of the store, and for no limit, more is
// admitted than it allows.
func (x *explorer) noOvershoot(s *state) error {
	for w := range s.admitted {
		if uint64(s.admitted[w]) > x.w.Limit {
			return fmt.Errorf("window %d admitted %d of %d", w, s.admitted[w], x.w.Limit)
		}
		if x.w.Low > 0 && uint64(s.low[w]) > x.w.Low {
			return fmt.Errorf("window %d admitted %d for requests of limit %d", w, s.low[w], x.w.Low)
		}
	}
	return nil
}

// balanced is INV-2: what the ledger counts is paid, held, on its way, lost
// or expired, and never more than the limit.
func (x *explorer) balanced(s *state) error {
	var have [maxWindows]uint64
	for h := range x.w.Holders {
		for _, l := range x.holders.values[s.holders[h]].Lots() {
			if i := l.Window - firstWindow; i >= 0 && i < maxWindows {
				have[i] += l.Credits
			}
		}
	}
	for _, p := range s.messages {
		if m := unpack(p); (m.kind == reply || m.kind == giveBack) && m.window < maxWindows {
			have[m.window] += uint64(m.credits)
		}
	}
	for w := range have {
		have[w] += uint64(s.paid[w]) + uint64(s.gone[w])
		if have[w] != uint64(s.counter[w]) {
			return fmt.Errorf("window %d: the ledger counts %d, but %d were paid, held, on their way or lost",
				w, s.counter[w], have[w])
		}
		if x.w.Strict == 0 && uint64(s.counter[w]) > x.w.Limit {
			return fmt.Errorf("window %d: granted %d of %d", w, s.counter[w], x.w.Limit)
		}
	}
	return nil
}

// placed is INV-4: the store's time is where every holder's clock says.
func (x *explorer) placed(s *state) error {
	now := x.w.storeNanos(int(s.tick))
	for h := range x.w.Holders {
		iv, ok := x.r.Place(x.clocks.values[s.clocks[h]], x.r.Read(x.w.instant(h, int(s.tick), int(s.slept[h]))))
		if ok && (now < iv.Earliest*1000 || now > iv.Latest*1000) {
			return fmt.Errorf("holder %d takes the store's time to be in [%s, %s] at tick %d",
				h, x.tickOf(iv.Earliest), x.tickOf(iv.Latest), s.tick)
		}
	}
	return nil
}

// oneLease is INV-5: no two leases of one holder and window are in flight.
func (x *explorer) oneLease(s *state) error {
	for i, p := range s.messages {
		a := unpack(p)
		if a.kind != request && a.kind != reply {
			continue
		}
		for _, q := range s.messages[i+1:] {
			b := unpack(q)
			if (b.kind == request || b.kind == reply) && a.holder == b.holder && a.window == b.window {
				return fmt.Errorf("holder %d has two leases of window %d in flight", a.holder, a.window)
			}
		}
	}
	return nil
}

// justified is what INV-3 and INV-7 say of one decision: it paid each hit in
// every window that it could be, or nothing anywhere.
func (x *explorer) justified(before, after *gale.Holder, a gale.Answer, iv gale.Interval, hits uint64, tick int, paid *gale.Paid) error {
	old, now := before.Lots(), after.Lots()
	if a.Outcome != gale.Spent {
		if x.checks(INV7) && (old[0].Credits != now[0].Credits || old[1].Credits != now[1].Credits) {
			return fmt.Errorf("%s: a refused request spent: %s, then %s", INV7, before, after)
		}
		return nil
	}
	if !x.checks(INV3) {
		return nil
	}
	truly := int64(x.w.window(tick)) + firstWindow
	if paid.Credits(truly) != hits {
		return fmt.Errorf("%s: %d hits admitted in window %d paid %d there", INV3, hits, truly-firstWindow, paid.Credits(truly))
	}
	for _, l := range old {
		spent := held(&old, l.Window) - held(&now, l.Window)
		could := l.Window >= iv.Earliest/x.w.length() && l.Window <= iv.Latest/x.w.length()
		if could && spent != hits || !could && spent != 0 {
			return fmt.Errorf("%s: %d hits in [%s, %s] spent %d of window %d", INV3, hits,
				x.tickOf(iv.Earliest), x.tickOf(iv.Latest), spent, l.Window-firstWindow)
		}
	}
	return nil
}

// held is what the lots have of window w.
func held(lots *[2]gale.LotView, w int64) (n uint64) {
	for _, l := range lots {
		if l.Window == w {
			n += l.Credits
		}
	}
	return n
}
