package sim

import (
	"testing"

	"github.com/gale-rls/gale-rls/pkg/gale"
)

// What the search found in the core, each as a test of its own.

// An exchange during which the machine slept told a time that was long over.
func TestSleepDuringAnExchange(t *testing.T) {
	const second = 1_000_000_000
	sent := gale.Instant{Mono: 10 * second, Wall: 50 * second}
	received := gale.Instant{Mono: 11 * second, Wall: 3650 * second}
	clock, restarted := gale.StoreClock{}.Observe(sent, received, 2_000_000)
	if iv, ok := clock.At(received); ok || restarted {
		t.Errorf("the store's time is taken to be in %v after an hour of sleep", iv)
	}
}

// A pre-lease that was lost left a lot behind that knew nothing, and the next
// one pushed the current window's credits out in its stead.
func TestLostPreLeaseKeepsTheCurrentCredits(t *testing.T) {
	const w, length = 600, 1_000_000
	now := gale.Interval{Earliest: w*length + 900_000, Latest: w*length + 901_000}
	var h gale.Holder
	h.Begin(w, now, length)
	h.Granted(&gale.LeaseStep{Length: 1, Window: w, Grant: 5, Counter: 5, StoreMicros: now.Earliest}, 1)
	h.Begin(w+1, now, length)
	h.Failed(w + 1)
	if ok, dropped, _ := h.Begin(w+1, now, length); !ok || dropped > 0 || h.Held() != 5 {
		t.Errorf("begun %v, dropped %d of 5 credits, %d held", ok, dropped, h.Held())
	}
}

// A key with a limit of 300 and requests of 5 hits went round in circles until
// the window ended (seed 36846): its four credits lay in three ranges, so the
// fifth found no place, went back, was granted, went back.
func TestScatteredCreditsMakeProgress(t *testing.T) {
	const w, length = 600, 1_000_000
	now := gale.Interval{Earliest: w * length, Latest: w * length}
	var h gale.Holder
	for i := range uint64(5) {
		h.Begin(w, now, length)
		counter := 1 + 2*i // a peer has what lies between
		homeless := h.Granted(&gale.LeaseStep{Length: 1, Window: w, Grant: 1, Counter: counter, Free: 300 - counter, StoreMicros: w * length}, 1)
		if homeless > 0 || h.Held() != i+1 {
			t.Fatalf("grant %d: %d homeless, %d held", i+1, homeless, h.Held())
		}
	}
	var paid gale.Paid
	if a := h.Take(now, 1, gale.Terms{Hits: 5, Limit: 9, Length: length}, &paid); a.Outcome != gale.Spent {
		t.Errorf("five credits do not pay for five hits: %v", &h)
	}
}
