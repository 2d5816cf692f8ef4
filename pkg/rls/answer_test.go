package rls

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/gale-rls/gale-rls/internal/stats"
)

// scenario is a file of testdata/answers: requests in order, in protobuf JSON,
// with their answers ("<Code>: <message>" for an error), over rules.yaml and a
// store whose windows never end.
type scenario struct {
	About  string
	Config Config
	Steps  []struct {
		Request, Response json.RawMessage
		Error             string
	}
	// Statistics, if given, are all counters of the service afterwards.
	Statistics map[string]json.Number
}

func TestAnswers(t *testing.T) {
	rules, err := os.ReadFile("testdata/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("testdata/answers/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("scenarios: %v, %v", files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			sc := readScenario(t, file)
			if sc.Config.NearLimitRatio == 0 {
				sc.Config.NearLimitRatio = 0.8
			}
			s, _, registry := newTestService(t, sc.Config, string(rules))
			for i, step := range sc.Steps {
				response, err := s.ShouldRateLimit(t.Context(), request(t, string(step.Request)))
				if got := errorText(err); got != step.Error {
					t.Fatalf("step %d: error %q, want %q", i, got, step.Error)
				}
				if err == nil {
					compareResponse(t, i, response, step.Response)
				}
			}
			if sc.Statistics != nil {
				compareStatistics(t, registry, sc.Statistics)
			}
		})
	}
}

func readScenario(t testing.TB, file string) (sc scenario) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&sc); err != nil {
		t.Fatal(err)
	}
	return sc
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return status.Code(err).String() + ": " + status.Convert(err).Message()
}

func compareResponse(t *testing.T, step int, got *rlsv3.RateLimitResponse, wantJSON []byte) {
	t.Helper()
	want := new(rlsv3.RateLimitResponse)
	if err := protojson.Unmarshal(wantJSON, want); err != nil {
		t.Fatalf("step %d: %v", step, err)
	}
	if !proto.Equal(got, want) {
		t.Errorf("step %d: got\n%s\nwant\n%s", step, protojson.Format(got), protojson.Format(want))
	}
}

func compareStatistics(t *testing.T, registry *stats.Registry, want map[string]json.Number) {
	t.Helper()
	got := map[string]string{}
	for _, line := range strings.Split(statsText(t, registry), "\n") {
		if name, value, ok := strings.Cut(line, ": "); ok && strings.HasPrefix(name, "ratelimit.service.") {
			got[name] = value
		}
	}
	for name, value := range want {
		if got[name] != value.String() {
			t.Errorf("%s is %q, want %s", name, got[name], value)
		}
		delete(got, name)
	}
	for name, value := range got {
		t.Errorf("%s is %s, want none", name, value)
	}
}

func statsText(t *testing.T, registry *stats.Registry) string {
	t.Helper()
	var text bytes.Buffer
	if err := registry.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	return text.String()
}
