//go:build integration

package integration

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	rlv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gale-rls/gale-rls/internal/testenv"
)

// example is examples/envoy with a Go upstream: Envoy, gale-rls and Redis run
// the files of that folder, with other ports.
type example struct {
	gale  *testenv.GaleServer
	redis *testenv.RedisServer
	envoy *testenv.EnvoyServer
	// url is envoy.yaml's listener, newer that of envoy-1.39.yaml ("" on an
	// Envoy that is too old for it).
	url, newer string
	// upstream counts the requests that Envoy let through.
	upstream atomic.Int64
	rls      rlsv3.RateLimitServiceClient
	// from is a client whose address is its alone.
	from *http.Client
}

// exampleOptions says how the example runs. The zero value runs the newest
// Envoy and takes the clock out of the game.
type exampleOptions struct {
	// envoy is the version; "" is the newest.
	envoy string
	// ownTimeout keeps the 50 ms of the files. Elsewhere it is 5 s: on a busy
	// machine a call may take longer than 50 ms, Envoy lets the request pass,
	// and a count is off by one.
	ownTimeout bool
	env        map[string]string
}

// startExample starts it all; it ends with the test.
func startExample(t *testing.T, o exampleOptions) *example {
	t.Helper()
	version := o.envoy
	if version == "" {
		version = testenv.EnvoyNewest(t)
	}
	testenv.EnvoyBinary(t, version) // skips before anything is started
	x := &example{redis: testenv.Redis(t), from: clientFrom(t, randomLoopback())}
	x.gale = testenv.Gale(t, testenv.GaleOptions{
		Rules: exampleRules(t), Redis: x.redis, Env: o.env,
	})
	up := httptest.NewServer(http.HandlerFunc(x.serveUpstream))
	t.Cleanup(up.Close)

	pairs := []string{
		"port_value: 10000}", "port_value: 0}",
		"port_value: 10001}", "port_value: 0}",
		"port_value: 8081}", "port_value: " + port(t, x.gale.GRPC) + "}",
		"port_value: 9000}", "port_value: " + port(t, up.Listener.Addr().String()) + "}",
	}
	if !o.ownTimeout {
		pairs = append(pairs, "timeout: 0.050s", "timeout: 5s")
	}
	edit := strings.NewReplacer(pairs...)
	read := func(name string) []byte { return []byte(edit.Replace(exampleFile(t, name))) }
	if version == testenv.EnvoyNewest(t) {
		x.envoy = testenv.Envoy(t, version, read("envoy.yaml"), read("envoy-1.39.yaml"))
		x.newer = "http://" + x.envoy.Listeners["ingress-1.39"]
	} else {
		x.envoy = testenv.Envoy(t, version, read("envoy.yaml"))
	}
	x.url = "http://" + x.envoy.Listeners["ingress"]
	x.rls = dial(t, x.gale.GRPC)
	x.waitForRules(t)
	return x
}

// serveUpstream is the Go twin of examples/envoy/upstream.yaml.
func (x *example) serveUpstream(w http.ResponseWriter, r *http.Request) {
	x.upstream.Add(1)
	switch r.URL.Path {
	case "/cost":
		_, _ = w.Write(make([]byte, 400))
	case "/refund/failed":
		w.Header().Set("X-Refund", "1")
		http.Error(w, "failed; this one is on us", http.StatusBadGateway)
	default:
		_, _ = io.WriteString(w, "hello\n")
	}
}

// waitForRules waits until gale-rls enforces: doors may open before the rules
// are read or Redis has answered.
func (x *example) waitForRules(t *testing.T) {
	t.Helper()
	testenv.Eventually(t, 20*time.Second, "gale-rls to enforce the example's rules", func() bool {
		s, err := x.peek("example", "user", unique("probe"))
		return err == nil && s.GetCurrentLimit() != nil
	})
}

// peek asks gale-rls, past Envoy, what is left for one descriptor (key, value,
// key, value, ...), without adding a hit.
func (x *example) peek(domain string, entries ...string) (*rlsv3.RateLimitResponse_DescriptorStatus, error) {
	return ask(x.rls, domain, 0, entries...)
}

