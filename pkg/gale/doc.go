// Package gale decides whether a request may pass, over all the limits that
// it is charged to.
//
// A limit lives in a Ledger: one counter per key and window, in a Store that
// every replica shares. Three modes read and move that counter:
//
//   - strict: every request moves the counter, one round trip, whatever the
//     number of charges;
//   - cached-deny: strict, and what is known to be refused is refused here;
//   - leased: a Holder takes credits from the ledger in lots, and spends them
//     in memory. The sum over all holders never exceeds the limit.
//
// All three use the same counter under the same name, so replicas in
// different modes, and replicas of envoyproxy/ratelimit, share one limit.
//
// # Invariants
//
//   - INV-1: for every key and window of the store's clock, and every l: hits
//     admitted for requests whose limit is l or less are at most l.
//   - INV-2: for every key and window: granted = spent + held + returned +
//     expired + lost, and granted - returned is at most the limit.
//   - INV-3: every admission has spent a credit of each window in which it
//     could have happened.
//   - INV-4: the store's time lies in [earliest, latest], as long as drift is
//     within its bound and the store's clock does not step.
//   - INV-5: at most one lease is in flight per key and window per holder.
//   - INV-7: in leased mode a refused request spends nothing.
//
// # Time
//
// Holder, Ledger and StoreClock are pure: time is an argument. The shell
// (Engine) calls time.Now. Strict windows are those of the replica's wall
// clock, as in the service that we replace; leased windows are the store's.
//
// # Failure
//
// A store that is slow or gone never blocks a request beyond its deadline.
// What is answered then is the charge's Policy.OnUnavailable.
package gale
