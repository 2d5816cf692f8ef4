package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/gale-rls/gale-rls/internal/settings"
)

// serve runs the service until a signal ends it, and returns the exit code.
func serve(environ []string, out io.Writer) int {
	// Signals count from the first moment: one that arrives while the
	// service starts ends it as cleanly as any.
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	defer signal.Stop(signals)

	s, notices, err := settings.FromEnv(environ)
	log := newLogger(s.Log, out)
	if err != nil {
		refuse(s.Log, log, out, "settings are wrong, so it does not start", err)
		return 1
	}
	for _, n := range notices {
		log.Warn(n)
	}
	a, err := wire(s, log)
	if err != nil {
		refuse(s.Log, log, out, "cannot start", err)
		return 1
	}
	if err := a.run(signals); err != nil {
		log.Error(err.Error())
		return 1
	}
	return 0
}

// refuse says why the service does not start: as text for a person, or as JSON
// where that was asked for.
func refuse(s settings.Log, log *slog.Logger, out io.Writer, what string, err error) {
	if !s.JSON {
		fmt.Fprintf(out, "gale-rls: %s:\n%v\n", what, err)
		return
	}
	var many interface{ Unwrap() []error }
	if errors.As(err, &many) {
		for _, one := range many.Unwrap() {
			log.Error(one.Error())
		}
		return
	}
	log.Error(what + ": " + err.Error())
}

// run opens the doors and serves until a signal, or until a door or the store
// fails for good.
func (a *app) run(signals <-chan os.Signal) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	a.log.Warn(a.about())
	failed := make(chan error, 8)
	forced := a.settings.Source.ForceStart
	if !forced {
		a.loader.load()
	}
	a.awaitStore()
	go a.watchStore(ctx, failed)
	if err := a.open(failed); err != nil {
		return err // nothing was served: there is nothing to drain or to tell
	}
	flushed := make(chan error, 1)
	statsCtx, endStats := context.WithCancel(context.Background())
	defer endStats()
	go func() {
		flushed <- a.registry.Run(statsCtx, a.sink, a.settings.Stats.FlushInterval, lastFlush)
	}()
	if forced {
		a.loader.load()
	}
	if a.loader.source.watch != nil {
		go a.loader.source.watch(ctx, a.loader.load)
	}
	err := a.untilEnd(signals, failed)

	end, done := a.drainContext(signals)
	defer done()
	cancel()
	a.close(end)
	endStats()
	if flushErr := <-flushed; flushErr != nil {
		a.log.Warn("Some statistics were not sent", "error", flushErr)
	}
	return err
}

// untilEnd returns nil when a signal asks for the end, or what failed.
func (a *app) untilEnd(signals <-chan os.Signal, failed <-chan error) error {
	for {
		select {
		case err := <-failed:
			return err
		case s := <-signals:
			if s != syscall.SIGHUP {
				a.log.Warn("Draining", "signal", s.String(), "within", a.settings.Lifecycle.DrainTimeout.String())
				return nil
			}
			a.log.Warn("Loading the rules again", "signal", s.String())
			a.loader.load()
		}
	}
}

// lastFlush bounds what the final flush of statistics may take.
const lastFlush = 2 * time.Second

// drainContext ends with the drain timeout, or with a second signal.
func (a *app) drainContext(signals <-chan os.Signal) (context.Context, func()) {
	ctx, cancel := context.WithTimeout(context.Background(), a.settings.Lifecycle.DrainTimeout)
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case s := <-signals:
				if s != syscall.SIGHUP {
					a.log.Warn("Ending at once", "signal", s.String())
					cancel()
				}
			}
		}
	}()
	return ctx, cancel
}

const (
	// startPatience is how long the doors wait for a Redis that is there, so
	// that the first requests do not meet a service that is not connected
	// yet. One that is absent delays them by no more.
	startPatience = time.Second
	readyPoll     = 10 * time.Millisecond
	healthPoll    = 250 * time.Millisecond
)

func (a *app) awaitStore() {
	for end := time.Now().Add(startPatience); time.Now().Before(end) && a.engine.Ready() != nil; {
		time.Sleep(readyPoll)
	}
	a.health.SetStore(a.engine.Ready() == nil)
}

// watchStore keeps health in step with the store: until it can be asked for
// the first time, and with REDIS_HEALTH_CHECK_ACTIVE_CONNECTION ever after.
func (a *app) watchStore(ctx context.Context, failed chan<- error) {
	r := a.settings.Redis
	started, ready := time.Now(), false
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := a.engine.Ready()
		switch {
		case err == nil && !ready:
			ready = true
			tick.Reset(healthPoll)
			a.health.SetStore(true)
			a.log.Info("The store answers", "store", a.storeName)
		case err != nil && ready && r.HealthFollowsConnections:
			a.health.SetStore(false)
			ready = false
			a.log.Warn("The store cannot be asked: not healthy", "store", a.storeName, "error", err)
		case err != nil && !ready && r.RetryUntil > 0 && time.Since(started) > r.RetryUntil && !a.wasReady:
			failed <- fmt.Errorf("timed out waiting for Redis connection to %s after %v: %w; "+
				"start Redis, correct REDIS_URL, or unset REDIS_STARTUP_MAX_ELAPSED_TIME to wait for ever", a.storeName, r.RetryUntil, err)
			return
		}
		a.wasReady = a.wasReady || ready
	}
}
