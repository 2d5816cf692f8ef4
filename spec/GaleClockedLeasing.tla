------------------------- MODULE GaleClockedLeasing -------------------------
(***************************************************************************)
(* Leasing as pkg/gale does it: no clock is synchronised, messages take    *)
(* their time, and a window still admits at most Limit.                    *)
(*                                                                         *)
(* The LEDGER has one counter per window and goes by its own clock, time.  *)
(* It grants credits of the current window or the next one: up to Batch,   *)
(* fewer when little is left, none when nothing is.                        *)
(*                                                                         *)
(* A HOLDER has a clock that is ahead by an unknown offset and drifts by   *)
(* at most Drift ticks in a run.  Each reply tells the ledger's time at    *)
(* some moment between sending and receiving; that brackets the offset,    *)
(* and brackets are intersected.  To admit a hit, the holder pays one      *)
(* credit of every window that the ledger could be in.                     *)
(*                                                                         *)
(* The NETWORK delays and reorders at will.  A lost message is one that is *)
(* never taken.  A request may be executed twice: that grants twice.  A    *)
(* return is executed at most once.                                        *)
(*                                                                         *)
(* Rule is "correct" or names a mistake; each mistake is refuted.          *)
(*                                                                         *)
(* Two reductions, neither of which hides a behaviour that matters.  A     *)
(* reply that nobody waits for is ignored whenever it comes, so what it    *)
(* grants is counted as gone at once.  A lot whose window is over is of no *)
(* use to anyone, so it is left where it is: expired credits are counted   *)
(* with those held.                                                        *)
(*                                                                         *)
(* The Go twin is spec/machines/clocked.go.                                *)
(***************************************************************************)
EXTENDS Integers, FiniteSets

CONSTANTS Holders,   \* 1..N
          Length,    \* of a window, in ticks; a run has two windows
          Limit,     \* what a window may admit
          Batch,     \* what a lease wants (it needs 1)
          Taper,     \* a grant is at most free / Taper, rounded up
          Asks,      \* bounds the leases per holder and window
          Total,     \* bounds the leases of a run
          Drift,     \* ticks that a holder's clock may gain or lose in a run
          Ahead,     \* holder h's clock is Ahead * h ticks ahead
          Dups,      \* bounds the messages that are duplicated
          Returns,   \* bounds the returns of a holder
          Crashes,   \* whether holders forget everything
          Rule       \* "correct", or a mistake

ASSUME /\ Holders \subseteq Nat \ {0} /\ IsFiniteSet(Holders) /\ Holders # {}
       /\ Length \in Nat \ {0} /\ Limit \in Nat \ {0}
       /\ Batch \in Nat \ {0} /\ Taper \in Nat \ {0}
       /\ Asks \in Nat /\ Total \in Nat /\ Drift \in Nat /\ Ahead \in Int
       /\ Dups \in Nat /\ Returns \in Nat /\ Crashes \in BOOLEAN
       /\ Rule \in {"correct", "carry-over", "any-window", "no-bridge",
                    "wall-clock", "narrow-late", "narrow-early",
                    "retry-once", "spend-twice", "double-return"}

VARIABLES time,      \* the ledger's clock
          dups,      \* messages duplicated so far
          slip,      \* what each holder's clock has gained so far
          bracket,   \* bounds on the ledger's clock less the holder's
          lot,       \* credits held, by holder and window
          asks,      \* leases asked for; the last one's id
          sent,      \* when the awaited lease was sent, by the holder's clock
          returns,   \* returns sent
          requests,  \* lease requests in flight
          replies,   \* replies in flight
          back,      \* the return in flight of each holder
          counter,   \* of each window: granted less returned
          spent,     \* credits spent
          admitted,  \* hits admitted while the ledger's clock was in a window
          gone,      \* credits that nobody will ever have
          unpaid     \* whether a hit was not paid for in its window

ledger   == <<time, counter>>
holder   == <<slip, bracket, lot, asks, sent, returns>>
network  == <<dups, requests, replies, back>>
account  == <<spent, admitted, gone, unpaid>>
vars     == <<ledger, holder, network, account>>

Windows == 0..1
NotSent == -128                       \* no lease is awaited
NoTime  == [valid |-> FALSE, low |-> 0, high |-> 0]
Nothing == [credits |-> 0, window |-> 0]

Min(a, b) == IF a < b THEN a ELSE b
Max(a, b) == IF a > b THEN a ELSE b

RECURSIVE SumOf(_)                    \* of a set of <<identity, number>>
SumOf(S) == IF S = {} THEN 0
            ELSE LET x == CHOOSE y \in S : TRUE
                 IN x[2] + SumOf(S \ {x})

WindowOf(t) == IF t < 0 THEN -1 ELSE t \div Length

(***************************************************************************)
(* Clocks: StoreClock.Observe and StoreClock.At.                           *)
(***************************************************************************)
Clock(h) == time + Ahead * h + slip[h]

Earliest(h) == IF Rule = "wall-clock" THEN Clock(h)
                                      ELSE Clock(h) + bracket[h].low
Latest(h)   == IF Rule = "wall-clock" THEN Clock(h)
                                      ELSE Clock(h) + bracket[h].high

(* The bracket after a reply: the ledger's time was at, some time between  *)
(* from and now on the holder's clock.                                     *)
Exchanged(h, from, at) ==
  LET low  == at - Clock(h) - Drift + (IF Rule = "narrow-early" THEN 1 ELSE 0)
      high == at - from + Drift - (IF Rule = "narrow-late" THEN 1 ELSE 0)
      old  == bracket[h]
  IN  [valid |-> TRUE,
       low   |-> IF old.valid THEN Max(low, old.low) ELSE low,
       high  |-> IF old.valid THEN Min(high, old.high) ELSE high]

(* All clocks advance, a holder's by one more or less if it drifts now. *)
Tick ==
  /\ time + 1 < 2 * Length
  /\ time' = time + 1
  /\ slip' \in {s \in [Holders -> (-Drift)..Drift] :
                  \A h \in Holders : slip[h] # 0 => s[h] = slip[h]}
  /\ UNCHANGED <<counter, bracket, lot, asks, sent, returns, network, account>>

(***************************************************************************)
(* Leases.                                                                 *)
(***************************************************************************)
Waits(h, w, id) == sent[h][w] # NotSent /\ asks[h][w] = id

Asked == SumOf({<<<<h, w>>, asks[h][w]>> : h \in Holders, w \in Windows})

(* Ask for credits of a window that it could be, or of the next one; while *)
(* no time is known, of any.  One lease in flight per window.              *)
Plausible(h) == IF bracket[h].valid
                THEN WindowOf(Earliest(h))..(WindowOf(Latest(h)) + 1)
                ELSE Windows

Ask(h, w) ==
  /\ asks[h][w] < Asks /\ Asked < Total
  /\ sent[h][w] = NotSent
  /\ w \in Plausible(h)
  /\ asks' = [asks EXCEPT ![h][w] = @ + 1]
  /\ sent' = [sent EXCEPT ![h][w] = Clock(h)]
  /\ requests' = requests \cup
       {[h |-> h, w |-> w, id |-> asks[h][w] + 1, copy |-> FALSE]}
  /\ UNCHANGED <<ledger, slip, bracket, lot, returns, dups, replies, back, account>>

(* Replies to window w of h that are in flight, and what they grant. *)
InFlight(h, w) == {r \in replies : r.h = h /\ r.w = w}
Granted(S) == SumOf({<<r, r.grant>> : r \in S})

(* Stop waiting (a time-out).  What may still come is ignored. *)
Abandon(h, w) ==
  /\ sent[h][w] # NotSent
  /\ sent' = [sent EXCEPT ![h][w] = NotSent]
  /\ IF Rule = "retry-once"
     THEN UNCHANGED <<replies, gone>>
     ELSE /\ replies' = replies \ InFlight(h, w)
          /\ gone' = [gone EXCEPT ![w] = @ + Granted(InFlight(h, w))]
  /\ UNCHANGED <<ledger, slip, bracket, lot, asks, returns,
                 dups, requests, back, spent, admitted, unpaid>>

(* The ledger executes a request (Ledger.Lease), and it is used up or      *)
(* arrives a second time.                                                  *)
Grant(w) ==
  LET free == Limit - counter[w]
  IN  IF w \in WindowOf(time)..(WindowOf(time) + 1) /\ free >= 1
      THEN Min(Batch, Max(1, (free + Taper - 1) \div Taper))
      ELSE 0

Execute(m) ==
  LET g == Grant(m.w)
  IN  /\ counter' = IF Rule = "retry-once" /\ m.copy
                    THEN counter ELSE [counter EXCEPT ![m.w] = @ + g]
      /\ IF Rule = "retry-once" \/ Waits(m.h, m.w, m.id)
         THEN /\ replies' = replies \cup
                   {[h |-> m.h, w |-> m.w, id |-> m.id, copy |-> m.copy,
                     grant |-> g, at |-> time]}
              /\ UNCHANGED gone
         ELSE /\ gone' = [gone EXCEPT ![m.w] = @ + g]
              /\ UNCHANGED replies
      /\ \/ /\ requests' = requests \ {m}
            /\ UNCHANGED dups
         \/ /\ dups < Dups /\ ~m.copy
            /\ dups' = dups + 1
            /\ requests' = (requests \ {m}) \cup {[m EXCEPT !.copy = TRUE]}
      /\ UNCHANGED <<time, holder, back, spent, admitted, unpaid>>

(* A reply arrives (Holder.Grant, Holder.Refuse): credits and time.  A     *)
(* second reply to the same ask is ignored.                                *)
Receive(r) ==
  LET waits == Waits(r.h, r.w, r.id)
      rest  == replies \ {r}
      mine  == {x \in rest : x.h = r.h /\ x.w = r.w}
  IN  /\ IF waits
         THEN /\ bracket' = [bracket EXCEPT ![r.h] =
                               Exchanged(r.h, sent[r.h][r.w], r.at)]
              /\ sent' = [sent EXCEPT ![r.h][r.w] = NotSent]
         ELSE UNCHANGED <<bracket, sent>>
      /\ IF waits /\ Rule # "retry-once"
         THEN /\ replies' = rest \ mine
              /\ gone' = [gone EXCEPT ![r.w] = @ + Granted(mine)]
         ELSE /\ replies' = rest
              /\ UNCHANGED gone
      /\ \/ /\ lot' = [lot EXCEPT ![r.h][r.w] = @ + r.grant]
            /\ UNCHANGED dups
         \/ /\ Rule = "spend-twice" /\ dups < Dups
            /\ dups' = dups + 1
            /\ lot' = [lot EXCEPT ![r.h][r.w] = @ + 2 * r.grant]
      /\ UNCHANGED <<ledger, slip, asks, returns, requests, back,
                     spent, admitted, unpaid>>

(***************************************************************************)
(* Spending: Holder.Take.                                                  *)
(***************************************************************************)
Pay(h, S) ==
  /\ S # {} /\ S \subseteq Windows
  /\ \A w \in S : lot[h][w] >= 1
  /\ lot' = [lot EXCEPT ![h] = [w \in Windows |-> IF w \in S THEN @[w] - 1 ELSE @[w]]]
  /\ spent' = [w \in Windows |-> IF w \in S THEN spent[w] + 1 ELSE spent[w]]
  /\ admitted' = [admitted EXCEPT ![WindowOf(time)] = @ + 1]
  /\ unpaid' = (unpaid \/ WindowOf(time) \notin S)
  /\ UNCHANGED <<ledger, slip, bracket, asks, sent, returns, network, gone>>

(* Admit one hit: pay in every window that it could be. *)
Take(h) ==
  /\ (IF Rule = "wall-clock" THEN TRUE ELSE bracket[h].valid)
  /\ LET could == WindowOf(Earliest(h))..WindowOf(Latest(h))
     IN  CASE Rule = "any-window" -> \E w \in Windows : Pay(h, {w})
           [] Rule = "no-bridge"  -> \E w \in could : Pay(h, {w})
           [] OTHER               -> Pay(h, could)

(* The mistake of the original: what is left moves to the next window. *)
CarryOver(h) ==
  /\ Rule = "carry-over"
  /\ lot[h][0] > 0 /\ bracket[h].valid /\ WindowOf(Earliest(h)) > 0
  /\ lot' = [lot EXCEPT ![h][0] = 0, ![h][1] = @ + lot[h][0]]
  /\ UNCHANGED <<ledger, slip, bracket, asks, sent, returns, network, account>>

(***************************************************************************)
(* Returns: Holder.Surplus and Ledger.Return.                              *)
(***************************************************************************)
SendBack(h, w) ==
  /\ lot[h][w] > 0 /\ returns[h] < Returns /\ back[h] = Nothing
  /\ back' = [back EXCEPT ![h] = [credits |-> lot[h][w], window |-> w]]
  /\ lot' = [lot EXCEPT ![h][w] = 0]
  /\ returns' = [returns EXCEPT ![h] = @ + 1]
  /\ UNCHANGED <<ledger, slip, bracket, asks, sent, dups, requests, replies, account>>

ReturnArrives(h) ==
  /\ back[h].credits > 0
  /\ counter' = [counter EXCEPT ![back[h].window] = @ - back[h].credits]
  /\ \/ /\ back' = [back EXCEPT ![h] = Nothing]
        /\ UNCHANGED dups
     \/ /\ Rule = "double-return" /\ dups < Dups
        /\ dups' = dups + 1
        /\ UNCHANGED back
  /\ UNCHANGED <<time, holder, requests, replies, account>>

(* All that a holder has in memory is lost; what it sent is not. *)
Crash(h) ==
  /\ Crashes
  /\ gone' = [w \in Windows |-> gone[w] + lot[h][w] +
                IF Rule = "retry-once" THEN 0 ELSE Granted(InFlight(h, w))]
  /\ replies' = IF Rule = "retry-once" THEN replies
                ELSE {r \in replies : r.h # h}
  /\ lot' = [lot EXCEPT ![h] = [w \in Windows |-> 0]]
  /\ sent' = [sent EXCEPT ![h] = [w \in Windows |-> NotSent]]
  /\ bracket' = [bracket EXCEPT ![h] = NoTime]
  /\ UNCHANGED <<ledger, slip, asks, returns, dups, requests, back,
                 spent, admitted, unpaid>>

Init ==
  /\ time = 0 /\ dups = 0
  /\ slip = [h \in Holders |-> 0]
  /\ bracket = [h \in Holders |-> NoTime]
  /\ lot = [h \in Holders |-> [w \in Windows |-> 0]]
  /\ asks = [h \in Holders |-> [w \in Windows |-> 0]]
  /\ sent = [h \in Holders |-> [w \in Windows |-> NotSent]]
  /\ returns = [h \in Holders |-> 0]
  /\ requests = {} /\ replies = {}
  /\ back = [h \in Holders |-> Nothing]
  /\ counter = [w \in Windows |-> 0]
  /\ spent = [w \in Windows |-> 0]
  /\ admitted = [w \in Windows |-> 0]
  /\ gone = [w \in Windows |-> 0]
  /\ unpaid = FALSE

Next ==
  \/ Tick
  \/ \E h \in Holders :
       \/ Take(h) \/ CarryOver(h) \/ ReturnArrives(h) \/ Crash(h)
       \/ \E w \in Windows : Ask(h, w) \/ Abandon(h, w) \/ SendBack(h, w)
  \/ \E m \in requests : Execute(m)
  \/ \E r \in replies : Receive(r)

Spec == Init /\ [][Next]_vars

(***************************************************************************)
(* Invariants, by the ids of pkg/gale.                                     *)
(***************************************************************************)
TypeOK ==
  /\ time \in 0..(2 * Length - 1) /\ dups \in 0..Dups
  /\ slip \in [Holders -> (-Drift)..Drift]
  /\ lot \in [Holders -> [Windows -> Nat]]
  /\ asks \in [Holders -> [Windows -> 0..Asks]]
  /\ returns \in [Holders -> 0..Returns]
  /\ counter \in [Windows -> Int]
  /\ spent \in [Windows -> Nat] /\ admitted \in [Windows -> Nat]
  /\ gone \in [Windows -> Nat] /\ unpaid \in BOOLEAN

(* INV-1: a window of the ledger's clock admits at most the limit. *)
AdmittedWithinLimit == \A w \in Windows : admitted[w] <= Limit

(* INV-2: every credit granted is spent, held (or expired), on its way, or *)
(* gone; and no more are out than the limit.                               *)
Conservation ==
  \A w \in Windows :
    /\ counter[w] <= Limit
    /\ counter[w] = spent[w] + gone[w]
         + SumOf({<<h, lot[h][w]>> : h \in Holders})
         + SumOf({<<h, back[h].credits>> : h \in {x \in Holders : back[x].window = w}})
         + Granted({r \in replies : r.w = w})

(* INV-3: every hit was paid for in the window that it was admitted in. *)
PaidInItsWindow == ~unpaid

(* INV-4: the ledger's time lies in the bracket. *)
TimeInBracket ==
  \A h \in Holders :
    bracket[h].valid => Earliest(h) <= time /\ time <= Latest(h)

(* INV-5: at most one lease of a window is in flight that is waited for. *)
OneInFlight ==
  \A h \in Holders, w \in Windows :
    Cardinality({m \in requests : m.h = h /\ m.w = w /\ ~m.copy /\ Waits(h, w, m.id)}
           \cup {r \in replies : r.h = h /\ r.w = w /\ ~r.copy}) <= 1

(* False on purpose: the bound is tight. *)
AdmittedTight == \A w \in Windows : admitted[w] <= Limit - 1
=============================================================================
