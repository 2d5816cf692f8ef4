// Package testenv starts the real parts that tests need: Redis, Envoy, the
// built gale-rls binary, and between them a TCP proxy that makes faults and
// a sink that collects statistics.
//
// Everything listens on 127.0.0.1 or on a unix socket in a temporary folder,
// is fresh for each call, and ends with the test. A server that cannot be
// had skips the test with the way to get it; where servers are required
// (CI=true, or GALE_REQUIRE_SERVERS set) it fails the test instead, so that
// a green run has run everything.
//
// # Time
//
// These are real processes: their clocks are the machine's, and nothing here
// works inside a testing/synctest bubble. Wait with Eventually.
//
// # Concurrency
//
// Servers may be used from several goroutines; Kill, Pause, Resume and
// Restart of one server are serialised.
package testenv
