// Package sizing decides how many credits a holder asks for at once.
//
// A larger lease saves round trips and strands more credits at the window's
// end. With an order cost c per round trip, a penalty h per stranded credit
// and a demand of D hits per window, a lease of b credits costs about
//
//	f_D(b) = c*D/b + h*b/2
//
// per window, least at the economic order quantity b* = sqrt(2*c*D/h). D is
// not known ahead, so a Learner follows it: AdaGrad on x = ln b, one step per
// window. A Hedge weighs the learner against predictions of D, and is never
// much worse than the better of them.
//
// # Safety
//
// Sizes move efficiency only. The ledger holds the limit for any sequence of
// sizes, so nothing in this package can cause over-admission.
//
// # Time
//
// None. The caller says when a window is over, by calling Observe.
//
// # Concurrency
//
// Params are immutable once used and are shared by all keys. The state of one
// key (Learner, Hedge, Predictor) is a plain value that its owner guards.
//
// # Memory
//
// A Learner has 8 bytes, because a replica has a million keys.
package sizing
