package testenv

import (
	"bufio"
	"maps"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// StatsdSink is a statsd server (TCP) that remembers what it is told.
type StatsdSink struct {
	// Host and Port are where it listens.
	Host, Port string

	mu       sync.Mutex
	counters map[string]uint64
	gauges   map[string]int64
	lines    []string
	open     int
}

// Statsd starts a sink.
func Statsd(t testing.TB) *StatsdSink {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	host, port, _ := net.SplitHostPort(l.Addr().String())
	s := &StatsdSink{Host: host, Port: port, counters: map[string]uint64{}, gauges: map[string]int64{}}
	var done sync.WaitGroup
	var open sync.Map
	done.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			open.Store(c, nil)
			done.Go(func() {
				s.read(c)
				open.Delete(c)
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		open.Range(func(c, _ any) bool {
			_ = c.(net.Conn).Close()
			return true
		})
		done.Wait()
	})
	return s
}

func (s *StatsdSink) read(c net.Conn) {
	s.count(1)
	defer s.count(-1)
	defer func() { _ = c.Close() }()
	lines := bufio.NewScanner(c)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		s.take(lines.Text())
	}
}

func (s *StatsdSink) count(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open += n
}

// Drained reports whether no connection is open: everything that an ended
// process sent has then been read.
func (s *StatsdSink) Drained() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open == 0
}

// take notes one line, "name:value|type".
func (s *StatsdSink) take(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, line)
	rest, kind, _ := cutLast(line, "|")
	name, text, _ := cutLast(rest, ":")
	switch kind {
	case "c":
		if v, err := strconv.ParseUint(text, 10, 64); err == nil {
			s.counters[name] += v
		}
	case "g":
		if v, err := strconv.ParseInt(text, 10, 64); err == nil {
			s.gauges[name] = v
		}
	}
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// Counters returns the sum of each counter so far.
func (s *StatsdSink) Counters() map[string]uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.counters)
}

// Gauges returns the last value of each gauge.
func (s *StatsdSink) Gauges() map[string]int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.gauges)
}

// Lines returns everything that was received, in order.
func (s *StatsdSink) Lines() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.lines...)
}
