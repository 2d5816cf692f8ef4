package machines_test

import (
	"path/filepath"
	"testing"

	"github.com/gale-rls/gale-rls/spec/machines"
)

// A control proves nothing if its constants alone break the bound: with the
// same constants, the protocol without the mistake holds.
func TestControlsFailByTheirRuleAlone(t *testing.T) {
	paths, err := filepath.Glob("../GaleClockedLeasing_*.cfg")
	if err != nil {
		t.Fatal(err)
	}
	controls := map[machines.Rule]bool{}
	for _, path := range paths {
		m := readModel(t, path)
		if m.violates != "AdmittedWithinLimit" {
			continue
		}
		c := clockedOf(t, m)
		controls[c.Rule] = true
		c.Rule = machines.Correct
		if r := machines.Explore(c.Machine()); r.Err != nil {
			t.Errorf("%s without its mistake: %v\n%s", filepath.Base(path), r.Err, trace(r.Trace))
		}
	}
	for _, rule := range []machines.Rule{
		machines.CarryOver, machines.AnyWindow, machines.NoBridge, machines.WallClock,
		machines.NarrowLate, machines.NarrowEarly, machines.RetryOnce,
		machines.SpendTwice, machines.DoubleReturn,
	} {
		if !controls[rule] {
			t.Errorf("no model refutes %q", rule)
		}
	}
}

// How far a replica's clock is off does not matter: not to the bound, and not
// even to the number of states.
func TestOffsetsDoNotMatter(t *testing.T) {
	c := machines.Clocked{
		Rule: machines.Correct, Holders: 2, Length: 2, Limit: 2, Batch: 2, Taper: 1,
		Asks: 1, Total: 2, Drift: 1, Returns: 1, Crashes: true,
	}
	want := machines.Explore(c.Machine())
	for _, offset := range [][2]int{{1, 0}, {-7, 7}, {50, -60}} {
		c.Offset = offset
		if r := machines.Explore(c.Machine()); r.Err != nil || r.String() != want.String() {
			t.Errorf("offsets %v: %v, err %v; without offsets %v", offset, r, r.Err, want)
		}
	}
}
