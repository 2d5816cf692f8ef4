package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/gale-rls/gale-rls/pkg/gale/sim"
)

// scenarioFile is a scenario as an operator writes it; see
// examples/simulate/scenario.yaml.
type scenarioFile struct {
	Limit    uint64
	Unit     string
	Replicas int
	Duration time.Duration
	Traffic  struct {
		Rate  float64
		Hits  uint64
		Shape sim.Shape
		Shift time.Duration
	}
	Redis struct {
		Latency, Jitter time.Duration
		Loss            float64
	}
	Lease struct {
		Size       leaseSize
		Max        uint64
		Prefetch   bool
		IdleReturn time.Duration `yaml:"idle_return"`
	}
	Patience time.Duration
	Clocks   struct {
		Offset time.Duration
		Drift  float64 `yaml:"drift_ppm"`
	}
	Faults struct {
		Crashes, Pauses, Partitions, Failovers int
		Outage                                 time.Duration
		LostTail                               time.Duration `yaml:"lost_tail"`
		Replicated                             bool
	}
	Seed uint64
}

// leaseSize is a number or auto, which is 0.
type leaseSize uint64

func (s *leaseSize) UnmarshalYAML(n *yaml.Node) error { return s.Set(n.Value) }

func (s *leaseSize) Set(text string) error {
	if text == "auto" {
		*s = 0
		return nil
	}
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil || n == 0 {
		return fmt.Errorf("size is auto or a positive number, not %q", text)
	}
	*s = leaseSize(n)
	return nil
}

func (s *leaseSize) String() string {
	if *s == 0 {
		return "auto"
	}
	return strconv.FormatUint(uint64(*s), 10)
}

// defaultScenario is a small service: what is not said is this.
func defaultScenario() scenarioFile {
	var f scenarioFile
	f.Limit, f.Unit, f.Replicas, f.Seed = 1000, "second", 3, 1
	f.Traffic.Rate, f.Traffic.Hits, f.Traffic.Shape = 1500, 1, sim.Even
	f.Redis.Latency, f.Redis.Jitter = 2*time.Millisecond, time.Millisecond
	f.Lease.Prefetch = true
	f.Patience = 20 * time.Millisecond
	f.Clocks.Drift = 100
	f.Faults.Outage = 500 * time.Millisecond
	return f
}

// read takes over what a file says. Unknown names are errors.
func (f *scenarioFile) read(name string) error {
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	d := yaml.NewDecoder(bytes.NewReader(data))
	d.KnownFields(true)
	if err := d.Decode(f); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// scenario is the file as the simulator takes it.
func (f *scenarioFile) scenario() (sim.Scenario, error) {
	units := map[string]int64{"second": 1, "minute": 60, "hour": 3600, "day": 86400}
	window, ok := units[f.Unit]
	if !ok {
		return sim.Scenario{}, fmt.Errorf("unit: %q is none of second, minute, hour, day", f.Unit)
	}
	s := sim.Scenario{
		Seed: f.Seed, Replicas: f.Replicas, Limit: f.Limit, Window: window, Length: f.Duration,
		Rate: f.Traffic.Rate, Hits: f.Traffic.Hits, Shape: f.Traffic.Shape, Shift: f.Traffic.Shift,
		Latency: f.Redis.Latency, Jitter: min(f.Redis.Jitter, f.Redis.Latency), Loss: f.Redis.Loss,
		Patience: f.Patience, Offset: f.Clocks.Offset, Drift: f.Clocks.Drift,
		Crashes: f.Faults.Crashes, Pauses: f.Faults.Pauses, Partitions: f.Faults.Partitions,
		Failovers: f.Faults.Failovers, Outage: f.Faults.Outage, LostTail: f.Faults.LostTail, Replicated: f.Faults.Replicated,
	}
	s.Lease.Size, s.Lease.Max = uint64(f.Lease.Size), f.Lease.Max
	s.Lease.NoPrefetch, s.Lease.IdleReturn = !f.Lease.Prefetch, f.Lease.IdleReturn
	if s.Length == 0 {
		s.Length = max(20*time.Second, 4*time.Duration(window)*time.Second)
	}
	return s, s.Validate()
}
