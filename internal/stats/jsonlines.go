package stats

import (
	"context"
	"encoding/json"
	"io"
)

// NewJSONLines returns a sink that writes one JSON object per sample to w,
// which is the standard error output where no other sink is chosen.
func NewJSONLines(w io.Writer, extraTags map[string]string) Sink {
	return &jsonLines{enc: json.NewEncoder(w), suffix: TagSuffix(extraTags)}
}

type jsonLines struct {
	enc    *json.Encoder
	suffix string
	err    error
}

// jsonLine has the members of a line of envoyproxy/ratelimit that carry
// something; timers say how often a value was seen.
type jsonLine struct {
	Message string `json:"msg"`
	JSON    struct {
		Name  string `json:"name"`
		Type  string `json:"type"`
		Value any    `json:"value"` // uint64 or int64
		Count uint64 `json:"count,omitempty"`
	} `json:"json"`
}

func (j *jsonLines) Write(m Sample) {
	kind := [...]string{KindCounter: "counter", KindGauge: "gauge", KindTimer: "timer"}[m.Kind]
	line := jsonLine{Message: "flushing " + kind}
	line.JSON.Name, line.JSON.Type = string(m.Name)+j.suffix, kind
	line.JSON.Value, line.JSON.Count = m.Value, m.Times
	if m.Kind == KindCounter {
		line.JSON.Value = m.Delta
	}
	if err := j.enc.Encode(line); err != nil {
		j.err = err
	}
}

func (j *jsonLines) Flush() {}

func (j *jsonLines) Close(context.Context) error { return j.err }

// Discard is a sink that keeps nothing.
func Discard() Sink { return discard{} }

type discard struct{}

func (discard) Write(Sample)                {}
func (discard) Flush()                      {}
func (discard) Close(context.Context) error { return nil }
