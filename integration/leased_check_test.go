//go:build integration

package integration

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// admission is hits that one answer admitted, as its caller saw it: it was
// decided at some instant from sent to received, in microseconds of the
// machine's clock, which is also Redis's.
type admission struct {
	sent, received int64
	hits           int64
}

// windows is a span of consecutive windows, first to last.
type windows struct{ first, last int64 }

// violation is more hits than windows have.
type violation struct {
	windows
	admitted, allowed int64
}

func (v violation) String() string {
	return fmt.Sprintf("windows %d to %d admitted %d, allowed %d", v.first, v.last, v.admitted, v.allowed)
}

// violations returns the spans of windows that admitted more than they have,
// windows of that length (microseconds) with limit hits each.
//
// The caller does not know which window an admission belongs to, only that it
// is one of those from sent to received. All admissions can be given windows
// without exceeding any limit if and only if, for each span of consecutive
// windows, those that lie in the span entirely are no more than the span's
// windows have together (Hall's theorem, for intervals). So a violation is
// proof, and no violation means that what was seen is possible without one.
func violations(all []admission, length, limit int64) (found []violation) {
	within := map[windows]int64{}
	var starts, ends []int64
	for _, a := range all {
		w := windows{a.sent / length, a.received / length}
		within[w] += a.hits
		starts, ends = append(starts, w.first), append(ends, w.last)
	}
	byLast := map[int64][]windows{}
	for w := range within {
		byLast[w.last] = append(byLast[w.last], w)
	}
	slices.Sort(starts)
	slices.Sort(ends)
	starts, ends = slices.Compact(starts), slices.Compact(ends)
	for _, first := range starts {
		sum := int64(0)
		for _, last := range ends {
			if last < first {
				continue
			}
			for _, w := range byLast[last] {
				if w.first >= first {
					sum += within[w]
				}
			}
			if allowed := limit * (last - first + 1); sum > allowed {
				found = append(found, violation{windows{first, last}, sum, allowed})
			}
		}
	}
	return found
}

// perWindow returns the hits of each window that certainly belong to it, and
// with them those that may.
func perWindow(all []admission, length int64) (certain, possible map[int64]int64) {
	certain, possible = map[int64]int64{}, map[int64]int64{}
	for _, a := range all {
		first, last := a.sent/length, a.received/length
		if first == last {
			certain[first] += a.hits
		}
		for w := first; w <= last; w++ {
			possible[w] += a.hits
		}
	}
	return certain, possible
}

func TestViolationsAreFound(t *testing.T) {
	at := func(text string) (all []admission) { // "sent-received×hits ..."
		for f := range strings.FieldsSeq(text) {
			var a admission
			if _, err := fmt.Sscanf(f, "%d-%d×%d", &a.sent, &a.received, &a.hits); err != nil {
				t.Fatal(err)
			}
			all = append(all, a)
		}
		return all
	}
	const length, limit = 10, 3
	for _, c := range []struct {
		name, all string
		want      []violation
	}{
		{"nothing", "", nil},
		{"exactly the limit", "0-1×1 2-3×2 10-19×3", nil},
		{"one more in a window", "20-21×1 22-29×3", []violation{{windows{2, 2}, 4, 3}}},
		{"at the window's first and last microsecond", "10-10×2 19-19×2", []violation{{windows{1, 1}, 4, 3}}},
		{"straddling ones fit", "0-9×3 9-10×3", nil},
		{"straddling ones have no room", "0-9×3 9-10×1 10-11×3", []violation{{windows{0, 1}, 7, 6}}},
		{"each window is possible, the span is not", "0-5×2 5-12×3 12-15×2", []violation{{windows{0, 1}, 7, 6}}},
		{"slow answers over three windows", "5-25×9", nil},
		{"slow answers over three windows, one too many", "5-25×9 15-15×1", []violation{{windows{0, 2}, 10, 9}}},
		{"windows far apart", "0-1×3 1000-1001×4", []violation{{windows{100, 100}, 4, 3}}},
		{"an idle window between does not lend", "0-1×4 30-31×1", []violation{{windows{0, 0}, 4, 3}}},
	} {
		if got := violations(at(c.all), length, limit); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestPerWindowSplitsTheCertain(t *testing.T) {
	certain, possible := perWindow([]admission{{0, 9, 2}, {9, 10, 1}, {10, 35, 1}}, 10)
	if fmt.Sprint(certain) != "map[0:2]" || fmt.Sprint(possible) != "map[0:3 1:2 2:1 3:1]" {
		t.Errorf("certain %v, possible %v", certain, possible)
	}
}
