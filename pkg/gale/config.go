package gale

import (
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// Config is what an Engine is told beside its stores. The zero value is
// valid: strict counting as envoyproxy/ratelimit does it.
type Config struct {
	// StopWhenOver takes all strict charges of a request or none
	// (STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT).
	StopWhenOver bool
	// DenyCacheForStrict lets strict rules use the deny cache, as
	// cached-deny rules always do (LOCAL_CACHE_SIZE_IN_BYTES).
	DenyCacheForStrict bool
	// DenyCacheKeys bounds the deny cache, in counters. 0 means
	// DefaultDenyCacheKeys.
	DenyCacheKeys int
	// ExpirationJitter bounds what is added at random to a strict counter's
	// time to live, in whole seconds, so that counters do not expire all at
	// once. 0 adds nothing.
	ExpirationJitter time.Duration
	// DeadlineMargin is how long before a request's own deadline the store is
	// given up, so that there is time left to answer. 0 is none.
	DeadlineMargin time.Duration
	// OpTimeout bounds each store operation, whatever the request's deadline.
	// 0 means DefaultOpTimeout.
	OpTimeout time.Duration
	// MaxKeys bounds the keys whose share of the limit is counted here while
	// the store is gone; further ones are refused. 0 means DefaultMaxKeys.
	MaxKeys int
	// MaxLeasedKeys bounds the keys that hold credits here; what it costs to
	// have more is leases, not admissions. 0 means DefaultMaxLeasedKeys.
	MaxLeasedKeys int
	// ReplicaID names this replica to the others, for the estimate of how
	// many live. Empty: not announced, and the estimate is 1.
	ReplicaID string
	// Log gets what an operator should see: a store that is gone, or back.
	// Nil discards.
	Log *slog.Logger
}

const (
	// DefaultDenyCacheKeys takes about 15 MB when full, with keys of 60 bytes.
	DefaultDenyCacheKeys = 100_000
	// DefaultMaxKeys takes about 15 MB when full, with keys of 60 bytes.
	DefaultMaxKeys = 100_000
	// DefaultMaxLeasedKeys takes about 300 MB when full.
	DefaultMaxLeasedKeys = 1_000_000
	// DefaultOpTimeout is far beyond a healthy store, and short enough for
	// callers without a deadline of their own.
	DefaultOpTimeout = time.Second
)

// Validate reports all settings that make no sense, joined.
func (c *Config) Validate() error {
	var problems []error
	check := func(ok bool, format string, value any) {
		if !ok {
			problems = append(problems, fmt.Errorf(format, value))
		}
	}
	check(c.DenyCacheKeys >= 0, "DenyCacheKeys %v is negative", c.DenyCacheKeys)
	check(c.ExpirationJitter >= 0, "ExpirationJitter %v is negative", c.ExpirationJitter)
	check(c.DeadlineMargin >= 0, "DeadlineMargin %v is negative", c.DeadlineMargin)
	check(c.OpTimeout >= 0, "OpTimeout %v is negative", c.OpTimeout)
	check(c.MaxKeys >= 0, "MaxKeys %v is negative", c.MaxKeys)
	check(c.MaxLeasedKeys >= 0, "MaxLeasedKeys %v is negative", c.MaxLeasedKeys)
	return errors.Join(problems...)
}

// withDefaults returns c with zero fields filled in.
func (c Config) withDefaults() Config {
	if c.DenyCacheKeys == 0 {
		c.DenyCacheKeys = DefaultDenyCacheKeys
	}
	if c.MaxKeys == 0 {
		c.MaxKeys = DefaultMaxKeys
	}
	if c.MaxLeasedKeys == 0 {
		c.MaxLeasedKeys = DefaultMaxLeasedKeys
	}
	if c.OpTimeout == 0 {
		c.OpTimeout = DefaultOpTimeout
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}
