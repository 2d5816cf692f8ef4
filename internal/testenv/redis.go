package testenv

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// RedisServer is a Redis that the test may do anything to.
type RedisServer struct {
	// Addr is host:port. Restart keeps it.
	Addr string
	// Socket is the path of a unix socket to the same server; "" where there
	// is none (a server that was not started as a process).
	Socket string

	mu  sync.Mutex
	own redisRunner // nil: a server that is not ours (GALE_TEST_REDIS)
}

// redisRunner is how the server runs: as a process or as a container.
type redisRunner interface {
	start() error
	kill(t testing.TB)
	pause(t testing.TB)
	resume(t testing.TB)
}

// Redis starts an empty Redis that keeps nothing on disk; args are further
// arguments of redis-server, such as "--requirepass", "secret".
//
// It is, in this order: the server at GALE_TEST_REDIS (host:port; shared and
// not emptied, so its tests use keys of their own, and those that would
// kill or configure it skip), redis-server on PATH, a container.
func Redis(t testing.TB, args ...string) *RedisServer {
	t.Helper()
	if a := os.Getenv("GALE_TEST_REDIS"); a != "" {
		if len(args) > 0 {
			Missing(t, "a Redis with "+strings.Join(args, " "),
				"unset GALE_TEST_REDIS, whose server is not ours to configure")
		}
		return &RedisServer{Addr: a}
	}
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return containerRedis(t, args)
	}
	// Another test may take the port before the server does.
	for range 5 {
		if s := startRedis(t, path, args); s != nil {
			return s
		}
	}
	t.Fatal("redis-server does not start; see its log above")
	return nil
}

func startRedis(t testing.TB, path string, args []string) *RedisServer {
	t.Helper()
	port := FreePort(t)
	dir := shortTempDir(t)
	s := &RedisServer{Addr: addr(port), Socket: filepath.Join(dir, "redis.sock")}
	base := []string{
		"--bind", "127.0.0.1", "--port", fmt.Sprint(port),
		"--unixsocket", s.Socket, "--save", "", "--appendonly", "no",
		"--dir", dir, "--daemonize", "no",
	}
	p := &process{name: "redis-server " + s.Addr, path: path, dir: dir, env: os.Environ()}
	p.args = append(base, args...)
	s.own = redisProcess{process: p, addr: s.Addr}
	if err := s.own.start(); err != nil {
		p.kill(t)
		t.Logf("redis-server on %s: %v\n%s", s.Addr, err, p.log.tail(20))
		return nil
	}
	p.endWithTest(t)
	return s
}

// redisProcess is a Redis that runs as a child process.
type redisProcess struct {
	*process
	addr string
}

func (r redisProcess) start() error {
	if err := r.process.start(); err != nil {
		return err
	}
	if !poll(10*time.Second, func() bool { return !r.running() || answersPing(r.addr) }) {
		return fmt.Errorf("does not answer PING")
	}
	if !r.running() {
		return fmt.Errorf("ended: %s", r.log.tail(5))
	}
	return nil
}

func (r redisProcess) pause(t testing.TB)  { r.signal(t, syscall.SIGSTOP) }
func (r redisProcess) resume(t testing.TB) { r.signal(t, syscall.SIGCONT) }

// answersPing reports whether a Redis that has finished starting listens
// there: one that wants a password or TLS is up too, one that loads is not.
func answersPing(address string) bool {
	c, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return false
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(time.Second))
	if _, err := c.Write([]byte("PING\r\n")); err != nil {
		return false
	}
	line, err := bufio.NewReader(c).ReadString('\n')
	return err == nil && (strings.HasPrefix(line, "+PONG") || strings.HasPrefix(line, "-NOAUTH"))
}

// Kill ends the server at once (SIGKILL). What it held is lost.
func (s *RedisServer) Kill(t testing.TB) {
	t.Helper()
	s.do(t, func(r redisRunner) { r.kill(t) })
}

// Restart starts the server again after Kill, empty, on the same port.
func (s *RedisServer) Restart(t testing.TB) {
	t.Helper()
	s.do(t, func(r redisRunner) {
		if err := r.start(); err != nil {
			t.Fatalf("restart of Redis on %s: %v", s.Addr, err)
		}
	})
}

// Pause stops the server (SIGSTOP): connections stay open, and nothing is
// answered.
func (s *RedisServer) Pause(t testing.TB) {
	t.Helper()
	s.do(t, func(r redisRunner) { r.pause(t) })
}

// Resume lets a paused server go on (SIGCONT).
func (s *RedisServer) Resume(t testing.TB) {
	t.Helper()
	s.do(t, func(r redisRunner) { r.resume(t) })
}

// Owned reports whether the test may kill the server and whether it started
// empty.
func (s *RedisServer) Owned() bool { return s.own != nil }

func (s *RedisServer) do(t testing.TB, f func(redisRunner)) {
	t.Helper()
	if s.own == nil {
		Missing(t, "a Redis that may be killed", "unset GALE_TEST_REDIS, whose server is not ours")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s.own)
}

// shortTempDir is a temporary folder whose path leaves room for a socket's
// name: paths of unix sockets end at about 100 bytes, and t.TempDir carries
// the test's name.
func shortTempDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "gale") //nolint:usetesting // t.TempDir's path is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
