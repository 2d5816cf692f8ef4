// Package memstore is the shared ledger in memory: what gale-rls runs on when
// no Redis is configured, and the reference for other stores. It is shared by
// everything in one process, so limits are per process.
//
// # Time
//
// The store's clock is the machine's wall clock, except that it never goes
// back: a wall clock that is set forward is followed, one that is set back is
// not. Counters expire by this clock.
//
// # Memory
//
// A counter costs about 150 bytes and its name. New counters make room by
// removing expired ones, two for one. At most Config.MaxKeys counters are
// kept; beyond that the one goes that was not asked for lately, and its count
// is forgotten. So a flood of names that are used once does not push out the
// counters of names that are used again.
//
// # Concurrency
//
// All methods are safe for concurrent use. Nothing blocks, and there are no
// goroutines.
package memstore
