// Package descriptors turns rule files into one validated, immutable Tree,
// and finds the rule that a descriptor hits.
//
// The language is that of envoyproxy/ratelimit, with one block of our own,
// gale. Nothing here knows protobuf, the store or the clock.
//
// # Loading
//
// A file is a domain with its descriptors, in YAML as envoyproxy/ratelimit
// reads it: YAML 1.1 words and numbers, the later of two equal keys, anchors
// and merge keys, the first document only. Load reports all defects of all
// files, each with file, line, column and the descriptor's path, and texts
// that begin as the reference's do. A bad file takes no other file down, and
// its own domains keep the rules that they had.
//
// Bounds: 128 levels of descriptors, 400 levels of YAML, 400,000 values that
// aliases repeat.
//
// # The gale block
//
// It stands on the domain, as the default of its rules, or on a descriptor,
// for its limit and those below it; each of its fields is inherited on its
// own. "metadata: {gale: …}" is the same block. At the root of all is
// Options.DefaultMode. See Gale for what may stand in it.
//
// # What matching costs
//
// A look-up walks one level per entry. On each it costs the length of key and
// value, a constant number of map look-ups, and, where the level has more than
// eight wildcards, walks along indexes of what wildcards begin and end with.
// The number of rules does not matter, be they exact or wildcards. What
// matters is how many wildcards of one level have the same text before their
// first star and also after their last: of those, all that stand in the file
// before the one that fits are compared. "/a/*" and "/b/*" differ in the
// first, "*.a" and "*.b" in the second; "*a*" and "*b*" differ in neither.
//
// Matching, keys and names allocate nothing beyond the memory that the caller
// appends to, except that a Match keeps room for the longest key so far.
//
// # Concurrency
//
// A Tree and its Rules are immutable. A Match is one goroutine's at a time.
//
// # Testing
//
// Recorded answers of envoyproxy/ratelimit are replayed (conformance_test.go,
// errors_test.go); random rules and requests are compared with a naive
// matcher (naive_test.go).
package descriptors