// left waits until so many hits are left for a descriptor.
func (x *example) left(t *testing.T, want uint32, domain string, entries ...string) {
	t.Helper()
	var got uint32
	what := fmt.Sprintf("%d hits to be left for %s %v", want, domain, entries)
	testenv.Eventually(t, 10*time.Second, what, func() bool {
		s, err := x.peek(domain, entries...)
		got = s.GetLimitRemaining()
		return err == nil && got == want
	})
}

// get sends one request; headers are name, value, name, value, ...
func (x *example) get(t *testing.T, url string, headers ...string) *http.Response {
	t.Helper()
	return get(t, x.from, url, headers...)
}

// codes sends n requests one after the other and returns their status codes.
func (x *example) codes(t *testing.T, n int, url string, headers ...string) []int {
	t.Helper()
	all := make([]int, n)
	for i := range all {
		all[i] = x.get(t, url, headers...).StatusCode
	}
	return all
}

// ask sends one descriptor with so many hits and returns its status.
func ask(c rlsv3.RateLimitServiceClient, domain string, hits uint64, entries ...string) (*rlsv3.RateLimitResponse_DescriptorStatus, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	d := descriptor(entries...)
	d.HitsAddend = wrapperspb.UInt64(hits)
	r, err := c.ShouldRateLimit(ctx, &rlsv3.RateLimitRequest{
		Domain: domain, Descriptors: []*rlv3.RateLimitDescriptor{d},
	})
	if err != nil {
		return nil, err
	}
	return r.GetStatuses()[0], nil
}

// descriptor builds one from key, value, key, value, ...
func descriptor(entries ...string) *rlv3.RateLimitDescriptor {
	d := &rlv3.RateLimitDescriptor{}
	for i := 0; i < len(entries); i += 2 {
		d.Entries = append(d.Entries, &rlv3.RateLimitDescriptor_Entry{Key: entries[i], Value: entries[i+1]})
	}
	return d
}

func dial(t *testing.T, target string) rlsv3.RateLimitServiceClient {
	t.Helper()
	c, err := grpc.NewClient("passthrough:///"+target, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return rlsv3.NewRateLimitServiceClient(c)
}

func get(t *testing.T, c *http.Client, url string, headers ...string) *http.Response {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	r, err := c.Do(req)
	if err != nil {
		t.Fatalf("GET %s: %v", url, err)
	}
	defer func() { _ = r.Body.Close() }()
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		t.Fatalf("GET %s: body: %v", url, err)
	}
	return r
}

// clientFrom is an HTTP client whose address is ip.
func clientFrom(t *testing.T, ip string) *http.Client {
	t.Helper()
	d := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip)}}
	tr := &http.Transport{DialContext: d.DialContext, MaxIdleConnsPerHost: 64}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// randomLoopback is an address of 127.0.0.0/8, outside of the range that the
// example's rules call suspect.
func randomLoopback() string {
	return fmt.Sprintf("127.%d.%d.%d", 10+rand.IntN(240), rand.IntN(256), 1+rand.IntN(250))
}

// unique is a name that no other test counts under.
func unique(name string) string { return fmt.Sprintf("%s-%016x", name, rand.Uint64()) }

func exampleFile(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(testenv.Root(t), "examples", "envoy", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// exampleRules are the rule files of the example, by name.
func exampleRules(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, name := range []string{"example.yaml", "billing.yaml"} {
		files[name] = exampleFile(t, filepath.Join("rules", name))
	}
	return files
}

func port(t *testing.T, addr string) string {
	t.Helper()
	_, p, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// needOfHour waits for the next hour unless so much is left of this one: the
// counters of the example start afresh with it.
func needOfHour(t *testing.T, left time.Duration) {
	t.Helper()
	testenv.Eventually(t, left+time.Second, "the hour to have enough left", func() bool {
		now := time.Now()
		return now.Truncate(time.Hour).Add(time.Hour).Sub(now) >= left
	})
}

// debug returns a page of gale-rls's debug port, "" if there is none.
func (x *example) debug(t *testing.T, path string) string {
	t.Helper()
	return page(t, "http://"+x.gale.Debug+path)
}

// page returns the body at url, "" if there is none.
func page(t *testing.T, url string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.DefaultClient.Do(req)
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
