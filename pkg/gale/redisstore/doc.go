// Package redisstore is the shared ledger on Redis, Valkey, or what speaks
// their protocol: for replicas of gale-rls, and of envoyproxy/ratelimit, that
// share one limit.
//
// Strict counters are moved with INCRBY and EXPIRE, the commands and keys of
// envoyproxy/ratelimit. What must be atomic is a script in scripts/. Commands
// that may be executed twice do not exist, so nothing is ever sent again,
// except scripts that the server did not know.
//
// # Round trips
//
// Operations queue up and a fixed number of workers, each with a connection,
// send what has queued up in one pipeline: the busier, the larger. An
// operation is one round trip whatever its number of steps, and concurrent
// ones share it.
//
// # Failure
//
// Each operation is bounded by its caller's deadline and by Config.Timeout.
// The queue is bounded; when it is full operations fail at once. An operation
// whose caller has left is not sent. A server that is not there is no error
// of New: it is looked for in the background, and Ready says when it is found.
//
// # Time
//
// Leases go by the server's clock. The replica's clock is used for deadlines.
//
// # Concurrency
//
// All methods are safe for concurrent use. The goroutines are the workers and
// one that pings; none belongs to a request.
package redisstore
