package gale

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// The table finds what a map finds, through insertions and removals, with
// hashes that collide.
func TestTableAgreesWithAMap(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	hash := func(key string) uint64 { return uint64(key[0])<<32 | uint64(len(key)%5) }
	tab := table{hash: hash}
	reference := map[string]*entry{}
	for range 50_000 {
		key := fmt.Sprintf("%x", rng.IntN(300))
		e, known := reference[key]
		if got := tab.find(hash(key), []byte(key)); got != e {
			t.Fatalf("%q: found %v, want %v", key, got, e)
		}
		switch {
		case !known:
			e = &entry{key: key}
			reference[key] = e
			tab.insert(hash(key), e)
		case rng.IntN(2) == 0:
			delete(reference, key)
			tab.remove(hash(key), e)
		}
		if tab.used != len(reference) {
			t.Fatalf("%d in use, want %d", tab.used, len(reference))
		}
	}
	for key, e := range reference {
		if tab.find(hash(key), []byte(key)) != e {
			t.Errorf("%q is gone", key)
		}
	}
}

// Spans behave as the multiset of positions that they stand for.
func TestLotAgreesWithAMultiset(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 3))
		var l lot
		have := map[uint32]int{}
		total := func(limit uint64) (n uint64) {
			for p, c := range have {
				if uint64(p) <= limit {
					n += uint64(c)
				}
			}
			return n
		}
		for range 60 {
			limit := uint64(rng.IntN(40))
			if got, want := l.held(limit), total(limit); got != want {
				t.Fatalf("seed %d: %v holds %d up to %d, want %d", seed, &l, got, limit, want)
			}
			switch rng.IntN(3) {
			case 0:
				from := uint32(1 + rng.IntN(30))
				s := span{from, from + uint32(rng.IntN(6))}
				kept := l
				if l.add(s) > 0 {
					l = kept // what is homeless goes back; not held
					continue
				}
				for p := s.next; p <= s.last; p++ {
					have[p]++
				}
			case 1:
				hits := uint64(rng.IntN(5))
				if hits > l.held(limit) {
					continue
				}
				var paid [maxSpans]span
				l.spend(hits, limit, &paid)
				n := uint64(0)
				for _, s := range paid {
					for p := s.next; s.next != 0 && p <= s.last; p++ {
						n++
						if have[p]--; have[p] < 0 || uint64(p) > limit {
							t.Fatalf("seed %d: spent position %d of limit %d", seed, p, limit)
						}
					}
				}
				if n != hits {
					t.Fatalf("seed %d: paid %d for %d hits", seed, n, hits)
				}
			case 2:
				n := l.cutAbove(limit)
				if n != total(1<<40)-total(limit) {
					t.Fatalf("seed %d: cut %d", seed, n)
				}
				for p := range have {
					if uint64(p) > limit {
						delete(have, p)
					}
				}
			}
		}
	}
}
