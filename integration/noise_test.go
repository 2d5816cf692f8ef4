//go:build integration

package integration

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// noise is what the machine adds to latencies, by slot of time, whatever the
// server does.
type noise struct {
	// calls is the longest that an answer took that needs nothing.
	calls map[int64]time.Duration
	// held is how long the server and this client were ready to run and the
	// machine did not let them; nil when nobody looked.
	held map[int64]time.Duration
}

// noiseStep is the length of a slot.
const noiseStep = 100 * time.Millisecond

func slot(t time.Time) int64 { return t.UnixNano() / int64(noiseStep) }

// noiseOf takes it from a load that nothing is done to.
func noiseOf(undisturbed answers) noise {
	n := noise{calls: map[int64]time.Duration{}}
	for _, a := range undisturbed {
		for s := slot(a.sent); s <= slot(a.sent.Add(a.took)); s++ {
			n.calls[s] = max(n.calls[s], a.took)
		}
	}
	return n
}

// excuses is how much of an answer's latency may be the machine's: the noise
// from its first slot to the slot after its last, as who measures may be held
// up too.
func (n noise) excuses(a answer) time.Duration {
	var longest, held time.Duration
	for s := slot(a.sent); s <= slot(a.sent.Add(a.took))+1; s++ {
		longest = max(longest, n.calls[s])
		held += n.held[s]
	}
	return max(longest, held)
}

// holdUps follows how long processes wait for a processor: Linux counts it
// for each thread, in the second number of schedstat, in nanoseconds. Steal,
// which is the time that the virtual machine itself did not run, is added.
type holdUps struct {
	cancel context.CancelFunc
	done   sync.WaitGroup
	held   map[int64]time.Duration // read after done
}

// holdUpStep is how often it is looked at; several times in a slot.
const holdUpStep = 25 * time.Millisecond

// watchHoldUps follows this process and another until stop.
func watchHoldUps(t *testing.T, pid int) *holdUps {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	h := &holdUps{cancel: cancel, held: map[int64]time.Duration{}}
	h.done.Go(func() {
		tick := time.NewTicker(holdUpStep)
		defer tick.Stop()
		before, stolen := runDelays(pid), steal()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			now, stolenNow := runDelays(pid), steal()
			h.held[slot(time.Now())] += longestOf(before, now) + stolenNow - stolen
			before, stolen = now, stolenNow
		}
	})
	t.Cleanup(func() { h.stop() })
	return h
}

func (h *holdUps) stop() map[int64]time.Duration {
	h.cancel()
	h.done.Wait()
	return h.held
}

// total is the sum of all slots.
func total(held map[int64]time.Duration) (sum time.Duration) {
	for _, d := range held {
		sum += d
	}
	return sum
}

// runDelays is how long each thread of this process and of pid has waited so
// far, by process and thread.
func runDelays(pid int) [2]map[string]time.Duration {
	return [2]map[string]time.Duration{threadDelays(os.Getpid()), threadDelays(pid)}
}

func threadDelays(pid int) map[string]time.Duration {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil {
		return nil
	}
	delays := make(map[string]time.Duration, len(files))
	for _, f := range files {
		b, err := os.ReadFile(f)
		fields := strings.Fields(string(b))
		if err != nil || len(fields) < 2 {
			continue // the thread has ended
		}
		if ns, err := strconv.ParseInt(fields[1], 10, 64); err == nil {
			delays[f] = time.Duration(ns)
		}
	}
	return delays
}

// longestOf adds up, over the processes, how long the thread waited that
// waited longest.
func longestOf(before, now [2]map[string]time.Duration) (sum time.Duration) {
	for i := range now {
		var longest time.Duration
		for thread, delay := range now[i] {
			longest = max(longest, delay-before[i][thread])
		}
		sum += longest
	}
	return sum
}

// steal is the eighth number of the first line of /proc/stat, in hundredths
// of a second, over all processors.
func steal() time.Duration {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	fields := strings.Fields(strings.SplitN(string(b), "\n", 2)[0])
	if len(fields) < 9 {
		return 0
	}
	ticks, err := strconv.ParseInt(fields[8], 10, 64)
	if err != nil {
		return 0
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}
