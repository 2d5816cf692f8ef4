package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gale-rls/gale-rls/pkg/gale/sim"
)

func TestSimulateCommandLines(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
		code int
	}{
		{"simulate-help", []string{"simulate", "--help"}, 0},
		{"simulate-no-file", []string{"simulate", "testdata/absent.yaml"}, 1},
		{"simulate-unknown-name", []string{"simulate", "testdata/simulate-unknown-name.yaml"}, 1},
		{"simulate-makes-no-sense", []string{"simulate", "-replicas", "0", "-rate", "-1", "-shape", "round"}, 1},
		{"simulate-unit", []string{"simulate", "-unit", "fortnight"}, 1},
		{"simulate-two-files", []string{"simulate", "a.yaml", "b.yaml"}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, out, log := runs(c.args...)
			if code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			golden(t, c.name+".txt", "$ gale-rls "+strings.Join(c.args, " ")+"\n"+out+log)
		})
	}
}

// What a run prints, for a result that does not depend on the engine.
func TestSimulateTable(t *testing.T) {
	f := defaultScenario()
	f.Faults.Failovers = 1
	s, err := f.scenario()
	if err != nil {
		t.Fatal(err)
	}
	r := sim.Result{
		Offered: 30_000, Admitted: 20_000, Refused: 9_990, Failed: 10, Trips: 812, Waited: 120, LostOvershoot: 7,
		Windows: []sim.WindowResult{{Offered: 700, Admitted: 700}, {Offered: 1500, Admitted: 1000}, {Offered: 1450, Admitted: 990}, {Offered: 1500, Admitted: 1007}, {Offered: 80, Admitted: 80}},
	}
	var out bytes.Buffer
	describeRun(&f, s, &r, &out)
	golden(t, "simulate-table.txt", out.String())
	golden(t, "simulate-plot.svg", string(plotWindows("limit 1000 per second, <3> replicas", 1000, r.Windows)))
}

// The example runs as its own comments say, and flags win over the file.
func TestSimulateExample(t *testing.T) {
	plot := filepath.Join(t.TempDir(), "plot.svg")
	code, out, log := runs("simulate", "-duration", "4s", "-plot", plot, "../../examples/simulate/scenario.yaml")
	if code != 0 {
		t.Fatalf("exit code %d: %s%s", code, out, log)
	}
	for _, want := range []string{"limit 1000 per second, 8 replicas, 1500 requests/s (hot), store 2ms away, 4s, seed 1", "trips per 1000 requests", "worst window"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
	data, err := os.ReadFile(plot)
	if err != nil {
		t.Fatal(err)
	}
	for d := xml.NewDecoder(bytes.NewReader(data)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%s is no XML: %v", plot, err)
		}
	}
}

// The example says what the defaults are where it does not change them.
func TestSimulateDefaultsAreValid(t *testing.T) {
	f := defaultScenario()
	s, err := f.scenario()
	if err != nil || s.Length != 20*time.Second {
		t.Fatal(s, err)
	}
	f.Unit = "minute"
	if s, err = f.scenario(); err != nil || s.Length != 4*time.Minute {
		t.Fatal(s, err)
	}
}
