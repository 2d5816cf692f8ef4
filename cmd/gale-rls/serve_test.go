package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/gale-rls/gale-rls/internal/testenv"
)

const patience = 20 * time.Second

func dial(t *testing.T, address string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// ask sends one descriptor, and returns the overall code or the error.
func ask(t *testing.T, conn *grpc.ClientConn, domain, key, value string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	answer, err := rlsv3.NewRateLimitServiceClient(conn).ShouldRateLimit(ctx, &rlsv3.RateLimitRequest{
		Domain:      domain,
		Descriptors: []*common.RateLimitDescriptor{{Entries: []*common.RateLimitDescriptor_Entry{{Key: key, Value: value}}}},
	}, grpc.WaitForReady(true))
	if err != nil {
		return err.Error()
	}
	return answer.GetOverallCode().String()
}

// get returns status and body, or the error.
func get(url string) string {
	answer, err := http.Get(url)
	if err != nil {
		return err.Error()
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return err.Error()
	}
	return answer.Status + " " + string(body)
}

func TestServeInMemory(t *testing.T) {
	g := testenv.Gale(t, testenv.GaleOptions{})
	conn := dial(t, g.GRPC)
	for i, want := range []string{"OK", "OK", "OVER_LIMIT"} {
		if got := ask(t, conn, "gale", "hello", t.Name()); got != want {
			t.Errorf("answer %d is %s, want %s", i+1, got, want)
		}
	}
	if got := get("http://" + g.HTTP + "/healthcheck"); got != "200 OK OK" {
		t.Errorf("health is %q", got)
	}
	if got := get("http://" + g.Debug + "/stats"); !strings.Contains(got, "ratelimit.service.config_load_success: 1\n") {
		t.Errorf("/stats says\n%s", got)
	}
	if got := get("http://" + g.Debug + "/metrics"); !strings.Contains(got, `gale_rls_decisions_total{mode="strict"`) || !strings.Contains(got, "go_goroutines") {
		t.Errorf("/metrics says\n%s", got)
	}
	if !strings.Contains(g.Log(), "limits are per process") {
		t.Errorf("the log does not say that limits are per process:\n%s", g.Log())
	}
	if code := g.Terminate(t, patience); code != 0 {
		t.Errorf("exit code %d\n%s", code, g.Log())
	}
}

func TestClientAsksAService(t *testing.T) {
	g := testenv.Gale(t, testenv.GaleOptions{Rules: map[string]string{"a.yaml": "domain: d\ndescriptors:\n- key: k\n  rate_limit: {unit: year, requests_per_unit: 2, name: few}\n"}})
	asks := func(args ...string) (int, string) {
		code, out, log := runs(append([]string{"client", "-dial_string", g.GRPC, "-domain", "d"}, args...)...)
		return code, regexp.MustCompile(` +[0-9hms]+\n`).ReplaceAllString(out+log, " RESET\n")
	}
	code, out := asks("-descriptors", "k=v", "-descriptors", "none=x", "-repeat", "3")
	const want = `#  answer      descriptor  status      limit             remaining  resets in
1  OK          (k=v)       OK          2 per year (few)  1 RESET
1  OK          (none=x)    OK          none                         
2  OK          (k=v)       OK          2 per year (few)  0 RESET
2  OK          (none=x)    OK          none                         
3  OVER_LIMIT  (k=v)       OVER_LIMIT  2 per year (few)  0 RESET
3  OVER_LIMIT  (none=x)    OK          none                         
`
	if code != 0 || out != want {
		t.Errorf("exit code %d:\n%s\nwant:\n%s", code, out, want)
	}
	if code, out := asks("-descriptors", "k=v", "-negative-hits", "2"); code != 0 || !strings.Contains(out, "OK          2 per year (few)  1") && !strings.Contains(out, "OK      2 per year (few)  1") {
		t.Errorf("a refund: exit code %d:\n%s", code, out)
	}
	if code, out := asks("-descriptors", "k=v", "-hits", "0", "-raw"); code != 0 || !strings.HasPrefix(out, "response: ") {
		t.Errorf("a peek: exit code %d:\n%s", code, out)
	}
	if code, out, log := runs("client", "-dial_string", "127.0.0.1:1", "-domain", "d", "-descriptors", "k=v"); code != 1 || !strings.Contains(log, "request error: ") {
		t.Errorf("nobody there: exit code %d:\n%s%s", code, out, log)
	}
}

// Some deployments start /bin/ratelimit with arguments, which it ignores.
func TestNamedRatelimitItServes(t *testing.T) {
	link := filepath.Join(t.TempDir(), "ratelimit")
	if err := os.Symlink(testenv.GaleBinary(t, false), link); err != nil {
		t.Fatal(err)
	}
	g := testenv.Gale(t, testenv.GaleOptions{Binary: link, Args: []string{"--help"}})
	if got := ask(t, dial(t, g.GRPC), "gale", "hello", t.Name()); got != "OK" {
		t.Errorf("answer %s", got)
	}
}

func TestPortZeroIsLogged(t *testing.T) {
	g := testenv.Gale(t, testenv.GaleOptions{NotReady: true, Env: map[string]string{"GRPC_PORT": "0", "PORT": "0", "DEBUG_PORT": "0", "GRPC_HOST": "::1"}})
	address := regexp.MustCompile(`Listening for gRPC on '(\[::1\]:[1-9][0-9]*)'`)
	testenv.Eventually(t, patience, "the gRPC address in the log", func() bool { return address.MatchString(g.Log()) })
	if got := ask(t, dial(t, address.FindStringSubmatch(g.Log())[1]), "gale", "hello", t.Name()); got != "OK" {
		t.Errorf("answer %s", got)
	}
}

func TestUnixSocket(t *testing.T) {
	dir, err := os.MkdirTemp("", "gale") //nolint:usetesting // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "rls.sock")
	stale, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	if err != nil {
		t.Fatal(err)
	}
	stale.SetUnlinkOnClose(false)
	stale.Close() // leaves the file, with nobody listening
	env := map[string]string{"GRPC_UDS": path}
	g := testenv.Gale(t, testenv.GaleOptions{NotReady: true, Env: env})
	if got := ask(t, dial(t, "unix://"+path), "gale", "hello", t.Name()); got != "OK" {
		t.Errorf("answer %s\n%s", got, g.Log())
	}
	second := testenv.Gale(t, testenv.GaleOptions{NotReady: true, Env: env})
	if code := second.Wait(t, patience); code != 1 || !strings.Contains(second.Log(), "another process listens there") {
		t.Errorf("a second process on the socket: exit code %d\n%s", code, second.Log())
	}
	if code := g.Terminate(t, patience); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("the socket is still there after the end")
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	third := testenv.Gale(t, testenv.GaleOptions{NotReady: true, Env: env})
	if code := third.Wait(t, patience); code != 1 || !strings.Contains(third.Log(), "a file that is no socket") {
		t.Errorf("a file in the way: exit code %d\n%s", code, third.Log())
	}
}

func TestTakenPortIsAnError(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	for _, c := range []struct{ setting, want string }{
		{"GRPC_PORT", "set GRPC_HOST or GRPC_PORT"}, {"PORT", "set HOST or PORT"},
	} {
		g := testenv.Gale(t, testenv.GaleOptions{NotReady: true, Env: map[string]string{c.setting: port}})
		if code := g.Wait(t, patience); code != 1 || !strings.Contains(g.Log(), c.want) {
			t.Errorf("%s: exit code %d\n%s", c.setting, code, g.Log())
		}
	}
	g := testenv.Gale(t, testenv.GaleOptions{NotReady: true, Env: map[string]string{"DEBUG_PORT": port}})
	if got := ask(t, dial(t, g.GRPC), "gale", "hello", t.Name()); got != "OK" {
		t.Errorf("with a taken debug port, the answer is %s\n%s", got, g.Log())
	}
}

const ruleOf = "domain: %s\ndescriptors:\n- key: k\n  rate_limit: {unit: year, requests_per_unit: 1}\n"

func TestReload(t *testing.T) {
	rules := func(domain string) string { return strings.Replace(ruleOf, "%s", domain, 1) }
	g := testenv.Gale(t, testenv.GaleOptions{
		Rules: map[string]string{"a.yaml": rules("a"), "b.yaml": rules("b")},
		Env:   map[string]string{"LOG_LEVEL": "info"},
	})
	conn := dial(t, g.GRPC)
	loads := func(what string) string {
		stats := get("http://" + g.Debug + "/stats")
		m := regexp.MustCompile(what + `: (\d+)`).FindStringSubmatch(stats)
		if m == nil {
			return "0"
		}
		return m[1]
	}
	ask(t, conn, "a", "k", "v")
	// One file goes bad: its domain keeps its rules, the other changes.
	g.WriteRules(t, map[string]string{"b.yaml": "domain: b\ndescriptors:\n- kye: k\n", "a.yaml": rules("changed")})
	testenv.Eventually(t, patience, "the bad file to be counted", func() bool { return loads("config_load_error") >= "1" })
	testenv.Eventually(t, patience, "the good file to be live", func() bool {
		return strings.Contains(get("http://"+g.Debug+"/rlconfig"), "changed.k: ")
	})
	if got := get("http://" + g.Debug + "/rlconfig"); !strings.Contains(got, "b.k: ") || strings.Contains(got, "\na.k: ") {
		t.Errorf("the rules are\n%s", got)
	}
	if want := "Error loading new configuration: b.yaml: config error, unknown key 'kye'"; !strings.Contains(g.Log(), want) {
		t.Errorf("the log does not say %q:\n%s", want, g.Log())
	}
	g.WriteRules(t, map[string]string{"b.yaml": rules("b")})
	testenv.Eventually(t, patience, "the repaired file to be loaded", func() bool { return loads("config_load_success") >= "2" })
	before := loads("config_load_success")
	g.Reload(t)
	testenv.Eventually(t, patience, "SIGHUP to load again", func() bool { return loads("config_load_success") > before })
	if got := ask(t, conn, "b", "k", "v"); got != "OK" {
		t.Errorf("answer %s", got)
	}
}

func TestRedisMayComeLater(t *testing.T) {
	redis := testenv.Redis(t)
	if !redis.Owned() {
		t.Skip("needs a Redis that it may kill")
	}
	redis.Kill(t)
	g := testenv.Gale(t, testenv.GaleOptions{Redis: redis, Env: map[string]string{"LOG_LEVEL": "info", "REDIS_AUTH": ""}})
	if got := get("http://" + g.HTTP + "/healthcheck"); !strings.HasPrefix(got, "500") {
		t.Errorf("without Redis, health is %q", got)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	state, err := healthpb.NewHealthClient(dial(t, g.GRPC)).Check(ctx, &healthpb.HealthCheckRequest{Service: "ratelimit"})
	if err != nil || state.GetStatus() != healthpb.HealthCheckResponse_NOT_SERVING {
		t.Errorf("without Redis, gRPC health is %v, %v", state, err)
	}
	redis.Restart(t)
	testenv.Eventually(t, patience, "health after Redis came", func() bool { return get("http://"+g.HTTP+"/healthcheck") == "200 OK OK" })
	if got := ask(t, dial(t, g.GRPC), "gale", "hello", t.Name()); got != "OK" {
		t.Errorf("answer %s\n%s", got, g.Log())
	}
}

// Once Redis was there, health stays good when it goes, unless the operator
// wants it to follow.
func TestHealthFollowsRedisWhenAsked(t *testing.T) {
	redis := testenv.Redis(t)
	if !redis.Owned() {
		t.Skip("needs a Redis that it may kill")
	}
	stays := testenv.Gale(t, testenv.GaleOptions{Redis: redis})
	follows := testenv.Gale(t, testenv.GaleOptions{Redis: redis, Env: map[string]string{"REDIS_HEALTH_CHECK_ACTIVE_CONNECTION": "true"}})
	health := func(g *testenv.GaleServer) string { return get("http://" + g.HTTP + "/healthcheck")[:3] }
	for _, g := range []*testenv.GaleServer{stays, follows} {
		testenv.Eventually(t, patience, "health", func() bool { return health(g) == "200" })
	}
	redis.Kill(t)
	testenv.Eventually(t, patience, "health to follow Redis down", func() bool { return health(follows) == "500" })
	if got := health(stays); got != "200" {
		t.Errorf("health went to %s without being asked to", got)
	}
	redis.Restart(t)
	testenv.Eventually(t, patience, "health to follow Redis up", func() bool { return health(follows) == "200" })
}

func TestStartGivesUpOnRedisWhenAsked(t *testing.T) {
	g := testenv.Gale(t, testenv.GaleOptions{NotReady: true, Env: map[string]string{
		"REDIS_URL": "redis://me:hunter2@127.0.0.1:1", "REDIS_STARTUP_MAX_ELAPSED_TIME": "50ms",
	}})
	if code := g.Wait(t, patience); code != 1 || !strings.Contains(g.Log(), "timed out waiting for Redis connection to Redis redis://***@127.0.0.1:1") {
		t.Errorf("exit code %d\n%s", code, g.Log())
	}
	if strings.Contains(g.Log(), "hunter2") {
		t.Errorf("a password is shown:\n%s", g.Log())
	}
}

// A client that holds a stream open must not keep the process alive.
func TestDrainIsBounded(t *testing.T) {
	g := testenv.Gale(t, testenv.GaleOptions{Env: map[string]string{"GALE_DRAIN_TIMEOUT": "300ms"}})
	watch, err := healthpb.NewHealthClient(dial(t, g.GRPC)).Watch(t.Context(), &healthpb.HealthCheckRequest{Service: "ratelimit"}, grpc.WaitForReady(true))
	if err != nil {
		t.Fatal(err)
	}
	if first, err := watch.Recv(); err != nil || first.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		t.Fatalf("health begins with %v, %v", first, err)
	}
	begun := time.Now()
	g.Signal(t, syscall.SIGTERM)
	if next, err := watch.Recv(); err != nil || next.GetStatus() != healthpb.HealthCheckResponse_NOT_SERVING {
		t.Errorf("health goes to %v, %v", next, err)
	}
	if code := g.Wait(t, patience); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("draining took %v, the bound is 300ms", took)
	}
}

