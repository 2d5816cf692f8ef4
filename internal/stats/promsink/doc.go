// Package promsink shows the counts of internal/stats as Prometheus metrics.
//
// Names are mapped once each. Series of caller-chosen names are bounded: the
// least recently moved one leaves when a new one finds no room (its hits are
// in gale_stats_evicted_… once the registry has evicted it too). A scrape
// flushes first, so values do not lag.
package promsink
