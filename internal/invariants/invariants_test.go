package invariants

import (
	"strings"
	"testing"
)

func TestCheckPanicsOnlyInTestBuilds(t *testing.T) {
	Check(true, "never said")

	defer func() {
		r := recover()
		if (r != nil) != Enabled {
			t.Fatalf("Enabled is %v, panic was %v", Enabled, r)
		}
		if Enabled && !strings.Contains(r.(string), "spent 3 of 2") {
			t.Fatalf("the panic does not carry the message: %v", r)
		}
	}()
	Check(false, "spent ", 3, " of ", 2)
}

func TestSafeSub(t *testing.T) {
	if got := SafeSub(uint64(5), 5); got != 0 {
		t.Errorf("5 - 5 = %d", got)
	}
	if got := SafeSub(uint32(7), 3); got != 4 {
		t.Errorf("7 - 3 = %d", got)
	}

	defer func() {
		if r := recover(); (r != nil) != Enabled {
			t.Fatalf("Enabled is %v, panic was %v", Enabled, r)
		}
	}()
	if got := SafeSub(uint64(1), 2); got != 0 {
		t.Errorf("1 - 2 = %d, want it to stick at 0", got)
	}
}
