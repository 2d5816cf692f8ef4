package stats

import (
	"bufio"
	"fmt"
	"io"
	"slices"
)

// WriteText writes every counter, gauge and timer that has been used, since
// the start of the process, one "name: value" per line, sorted. A timer is two
// lines: <name>.count and <name>.total_ms.
func (r *Registry) WriteText(w io.Writer) error {
	r.flushMu.Lock() // OnFlush promises one caller at a time
	r.update()
	r.flushMu.Unlock()

	values := make(map[string]uint64)
	r.sumSeries(values)
	r.mu.RLock()
	for name, c := range r.counters {
		if v := c.Value(); v != 0 {
			values[name] += v
		}
	}
	for name, t := range r.timers {
		if n := t.count.Load(); n != 0 {
			values[name+".count"] = n
			values[name+".total_ms"] = t.micros.Load() / 1000
		}
	}
	lines := make([]string, 0, len(values)+len(r.gauges))
	for name, g := range r.gauges {
		if g.used.Load() {
			lines = append(lines, fmt.Sprintf("%s: %d\n", name, g.Value()))
		}
	}
	r.mu.RUnlock()

	for name, v := range values {
		lines = append(lines, fmt.Sprintf("%s: %d\n", name, v))
	}
	slices.Sort(lines)
	b := bufio.NewWriter(w)
	for _, line := range lines {
		fmt.Fprint(b, line)
	}
	return b.Flush()
}

// sumSeries adds rules and dynamic names. A key may be both permanent and
// dynamic (a rule, and an override that spells the same); it is one line.
func (r *Registry) sumSeries(values map[string]uint64) {
	all := append(r.dynRules.all(), r.dynNames.all()...)
	r.leaving.mu.Lock()
	all = append(all, r.leaving.list...)
	r.leaving.mu.Unlock()
	r.mu.RLock()
	for _, e := range r.rules {
		all = append(all, e)
	}
	r.mu.RUnlock()
	var name []byte
	for _, e := range all {
		for i := range e.cells {
			if v := e.cells[i].Value(); v != 0 {
				name = e.appendName(name[:0], i)
				values[string(name)] += v
			}
		}
	}
}
