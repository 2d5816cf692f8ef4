// Package descriptors turns rule files into one validated, immutable Tree,
// and finds the rule that a descriptor hits.
//
// The language is that of envoyproxy/ratelimit, with one block of our own,
// gale. Nothing here knows protobuf, the store or the clock.
package descriptors
