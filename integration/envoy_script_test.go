//go:build integration

package integration

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gale-rls/gale-rls/internal/testenv"
)

// TestEnvoyRunScript runs examples/envoy/run.sh as a reader of its README
// would, on other ports: with the timeout of the files, the stand-in for the
// upstream, and the store in memory. SIGTERM ends all that it started.
func TestEnvoyRunScript(t *testing.T) {
	eachEnvoy(t, func(t *testing.T, version string) {
		ports := map[string]string{}
		env := append(withoutGale(os.Environ()),
			"ENVOY_BIN="+testenv.EnvoyBinary(t, version),
			"RLS_BIN="+testenv.GaleBinary(t, false))
		for _, name := range []string{
			"ENVOY_PORT", "ENVOY_139_PORT", "ADMIN_PORT", "UPSTREAM_PORT", "GRPC_PORT", "PORT", "DEBUG_PORT",
		} {
			ports[name] = strconv.Itoa(testenv.FreePort(t))
			env = append(env, name+"="+ports[name])
		}
		script := startScript(t, env)
		limit := func(port, path, header string) string {
			code, h := tryGet(script.client, "http://127.0.0.1:"+ports[port]+path, header, unique("name"))
			return fmt.Sprint(code, " ", h.Get("x-ratelimit-limit"))
		}
		waitFor := func(port, path, header, want string) {
			t.Helper()
			testenv.Eventually(t, 30*time.Second, path+" to answer "+want, func() bool {
				if script.ended() {
					t.Fatalf("run.sh ended:\n%s", script.said())
				}
				return limit(port, path, header) == want
			})
		}
		waitFor("ENVOY_PORT", "/header", "x-user-id", `200 5, 5;w=3600;name="per-user"`)
		user := unique("user")
		testenv.Eventually(t, 10*time.Second, "a user to be refused", func() bool {
			code, _ := tryGet(script.client, "http://127.0.0.1:"+ports["ENVOY_PORT"]+"/header", "x-user-id", user)
			return code == refused
		})
		if version == testenv.EnvoyNewest(t) {
			waitFor("ENVOY_139_PORT", "/override-static", "x-customer", "200 1, 1;w=3600")
			waitFor("ENVOY_139_PORT", "/refund/failed", "x-user-id", `502 3, 3;w=3600;name="jobs"`)
		}
		script.terminate(t)
		for name, port := range ports {
			if c, err := http.Get("http://127.0.0.1:" + port); err == nil { //nolint:noctx // nobody is there
				_ = c.Body.Close()
				t.Errorf("something still listens on %s after SIGTERM", name)
			}
		}
	})
}

// withoutGale leaves out the variables of these tests, which gale-rls would
// take for its own and reject.
func withoutGale(env []string) (rest []string) {
	for _, v := range env {
		if !strings.HasPrefix(v, "GALE_") {
			rest = append(rest, v)
		}
	}
	return rest
}

// script is a running run.sh.
type script struct {
	cmd    *exec.Cmd
	log    string // the file with what it says
	exited chan struct{}
	client *http.Client
}

// startScript starts it in a process group of its own, so that nothing that
// it started outlives the test.
func startScript(t *testing.T, env []string) *script {
	t.Helper()
	s := &script{
		cmd:    exec.Command("sh", filepath.Join(testenv.Root(t), "examples", "envoy", "run.sh")),
		log:    filepath.Join(t.TempDir(), "log"),
		exited: make(chan struct{}),
		client: clientFrom(t, randomLoopback()),
	}
	out, err := os.Create(s.log)
	if err != nil {
		t.Fatal(err)
	}
	s.cmd.Env, s.cmd.Stdout, s.cmd.Stderr = env, out, out
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = s.cmd.Wait() // ended by a signal
		close(s.exited)
	}()
	t.Cleanup(func() {
		_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL) // fails when all have ended
		<-s.exited
		_ = out.Close()
		if t.Failed() {
			t.Logf("run.sh said:\n%s", s.said())
		}
	})
	return s
}

func (s *script) ended() bool {
	select {
	case <-s.exited:
		return true
	default:
		return false
	}
}

func (s *script) said() string {
	b, err := os.ReadFile(s.log)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(b))
}

// terminate ends the script, and with it what it started.
func (s *script) terminate(t *testing.T) {
	t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.exited:
	case <-time.After(30 * time.Second):
		t.Fatal("run.sh does not end on SIGTERM")
	}
	if code := s.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("run.sh: exit code %d after SIGTERM, want 0", code)
	}
}

// tryGet is get for a server that may not be there: status code 0.
func tryGet(c *http.Client, url, header, value string) (int, http.Header) {
	req, err := http.NewRequest(http.MethodGet, url, nil) //nolint:noctx // polled
	if err != nil {
		return 0, nil
	}
	req.Header.Set(header, value)
	r, err := c.Do(req)
	if err != nil {
		return 0, nil
	}
	_ = r.Body.Close()
	return r.StatusCode, r.Header
}
