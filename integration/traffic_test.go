//go:build integration

package integration

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/gale-rls/gale-rls/internal/testenv"
)

// traffic is requests that go on in the background.
type traffic struct {
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu    sync.Mutex
	codes map[int]int // by status code; 0 is a request without an answer
}

// Four workers with a pause of 10 ms are at most 400 requests/s: enough for
// some to be under way at every instant, and little load.
const (
	trafficWorkers = 4
	trafficPause   = 10 * time.Millisecond
)

// traffic sends requests to url until stop or the test's end. Each user sends
// eight, so that both 200 and 429 occur at the limits of the example.
func (x *example) traffic(t *testing.T, url string) *traffic {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	tr := &traffic{cancel: cancel, codes: map[int]int{}}
	for range trafficWorkers {
		worker := unique("traffic")
		tr.done.Go(func() {
			tick := time.NewTicker(trafficPause)
			defer tick.Stop()
			for i := 0; ; i++ {
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
					tr.note(status(x.from, url, fmt.Sprintf("%s-%d", worker, i/8)))
				}
			}
		})
	}
	t.Cleanup(func() { tr.stop() })
	return tr
}

// stop ends the traffic and returns how often each status code came.
func (tr *traffic) stop() map[int]int {
	tr.cancel()
	tr.done.Wait()
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return tr.codes
}

// waitFor waits until each of the status codes has come.
func (tr *traffic) waitFor(t *testing.T, codes ...int) {
	t.Helper()
	testenv.Eventually(t, 20*time.Second, fmt.Sprintf("the traffic to see %v", codes), func() bool {
		tr.mu.Lock()
		defer tr.mu.Unlock()
		for _, c := range codes {
			if tr.codes[c] == 0 {
				return false
			}
		}
		return true
	})
}

func (tr *traffic) note(code int) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.codes[code]++
}

// status sends one request as user and returns its status code, 0 if there is
// no answer. The request ends by itself, whatever becomes of the traffic.
func status(c *http.Client, url, user string) int {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0
	}
	req.Header.Set("X-User-Id", user)
	r, err := c.Do(req)
	if err != nil {
		return 0
	}
	defer func() { _ = r.Body.Close() }()
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return 0
	}
	return r.StatusCode
}
