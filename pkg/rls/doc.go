// Package rls is the door: Envoy's rate-limit service (RLS v3) over gRPC, the
// same over HTTP (/json), health, and the debug pages.
//
// A request is decoded, its descriptors are matched to rules, the charges are
// decided in one call of a Decider, and the decisions become statuses, an
// overall code, headers and metadata. Protobuf stops here: neither the rules
// nor the engine know it.
//
// # Invariants
//
//   - INV-6: an answer has one status per descriptor, in the request's order,
//     and its overall code is OK or OVER_LIMIT, never UNKNOWN. Envoy lets an
//     UNKNOWN through, and reads beyond the list when it is too long.
//   - A request that is answered INVALID_ARGUMENT has counted nothing.
//   - An answer shares no memory with the rules.
//   - Client input never panics. There is no recover here that would hide it.
//
// # Concurrency
//
// Everything exported is safe for concurrent use. The rules of a Service are
// swapped atomically: a request sees one set from its beginning to its end.
//
// # Failure
//
// A denial is an answer; an error is a gRPC error, so that Envoy's
// failure_mode_deny decides. Codes are chosen in errors.go and nowhere else.
package rls
