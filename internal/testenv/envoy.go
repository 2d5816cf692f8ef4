package testenv

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// EnvoyServer is a running Envoy.
type EnvoyServer struct {
	// Admin is host:port of the admin interface.
	Admin string
	// Listeners are the listeners' names and the host:port each is on.
	Listeners map[string]string

	p *process
}

// EnvoyBinary returns the path of Envoy in that version (EnvoyNewest or
// EnvoyOldest). It is, in this order: ENVOY_BIN (whatever its version; for the
// newest only), envoy on PATH if it is of the same minor version, the one
// that scripts/setup.sh installed.
func EnvoyBinary(t testing.TB, version string) string {
	t.Helper()
	if bin := os.Getenv("ENVOY_BIN"); bin != "" && version == EnvoyNewest(t) {
		return bin
	}
	if bin, err := exec.LookPath("envoy"); err == nil && sameMinor(bin, version) {
		return bin
	}
	bin := filepath.Join(Root(t), ".tools", "envoy-"+version, "envoy", "_bin", "envoy")
	if _, err := os.Stat(bin); err != nil {
		Missing(t, "Envoy "+version, "run scripts/setup.sh, or set ENVOY_BIN to the newest Envoy")
	}
	return bin
}

// sameMinor reports whether bin says that it is of version's minor version:
// "envoy  version: <hash>/1.40.0/Clean/RELEASE/BoringSSL".
func sameMinor(bin, version string) bool {
	out, err := exec.Command(bin, "--version").Output()
	minor := version[:strings.LastIndex(version, ".")+1]
	return err == nil && strings.Contains(string(out), "/"+minor)
}

// Envoy starts Envoy with a configuration (YAML, as text). Its admin
// interface is moved to a free port; listeners with port_value 0 get a free
// one too and are found in Listeners. merged is
// further YAML, at most one text for each top-level key, that Envoy merges
// into config as with --config-yaml: its lists are appended. Envoy ends with
// the test.
func Envoy(t testing.TB, version string, config []byte, merged ...[]byte) *EnvoyServer {
	t.Helper()
	bin := EnvoyBinary(t, version)
	dir := t.TempDir()
	file, admin := filepath.Join(dir, "envoy.yaml"), filepath.Join(dir, "admin")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		t.Fatal(err)
	}
	p := &process{name: "envoy " + version, path: bin, dir: dir, env: os.Environ()}
	over := "admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}\n"
	for _, m := range merged {
		over += string(m) + "\n"
	}
	p.args = []string{
		"-c", file, "--config-yaml", over,
		"--admin-address-path", admin, "--use-dynamic-base-id",
		"--concurrency", "1", "--drain-time-s", "1", "--log-level", "warning",
	}
	if err := p.start(); err != nil {
		t.Fatalf("%s: %v", bin, err)
	}
	p.endWithTest(t)

	e := &EnvoyServer{p: p}
	Eventually(t, 30*time.Second, "Envoy to be ready (or to say what is wrong)", func() bool {
		if !p.running() {
			t.Fatalf("Envoy ended:\n%s", p.log.tail(20))
		}
		b, err := os.ReadFile(admin)
		e.Admin = string(b)
		return err == nil && e.Admin != "" && e.get("/ready") == "LIVE\n"
	})
	e.Listeners = e.listeners(t)
	return e
}

// listeners asks Envoy where it listens.
func (e *EnvoyServer) listeners(t testing.TB) map[string]string {
	t.Helper()
	var got struct {
		Statuses []struct {
			Name    string `json:"name"`
			Address struct {
				Socket struct {
					Address string `json:"address"`
					Port    int    `json:"port_value"`
				} `json:"socket_address"`
			} `json:"local_address"`
		} `json:"listener_statuses"`
	}
	text := e.get("/listeners?format=json")
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatalf("Envoy's /listeners: %v: %s", err, text)
	}
	all := map[string]string{}
	for _, l := range got.Statuses {
		host := l.Address.Socket.Address
		if host == "0.0.0.0" {
			host = "127.0.0.1"
		}
		all[l.Name] = fmt.Sprintf("%s:%d", host, l.Address.Socket.Port)
	}
	return all
}

// Stat returns the value of one of Envoy's counters or gauges, 0 if Envoy
// does not know it (yet).
func (e *EnvoyServer) Stat(t testing.TB, name string) int64 {
	t.Helper()
	for line := range strings.Lines(e.get("/stats?filter=^" + name + "$")) {
		var v int64
		if n, ok := strings.CutPrefix(line, name+": "); ok {
			if _, err := fmt.Sscan(n, &v); err != nil {
				t.Fatalf("Envoy's %s: %v", name, err)
			}
			return v
		}
	}
	return 0
}

// Log returns what Envoy has said so far.
func (e *EnvoyServer) Log() string { return e.p.log.String() }

// get returns the body of a page of the admin interface, "" if there is none.
func (e *EnvoyServer) get(path string) string {
	r, err := http.Get("http://" + e.Admin + path)
	if err != nil {
		return ""
	}
	defer func() { _ = r.Body.Close() }()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return ""
	}
	return string(b)
}
