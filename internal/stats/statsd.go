package stats

import (
	"context"
	"log/slog"
	"math"
	"strconv"
)

// StatsdConfig says where a statsd server listens.
type StatsdConfig struct {
	Network   string // "tcp" or "udp"
	Address   string // host:port
	ExtraTags map[string]string
	Log       *slog.Logger
}

// NewStatsd returns a sink that sends "name:1|c", "name:1|g" and "name:1|ms"
// lines, with the extra tags as a suffix of the name. It connects in the
// background.
func NewStatsd(c StatsdConfig) Sink {
	return &statsd{conn: newLineConn(c.Network, c.Address, c.Log), suffix: TagSuffix(c.ExtraTags)}
}

type statsd struct {
	conn   *lineConn
	suffix string
	line   []byte
}

func (s *statsd) Write(m Sample) {
	s.line = append(append(s.line[:0], m.Name...), s.suffix...)
	s.line = append(appendValue(s.line, m), '\n')
	s.conn.line(s.line)
}

func (s *statsd) Flush() { s.conn.flush() }

func (s *statsd) Close(ctx context.Context) error { return s.conn.close(ctx) }

// appendValue appends ":value|kind", and how often it was seen as a sample
// rate.
func appendValue(dst []byte, m Sample) []byte {
	dst = append(dst, ':')
	if m.Kind == KindCounter {
		return append(strconv.AppendUint(dst, m.Delta, 10), "|c"...)
	}
	dst = strconv.AppendInt(dst, m.Value, 10)
	if m.Kind == KindGauge {
		return append(dst, "|g"...)
	}
	dst = append(dst, "|ms"...)
	if m.Times > 1 {
		dst = append(dst, "|@"...)
		dst = strconv.AppendFloat(dst, sampleRate(m.Times), 'f', -1, 64)
	}
	return dst
}

// sampleRate returns the rate whose inverse a server takes for count, also
// when it cuts fractions off.
func sampleRate(count uint64) float64 {
	rate := 1 / float64(count)
	for uint64(1/rate) < count {
		rate = math.Nextafter(rate, 0)
	}
	return rate
}
