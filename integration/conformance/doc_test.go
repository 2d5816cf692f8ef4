//go:build integration

// Package conformance replays what envoyproxy/ratelimit answers, as recorded
// in ../testdata/conformance, against the built gale-rls: over the store in
// memory and over Redis, through gRPC and, for what was recorded so, HTTP.
package conformance
