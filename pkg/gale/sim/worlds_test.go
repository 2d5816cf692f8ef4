package sim

import (
	"os"
	"testing"
)

const hour = int64(3_600_000_000_000)

// afterBoundary moves the instants half a millisecond beyond the windows'
// ends: less than what a clock may drift in a tick, so that drift decides
// which windows are possible, and more than nothing, so that a fresh exchange
// leaves only one.
const afterBoundary = 500_000

// twoHolders is the World that the others are variants of: the last tick of
// one window and the two of the next, a slow and a fast clock, one off by
// hours, the other by a tick.
func twoHolders() World {
	return World{
		Holders: []HolderClock{{Slow, 5_000_000_000, hour}, {Fast, 0, tickNanos}},
		Limit:   2, PerWindow: 2, Start: 1, End: 3, Phase: afterBoundary,
		Hits: []uint64{1}, Wants: []uint64{1}, Taper: 1, Messages: 2,
	}
}

// oneBoundary is shorter: the ticks before and after a boundary.
func oneBoundary() World {
	w := twoHolders()
	w.End = 2
	return w
}

// worlds are searched in full by CI. Between them every fault and every
// ability of a holder meets a boundary.
func worlds() []World {
	var all []World
	add := func(name string, w World, change func(*World)) {
		w.Name = name
		change(&w)
		all = append(all, w)
	}
	add("leases of two", twoHolders(), func(w *World) { w.Limit, w.Wants = 3, []uint64{2} })
	add("pre-lease", twoHolders(), func(w *World) { w.Prelease = true })
	add("pre-lease and top-up", oneBoundary(), func(w *World) { w.Prelease, w.TopUp = true, true })
	add("lost, late, doubled", oneBoundary(), func(w *World) { w.Losses, w.Duplicates = 2, 1 })
	add("lost, late, doubled, pre-lease", oneBoundary(), func(w *World) {
		w.Losses, w.Duplicates, w.Prelease = 1, 1, true
	})
	add("crash", oneBoundary(), func(w *World) { w.Crashes, w.Prelease = 1, true })
	add("returns, two limits", oneBoundary(), func(w *World) {
		w.Return, w.Low, w.Wants = true, 1, []uint64{2}
	})
	add("put-back", oneBoundary(), func(w *World) { w.PutBack, w.Prelease = true, true })
	add("suspended", oneBoundary(), func(w *World) { w.Sleeps, w.Prelease = 1, true })
	add("old readings", twoHolders(), func(w *World) { w.Lag = true })
	add("three holders", oneBoundary(), func(w *World) {
		w.Holders = append(w.Holders, HolderClock{Exact, 0, -hour})
	})
	add("a strict replica", twoHolders(), func(w *World) { w.Strict = 1 })
	add("limit 6, partial grants, taper", oneBoundary(), func(w *World) {
		w.Limit, w.Wants, w.Taper, w.Hits = 6, []uint64{3}, 2, []uint64{1, 2}
	})
	add("on the boundary", twoHolders(), func(w *World) { w.Phase = 0 })
	add("between two microseconds", twoHolders(), func(w *World) { w.Phase = 999 })
	add("a nanosecond early", twoHolders(), func(w *World) { w.Phase = -1 })
	add("denials age", oneHolder(), func(w *World) { w.Dated, w.Prelease, w.End = true, true, 4 })
	add("one holder, all at once", oneHolder(), func(w *World) {
		w.Losses, w.Sleeps = 1, 1
		w.Prelease, w.Return, w.PutBack, w.Lag = true, true, true, true
		w.End = 2
	})
	return all
}

// deepWorlds are searched by scripts/soak.sh: tens of millions of states.
func deepWorlds() []World {
	var all []World
	add := func(name string, w World, change func(*World)) {
		w.Name = name
		change(&w)
		all = append(all, w)
	}
	add("lost, late, doubled, two windows", twoHolders(), func(w *World) { w.Losses, w.Duplicates = 1, 1 })
	add("put-back and returns", oneBoundary(), func(w *World) { w.PutBack, w.Prelease, w.Return = true, true, true })
	add("returns, limits 3 and 2", oneBoundary(), func(w *World) {
		w.Return, w.Limit, w.Low, w.Wants = true, 3, 2, []uint64{2}
	})
	add("limits 6 and 4, taper", oneBoundary(), func(w *World) {
		w.Limit, w.Low, w.Wants, w.Taper, w.Hits = 6, 4, []uint64{3}, 2, []uint64{1, 2}
	})
	add("three holders, pre-lease", oneBoundary(), func(w *World) {
		w.Holders = append(w.Holders, HolderClock{Exact, 0, -hour})
		w.Prelease = true
	})
	add("three messages", oneBoundary(), func(w *World) { w.Messages, w.Limit = 3, 3 })
	return all
}

// TestDeepSearch is TestSearch for the worlds of the soak, one at a time.
func TestDeepSearch(t *testing.T) {
	if os.Getenv("GALE_SOAK") == "" {
		t.Skip("scripts/soak.sh runs it")
	}
	for _, w := range deepWorlds() {
		t.Run(w.Name, func(t *testing.T) {
			r := Search(w, Production())
			t.Log(r)
			if r.Err != nil {
				t.Fatalf("%v\n%s", r.Err, r.Trace)
			}
		})
	}
}

func oneHolder() World {
	w := twoHolders()
	w.Holders = w.Holders[:1]
	return w
}

// TestSearch visits every state of every World: the production Ledger, Holder
// and StoreClock keep INV-1 to INV-5 and INV-7 in all of them.
func TestSearch(t *testing.T) {
	for _, w := range worlds() {
		t.Run(w.Name, func(t *testing.T) {
			t.Parallel()
			if raceEnabled || testing.Short() {
				w.MaxStates = 50_000
			}
			r := Search(w, Production())
			t.Log(r)
			if r.Err != nil {
				t.Fatalf("%v\n%s", r.Err, r.Trace)
			}
			if w.MaxStates == 0 && r.Admitted != int(w.Limit) {
				t.Errorf("at most %d were admitted in a window; a limit of %d must be reachable", r.Admitted, w.Limit)
			}
		})
	}
}
