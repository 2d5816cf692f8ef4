//go:build integration

package conformance

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/gale-rls/gale-rls/internal/testenv"
)

// patience is how long a step may take on a machine that runs four processes
// at a time on two cores.
const patience = 15 * time.Second

// process is a fresh gale-rls with its rule files and statistics.
type process struct {
	*testenv.GaleServer
	sink *testenv.StatsdSink
	conn *grpc.ClientConn
	// root is RUNTIME_ROOT; tree is the folder that it is or points to.
	root, tree string
	watchRoot  bool
	trees      int
}

// start runs the binary as README.md's base environment says.
func start(t *testing.T, l *lane, files, env map[string]string, layout string) *process {
	t.Helper()
	dir := t.TempDir()
	p := &process{sink: testenv.Statsd(t), root: filepath.Join(dir, "current"), watchRoot: layout == "watch_root"}
	p.tree = p.root
	if p.watchRoot {
		p.tree = filepath.Join(dir, "tree0")
	}
	for name, text := range files {
		p.write(t, name, text)
	}
	if err := os.MkdirAll(p.rules(), 0o755); err != nil {
		t.Fatal(err)
	}
	if p.watchRoot {
		if err := os.Symlink(p.tree, p.root); err != nil {
			t.Fatal(err)
		}
	}
	all := map[string]string{
		"RUNTIME_ROOT": p.root, "RUNTIME_SUBDIRECTORY": "ratelimit",
		"RUNTIME_WATCH_ROOT": fmt.Sprint(p.watchRoot),
		"STATSD_HOST":        p.sink.Host, "STATSD_PORT": p.sink.Port, "STATS_FLUSH_INTERVAL": "50ms",
		"LOG_FORMAT": "json",
	}
	for k, v := range env {
		all[k] = l.fill(v)
	}
	p.GaleServer = testenv.Gale(t, testenv.GaleOptions{Redis: l.redis, Env: all})
	testenv.Eventually(t, patience, "the first configuration to be loaded or rejected", func() bool {
		return p.loads("success")+p.loads("error") > 0
	})
	conn, err := grpc.NewClient(p.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	p.conn = conn
	return p
}

func (p *process) rules() string { return filepath.Join(p.tree, "ratelimit", "config") }

// loads is how often a configuration was loaded ("success") or rejected.
func (p *process) loads(how string) uint64 {
	var n uint64
	for name, v := range p.sink.Counters() {
		if strings.HasPrefix(name, "ratelimit.service.config_load_"+how) {
			n += v
		}
	}
	return n
}

// write makes a file appear complete.
func (p *process) write(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(p.rules(), filepath.FromSlash(name))
	tmp := filepath.Join(filepath.Dir(p.root), "new")
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

// reload changes the files of the running service and waits for the counter.
func (p *process) reload(t *testing.T, r *reload, want string) {
	t.Helper()
	before := p.loads(want)
	if p.watchRoot {
		p.swap(t, r)
	} else {
		for name, text := range r.Write {
			p.write(t, name, text)
		}
		for _, name := range r.Remove {
			if err := os.Remove(filepath.Join(p.rules(), name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if want != "" {
		testenv.Eventually(t, patience, "config_load_"+want+" to go up", func() bool {
			return p.loads(want) > before
		})
	}
}

// swap writes a new tree and lets the symbolic link point to it.
func (p *process) swap(t *testing.T, r *reload) {
	t.Helper()
	old := p.rules()
	p.trees++
	p.tree = filepath.Join(filepath.Dir(p.root), fmt.Sprintf("tree%d", p.trees))
	if err := os.CopyFS(p.rules(), os.DirFS(old)); err != nil {
		t.Fatal(err)
	}
	for name, text := range r.Write {
		p.write(t, name, text)
	}
	for _, name := range r.Remove {
		if err := os.Remove(filepath.Join(p.rules(), name)); err != nil {
			t.Fatal(err)
		}
	}
	next := p.root + ".next"
	if err := os.Symlink(p.tree, next); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, p.root); err != nil {
		t.Fatal(err)
	}
}

// ask sends a recorded request and compares the answer.
func (p *process) ask(t *testing.T, found *problems, where string, s step) {
	t.Helper()
	var request rlsv3.RateLimitRequest
	if err := protojson.Unmarshal(s.Request, &request); err != nil {
		t.Fatalf("%s: %v", where, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	response, err := rlsv3.NewRateLimitServiceClient(p.conn).ShouldRateLimit(ctx, &request)
	at := time.Now()
	if s.Expect == nil {
		return
	}
	matchStatus(found, where, s.Expect, err)
	if s.Expect.Response != nil && err == nil {
		matchMessage(t, found, where, s.Expect.Response, response, at)
	}
}

// matchStatus compares code and message of a call. The standard library
// spells codes as OK; the recorded ones are in capitals.
func matchStatus(found *problems, where string, want *answer, err error) {
	got := status.Convert(err)
	if code := codeName(got.Code().String()); code != want.GRPCCode {
		found.add("%s: code %s (%s), want %s", where, code, got.Message(), want.GRPCCode)
	}
	if want.Message != nil && *want.Message != "*" && got.Message() != *want.Message {
		found.add("%s: message %q, want %q", where, got.Message(), *want.Message)
	}
	if !strings.Contains(got.Message(), want.MessageContains) {
		found.add("%s: message %q, want it to contain %q", where, got.Message(), want.MessageContains)
	}
}

// codeName turns InvalidArgument into INVALID_ARGUMENT.
func codeName(camel string) string {
	var b strings.Builder
	for i, r := range camel {
		if i > 0 && r >= 'A' && r <= 'Z' && camel != "OK" {
			b.WriteByte('_')
		}
		b.WriteRune(r)
	}
	return strings.ToUpper(b.String())
}

func matchMessage(t *testing.T, found *problems, where string, want []byte, got proto.Message, at time.Time) {
	t.Helper()
	text, err := protojson.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	matchBody(t, found, where, want, text, at)
}

func matchBody(t *testing.T, found *problems, where string, want, got []byte, at time.Time) {
	t.Helper()
	w, err := decode(want)
	if err != nil {
		t.Fatalf("%s: the recorded answer: %v", where, err)
	}
	g, err := decode(got)
	if err != nil {
		found.add("%s: the answer is not JSON: %v: %q", where, err, got)
		return
	}
	matchJSON(found, where, w, g, at)
}

// health asks the gRPC health service.
func (p *process) health(t *testing.T, found *problems, where string, s step) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r, err := grpc_health_v1.NewHealthClient(p.conn).Check(ctx,
		&grpc_health_v1.HealthCheckRequest{Service: *s.Health})
	matchStatus(found, where, s.Expect, err)
	if s.Expect.Health != "" && err == nil && r.GetStatus().String() != s.Expect.Health {
		found.add("%s: health %s, want %s", where, r.GetStatus(), s.Expect.Health)
	}
}

// http sends a recorded HTTP request and compares the answer.
func (p *process) http(t *testing.T, found *problems, where string, s step) {
	t.Helper()
	address := p.HTTP
	if s.HTTP.Port == "debug" {
		address = p.Debug
	}
	request, err := http.NewRequestWithContext(t.Context(), s.HTTP.Method,
		"http://"+address+s.HTTP.Path, strings.NewReader(s.HTTP.Body))
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Timeout: patience}
	response, err := client.Do(request)
	at := time.Now()
	if err != nil {
		found.add("%s: %v", where, err)
		return
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		found.add("%s: %v", where, err)
		return
	}
	if want := s.Expect; want != nil {
		matchHTTP(t, found, where, want, response, body, at)
	}
}

func matchHTTP(t *testing.T, found *problems, where string, want *answer, got *http.Response, body []byte, at time.Time) {
	t.Helper()
	if got.StatusCode != want.HTTPStatus {
		found.add("%s: status %d, want %d: %s", where, got.StatusCode, want.HTTPStatus, body)
	}
	if kind := got.Header.Get("Content-Type"); want.ContentType != nil && kind != *want.ContentType {
		found.add("%s: content type %q, want %q", where, kind, *want.ContentType)
	}
	if want.Text != nil && string(body) != *want.Text {
		found.add("%s: body %q, want %q", where, body, *want.Text)
	}
	if want.JSON != nil {
		matchBody(t, found, where, want.JSON, body, at)
	}
	if want.Lines != nil {
		matchLines(found, where, want.Lines, string(body))
	}
}

// matchLines compares the lines of a page as a set.
func matchLines(found *problems, where string, want []string, page string) {
	got := map[string]bool{}
	for line := range strings.Lines(page) {
		got[strings.TrimRight(line, "\n")] = true
	}
	for _, w := range want {
		if !got[w] {
			found.add("%s: no line %q", where, w)
		}
		delete(got, w)
	}
	for line := range maps.Keys(got) {
		found.add("%s: not expected line %q", where, line)
	}
}
