package testenv

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// ask sends one line to a Redis and returns the first line of its answer.
func ask(t *testing.T, address, line string) (string, error) {
	t.Helper()
	c, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return "", err
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(500 * time.Millisecond))
	if _, err := io.WriteString(c, line+"\r\n"); err != nil {
		return "", err
	}
	answer, err := bufio.NewReader(c).ReadString('\n')
	return strings.TrimSpace(answer), err
}

func TestRedisLivesAndDies(t *testing.T) {
	r := Redis(t)
	if !r.Owned() {
		t.Skip("GALE_TEST_REDIS is not ours to kill")
	}
	if got, err := ask(t, r.Addr, "INCRBY k 3"); got != ":3" {
		t.Fatalf("INCRBY answered %q, %v", got, err)
	}

	r.Pause(t)
	if got, err := ask(t, r.Addr, "GET k"); err == nil {
		t.Errorf("a paused server answered %q", got)
	}
	r.Resume(t)
	if got, err := ask(t, r.Addr, "INCRBY k 1"); got != ":4" {
		t.Errorf("after the pause INCRBY answered %q, %v", got, err)
	}

	r.Kill(t)
	if got, err := ask(t, r.Addr, "PING"); err == nil {
		t.Errorf("a killed server answered %q", got)
	}
	r.Restart(t)
	if got, err := ask(t, r.Addr, "INCRBY k 1"); got != ":1" {
		t.Errorf("the restarted server is not empty: %q, %v", got, err)
	}
	if !r.Owned() || (r.Socket != "" && !accepts("unix", r.Socket)) {
		t.Errorf("nothing listens on %s", r.Socket)
	}
}

// echo is a line server: it answers each line with itself.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(c, c) }()
		}
	}()
	return l.Addr().String()
}

func TestProxyMakesFaults(t *testing.T) {
	p := NewProxy(t, echo(t))
	if got, err := ask(t, p.Addr, "one"); got != "one" || err != nil {
		t.Fatalf("through a transparent proxy: %q, %v", got, err)
	}
	if p.RoundTrips() != 1 {
		t.Errorf("one question made %d round trips", p.RoundTrips())
	}

	p.Delay(60 * time.Millisecond)
	start := time.Now()
	if got, err := ask(t, p.Addr, "late"); got != "late" || err != nil {
		t.Errorf("a delayed reply: %q, %v", got, err)
	}
	if d := time.Since(start); d < 60*time.Millisecond {
		t.Errorf("a reply delayed by 60ms came after %v", d)
	}
	p.Delay(0)

	p.LoseReplies(1)
	if got, err := ask(t, p.Addr, "lost"); err == nil {
		t.Errorf("a lost reply arrived: %q", got)
	}
	p.LoseReplies(0)

	p.Cut()
	if got, err := ask(t, p.Addr, "cut"); err == nil {
		t.Errorf("a reply came through a cut: %q", got)
	}
	p.Mend()
	if got, err := ask(t, p.Addr, "again"); got != "again" || err != nil {
		t.Errorf("after the cut: %q, %v", got, err)
	}
}

// Replies that are late do not wait for each other: a pipeline of twenty over
// a wire of 30ms takes 30ms, not 600.
func TestProxyDelaysLikeAWire(t *testing.T) {
	p := NewProxy(t, echo(t))
	p.Delay(30 * time.Millisecond)
	c, err := net.Dial("tcp", p.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	start := time.Now()
	lines := bufio.NewReader(c)
	for i := range 20 {
		if _, err := fmt.Fprintf(c, "%d\n", i); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 20 {
		if line, err := lines.ReadString('\n'); err != nil || line != fmt.Sprintf("%d\n", i) {
			t.Fatalf("reply %d: %q, %v", i, line, err)
		}
	}
	if d := time.Since(start); d < 30*time.Millisecond || d > 400*time.Millisecond {
		t.Errorf("twenty pipelined replies took %v", d)
	}
}

func TestStatsdSums(t *testing.T) {
	s := Statsd(t)
	c, err := net.Dial("tcp", net.JoinHostPort(s.Host, s.Port))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	said := "a.b:2|c\na.b:3|c\nd:e.f:1|c\ng:7|g\ng:5|g\nt:1|ms\nlast:1|c\n"
	if _, err := io.WriteString(c, said); err != nil {
		t.Fatal(err)
	}
	Eventually(t, 5*time.Second, "the last line", func() bool { return s.Counters()["last"] == 1 })
	if got := s.Counters(); got["a.b"] != 5 || got["d:e.f"] != 1 || len(got) != 3 {
		t.Errorf("counters: %v", got)
	}
	if got := s.Gauges(); got["g"] != 5 {
		t.Errorf("gauges: %v", got)
	}
	if got := s.Lines(); len(got) != 7 {
		t.Errorf("lines: %q", got)
	}
}

const helloEnvoy = `
static_resources:
  listeners:
  - name: web
    address: {socket_address: {address: 127.0.0.1, port_value: 0}}
    filter_chains:
    - filters:
      - name: http
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: web
          route_config:
            virtual_hosts:
            - {name: all, domains: ["*"], routes: [{match: {prefix: /}, direct_response: {status: 200, body: {inline_string: hello}}}]}
          http_filters:
          - name: router
            typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}
`

func TestEnvoyAnswers(t *testing.T) {
	for _, version := range []string{EnvoyNewest(t), EnvoyOldest(t)} {
		t.Run(version, func(t *testing.T) {
			e := Envoy(t, version, []byte(helloEnvoy))
			r, err := http.Get("http://" + e.Listeners["web"] + "/")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = r.Body.Close() }()
			if b, _ := io.ReadAll(r.Body); string(b) != "hello" {
				t.Errorf("Envoy answered %q", b)
			}
			Eventually(t, 5*time.Second, "the request in Envoy's statistics", func() bool {
				return e.Stat(t, "http.web.downstream_rq_2xx") == 1
			})
		})
	}
}

// A door is only open when all three are; a fake binary shows it, and that
// kill and restart keep the ports.
func TestGaleRunsABinary(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		Missing(t, "python3", "install it")
	}
	script := filepath.Join(t.TempDir(), "fake")
	text := `#!/usr/bin/env python3
import os, socket, threading
socks = []
for h, p in (("GRPC_HOST", "GRPC_PORT"), ("HOST", "PORT"), ("DEBUG_HOST", "DEBUG_PORT")):
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind((os.environ[h], int(os.environ[p])))
    s.listen()
    socks.append(s)
print("rules in", os.environ["RUNTIME_ROOT"], flush=True)
threading.Event().wait()
`
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	g := Gale(t, GaleOptions{Binary: script, Rules: map[string]string{"a.yaml": "domain: a\n"}})
	Eventually(t, 10*time.Second, "the log", func() bool { return strings.Contains(g.Log(), "rules in") })
	if b, err := os.ReadFile(filepath.Join(g.RulesDir, "a.yaml")); string(b) != "domain: a\n" {
		t.Errorf("the rules were not written: %q, %v", b, err)
	}
	g.Kill(t)
	if g.Open() {
		t.Error("a killed process has its doors open")
	}
	g.Restart(t)
	if !g.Open() {
		t.Error("the doors are not open after a restart")
	}
}
