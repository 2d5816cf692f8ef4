package testenv

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// GaleOptions says how the binary is started. The zero value is the embedded
// store with the rules that the binary ships.
type GaleOptions struct {
	// Rules are files below the configuration folder, by name. When there
	// are any, RUNTIME_ROOT and its companions point to them, and the folder
	// is watched.
	Rules map[string]string
	// Redis is the shared store; nil is the store in memory.
	Redis *RedisServer
	// Env is laid over everything else.
	Env map[string]string
	// Args are the command line; nil is serve.
	Args []string
	// Race builds and runs the binary with the race detector.
	Race bool
	// Binary, if not "", is run in place of the built one.
	Binary string
	// NotReady starts the process and does not wait for its doors.
	NotReady bool
}

// GaleServer is a running gale-rls.
type GaleServer struct {
	// GRPC, HTTP and Debug are the host:port of the three doors. Restart
	// keeps them.
	GRPC, HTTP, Debug string
	// RulesDir is where the rule files are; "" without GaleOptions.Rules.
	RulesDir string

	p *process
}

// ready is how long the binary may take to open its doors on a machine that
// is busy with other tests.
const ready = 30 * time.Second

// Gale starts the built gale-rls and waits until its doors are open. It
// ends with the test.
func Gale(t testing.TB, o GaleOptions) *GaleServer {
	t.Helper()
	bin := o.Binary
	if bin == "" {
		bin = GaleBinary(t, o.Race)
	}
	// Another process may take one of the ports before this one does.
	for range 5 {
		g := newGale(t, bin, o)
		if err := g.p.start(); err != nil {
			t.Fatalf("%s: %v", bin, err)
		}
		if o.NotReady || g.open() {
			g.p.endWithTest(t)
			return g
		}
		g.p.kill(t)
		if said := g.p.log.String(); !strings.Contains(said, "address already in use") {
			t.Fatalf("gale-rls does not open its doors:\n%s", g.p.log.tail(40))
		}
	}
	t.Fatal("gale-rls found its ports taken, five times")
	return nil
}

func newGale(t testing.TB, bin string, o GaleOptions) *GaleServer {
	t.Helper()
	ports := [3]int{FreePort(t), FreePort(t), FreePort(t)}
	g := &GaleServer{GRPC: addr(ports[0]), HTTP: addr(ports[1]), Debug: addr(ports[2])}
	env := map[string]string{
		"PATH": os.Getenv("PATH"), "HOME": os.Getenv("HOME"), "TMPDIR": os.TempDir(),
		"GRPC_HOST": "127.0.0.1", "GRPC_PORT": strconv.Itoa(ports[0]),
		"HOST": "127.0.0.1", "PORT": strconv.Itoa(ports[1]),
		"DEBUG_HOST": "127.0.0.1", "DEBUG_PORT": strconv.Itoa(ports[2]),
	}
	if _, watched := o.Env["STATSD_PORT"]; !watched {
		env["USE_STATSD"], env["DISABLE_STATS"] = "false", "true"
	}
	if o.Rules != nil {
		root := t.TempDir()
		g.RulesDir = filepath.Join(root, "ratelimit", "config")
		g.WriteRules(t, o.Rules)
		env["RUNTIME_ROOT"], env["RUNTIME_SUBDIRECTORY"] = root, "ratelimit"
		env["RUNTIME_WATCH_ROOT"] = "false"
	}
	if o.Redis != nil {
		env["REDIS_SOCKET_TYPE"], env["REDIS_URL"] = "tcp", o.Redis.Addr
	}
	maps.Copy(env, o.Env)
	g.p = &process{name: "gale-rls " + g.GRPC, path: bin, args: o.Args, dir: t.TempDir()}
	for _, k := range slices.Sorted(maps.Keys(env)) {
		g.p.env = append(g.p.env, k+"="+env[k])
	}
	return g
}

// open waits for the three doors, or the end of the process.
func (g *GaleServer) open() bool {
	return poll(ready, func() bool { return !g.p.running() || g.Open() }) && g.p.running()
}

