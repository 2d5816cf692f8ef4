package machines

import (
	"fmt"
	"strings"
)

func (c Clocked) check(s ClockedState) error {
	bound := c.Limit
	if c.Bound != 0 {
		bound = c.Bound
	}
	for w := range clockedWindows {
		if int(s.admitted[w]) > bound {
			return fmt.Errorf("INV-1: window %d admitted %d, the bound is %d", w, s.admitted[w], bound)
		}
		if c.Rule != Correct {
			continue // a control is refuted by what it admits
		}
		if held := c.accounted(&s, w); int(s.counter[w]) != held || int(s.counter[w]) > c.Limit {
			return fmt.Errorf("INV-2: window %d has granted %d, of which %d are known; the limit is %d", w, s.counter[w], held, c.Limit)
		}
	}
	if c.Rule != Correct {
		return nil
	}
	if s.unpaid {
		return fmt.Errorf("INV-3: an admission has not been paid for in its window")
	}
	for h := range c.Holders {
		for w := range clockedWindows {
			if n := c.inFlight(&s, h, w); n > 1 {
				return fmt.Errorf("INV-5: holder %d awaits %d leases of window %d", h, n, w)
			}
		}
		if s.offset[h].valid && (c.earliest(&s, h) > int(s.time) || c.latest(&s, h) < int(s.time)) {
			return fmt.Errorf("INV-4: holder %d believes [%d, %d], the store's time is %d", h, c.earliest(&s, h), c.latest(&s, h), s.time)
		}
	}
	return nil
}

// inFlight counts the leases of a window that are awaited: requests and
// replies, without the copies that the network made.
func (c Clocked) inFlight(s *ClockedState, h, w int) int {
	n := 0
	for id := 1; id <= c.Asks; id++ {
		at := slot(h, w, id, 0)
		if s.requests&(1<<at) != 0 && c.awaited(s, h, w, id) {
			n++
		}
		if s.replies[at].there {
			n++
		}
	}
	return n
}

// accounted sums what became of the credits granted, less those returned.
func (c Clocked) accounted(s *ClockedState, w int) int {
	sum := int(s.spent[w]) + int(s.gone[w])
	for h := range c.Holders {
		sum += int(s.lot[h][w])
		if s.back[h].credits > 0 && int(s.back[h].window) == w {
			sum += int(s.back[h].credits)
		}
		for id := 1; id <= c.Asks; id++ {
			for kind := range kinds {
				if r := s.replies[slot(h, w, id, kind)]; r.there {
					sum += int(r.grant)
				}
			}
		}
	}
	return sum
}

// String gives a state on one line, as a trace shows it.
func (s ClockedState) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "time %d, counters %v, admitted %v, spent %v, gone %v", s.time, s.counter, s.admitted, s.spent, s.gone)
	for h := range maxHolders {
		fmt.Fprintf(&b, "; holder %d: slip %+d, lots %v, asked %v", h+1, s.slip[h], s.lot[h], s.asks[h])
		if o := s.offset[h]; o.valid {
			fmt.Fprintf(&b, ", offset in [%d, %d]", o.low, o.high)
		}
		if r := s.back[h]; r.credits > 0 {
			fmt.Fprintf(&b, ", returning %d of window %d", r.credits, r.window)
		}
	}
	return b.String()
}
