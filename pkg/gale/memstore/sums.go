package memstore

import (
	"math/bits"

	"github.com/gale-rls/gale-rls/pkg/gale"
)

const microsPerSecond = 1_000_000

// sums adds up the hits of steps by key, for steps that name one counter
// several times.
type sums struct{ byKey map[string]uint64 }

// add returns the hits of all steps up to i that have the key of step i. It
// is called for each step in order.
func (s *sums) add(steps []gale.CountStep, i int) uint64 {
	const few = 16 // comparing is cheaper than a map
	if len(steps) <= few {
		sum := uint64(0)
		for j := range i + 1 {
			if steps[j].Key == steps[i].Key {
				sum = plus(sum, steps[j].Hits)
			}
		}
		return sum
	}
	if s.byKey == nil {
		s.byKey = make(map[string]uint64, len(steps))
	}
	sum := plus(s.byKey[steps[i].Key], steps[i].Hits)
	s.byKey[steps[i].Key] = sum
	return sum
}

// plus is a+b, or the largest uint64 if that is too small for it.
func plus(a, b uint64) uint64 {
	sum, carry := bits.Add64(a, b, 0)
	if carry != 0 {
		return ^uint64(0)
	}
	return sum
}
