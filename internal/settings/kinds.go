package settings

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Each of the functions below declares a variable of one kind, and sets *to to
// its value, or to the default when it is not set or wrong.

func (r *reader) text(to *string, name, def, doc string) {
	*to = def
	if v, set := r.declare(name, "text", def, doc); set {
		*to = v
	}
}

// required is text that may be left out but not be empty.
func (r *reader) required(to *string, name, def, doc string) {
	r.text(to, name, def, doc)
	if *to == "" && r.isSet(name) {
		r.problem(name, "is set but empty", "unset it, or give it a value")
		*to = def
	}
}

func (r *reader) boolean(to *bool, name string, def bool, doc string) {
	*to = def
	v, set := r.declare(name, "true or false", strconv.FormatBool(def), doc)
	if !set {
		return
	}
	b, err := strconv.ParseBool(v)
	if err != nil {
		r.problem(name, "is neither true nor false", "write true or false (1, 0, t, f also do)")
		return
	}
	*to = b
}

// integer takes decimal, 0x and 0o numbers.
func (r *reader) integer(to *int, name string, def, least, most int, doc string) {
	*to = def
	v, set := r.declare(name, "number", strconv.Itoa(def), doc)
	if !set {
		return
	}
	n, err := strconv.ParseInt(v, 0, 64)
	switch {
	case err != nil:
		r.problem(name, "is not a whole number", "write digits only, for example "+strconv.Itoa(max(def, least, 1))+r.linkHint(v))
	case n < int64(least) || n > int64(most):
		r.problem(name, "is out of range", fmt.Sprintf("write a number from %d to %d", least, most))
	default:
		*to = int(n)
	}
}

// linkHint explains a value that Kubernetes has put over a setting.
func (r *reader) linkHint(value string) string {
	if !strings.HasPrefix(value, "tcp://") && !strings.HasPrefix(value, "udp://") {
		return ""
	}
	return " (this one is a Kubernetes service link: enableServiceLinks: false in the pod turns them off)"
}

func (r *reader) port(to *int, name string, def int, doc string) {
	r.integer(to, name, def, 0, 65535, doc)
}

func (r *reader) duration(to *time.Duration, name string, def, least time.Duration, doc string) {
	*to = def
	v, set := r.declare(name, "duration", shortDuration(def), doc)
	if !set {
		return
	}
	d, err := time.ParseDuration(v)
	switch {
	case err != nil:
		r.problem(name, "is not a duration", "write a number and a unit, for example "+example(v, def))
	case d < least:
		r.problem(name, "is too short", "write "+shortDuration(least)+" or more")
	default:
		*to = d
	}
}

// example repeats a bare number with the unit that it most likely lacks.
func example(value string, def time.Duration) string {
	if n, err := strconv.Atoi(value); err == nil && n >= 0 {
		return value + "s"
	}
	return shortDuration(max(def, time.Second))
}

// shortDuration is time.Duration.String without what is zero: 1h, not 1h0m0s.
func shortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func (r *reader) ratio(to *float32, name string, def float32, doc string) {
	*to = def
	v, set := r.declare(name, "number", strconv.FormatFloat(float64(def), 'g', -1, 32), doc)
	if !set {
		return
	}
	f, err := strconv.ParseFloat(v, 32)
	if err != nil || math.IsNaN(f) || f < 0 || f > 1 {
		r.problem(name, "is not a number from 0 to 1", "write for example 0.8")
		return
	}
	*to = float32(f)
}

func (r *reader) list(to *[]string, name, doc string) {
	v, set := r.declare(name, "list: a,b", "", doc)
	if set && v != "" {
		*to = strings.Split(v, ",")
	}
}

// pairs takes "k:v,k:v"; a value cannot contain ":".
func (r *reader) pairs(to *map[string]string, name, doc string) {
	v, set := r.declare(name, "list: k:v,k:v", "", doc)
	if !set || strings.TrimSpace(v) == "" {
		return
	}
	m := make(map[string]string)
	for _, item := range strings.Split(v, ",") {
		parts := strings.Split(item, ":")
		if len(parts) != 2 {
			r.problem(name, fmt.Sprintf("has an item %q that is not key:value", item), "write key:value,key:value")
			return
		}
		m[parts[0]] = parts[1]
	}
	*to = m
}

// choice takes one of words, in any case, and sets *to as words spells it. An
// empty value is the default.
func (r *reader) choice(to *string, name, def string, words []string, doc string) {
	*to = def
	v, set := r.declare(name, strings.Join(words, ", "), def, doc)
	if !set || v == "" {
		return
	}
	for _, w := range words {
		if strings.EqualFold(v, w) {
			*to = w
			return
		}
	}
	r.problem(name, "is not a value that it can have", "write "+strings.Join(words, " or "))
}
