package rls

import (
	"os"
	"path/filepath"
	"testing"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// FuzzRequest: whatever arrives, nothing panics, and an answer has one status
// per descriptor and an overall code (INV-6).
func FuzzRequest(f *testing.F) {
	rules, err := os.ReadFile("testdata/rules.yaml")
	if err != nil {
		f.Fatal(err)
	}
	files, err := filepath.Glob("testdata/answers/*.json")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		for _, step := range readScenario(f, file).Steps {
			wire, err := proto.Marshal(request(f, string(step.Request)))
			if err != nil {
				f.Fatal(err)
			}
			f.Add(wire)
		}
	}
	f.Add([]byte("\x0a\x01\xff\x12\x04\x0a\x02\x0a\x00"))
	c := Config{HeadersEnabled: true, IETFHeaders: true, DynamicMetadata: true}
	plain, _, _ := newTestService(f, c, string(rules))
	c.QuotaMode, c.ShadowMode, c.MaxDescriptors = true, true, 5
	modes, _, _ := newTestService(f, c, string(rules))
	f.Fuzz(func(t *testing.T, wire []byte) {
		findBadText(wire)
		req := new(rlsv3.RateLimitRequest)
		if proto.Unmarshal(wire, req) != nil {
			return
		}
		checkAnyAnswer(t, plain, req)
		checkAnyAnswer(t, modes, req)
	})
}

func checkAnyAnswer(t *testing.T, s *Service, req *rlsv3.RateLimitRequest) {
	t.Helper()
	response, err := s.ShouldRateLimit(t.Context(), req)
	if err != nil {
		if code := status.Code(err); response != nil || code != codes.Unknown && code != codes.InvalidArgument {
			t.Fatalf("%v with %v", err, response)
		}
		return
	}
	if len(response.GetStatuses()) != len(req.GetDescriptors()) {
		t.Fatalf("%d statuses for %d descriptors", len(response.GetStatuses()), len(req.GetDescriptors()))
	}
	if code := response.GetOverallCode(); code != codeOK && code != codeOver {
		t.Fatalf("overall code %v", code)
	}
	if s.config.ShadowMode && response.GetOverallCode() != codeOK {
		t.Fatal("refused in global shadow mode")
	}
	if _, err := proto.Marshal(response); err != nil {
		t.Fatalf("the answer cannot be sent: %v", err)
	}
}
