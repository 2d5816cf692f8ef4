package stats

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gale-rls/gale-rls/internal/testenv"
)

// server collects what is sent to it over TCP or UDP.
type server struct {
	address string
	close   func()

	mu   sync.Mutex
	text strings.Builder
}

func (s *server) got() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func (s *server) add(b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text.Write(b)
}

func (s *server) copyFrom(r io.Reader) {
	b := make([]byte, 1<<16)
	for {
		n, err := r.Read(b)
		s.add(b[:n])
		if err != nil {
			return
		}
	}
}

func listenTCP(t *testing.T, address string) *server {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	s := &server{address: l.Addr().String()}
	var mu sync.Mutex
	var conns []net.Conn
	s.close = func() {
		l.Close()
		mu.Lock()
		defer mu.Unlock()
		for _, c := range conns {
			c.Close()
		}
	}
	t.Cleanup(s.close)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, c)
			mu.Unlock()
			go s.copyFrom(c)
		}
	}()
	return s
}

func listenUDP(t *testing.T) *server {
	t.Helper()
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	s := &server{address: c.LocalAddr().String()}
	go s.copyFrom(c.(*net.UDPConn))
	return s
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func TestStatsdOverTCPAndUDP(t *testing.T) {
	for _, network := range []string{"tcp", "udp"} {
		t.Run(network, func(t *testing.T) {
			var s *server
			if network == "tcp" {
				s = listenTCP(t, "127.0.0.1:0")
			} else {
				s = listenUDP(t)
			}
			r := New(Options{})
			r.Counter("c").Add(3)
			r.Gauge("g").Set(4)
			r.Timer("t").Observe(5 * time.Millisecond)
			sink := NewStatsd(StatsdConfig{
				Network: network, Address: s.address, Log: quiet(),
				ExtraTags: map[string]string{"zone": "eu.west", "env": "a|b"},
			})
			r.Flush(sink)
			want := "c.__env=a_b.__zone=eu_west:3|c\ng.__env=a_b.__zone=eu_west:4|g\nt.__env=a_b.__zone=eu_west:5|ms\n"
			testenv.Eventually(t, 15*time.Second, "the lines arrive", func() bool { return s.got() == want })
			r.Counter("last").Add(1)
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if err := r.Run(ctx, sink, time.Hour, 5*time.Second); err != nil {
				t.Error(err)
			}
			testenv.Eventually(t, 15*time.Second, "the final flush arrives", func() bool { return strings.Contains(s.got(), "last.__env=a_b.__zone=eu_west:1|c\n") })
		})
	}
}

func TestStatsdWaitsForAServerThatComesLater(t *testing.T) {
	first := listenTCP(t, "127.0.0.1:0")
	first.close()
	r := New(Options{})
	var log bytes.Buffer
	sink := NewStatsd(StatsdConfig{Network: "tcp", Address: first.address, Log: slog.New(slog.NewTextHandler(&log, nil))})
	r.Counter("early").Add(1)
	r.Flush(sink)
	later := listenTCP(t, first.address)
	testenv.Eventually(t, 15*time.Second, "the line that waited arrives", func() bool { return later.got() == "early:1|c\n" })
	later.close()
	again := listenTCP(t, first.address)
	testenv.Eventually(t, 15*time.Second, "a line reaches the restarted server", func() bool {
		r.Counter("later").Add(1)
		r.Flush(sink)
		return strings.Contains(again.got(), "later:")
	})
	if err := sink.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if n := strings.Count(log.String(), "cannot be reached"); n < 1 || n > 2 {
		t.Errorf("an outage is logged once, these lines say it %d times:\n%s", n, log.String())
	}
}

func TestQueueIsBoundedAndNeverBlocks(t *testing.T) {
	gone := listenTCP(t, "127.0.0.1:0")
	gone.close()
	c := newLineConn("tcp", gone.address, quiet())
	line := []byte(strings.Repeat("x", 1023) + "\n")
	for range 8 << 10 { // 8 MiB
		c.line(line)
	}
	c.flush()
	if d := c.dropped.Load(); d < 3<<10 || d > 5<<10 {
		t.Errorf("%d of 8192 lines were dropped; the queue holds 4096", d)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if err := c.close(ctx); err == nil {
		t.Error("close says that everything was sent")
	}
}

func TestUDPPacketsFitAFrame(t *testing.T) {
	s := listenUDP(t)
	c := newLineConn("udp", s.address, quiet())
	c.line([]byte(strings.Repeat("y", 100_000) + "\n")) // never fits: dropped
	line := []byte(strings.Repeat("x", 499) + "\n")
	for range 10 {
		c.line(line)
	}
	if err := c.close(t.Context()); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, 15*time.Second, "all lines arrive", func() bool { return len(s.got()) == 5000 })
	if d := c.dropped.Load(); d != 1 {
		t.Errorf("%d lines were dropped, want the one that fits no packet", d)
	}
}

func TestDogStatsd(t *testing.T) {
	s := listenUDP(t)
	r := New(Options{})
	r.Rule("dom.k_v").TotalHits.Add(2)
	r.Counter("other").Add(1)
	r.Timer("t").Observe(5 * time.Millisecond)
	r.Timer("t").Observe(5 * time.Millisecond)
	sink := NewDogStatsd(DogStatsdConfig{
		Address: s.address, Log: quiet(),
		ExtraTags: map[string]string{"env": "a,b|c"},
		Mogrifiers: []Mogrifier{
			{Pattern: regexp.MustCompile(`^ratelimit\.service\.rate_limit\.([^.]+)\.(.+)\.([^.]+)$`), Name: "rl.$3", Tags: map[string]string{"domain": "$1", "key": "$2", "none": "$9"}},
			{Pattern: regexp.MustCompile(`.*total_hits`), Name: "never"},
		},
	})
	r.Flush(sink)
	want := "rl.total_hits:2|c|#env:a_b_c,domain:dom,key:k_v,none:\nother:1|c|#env:a_b_c\nt:5|ms|@0.5|#env:a_b_c\n"
	testenv.Eventually(t, 15*time.Second, "the lines arrive", func() bool { return s.got() == want })
	if err := sink.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestJSONLines(t *testing.T) {
	r := New(Options{})
	r.Counter("c").Add(1)
	r.Timer("t").Observe(2 * time.Millisecond)
	var b bytes.Buffer
	r.Flush(NewJSONLines(&b, map[string]string{"k": "v"}))
	want := `{"msg":"flushing counter","json":{"name":"c.__k=v","type":"counter","value":1}}
{"msg":"flushing timer","json":{"name":"t.__k=v","type":"timer","value":2,"count":1}}
`
	if b.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", b.String(), want)
	}
}

func TestWatchProcess(t *testing.T) {
	r := New(Options{})
	WatchProcess(r)
	var b bytes.Buffer
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ratelimit.go.heapAlloc: ", "ratelimit.go.mallocs: ", "ratelimit.go.numGoroutine: "} {
		if !strings.Contains(b.String(), name) {
			t.Errorf("no %s in\n%s", name, b.String())
		}
	}
}