// Open reports whether the three doors accept connections at the moment.
func (g *GaleServer) Open() bool {
	return accepts("tcp", g.GRPC) && accepts("tcp", g.HTTP) && accepts("tcp", g.Debug)
}

// WriteRules writes rule files; each appears complete, by rename.
func (g *GaleServer) WriteRules(t testing.TB, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(g.RulesDir, filepath.FromSlash(name))
		// The new file grows outside the watched folder.
		tmp := filepath.Join(filepath.Dir(filepath.Dir(g.RulesDir)), ".new")
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(tmp, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(tmp, path); err != nil {
			t.Fatal(err)
		}
	}
}

// Kill ends the process at once (SIGKILL).
func (g *GaleServer) Kill(t testing.TB) { t.Helper(); g.p.kill(t) }

// Pause stops the process (SIGSTOP).
func (g *GaleServer) Pause(t testing.TB) { t.Helper(); g.p.signal(t, syscall.SIGSTOP) }

// Resume lets a paused process go on.
func (g *GaleServer) Resume(t testing.TB) { t.Helper(); g.p.signal(t, syscall.SIGCONT) }

// Reload sends SIGHUP.
func (g *GaleServer) Reload(t testing.TB) { t.Helper(); g.p.signal(t, syscall.SIGHUP) }

// Signal sends s.
func (g *GaleServer) Signal(t testing.TB, s syscall.Signal) { t.Helper(); g.p.signal(t, s) }

// Terminate sends SIGTERM, waits for the end, at most so long, and returns
// the exit code.
func (g *GaleServer) Terminate(t testing.TB, within time.Duration) int {
	t.Helper()
	g.p.signal(t, syscall.SIGTERM)
	return g.Wait(t, within)
}

// Wait waits for the process to end by itself, at most so long, and returns
// its exit code.
func (g *GaleServer) Wait(t testing.TB, within time.Duration) int {
	t.Helper()
	if !g.p.wait(within) {
		t.Fatalf("gale-rls has not ended after %v", within)
	}
	return g.p.exitCode()
}

// Restart starts the process again after it has ended, on the same ports,
// and waits for its doors.
func (g *GaleServer) Restart(t testing.TB) {
	t.Helper()
	if g.p.running() {
		t.Fatal("restart of a gale-rls that still runs")
	}
	if err := g.p.start(); err != nil {
		t.Fatal(err)
	}
	if !g.open() {
		t.Fatalf("gale-rls does not open its doors again:\n%s", g.p.log.tail(40))
	}
}

// Log returns what all runs of this server have said so far.
func (g *GaleServer) Log() string { return g.p.log.String() }

// PID is the process's id.
func (g *GaleServer) PID() int { return g.p.pid() }

// build is one flavour of the binary, built at most once per test process.
type build struct {
	once sync.Once
	path string
	err  error
}

// Test processes are short and their binary does not change under them:
// these are the only package variables, and they only cache.
var plainBuild, raceBuild build

// GaleBinary builds cmd/gale-rls, once per test process, and returns its
// path. GALE_BIN, if set, is taken as the plain one instead.
func GaleBinary(t testing.TB, race bool) string {
	t.Helper()
	if bin := os.Getenv("GALE_BIN"); bin != "" && !race {
		return bin
	}
	b, name, flags := &plainBuild, "gale-rls", []string{"build"}
	if race {
		b, name, flags = &raceBuild, "gale-rls-race", []string{"build", "-race"}
	}
	b.once.Do(func() { b.path, b.err = buildGale(Root(t), name, flags) })
	if b.err != nil {
		t.Fatal(b.err)
	}
	return b.path
}

// buildGale builds into a file of its own and renames it into place, so that
// test processes that build at the same time do not run half a binary.
func buildGale(root, name string, flags []string) (string, error) {
	dir := filepath.Join(root, ".tools", "bin")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	path := filepath.Join(dir, name)
	tmp := fmt.Sprintf("%s.%d", path, os.Getpid())
	cmd := exec.Command("go", append(flags, "-o", tmp, "./cmd/gale-rls")...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build of the binary: %w\n%s", err, out)
	}
	return path, os.Rename(tmp, path)
}
