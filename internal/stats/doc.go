// Package stats counts by statsd name, and hands the counts to a sink.
//
// The names are those of envoyproxy/ratelimit. A counter that was never
// moved is never shown: no sink and no page sees a zero.
//
// # Bounds
//
// Names that operators write (rules, errors, methods) are permanent. Names
// that callers can choose (overrides, values, unknown domains) live in two
// bounded sets, one of rules and one of single counters, of Options.MaxSeries
// names each. When a set is full, the name that was least recently used makes
// room (second chance, so that a flood of one-off names does not push out
// those in use). What it had counted and not yet shown is flushed first, under
// its own name; its cumulative value leaves /stats and is added to
// "gale.stats.evicted.<stat>". If names come and go faster than the sink is
// flushed, what no longer finds room is counted under
// "gale.stats.overflow.<stat>", so the sum over all names stays exact.
//
// # Concurrency
//
// Everything is safe for concurrent use. Adding to a counter is one atomic
// addition. DynamicRule and Dynamic take a read lock of one of 32 shards, and
// do not allocate when the name is known.
//
// # Failure
//
// A sink that cannot be reached never blocks a request: lines wait in a
// bounded buffer, then the newest are dropped and counted.
package stats
