//go:build integration

package integration

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	rlv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/proto"
)

// wire calls ShouldRateLimit as a plain HTTP/2 request. A gRPC client answers
// itself when its deadline passes, so it cannot tell when the server did:
// this one tells the server the deadline and then waits for what it says.
type wire struct {
	url    string
	client *http.Client
}

// wirePatience is how long an answer is waited for, whatever the deadline.
const wirePatience = 10 * time.Second

func newWire(t *testing.T, target string) *wire {
	t.Helper()
	var h2 http.Protocols
	h2.SetUnencryptedHTTP2(true)
	tr := &http.Transport{Protocols: &h2}
	t.Cleanup(tr.CloseIdleConnections)
	return &wire{
		url:    "http://" + target + rlsv3.RateLimitService_ShouldRateLimit_FullMethodName,
		client: &http.Client{Transport: tr},
	}
}

// frame encodes a request of one descriptor for ask.
func frame(t *testing.T, domain string, entries ...string) []byte {
	t.Helper()
	b, err := proto.Marshal(&rlsv3.RateLimitRequest{
		Domain: domain, Descriptors: []*rlv3.RateLimitDescriptor{descriptor(entries...)},
	})
	if err != nil {
		t.Fatal(err)
	}
	head := make([]byte, 5, 5+len(b))
	binary.BigEndian.PutUint32(head[1:], uint32(len(b)))
	return append(head, b...)
}

// ask sends a frame with that deadline and returns the gRPC status code, and
// the time until the whole answer was there.
func (w *wire) ask(frame []byte, deadline time.Duration) (code string, took time.Duration, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), wirePatience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, bytes.NewReader(frame))
	if err != nil {
		return "", 0, err
	}
	req.Header.Set("Content-Type", "application/grpc")
	req.Header.Set("Te", "trailers")
	req.Header.Set("Grpc-Timeout", fmt.Sprintf("%dm", deadline.Milliseconds()))
	start := time.Now()
	r, err := w.client.Do(req)
	if err != nil {
		return "", time.Since(start), err
	}
	defer func() { _ = r.Body.Close() }()
	_, err = io.Copy(io.Discard, r.Body)
	took = time.Since(start)
	code = r.Trailer.Get("Grpc-Status")
	if code == "" { // an answer without a message carries it in the header
		code = r.Header.Get("Grpc-Status")
	}
	return code, took, err
}
