package mapping

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"gopkg.in/yaml.v3"
)

type file struct {
	Defaults options `yaml:"defaults"`
	Mappings []entry `yaml:"mappings"`
}

type entry struct {
	options `yaml:",inline"`
	Match   string            `yaml:"match"`
	Name    string            `yaml:"name"`
	Help    string            `yaml:"help"`
	Action  string            `yaml:"action"`
	Kind    string            `yaml:"match_metric_type"`
	Labels  map[string]string `yaml:"labels"`
	Scale   float64           `yaml:"scale"`
}

// options are those that defaults may set too.
type options struct {
	MatchType    string     `yaml:"match_type"`
	ObserverType string     `yaml:"observer_type"`
	TimerType    string     `yaml:"timer_type"` // the older name
	Buckets      []float64  `yaml:"buckets"`
	Quantiles    []quantile `yaml:"quantiles"`
	Histogram    struct {
		Buckets          []float64 `yaml:"buckets"`
		NativeFactor     float64   `yaml:"native_histogram_bucket_factor"`
		NativeMaxBuckets uint32    `yaml:"native_histogram_max_buckets"`
	} `yaml:"histogram_options"`
	Summary struct {
		Quantiles []quantile `yaml:"quantiles"`
	} `yaml:"summary_options"`
}

type quantile struct {
	Quantile float64 `yaml:"quantile"`
	Error    float64 `yaml:"error"`
}

var labelName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)

// Parse reads a mapping file. The error names every bad mapping, by its number
// from 1 and its match.
func Parse(data []byte) (*Mapping, error) {
	var f file
	if err := yaml.Unmarshal(data, &f); err != nil {
		return nil, err
	}
	var m Mapping
	var errs []error
	fallback, err := f.Defaults.observation(options{}, 0)
	if err != nil {
		errs = append(errs, fmt.Errorf("defaults: %w", err))
	}
	m.fallback = fallback
	for i, e := range f.Mappings {
		if err := m.add(e, f.Defaults); err != nil {
			errs = append(errs, fmt.Errorf("mapping %d (match %q): %w", i+1, e.Match, err))
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return &m, nil
}

func (m *Mapping) add(e entry, defaults options) error {
	r := rule{name: e.Name, help: e.Help}
	var err error
	switch e.Action {
	case "", "map":
		if e.Name == "" {
			return errors.New("it sets no name")
		}
	case "drop":
		r.drop = true
	default:
		return fmt.Errorf("action %q is neither map nor drop", e.Action)
	}
	switch e.Kind {
	case "", string(Counter), string(Gauge), string(Observer):
		r.kind = Kind(e.Kind)
	case "timer":
		r.kind = Observer
	default:
		return fmt.Errorf("match_metric_type %q is none of counter, gauge, observer, timer", e.Kind)
	}
	for name, value := range e.Labels {
		if !labelName.MatchString(name) {
			return fmt.Errorf("%q cannot be the name of a label", name)
		}
		r.labels = append(r.labels, Label{name, value})
	}
	if r.obs, err = e.observation(defaults, e.Scale); err != nil {
		return err
	}
	switch first(e.MatchType, defaults.MatchType, "glob") {
	case "glob":
		r.fields = strings.Split(e.Match, ".")
		m.globs = append(m.globs, r)
	case "regex":
		if r.regex, err = regexp.Compile(e.Match); err != nil {
			return err
		}
		m.regexes = append(m.regexes, r)
	default:
		return fmt.Errorf("match_type %q is neither glob nor regex", first(e.MatchType, defaults.MatchType))
	}
	return nil
}

// defaultBuckets are Prometheus' own, in seconds.
var defaultBuckets = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}

func (o options) observation(defaults options, scale float64) (Observation, error) {
	out := Observation{Scale: scale}
	if scale == 0 {
		out.Scale = 1
	}
	switch kind := first(o.ObserverType, o.TimerType, defaults.ObserverType, defaults.TimerType, "summary"); kind {
	case "histogram":
		out.Histogram = true
	case "summary":
	default:
		return out, fmt.Errorf("observer_type %q is neither histogram nor summary", kind)
	}
	out.Buckets = firstSlice(o.Histogram.Buckets, o.Buckets, defaults.Histogram.Buckets, defaults.Buckets, defaultBuckets)
	for i := 1; i < len(out.Buckets); i++ {
		if out.Buckets[i] <= out.Buckets[i-1] {
			return out, fmt.Errorf("buckets must rise: %v follows %v", out.Buckets[i], out.Buckets[i-1])
		}
	}
	out.NativeFactor, out.NativeMaxBuckets = o.Histogram.NativeFactor, o.Histogram.NativeMaxBuckets
	if out.NativeFactor == 0 {
		out.NativeFactor, out.NativeMaxBuckets = defaults.Histogram.NativeFactor, defaults.Histogram.NativeMaxBuckets
	}
	quantiles := firstSlice(o.Summary.Quantiles, o.Quantiles, defaults.Summary.Quantiles, defaults.Quantiles,
		[]quantile{{0.5, 0.05}, {0.9, 0.01}, {0.99, 0.001}})
	out.Quantiles = make(map[float64]float64, len(quantiles))
	for _, q := range quantiles {
		if q.Quantile < 0 || q.Quantile > 1 {
			return out, fmt.Errorf("quantile %v is not between 0 and 1", q.Quantile)
		}
		out.Quantiles[q.Quantile] = q.Error
	}
	return out, nil
}

func first(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

func firstSlice[T any](values ...[]T) []T {
	for _, v := range values {
		if len(v) > 0 {
			return v
		}
	}
	return nil
}
