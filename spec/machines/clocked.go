package machines

// Rule is what a Clocked machine does: the protocol, or one with a mistake
// that must be found.
type Rule string

const (
	// Correct is the protocol of pkg/gale.
	Correct Rule = "correct"
	// CarryOver keeps what is left of a lot for the next window.
	CarryOver Rule = "carry-over"
	// AnyWindow pays with a credit of whatever window there is one of.
	AnyWindow Rule = "any-window"
	// NoBridge pays in one of the windows that it could be.
	NoBridge Rule = "no-bridge"
	// WallClock takes the replica's own clock for the store's.
	WallClock Rule = "wall-clock"
	// NarrowLate takes the latest that the store's time can be one tick too
	// early, NarrowEarly the earliest one tick too late.
	NarrowLate  Rule = "narrow-late"
	NarrowEarly Rule = "narrow-early"
	// RetryOnce counts a lease and its retry once, and spends both replies.
	RetryOnce Rule = "retry-once"
	// SpendTwice credits a reply that arrives twice, twice.
	SpendTwice Rule = "spend-twice"
	// DoubleReturn may execute a return twice.
	DoubleReturn Rule = "double-return"
)

const (
	maxHolders     = 2
	clockedWindows = 2
	clockedAsks    = 2
	notSent        = -128
)

// Clocked is GaleClockedLeasing.tla: holders whose clocks are offset and
// drift, a ledger that goes by its own, and a network between them that
// delays, loses, duplicates and reorders. See the module for the actions.
type Clocked struct {
	Rule Rule
	// Holders is 1 or 2.
	Holders int
	// Length is the window's length in ticks; the run has two windows.
	Length int
	Limit  int
	// Batch is what a lease wants; it needs 1. Taper divides what is free.
	Batch, Taper int
	// Asks bounds the leases that a holder asks for per window, at most 2.
	Asks int
	// Total bounds the leases asked for in a run.
	Total int
	// Drift is how many ticks a holder's clock gains or loses in a run,
	// 0 or 1, and what brackets are widened by.
	Drift int
	// Dups bounds duplicated messages, at most 1; Returns those of a holder.
	Dups, Returns int
	// Offset is by how much each holder's clock is ahead of the store's.
	Offset [maxHolders]int
	// Crashes lets holders forget everything.
	Crashes bool
	// Bound overrides Limit as the bound on what a window admits.
	Bound int
}

// message slots: by holder, window, ask and kind. Kind 0 is the original, 1
// is the duplicated request and the reply to it.
const (
	kinds = 2
	slots = maxHolders * clockedWindows * clockedAsks * kinds
)

func slot(h, w, id, kind int) int {
	return ((h*clockedWindows+w)*clockedAsks+id-1)*kinds + kind
}

// reply is a reply in flight; the zero value is none.
type reply struct {
	there bool
	grant uint8
	at    int8
}

type returned struct {
	credits uint8
	window  int8
}

// bracket bounds the store's time less the holder's clock.
type bracket struct {
	valid     bool
	low, high int8
}

// ClockedState is one state of Clocked.
type ClockedState struct {
	time    int8
	dups    uint8
	slip    [maxHolders]int8
	offset  [maxHolders]bracket
	lot     [maxHolders][clockedWindows]uint8
	asks    [maxHolders][clockedWindows]uint8
	sent    [maxHolders][clockedWindows]int8
	returns [maxHolders]uint8

	requests uint32 // a bit per slot
	replies  [slots]reply
	back     [maxHolders]returned

	counter  [clockedWindows]int8
	spent    [clockedWindows]uint8
	admitted [clockedWindows]uint8
	gone     [clockedWindows]uint8
	unpaid   bool
}

// Machine returns the state machine, checking INV-1 to INV-5.
func (c Clocked) Machine() Machine[ClockedState] {
	var first ClockedState
	for h := range maxHolders {
		for w := range clockedWindows {
			first.sent[h][w] = notSent
		}
	}
	return Machine[ClockedState]{
		Init:  []ClockedState{first},
		Next:  c.next,
		Check: c.check,
		Gauge: func(s ClockedState) int { return int(max(s.admitted[0], s.admitted[1])) },
	}
}

func (c Clocked) horizon() int { return clockedWindows * c.Length }

func (c Clocked) clock(s *ClockedState, h int) int {
	return int(s.time) + c.Offset[h] + int(s.slip[h])
}

// window is that of a time, also of one before the first window.
func (c Clocked) window(time int) int {
	if time < 0 {
		return -1
	}
	return time / c.Length
}

// earliest and latest bound the store's time, as the holder sees it.
func (c Clocked) earliest(s *ClockedState, h int) int {
	if c.Rule == WallClock {
		return c.clock(s, h)
	}
	return c.clock(s, h) + int(s.offset[h].low)
}

func (c Clocked) latest(s *ClockedState, h int) int {
	if c.Rule == WallClock {
		return c.clock(s, h)
	}
	return c.clock(s, h) + int(s.offset[h].high)
}
