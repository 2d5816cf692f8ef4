package sim

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/gale-rls/gale-rls/pkg/gale"
)

const (
	// simStart is the store's time when a run begins, in nanoseconds since
	// the epoch: not at a window's beginning.
	simStart = 1_800_000_000_300_000_000
	// exchangeTimeout is the shell's, gale.DefaultOpTimeout.
	exchangeTimeout = gale.DefaultOpTimeout
	// sweepEvery is the shell's.
	sweepEvery = time.Second
	// maxAtOnce is how many events may happen at one instant: more is a run
	// that goes in circles, replicas and store asking and answering for ever.
	maxAtOnce = 100_000
	// settling is how long a run goes on after the last request, so that all
	// that is under way arrives.
	settling = 3 * time.Second
)

// simKey is the one leased key of a run; otherKey belongs to the charge that
// may refuse a request elsewhere.
var simKey, otherKey = []byte("sim_"), []byte("other_")

// node is one replica and its place in the network.
type node struct {
	replica *gale.Replica
	offset  int64   // its clock, less the store's, at the start
	rate    float64 // of its clock, less 1
	// life counts its incarnations: what is addressed to an earlier one is
	// lost. Until downUntil it does not run, until pausedUntil it stands
	// still, until cutUntil it does not reach the store.
	life                             int
	downUntil, pausedUntil, cutUntil time.Duration
	waiting                          []*waiter
}

type waiter struct {
	gale.Waiter
	arrived time.Duration
	settled bool
	low     bool
}

// epoch is one window of the store.
type epoch struct {
	ledger                  gale.Ledger
	offered, admitted, low  uint64
	spent, replies, returns uint64 // paid, and on their way
	// tainted: the store lost grants of this window.
	tainted bool
}

// grant remembers what moved a counter, for a fail-over to forget.
type grant struct {
	at    time.Duration
	epoch int
	delta int64
}

// fleet is one run.
type fleet struct {
	s       Scenario
	rng     *rand.Rand
	now     time.Duration
	nodes   []*node
	events  events
	seq     uint64
	epochs  []epoch
	grants  []grant
	atOnce  int           // events at this instant
	gone    time.Duration // until when the store does not answer
	weights []float64
	policy  [2]gale.Policy
	other   gale.Policy // strict, and nobody counts it
	result  Result
	// trace keeps the last events, when asked for.
	trace    []string
	traced   bool
	progress func(done float64)
}

// Run simulates a scenario. progress, if not nil, is told the part that is
// done, now and then.
func Run(s Scenario, progress func(done float64)) (Result, error) {
	if err := s.Validate(); err != nil {
		return Result{}, err
	}
	f := newFleet(s)
	f.progress = progress
	f.run()
	return f.result, nil
}

func newFleet(s Scenario) *fleet {
	if s.Patience == 0 {
		s.Patience = 20 * time.Millisecond
	}
	s.Hits = max(s.Hits, 1)
	f := &fleet{s: s, rng: rand.New(rand.NewPCG(s.Seed, 1))}
	for i := range f.policy {
		f.policy[i] = gale.Policy{Limit: gale.Limit{Hits: s.Limit, Window: s.Window}, Mode: gale.ModeLeased, Lease: s.Lease}
	}
	f.policy[1].Limit.Hits = s.Low
	f.other = gale.Policy{Limit: f.policy[0].Limit, Role: gale.RoleShadow}
	f.epochs = make([]epoch, int64((s.Length+settling)/time.Second)/s.Window+3)
	for i := range s.Replicas {
		n := &node{rate: (2*f.rng.Float64() - 1) * s.Drift / 1e6}
		if s.Offset != 0 {
			n.offset = f.rng.Int64N(2*max(int64(s.Offset), -int64(s.Offset))) - max(int64(s.Offset), -int64(s.Offset))
		}
		f.nodes = append(f.nodes, n)
		n.replica = gale.NewReplica(f.local(n), s.Replicas)
		f.at(time.Duration(f.rng.Int64N(int64(sweepEvery))), event{what: sweeps, node: i})
	}
	f.weigh()
	f.faults()
	f.at(f.gap(), event{what: arrives})
	return f
}

// faults draws when what breaks.
func (f *fleet) faults() {
	often := func(n int, what kind) {
		for range n {
			f.at(f.between(0, f.s.Length), event{what: what, node: f.rng.IntN(f.s.Replicas)})
		}
	}
	often(f.s.Crashes, crashes)
	often(f.s.Pauses, pauses)
	often(f.s.Partitions, parts)
	often(f.s.Failovers, failsOver)
}

