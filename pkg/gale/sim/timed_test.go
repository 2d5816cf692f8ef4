package sim

import (
	"container/heap"
	"math"
)

// timed is the original's discrete-event model: limit 1000 per 100 ms, three
// times that offered, the first half of the nodes four times as busy as the
// second, leases of 20, answers after 2 to 8 ms, 20 windows. Requests arrive at
// random (Poisson) and wait for a lease to the window's end. A lease is taken
// from the ledger when its answer arrives at the node.
type timed struct {
	nodes        int
	latency      [2]float64 // mean, and half the spread, in ms
	cutNodes     int        // cut off for the windows from 5 to 12
	carry        bool
	seed         uint32
	trips, worst int
	utilisation  float64
	cutAdmitted  int
	// spread is the utilisation of single runs, at least and at most.
	spread [2]float64
}

const (
	timedWindows = 20
	timedLimit   = 1000
	timedWindow  = 100.0 // ms
	timedBatch   = 20
)

type timedEvent struct {
	at   float64
	rank int // roll, grant, arrival
	node int
	seq  int
}

type timedEvents []timedEvent

func (h timedEvents) Len() int { return len(h) }
func (h timedEvents) Less(i, j int) bool {
	a, b := h[i], h[j]
	switch {
	case a.at != b.at:
		return a.at < b.at
	case a.rank != b.rank:
		return a.rank < b.rank
	}
	return a.seq < b.seq
}
func (h timedEvents) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *timedEvents) Push(v any)   { *h = append(*h, v.(timedEvent)) }
func (h *timedEvents) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	*h = (*h)[:last]
	return e
}

func (m *timed) run() {
	const end = timedWindows * timedWindow
	g := mulberry32(m.seed)
	var q timedEvents
	seq := 0
	push := func(at float64, rank, node int) {
		seq++
		heap.Push(&q, timedEvent{at, rank, node, seq})
	}
	gap := make([]float64, m.nodes)
	for n := range m.nodes {
		weight := 0.4
		if n < m.nodes/2 {
			weight = 1.6
		}
		gap[n] = timedWindow * float64(m.nodes) / (3 * timedLimit * weight)
		push(-math.Log(1-g.next())*gap[n], 2, n)
	}
	for w := range timedWindows {
		push(float64(w)*timedWindow, 0, 0)
	}
	credits, waiting, leasing := make([]int, m.nodes), make([]int, m.nodes), make([]bool, m.nodes)
	left, admitted, total := 0, 0, 0
	window := -1
	cut := func(n int) bool { return n < m.cutNodes && window >= 5 && window < 12 }
	admit := func(n, hits int) {
		admitted, total = admitted+hits, total+hits
		if n < m.cutNodes || m.cutNodes == 0 && n < 16 {
			m.cutAdmitted += hits
		}
	}
	lease := func(n int, now float64) {
		if cut(n) {
			waiting[n] = 0
			return
		}
		leasing[n] = true
		m.trips++
		push(now+m.latency[0]+(2*g.next()-1)*m.latency[1], 1, n)
	}
	for len(q) > 0 {
		e := heap.Pop(&q).(timedEvent)
		if e.at >= end {
			break
		}
		n := e.node
		switch e.rank {
		case 0:
			window++
			m.worst = max(m.worst, admitted)
			left, admitted = timedLimit, 0
			clear(waiting)
			if !m.carry {
				clear(credits)
			}
		case 1:
			leasing[n] = false
			if cut(n) { // the answer does not get through
				waiting[n] = 0
				break
			}
			grant := min(timedBatch, left)
			left -= grant
			credits[n] += grant
			served := min(credits[n], waiting[n])
			credits[n] -= served
			waiting[n] -= served
			admit(n, served)
			switch {
			case grant == 0:
				waiting[n] = 0
			case waiting[n] > 0:
				lease(n, e.at)
			}
		case 2:
			push(e.at-math.Log(1-g.next())*gap[n], 2, n)
			if credits[n] > 0 {
				credits[n]--
				admit(n, 1)
				break
			}
			waiting[n]++
			if !leasing[n] {
				lease(n, e.at)
			}
		}
	}
	m.worst = max(m.worst, admitted)
	m.utilisation = float64(total) / (timedLimit * timedWindows)
}
