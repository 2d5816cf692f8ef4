package main

import (
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"text/tabwriter"
	"time"

	"github.com/gale-rls/gale-rls/pkg/gale/sim"
)

const simulateHelp = `Usage: gale-rls simulate [FLAGS] [SCENARIO.yaml]

Simulates replicas that decide by leases, with the code that ships, and tells
what that costs and gives: trips to the store, waits, how much of the limit is
used, the worst window. Nothing is contacted. A scenario file says more than the
flags do (examples/simulate/scenario.yaml is a commented one); flags win.
Exit 1 if a window admitted more than the limit.

Flags:
`

// progressEvery is between two signs of life of a long run.
const progressEvery = 2 * time.Second

// simulate is the subcommand.
func simulate(args []string, out, log io.Writer) int {
	f := defaultScenario()
	// The file comes first and the flags win, so args are parsed twice.
	flags, plot := simulateFlags(&f)
	if code, ok := parseFlags(flags, simulateHelp, args, out, log); !ok {
		return code
	}
	switch files := flags.Args(); len(files) {
	case 0:
	case 1:
		f = defaultScenario()
		if err := f.read(files[0]); err != nil {
			fmt.Fprintln(log, "gale-rls simulate:", err)
			return 1
		}
		flags, plot = simulateFlags(&f)
		if code, ok := parseFlags(flags, simulateHelp, args, out, log); !ok {
			return code
		}
	default:
		return usage(log, "simulate takes one scenario file, after the flags")
	}
	s, err := f.scenario()
	if err != nil {
		fmt.Fprintf(log, "gale-rls simulate: %v\n", err)
		return 1
	}
	return runScenario(&f, s, *plot, out, log)
}

func simulateFlags(f *scenarioFile) (flags *flag.FlagSet, plot *string) {
	flags = flag.NewFlagSet("simulate", flag.ContinueOnError)
	flags.Uint64Var(&f.Limit, "limit", f.Limit, "hits per unit")
	flags.StringVar(&f.Unit, "unit", f.Unit, "second, minute, hour or day")
	flags.IntVar(&f.Replicas, "replicas", f.Replicas, "of gale-rls")
	flags.DurationVar(&f.Duration, "duration", f.Duration, "of simulated time (default 20s, and four windows)")
	flags.Float64Var(&f.Traffic.Rate, "rate", f.Traffic.Rate, "requests per second, of all replicas")
	flags.DurationVar(&f.Redis.Latency, "latency", f.Redis.Latency, "mean round trip to the store")
	flags.DurationVar(&f.Redis.Jitter, "jitter", f.Redis.Jitter, "of the latency, to either side")
	flags.Var(&f.Lease.Size, "size", "of a lease, a `number` or auto (default auto)")
	flags.DurationVar(&f.Patience, "patience", f.Patience, "how long a request waits for a lease")
	flags.Uint64Var(&f.Seed, "seed", f.Seed, "another one is another run")
	flags.Func("shape", "of the traffic: even, hot or halves (default even)", func(v string) error {
		f.Traffic.Shape = sim.Shape(v)
		return nil
	})
	return flags, flags.String("plot", "", "write an SVG of the windows to this `file`")
}

func runScenario(f *scenarioFile, s sim.Scenario, plot string, out, log io.Writer) int {
	last := time.Now()
	r, err := sim.Run(s, func(done float64) {
		if now := time.Now(); now.Sub(last) >= progressEvery {
			last = now
			fmt.Fprintf(log, "simulated %.0f %%\n", 100*done)
		}
	})
	if err != nil {
		fmt.Fprintf(log, "gale-rls simulate: %v\n", err)
		return 1
	}
	describeRun(f, s, &r, out)
	if plot != "" {
		err := os.WriteFile(plot, plotWindows(fmt.Sprintf("limit %d per %s, %d replicas", s.Limit, f.Unit, s.Replicas), s.Limit, r.Windows), 0o644)
		if err != nil {
			fmt.Fprintf(log, "gale-rls simulate: %v\n", err)
			return 1
		}
	}
	if r.Err != nil {
		_, trace := sim.Shrink(s)
		fmt.Fprintf(log, "gale-rls simulate: this must not happen; please report it.\n%v\n%s\n", r.Err, trace)
		return 1
	}
	return 0
}

// describeRun prints the table. What strict mode would cost is known without
// simulation: a trip for each request.
func describeRun(f *scenarioFile, s sim.Scenario, r *sim.Result, out io.Writer) {
	requests := max(r.Offered/max(s.Hits, 1), 1)
	fmt.Fprintf(out, "limit %d per %s, %d replicas, %g requests/s (%s), store %v away, %v, seed %d\n\n",
		s.Limit, f.Unit, s.Replicas, s.Rate, s.Shape, s.Latency, s.Length, s.Seed)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	line := func(name, strict, leased string) { fmt.Fprintf(w, "%s\t%s\t%s\t\n", name, strict, leased) }
	count := func(n uint64) string { return fmt.Sprint(n) }
	line("", "strict", "leased")
	line("requests", count(requests), count(requests))
	line("trips to the store", count(requests), fmt.Sprint(r.Trips))
	line("trips per 1000 requests", "1000", fmt.Sprintf("%.1f", 1000*float64(r.Trips)/float64(requests)))
	line("requests that waited, %", "100", fmt.Sprintf("%.2f", 100*float64(r.Waited)/float64(requests)))
	line("wait, median", s.Latency.String(), r.WaitAt(0.5).Round(10*time.Microsecond).String())
	line("wait, 99 %", (s.Latency + s.Jitter).String(), r.WaitAt(0.99).Round(10*time.Microsecond).String())
	line("wait, longest", (s.Latency + s.Jitter).String(), r.WaitAt(1).Round(10*time.Microsecond).String())
	line("hits admitted", "", count(r.Admitted))
	line("refused", "", count(r.Refused))
	line("failed", "", count(r.Failed))
	if used := r.Utilisation(s.Limit); !math.IsNaN(used) {
		line("utilisation of whole windows, %", "", fmt.Sprintf("%.1f", 100*used))
	}
	line("worst window", "", fmt.Sprintf("%d of %d", r.Worst(), s.Limit))
	over := r.Worst() - min(r.Worst(), s.Limit)
	line("overshoot", "0", count(over))
	if s.Failovers > 0 {
		line("of it, grants that the store lost", "", count(r.LostOvershoot))
	}
	w.Flush()
	fmt.Fprintln(out, "\nfailed: no lease in time (on_unavailable answers), or the replica was down.")
}
