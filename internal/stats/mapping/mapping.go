// Package mapping turns statsd names into metrics with labels, by the rules of
// a statsd_exporter mapping file.
//
// What is read: match (glob or regex), name, labels, help, action,
// match_metric_type, observer_type and timer_type, buckets, quantiles,
// histogram_options, summary_options, scale, and defaults. What concerns only a
// statsd server (ttl, honor_labels, glob_disable_ordering) is accepted and has
// no effect. As there, globs are tried before expressions, each in the order of
// the file, and the first that matches counts.
package mapping

import (
	"regexp"
	"sort"
	"strconv"
	"strings"
)

// Kind is the type of a statsd metric.
type Kind string

// Kinds, as match_metric_type spells them.
const (
	Counter  Kind = "counter"
	Gauge    Kind = "gauge"
	Observer Kind = "observer" // also "timer"
)

// Label is a name and a value.
type Label struct{ Name, Value string }

// Metric is what a name became.
type Metric struct {
	Name   string
	Labels []Label // sorted by name
	Help   string
	// Drop says that the metric is not wanted.
	Drop bool
	// Observe says how timers are kept.
	Observe Observation
}

// Observation is how a timer is kept: a histogram, or a summary.
type Observation struct {
	Histogram        bool
	Buckets          []float64
	NativeFactor     float64 // 0: no native histogram
	NativeMaxBuckets uint32
	Quantiles        map[float64]float64
	// Scale multiplies the value, which is in milliseconds.
	Scale float64
}

// Mapping is a parsed file. It is immutable.
type Mapping struct {
	globs, regexes []rule
	fallback       Observation
}

type rule struct {
	fields []string       // of a glob
	regex  *regexp.Regexp // of an expression
	kind   Kind           // "" is any
	name   string
	labels []Label
	help   string
	drop   bool
	obs    Observation
}

// Map returns the metric that name becomes. A name that no rule matches keeps
// its letters and digits, with "_" for everything else, and has no labels.
func (m *Mapping) Map(name string, kind Kind) Metric {
	fields := strings.Split(name, ".")
	for i := range m.globs {
		r := &m.globs[i]
		if r.kind != "" && r.kind != kind {
			continue
		}
		if groups, ok := matchGlob(r.fields, fields); ok {
			return r.metric(func(template string) string { return expandGlob(template, groups) })
		}
	}
	for i := range m.regexes {
		r := &m.regexes[i]
		if r.kind != "" && r.kind != kind {
			continue
		}
		if at := r.regex.FindStringSubmatchIndex(name); at != nil {
			return r.metric(func(template string) string {
				return string(r.regex.ExpandString(nil, template, name, at))
			})
		}
	}
	return Metric{Name: EscapeName(name), Observe: m.fallback}
}

func (r *rule) metric(expand func(string) string) Metric {
	if r.drop {
		return Metric{Drop: true}
	}
	out := Metric{Name: EscapeName(expand(r.name)), Help: r.help, Observe: r.obs}
	for _, l := range r.labels {
		out.Labels = append(out.Labels, Label{l.Name, strings.ToValidUTF8(expand(l.Value), "\uFFFD")})
	}
	sort.Slice(out.Labels, func(i, j int) bool { return out.Labels[i].Name < out.Labels[j].Name })
	return out
}

// matchGlob compares field by field; a "*" matches one whole field.
func matchGlob(pattern, fields []string) (groups []string, ok bool) {
	if len(pattern) != len(fields) {
		return nil, false
	}
	for i, p := range pattern {
		switch {
		case p == "*":
			groups = append(groups, fields[i])
		case p != fields[i]:
			return nil, false
		}
	}
	return groups, true
}

var globReference = regexp.MustCompile(`\$\{?([0-9]+)\}?`)

func expandGlob(template string, groups []string) string {
	return globReference.ReplaceAllStringFunc(template, func(ref string) string {
		n, err := strconv.Atoi(strings.Trim(ref, "${}"))
		if err != nil || n < 1 || n > len(groups) {
			return ""
		}
		return groups[n-1]
	})
}

// EscapeName makes name a Prometheus name: what is not a letter, a digit or
// "_" becomes "_", and a leading digit gets a "_" in front.
func EscapeName(name string) string {
	escaped := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_':
			return r
		}
		return '_'
	}, name)
	if escaped == "" || escaped[0] >= '0' && escaped[0] <= '9' {
		return "_" + escaped
	}
	return escaped
}
