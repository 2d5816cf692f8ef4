package gale

import (
	"context"
	"sync"
)

// laneCount is how many requests can ask both stores at once. Beyond that
// they ask one after the other: slower, and nothing grows.
const laneCount = 64

// lanes execute the second store's batch of a request beside the first's, on
// a fixed number of goroutines.
type lanes struct {
	jobs chan lane // unbuffered: a job is taken now or not at all
	stop chan struct{}
	once sync.Once
	wg   sync.WaitGroup
}

// lane is a batch to be counted; done gets a value afterwards.
type lane struct {
	ctx   context.Context
	batch *batch
	done  chan struct{}
}

func newLanes() *lanes {
	l := &lanes{jobs: make(chan lane), stop: make(chan struct{})}
	for range laneCount {
		l.wg.Go(l.run)
	}
	return l
}

// try hands the job to an idle goroutine, if there is one.
func (l *lanes) try(job lane) bool {
	select {
	case l.jobs <- job:
		return true
	default:
		return false
	}
}

func (l *lanes) run() {
	for {
		select {
		case <-l.stop:
			return
		case job := <-l.jobs:
			job.batch.err = job.batch.store.Count(job.ctx, job.batch.steps)
			job.done <- struct{}{}
		}
	}
}

func (l *lanes) close() {
	l.once.Do(func() { close(l.stop) })
	l.wg.Wait()
}
