package machines

import "fmt"

// HandoffRule is what a coordinator reserves for a node whose replies and
// reports are on their way.
type HandoffRule uint8

const (
	// UnackedGrants reserves the largest grant that the node may still go by,
	// and what it last said that it runs.
	UnackedGrants HandoffRule = iota
	// CommittedSnapshot reserves the last grant, the one that the node said it
	// goes by, and what it runs: a mistake, for grants in between count too.
	CommittedSnapshot
	// SuffixOnly forgets what still runs: a mistake.
	SuffixOnly
	// TornReport says what a node goes by and what it runs at two different
	// times: a mistake.
	TornReport
)

const maxHistory = 4

// Handoff is Heartbeat with replies and reports that take their time: grants
// form a history, a node goes by any one that it was told, and the
// coordinator knows only what was acknowledged.
type Handoff struct {
	Nodes, Limit int
	// History bounds the grants per node; at most 4.
	History int
	Rule    HandoffRule
	// Trim drops grants that nobody goes by any more, so that runs have no
	// end.
	Trim bool
	// Bound overrides Limit as the bound on what runs; 0 means Limit.
	Bound int
}

type handoffNode struct {
	active                    bool
	grants                    [maxHistory]uint8
	made, applied, acked      uint8 // counts of grants; 0 is none
	inflight, reportedRunning uint8
}

func (n *handoffNode) grant(at uint8) uint8 {
	if at == 0 {
		return 0
	}
	return n.grants[at-1]
}

// HandoffState is one state of Handoff.
type HandoffState struct{ nodes [3]handoffNode }

// Machine returns the state machine: any fleet that is not empty may begin.
func (b Handoff) Machine() Machine[HandoffState] {
	var init []HandoffState
	for fleet := 1; fleet < 1<<b.Nodes; fleet++ {
		var s HandoffState
		for n := range b.Nodes {
			s.nodes[n].active = fleet&(1<<n) != 0
		}
		init = append(init, s)
	}
	return Machine[HandoffState]{Init: init, Next: b.next, Check: b.check, Gauge: running}
}

func running(s HandoffState) int {
	sum := 0
	for n := range s.nodes {
		sum += int(s.nodes[n].inflight)
	}
	return sum
}

func (b Handoff) check(s HandoffState) error {
	bound := b.Limit
	if b.Bound != 0 {
		bound = b.Bound
	}
	if r := running(s); r > bound {
		return fmt.Errorf("%d run, the bound is %d", r, bound)
	}
	shares := 0
	for n := range s.nodes {
		node := &s.nodes[n]
		if node.acked > node.applied || node.applied > node.made {
			return fmt.Errorf("node %d acknowledged %d and goes by %d of %d grants", n, node.acked, node.applied, node.made)
		}
		shares += int(node.grant(node.made))
	}
	if shares > b.Limit {
		return fmt.Errorf("shares of %d, the limit is %d", shares, b.Limit)
	}
	return nil
}

func (b Handoff) next(s HandoffState, emit func(HandoffState)) {
	alive := 0
	for n := range b.Nodes {
		if s.nodes[n].active {
			alive++
		}
	}
	for n := range b.Nodes {
		put := func(change func(*handoffNode)) {
			t := s
			change(&t.nodes[n])
			if b.Trim {
				t.nodes[n].trim()
			}
			emit(t)
		}
		node := &s.nodes[n]
		if !node.active { // Join(n)
			put(func(x *handoffNode) { *x = handoffNode{active: true} })
			continue
		}
		if alive > 1 { // Leave(n)
			put(func(x *handoffNode) { *x = handoffNode{} })
		}
		if int(node.made) < b.History { // Reallocate(n)
			share := b.reallocate(&s, n, alive)
			put(func(x *handoffNode) { x.grants[x.made] = share; x.made++ })
		}
		for at := node.applied + 1; at <= node.made; at++ { // Deliver(n)
			put(func(x *handoffNode) { x.applied = at })
		}
		b.report(node, put)
		if node.inflight < node.grant(node.applied) { // Acquire(n)
			put(func(x *handoffNode) { x.inflight++ })
		}
		if node.inflight > 0 { // Release(n)
			put(func(x *handoffNode) { x.inflight-- })
		}
	}
}

// report tells the coordinator what the node goes by and what it runs, if
// that is news.
func (b Handoff) report(node *handoffNode, put func(func(*handoffNode))) {
	acks, runs := node.acked != node.applied, node.reportedRunning != node.inflight
	switch {
	case b.Rule == TornReport:
		if acks {
			put(func(x *handoffNode) { x.acked = x.applied })
		}
		if runs {
			put(func(x *handoffNode) { x.reportedRunning = x.inflight })
		}
	case acks || runs:
		put(func(x *handoffNode) { x.acked, x.reportedRunning = x.applied, x.inflight })
	}
}

func (b Handoff) reallocate(s *HandoffState, n, alive int) uint8 {
	reserved := 0
	for m := range b.Nodes {
		if m != n && s.nodes[m].active {
			reserved += int(b.reserve(&s.nodes[m]))
		}
	}
	target := (b.Limit + alive - 1) / alive
	return uint8(max(0, min(target, b.Limit-reserved)))
}

func (b Handoff) reserve(n *handoffNode) uint8 {
	if b.Rule == CommittedSnapshot {
		return max(n.grant(n.made), n.grant(n.acked), n.reportedRunning)
	}
	most := uint8(0)
	for at := max(1, n.acked); at <= n.made; at++ {
		most = max(most, n.grant(at))
	}
	if b.Rule == SuffixOnly {
		return most
	}
	return max(most, n.reportedRunning)
}

// trim drops the grants before both the one gone by and the one acknowledged.
func (n *handoffNode) trim() {
	drop := min(n.applied, n.acked)
	if drop <= 1 {
		return
	}
	drop--
	var kept [maxHistory]uint8
	copy(kept[:], n.grants[drop:n.made])
	n.grants = kept
	n.made, n.applied, n.acked = n.made-drop, n.applied-drop, n.acked-drop
}
