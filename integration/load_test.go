//go:build integration

package integration

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// load sends requests at a constant rate, whether or not earlier ones have
// been answered, and keeps when each was answered.
type load struct {
	wire     *wire
	frames   [][]byte // sent in turn
	rate     int      // per second
	deadline time.Duration

	cancel context.CancelFunc
	done   sync.WaitGroup

	mu      sync.Mutex
	answers []answer
}

// answer is one request of a load.
type answer struct {
	sent time.Time
	took time.Duration
	code string // of gRPC; "" when there was none
	err  error
}

// loadTick is how often a load looks how many requests are due: at 1,000/s
// it sends five at a time.
const loadTick = 5 * time.Millisecond

// maxBurst bounds what is sent at once after the test itself was held up:
// that would measure the client's burst and not the server.
const maxBurst = 25

func (l *load) start() {
	ctx, cancel := context.WithCancel(context.Background())
	l.cancel = cancel
	l.done.Go(func() {
		tick := time.NewTicker(loadTick)
		defer tick.Stop()
		last, n := time.Now(), 0
		for {
			select {
			case <-ctx.Done():
				return
			case now := <-tick.C:
				due := int(now.Sub(last).Seconds() * float64(l.rate))
				last = last.Add(time.Duration(due) * time.Second / time.Duration(l.rate))
				for range min(due, maxBurst) {
					n++
					f := l.frames[n%len(l.frames)]
					l.done.Go(func() { l.send(f) })
				}
			}
		}
	})
}

func (l *load) send(frame []byte) {
	a := answer{sent: time.Now()}
	a.code, a.took, a.err = l.wire.ask(frame, l.deadline)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answers = append(l.answers, a)
}

// stop waits for the requests under way.
func (l *load) stop() {
	l.cancel()
	l.done.Wait()
}

// between returns the answers of requests that were sent in [from, to).
func (l *load) between(from, to time.Time) answers {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all answers
	for _, a := range l.answers {
		if !a.sent.Before(from) && a.sent.Before(to) {
			all = append(all, a)
		}
	}
	return all
}

type answers []answer

// String is the count, the rate's share, the codes and the latencies.
func (all answers) String() string {
	if len(all) == 0 {
		return "none"
	}
	codes := map[string]int{}
	took := make([]time.Duration, len(all))
	for i, a := range all {
		codes[a.name()]++
		took[i] = a.took
	}
	slices.Sort(took)
	at := func(share float64) time.Duration {
		return took[min(len(took)-1, int(share*float64(len(took))))].Round(10 * time.Microsecond)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d answers; p50 %v, p99 %v, p99.9 %v, max %v; codes", len(all), at(.5), at(.99), at(.999), at(1))
	for _, c := range slices.Sorted(maps.Keys(codes)) {
		fmt.Fprintf(&b, " %s:%d", c, codes[c])
	}
	return b.String()
}

// name is how the answer is counted.
func (a answer) name() string {
	switch {
	case a.err != nil:
		return "none"
	case a.code == "0":
		return "OK"
	case a.code == "2":
		return "UNKNOWN"
	default:
		return "code" + a.code
	}
}

// later returns the answers that took longer than that.
func (all answers) later(than time.Duration) (late answers) {
	for _, a := range all {
		if a.took > than {
			late = append(late, a)
		}
	}
	return late
}

// beyond returns the answers that took longer than that and what the machine
// may have added.
func (all answers) beyond(than time.Duration, n noise) (late answers) {
	for _, a := range all {
		if a.took > than+n.excuses(a) {
			late = append(late, a)
		}
	}
	return late
}

// unanswered returns the calls that ended without an answer.
func (all answers) unanswered() (none answers) {
	for _, a := range all {
		if a.err != nil {
			none = append(none, a)
		}
	}
	return none
}

func (a answer) String() string {
	return fmt.Sprintf("%s after %v at %s (%v)", a.name(), a.took, a.sent.Format("15:04:05.000"), a.err)
}