func TestASecondSignalEndsAtOnce(t *testing.T) {
	g := testenv.Gale(t, testenv.GaleOptions{Env: map[string]string{"GALE_DRAIN_TIMEOUT": "1h"}})
	watch, err := healthpb.NewHealthClient(dial(t, g.GRPC)).Watch(t.Context(), &healthpb.HealthCheckRequest{}, grpc.WaitForReady(true))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := watch.Recv(); err != nil {
		t.Fatal(err)
	}
	g.Signal(t, syscall.SIGTERM)
	testenv.Eventually(t, patience, "the first signal", func() bool { return strings.Contains(g.Log(), "Draining") })
	g.Signal(t, syscall.SIGINT)
	if code := g.Wait(t, patience); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

func TestLastStatisticsAreSent(t *testing.T) {
	sink := testenv.Statsd(t)
	g := testenv.Gale(t, testenv.GaleOptions{Env: map[string]string{"STATSD_HOST": sink.Host, "STATSD_PORT": sink.Port, "STATS_FLUSH_INTERVAL": "1h"}})
	ask(t, dial(t, g.GRPC), "gale", "hello", t.Name())
	g.Terminate(t, patience)
	testenv.Eventually(t, patience, "the final flush", func() bool {
		return sink.Counters()["ratelimit.service.rate_limit.gale.hello.total_hits"] == 1
	})
}

func TestLogFormats(t *testing.T) {
	g := testenv.Gale(t, testenv.GaleOptions{Env: map[string]string{"LOG_FORMAT": "json", "TRACING_ENABLED": "true"}})
	if want := `"level":"warning","@message":"TRACING_ENABLED is set and has no effect here`; !strings.Contains(g.Log(), want) || !strings.Contains(g.Log(), `{"@timestamp":"`) {
		t.Errorf("no %s in\n%s", want, g.Log())
	}
}

func TestPrometheusDoor(t *testing.T) {
	var g *testenv.GaleServer
	address := regexp.MustCompile(`Listening for Prometheus on '([^']+)'`)
	g = testenv.Gale(t, testenv.GaleOptions{Env: map[string]string{
		"DISABLE_STATS": "false", "USE_STATSD": "false", "USE_PROMETHEUS": "true",
		"PROMETHEUS_ADDR": "127.0.0.1:0", "PROMETHEUS_MAPPER_YAML": "/absent/conf.yaml",
	}})
	ask(t, dial(t, g.GRPC), "gale", "hello", t.Name())
	port := "http://" + address.FindStringSubmatch(g.Log())[1]
	if got := get(port + "/metrics"); !strings.Contains(got, `ratelimit_service_rate_limit_total_hits{domain="gale",key1="hello"} 1`) || !strings.Contains(got, "gale_store_operations_total") {
		t.Errorf("the metrics are\n%s", got)
	}
	if got := get(port + "/debug/pprof/"); !strings.HasPrefix(got, "404") {
		t.Errorf("profiles on the metrics port: %.100s", got)
	}
	if !strings.Contains(g.Log(), "PROMETHEUS_MAPPER_YAML names a file that is not there") {
		t.Errorf("the log is silent about the absent mapping file:\n%s", g.Log())
	}
}

func TestLogGoesToTheGivenWriter(t *testing.T) {
	var b bytes.Buffer
	if code := serve([]string{"LOG_LEVEL=x"}, &b); code != 1 || !strings.Contains(b.String(), "LOG_LEVEL") {
		t.Errorf("exit code %d, %q", code, b.String())
	}
}
