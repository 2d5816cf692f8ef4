package machines

import "fmt"

// HeartbeatRule is how a coordinator of in-flight shares decides.
type HeartbeatRule uint8

const (
	// EqualSplit aims at the limit divided by the live nodes, and reserves
	// for each other node what it has or what it still runs.
	EqualSplit HeartbeatRule = iota
	// DemandProportional gives satisfied nodes what they use and one more,
	// and the rest to those that want more.
	DemandProportional
	// ShareOnly is EqualSplit that reserves shares and forgets what still
	// runs: a mistake.
	ShareOnly
)

// Heartbeat is the synchronous model of distributed concurrency: a node's
// beat gives it a share of the limit at once, and requests run until they
// end, whatever the share is by then.
type Heartbeat struct {
	Nodes, Limit int
	Rule         HeartbeatRule
	// Bound overrides Limit as the bound on what runs; 0 means Limit.
	Bound int
}

// HeartbeatState is one state of Heartbeat.
type HeartbeatState struct {
	active          [maxNodes]bool
	share, inflight [maxNodes]uint8
}

// Machine returns the state machine: any fleet that is not empty may begin.
func (b Heartbeat) Machine() Machine[HeartbeatState] {
	var init []HeartbeatState
	for fleet := 1; fleet < 1<<b.Nodes; fleet++ {
		var s HeartbeatState
		for n := range b.Nodes {
			s.active[n] = fleet&(1<<n) != 0
		}
		init = append(init, s)
	}
	return Machine[HeartbeatState]{Init: init, Next: b.next, Check: b.check, Gauge: func(s HeartbeatState) int {
		_, running := s.sums()
		return running
	}}
}

func (s HeartbeatState) sums() (shares, running int) {
	for n := range s.share {
		shares += int(s.share[n])
		running += int(s.inflight[n])
	}
	return shares, running
}

func (b Heartbeat) check(s HeartbeatState) error {
	bound := b.Limit
	if b.Bound != 0 {
		bound = b.Bound
	}
	shares, running := s.sums()
	if running > bound {
		return fmt.Errorf("%d run, the bound is %d", running, bound)
	}
	if shares > b.Limit {
		return fmt.Errorf("shares of %d, the limit is %d", shares, b.Limit)
	}
	return nil
}

func (b Heartbeat) next(s HeartbeatState, emit func(HeartbeatState)) {
	alive := 0
	for n := range b.Nodes {
		if s.active[n] {
			alive++
		}
	}
	for n := range b.Nodes {
		t := s
		if !s.active[n] { // Join(n)
			t.active[n], t.share[n] = true, 0
			emit(t)
			continue
		}
		t.share[n] = uint8(b.reallocate(&s, n, alive)) // Reallocate(n)
		emit(t)
		if alive > 1 { // Leave(n)
			t = s
			t.active[n], t.share[n], t.inflight[n] = false, 0, 0
			emit(t)
		}
		if s.inflight[n] < s.share[n] { // Acquire(n)
			t = s
			t.inflight[n]++
			emit(t)
		}
		if s.inflight[n] > 0 { // Release(n)
			t = s
			t.inflight[n]--
			emit(t)
		}
	}
}

// reallocate is the share that a beat gives to node n.
func (b Heartbeat) reallocate(s *HeartbeatState, n, alive int) int {
	reserved := 0
	for m := range b.Nodes {
		switch {
		case m == n:
		case b.Rule == ShareOnly:
			reserved += int(s.share[m])
		default:
			reserved += int(max(s.share[m], s.inflight[m]))
		}
	}
	target := (b.Limit + alive - 1) / alive
	if b.Rule == DemandProportional {
		target = b.demanded(s, n)
	}
	return max(0, min(target, b.Limit-reserved))
}

// demanded is the target by demand: one more than it runs for a node that is
// satisfied; for the hungry, the rest in equal parts, at least 1.
func (b Heartbeat) demanded(s *HeartbeatState, n int) int {
	if s.inflight[n] < s.share[n] {
		return int(s.inflight[n]) + 1
	}
	spare, hungry, rank := b.Limit, 0, 0
	for m := range b.Nodes {
		switch {
		case !s.active[m]:
		case s.inflight[m] < s.share[m]:
			spare -= int(s.inflight[m]) + 1
		default:
			if m < n {
				rank++
			}
			hungry++
		}
	}
	spare = max(spare, 0)
	part := spare / hungry
	if rank < spare%hungry {
		part++
	}
	return max(part, 1)
}
