//go:build integration

package integration

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gale-rls/gale-rls/internal/testenv"
)

// size is how large a process is.
type size struct {
	resident   int64 // bytes
	goroutines int
}

// sizes follows a process's size.
type sizes struct {
	cancel context.CancelFunc
	done   chan struct{}
	last   chan size // holds the newest
	most   size      // read after done
}

// watchSizes follows the size of gale-rls until stop.
func watchSizes(t *testing.T, g *testenv.GaleServer) *sizes {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	p := &sizes{cancel: cancel, done: make(chan struct{}), last: make(chan size, 1)}
	pid := g.PID()
	first := size{resident(t, pid), goroutines(t, g)}
	p.last <- first
	go func() {
		defer close(p.done)
		tick := time.NewTicker(500 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			s := size{resident(t, pid), goroutines(t, g)}
			<-p.last
			p.last <- s
			p.most.resident = max(p.most.resident, s.resident)
			p.most.goroutines = max(p.most.goroutines, s.goroutines)
		}
	}()
	t.Cleanup(func() { p.stop() })
	return p
}

func (p *sizes) newest() size {
	s := <-p.last
	p.last <- s
	return s
}

func (p *sizes) stop() size {
	p.cancel()
	<-p.done
	return p.most
}

// resident is a process's resident memory, in bytes.
func resident(t *testing.T, pid int) int64 {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		t.Errorf("resident memory: %v", err)
		return 0
	}
	pages, err := strconv.ParseInt(strings.Fields(string(b))[1], 10, 64)
	if err != nil {
		t.Errorf("resident memory: %v", err)
	}
	return pages * int64(os.Getpagesize())
}

// goroutines is the number of goroutines of gale-rls: the first line of the
// profile is "goroutine profile: total 42".
func goroutines(t *testing.T, g *testenv.GaleServer) int {
	t.Helper()
	head, _, _ := strings.Cut(page(t, "http://"+g.Debug+"/debug/pprof/goroutine?debug=1"), "\n")
	n, err := strconv.Atoi(strings.TrimPrefix(head, "goroutine profile: total "))
	if err != nil {
		t.Errorf("goroutine profile: %v", err)
	}
	return n
}

func mib(b int64) float64 { return float64(b) / (1 << 20) }