func (f *fleet) run() {
	end := f.s.Length + settling
	for n := 0; len(f.events) > 0 && f.result.Err == nil; n++ {
		e := heap.Pop(&f.events).(event)
		if e.at > end {
			break
		}
		if e.at > f.now {
			f.atOnce = 0
		}
		f.now = e.at
		f.handle(e)
		if f.atOnce++; f.atOnce > maxAtOnce {
			f.fail("no end: %d events at %v", f.atOnce, f.now)
		}
		f.result.Events++
		if f.result.Err == nil {
			f.result.Err = f.violated(n)
		}
		if f.progress != nil && n%65536 == 0 {
			f.progress(float64(f.now) / float64(end))
		}
	}
	f.finish()
}

// local is what a node's clock shows.
func (f *fleet) local(n *node) time.Time {
	return time.Unix(0, simStart+n.offset+int64(f.now)+int64(float64(f.now)*n.rate))
}

// epoch is the index of the store's window now.
func (f *fleet) epoch() int { return f.epochAt(f.now) }

func (f *fleet) epochAt(t time.Duration) int {
	length := f.s.Window * int64(time.Second)
	return int((simStart+int64(t))/length - simStart/length)
}

// windowOf is the number of an epoch's window; epochOf is the inverse.
func (f *fleet) windowOf(epoch int) int64 {
	return simStart/(f.s.Window*int64(time.Second)) + int64(epoch)
}

func (f *fleet) epochOf(window int64) (*epoch, int) {
	i := int(window - f.windowOf(0))
	if i < 0 || i >= len(f.epochs) {
		return nil, -1
	}
	return &f.epochs[i], i
}

// gap is the time to the next request.
func (f *fleet) gap() time.Duration {
	return time.Duration(f.rng.ExpFloat64() / f.s.Rate * float64(time.Second))
}

func (f *fleet) between(lo, hi time.Duration) time.Duration {
	if hi <= lo {
		return lo
	}
	return lo + time.Duration(f.rng.Int64N(int64(hi-lo)))
}

// weigh computes the running sums of the replicas' shares of demand.
func (f *fleet) weigh() {
	n := f.s.Replicas
	sum := 0.0
	f.weights = make([]float64, n)
	for i := range f.weights {
		w := 1.0
		switch {
		case f.s.Shape == Hot && n > 1 && i == 0:
			w = 4 * float64(n-1)
		case f.s.Shape == Halves && i < n/2:
			w = 4
		}
		sum += w
		f.weights[i] = sum
	}
}

// target draws the replica that the next request goes to.
func (f *fleet) target() int {
	n := f.s.Replicas
	v := f.rng.Float64() * f.weights[n-1]
	i := 0
	for f.weights[i] <= v && i < n-1 {
		i++
	}
	if f.s.Shift > 0 {
		i += int(f.now / f.s.Shift)
	}
	return i % n
}

// kind says what an event is.
type kind uint8

const (
	arrives kind = iota
	planned      // a request that a test planned
	asks         // a request at a replica that stood still
	executes
	receives
	timesOut
	isLate // a request's patience ends
	sweeps
	crashes
	pauses
	parts
	failsOver
)

var kindNames = [...]string{"request", "request", "request after a pause", "the store executes", "answer", "time-out",
	"patience ends", "sweep", "crash", "pause", "cut off", "fail-over"}

// event is something that happens at an instant; seq orders those of one.
type event struct {
	at       time.Duration
	seq      uint64
	what     kind
	node     int
	life     int
	exchange *trip
	waiter   *waiter
}

// trip is one exchange, and how long its two ways take.
type trip struct {
	*gale.Exchange
	sent, there, back time.Duration
	over              bool
}

func (f *fleet) at(t time.Duration, e event) {
	f.seq++
	e.at, e.seq = t, f.seq
	heap.Push(&f.events, e)
}

type events []event

func (h events) Len() int { return len(h) }
func (h events) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].seq < h[j].seq
}
func (h events) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *events) Push(v any)   { *h = append(*h, v.(event)) }
func (h *events) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	*h = (*h)[:last]
	return e
}

func (f *fleet) note(e event) {
	if !f.traced {
		return
	}
	line := fmt.Sprintf("%12v window %d  replica %d: %s", f.now, f.epoch(), e.node, kindNames[e.what])
	if e.exchange != nil {
		for _, t := range e.exchange.Steps {
			_, w := f.epochOf(t.Window)
			if t.Return > 0 {
				line += fmt.Sprintf(" [window %d return %d]", w, t.Return)
			} else {
				line += fmt.Sprintf(" [window %d want %d need %d: granted %d, counter %d]", w, t.Want, t.Need, t.Grant, t.Counter)
			}
		}
	}
	f.trace = append(f.trace, line)
}
