package sizing_test

import (
	"fmt"

	"github.com/gale-rls/gale-rls/pkg/gale/sizing"
)

// A rule of 100,000 hits a window shares its parameters among its keys; each
// key has a learner of its own.
func Example() {
	rule := sizing.ForLimit(100_000, 10_000)
	var key sizing.Learner
	fmt.Println("cold:", rule.Size(&key))
	for range 30 {
		rule.Observe(&key, 20_000)
	}
	fmt.Println("at 20,000 hits a window:", rule.Size(&key))
	fmt.Printf("optimum: %.0f\n", rule.EOQ(20_000))
	// Output:
	// cold: 707
	// at 20,000 hits a window: 894
	// optimum: 894
}
