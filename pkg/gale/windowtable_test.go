package gale

import (
	"fmt"
	"sync"
	"testing"
)

func TestWindowTableForgetsEndedWindows(t *testing.T) {
	w := newWindowTable(100)
	w.put([]byte("k"), 10, 20, 7)
	if n, found := w.get([]byte("k"), 19); !found || n != 7 {
		t.Errorf("before the end: %d, %v", n, found)
	}
	if n, found := w.get([]byte("k"), 20); found {
		t.Errorf("at the end: %d", n)
	}
}

func TestWindowTableIsBounded(t *testing.T) {
	for _, size := range []int{1, 3, 100, 5000} {
		w := newWindowTable(size)
		for i := range 20_000 {
			w.put(fmt.Append(nil, "key", i), 10, 20, 1)
		}
		if n := w.size().entries; n > size+64 || n < size/2 {
			t.Errorf("size %d: %d entries", size, n)
		}
	}
}

func TestWindowTableEvictsEndedWindowsFirst(t *testing.T) {
	w := newWindowTable(64) // one shard
	for i := range 32 {
		w.put(fmt.Append(nil, "long", i), 0, 1000, 1)
		w.put(fmt.Append(nil, "short", i), 0, 10, 1)
	}
	for i := range 32 {
		w.put(fmt.Append(nil, "new", i), 50, 1000, 1)
	}
	for i := range 32 {
		if _, found := w.get(fmt.Append(nil, "long", i), 50); !found {
			t.Fatalf("entry %d of a window that goes on was evicted", i)
		}
	}
	if n := w.size(); n.entries != 64 || n.ended != 32 || n.live != 0 {
		t.Errorf("%+v", n)
	}
}

func TestWindowTableSparesWhatIsUsed(t *testing.T) {
	w := newWindowTable(64)
	w.put([]byte("hot"), 0, 1000, 1)
	for i := range 10_000 {
		w.put(fmt.Append(nil, "flood", i), 0, 1000, 1)
		if i%20 == 0 {
			if _, found := w.get([]byte("hot"), 0); !found {
				t.Fatalf("evicted after %d others", i)
			}
		}
	}
}

func TestWindowTableAdd(t *testing.T) {
	w := newWindowTable(64)
	key := []byte("k")
	for _, step := range []struct {
		now         int64
		hits, limit uint64
		after       uint64
		fits        bool
	}{
		{10, 3, 5, 3, true},
		{10, 3, 5, 6, false},
		{10, 2, 5, 5, true},
		{10, 0, 5, 5, true},
		{10, 1, 5, 6, false},
		{10, 1, 9, 6, true},
		{20, 2, 5, 2, true}, // the next window
		{20, ^uint64(0), 5, ^uint64(0), false},
	} {
		after, fits := w.add(key, step.now, step.now/10*10+10, step.hits, step.limit)
		if after != step.after || fits != step.fits {
			t.Errorf("%+v: %d, %v", step, after, fits)
		}
	}
	if after := w.sub(key, 1); after != 1 {
		t.Errorf("after taking one off: %d", after)
	}
	if after := w.sub(key, 9); after != 0 {
		t.Errorf("after taking all off: %d", after)
	}
}

func TestWindowTableAddForgetsNothing(t *testing.T) {
	w := newWindowTable(64)
	admitted := 0
	for i := range 1000 {
		if _, fits := w.add(fmt.Append(nil, "key", i), 0, 10, 1, 1); fits {
			admitted++
		}
	}
	if admitted != 64 {
		t.Errorf("%d keys admitted, there is room for 64", admitted)
	}
	if _, fits := w.add([]byte("key0"), 0, 10, 1, 1); fits {
		t.Error("a key was forgotten in a full table")
	}
	if _, fits := w.add([]byte("later"), 10, 20, 1, 1); !fits {
		t.Error("no room although all windows have ended")
	}
}

func TestWindowTableConcurrently(t *testing.T) {
	w := newWindowTable(256)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 5000 {
				key := fmt.Append(nil, "key", i%700)
				switch (i + g) % 4 {
				case 0:
					w.put(key, int64(i/1000), int64(i/1000)+2, 1)
				case 1:
					w.get(key, int64(i/1000))
				case 2:
					w.add(key, int64(i/1000), int64(i/1000)+2, 1, 3)
				default:
					w.drop(key)
				}
			}
		})
	}
	wg.Wait()
}

func TestDenyCache(t *testing.T) {
	d := newDenyCache(100)
	key := []byte("k_60")
	refuses := func(want bool, now int64, hits, limit uint64) {
		t.Helper()
		if _, refused := d.refuses(key, now, hits, limit); refused != want {
			t.Errorf("%d hits of %d at %d: refused is %v", hits, limit, now, refused)
		}
	}
	refuses(false, 60, 1, 10)
	d.remember(key, 60, 120, 8) // 5 hits were refused
	refuses(true, 61, 5, 10)
	refuses(true, 61, 3, 10)
	refuses(false, 61, 2, 10) // a cheap one fits
	refuses(false, 61, 0, 10)
	refuses(false, 61, 5, 13) // the limit was raised
	refuses(true, 61, 1, 8)   // a smaller one, of an override
	d.remember(key, 62, 120, 11)
	refuses(true, 119, 0, 10) // a peek at what is beyond
	refuses(false, 120, 5, 10)
	d.remember(key, 62, 120, 11)
	d.forget(key) // a refund
	refuses(false, 62, 5, 10)
	got := d.stats()
	want := DenyCacheStats{Lookups: 10, Hits: 4, Misses: 6, Stored: 3}
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestDenyCacheLooksUpWithoutAllocation(t *testing.T) {
	d := newDenyCache(1000)
	key := []byte("domain_key_value_1700000000")
	d.remember(key, 60, 120, 8)
	if n := testing.AllocsPerRun(100, func() { d.refuses(key, 61, 5, 10) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkDenyCache(b *testing.B) {
	d := newDenyCache(DefaultDenyCacheKeys)
	key := []byte("domain_key_value_1700000000")
	d.remember(key, 60, 120, 8)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			d.refuses(key, 61, 5, 10)
		}
	})
}
