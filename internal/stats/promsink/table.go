package promsink

import (
	"container/list"
	"strings"

	"github.com/gale-rls/gale-rls/internal/stats/mapping"
)

// series is one metric with one set of labels; several names may add to it.
type series struct {
	metric mapping.Metric
	kind   mapping.Kind
	value  float64
	gone   bool          // evicted: names that lead here are resolved anew
	place  *list.Element // in table.order; nil for permanent series
}

// table holds the series by name and by identity. Series that only
// caller-chosen names lead to are bounded by max.
type table struct {
	max    int
	series map[string]*series // by identity
	order  *list.List         // of bounded series, most recently moved first
	family map[string]mapping.Kind
	inUse  map[string]int // series per family, for those that may leave
	// permanent and passing lead from names to series; a nil series is a
	// name that the mapping drops. passing is emptied when it grows too long:
	// many names may lead to one series.
	permanent, passing map[string]*series
}

func newTable(max int) *table {
	return &table{
		max: max, series: make(map[string]*series), order: list.New(),
		family: make(map[string]mapping.Kind), inUse: make(map[string]int),
		permanent: make(map[string]*series), passing: make(map[string]*series),
	}
}

// identity is what tells series apart.
func identity(m mapping.Metric) string {
	var b strings.Builder
	b.WriteString(m.Name)
	for _, l := range m.Labels {
		b.WriteString("\xff" + l.Name + "\xff" + l.Value)
	}
	return b.String()
}

// get returns the series of a name, or nil for one that is dropped. The series
// may be of another kind than the name.
func (t *table) get(name []byte, dynamic bool, resolve func(string) (mapping.Metric, mapping.Kind)) *series {
	names := t.permanent
	if dynamic {
		names = t.passing
	}
	e, ok := names[string(name)]
	if !ok || e != nil && e.gone {
		if dynamic && len(names) >= 4*t.max {
			clear(names)
		}
		m, kind := resolve(string(name))
		e = t.add(m, kind, dynamic)
		names[string(name)] = e
	}
	if e != nil && e.place != nil {
		if dynamic {
			t.order.MoveToFront(e.place)
		} else { // a rule leads here too
			t.order.Remove(e.place)
			e.place = nil
		}
	}
	return e
}

func (t *table) add(m mapping.Metric, kind mapping.Kind, dynamic bool) *series {
	if m.Drop {
		return nil
	}
	id := identity(m)
	if e := t.series[id]; e != nil {
		return e
	}
	if !t.claimFamily(m.Name, kind) {
		return &series{kind: t.family[m.Name]} // not shown; its kind tells why
	}
	if dynamic && t.order.Len() >= t.max {
		t.evict(t.order.Back())
	}
	e := &series{metric: m, kind: kind}
	t.series[id] = e
	t.inUse[m.Name]++
	if dynamic {
		e.place = t.order.PushFront(e)
	}
	return e
}

func (t *table) evict(place *list.Element) {
	e := t.order.Remove(place).(*series)
	e.gone = true
	delete(t.series, identity(e.metric))
	if t.inUse[e.metric.Name]--; t.inUse[e.metric.Name] == 0 {
		delete(t.inUse, e.metric.Name)
		delete(t.family, e.metric.Name)
	}
}

// claimFamily reports whether a metric of this name may be of this kind: one
// name is one type.
func (t *table) claimFamily(name string, kind mapping.Kind) bool {
	if have, ok := t.family[name]; ok {
		return have == kind
	}
	t.family[name] = kind
	return true
}
