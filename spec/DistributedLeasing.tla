------------------------- MODULE DistributedLeasing -------------------------
(***************************************************************************)
(* Leasing as it was first built: nodes lease whole batches of credits     *)
(* from one counter and spend them locally, and what is left of a batch    *)
(* when the window ends is kept.                                           *)
(*                                                                         *)
(* Proved: a window admits at most Limit + N*(Batch-1).  Tight: one less   *)
(* is refuted (OvershootTight).  So the limit itself does not hold         *)
(* (WithinLimit): carrying credits over is the mistake that                *)
(* GaleWindowCoupledLeasing takes away.                                    *)
(*                                                                         *)
(* Not in this model: clocks (windows roll everywhere at once), messages   *)
(* (a lease takes no time), partial grants, hits of more than one.         *)
(* GaleClockedLeasing has them.                                            *)
(***************************************************************************)
EXTENDS Integers, FiniteSets

CONSTANTS Nodes,   \* the fleet
          Limit,   \* what a window may admit
          Batch    \* the credits of one lease

ASSUME /\ IsFiniteSet(Nodes) /\ Nodes # {}
       /\ Limit \in Nat \ {0}
       /\ Batch \in 1..Limit

VARIABLES left,      \* what the counter has to give in this window
          credits,   \* what each node holds
          admitted   \* what this window has admitted

vars == <<left, credits, admitted>>

Init == /\ left = Limit
        /\ credits = [n \in Nodes |-> 0]
        /\ admitted = 0

(* Admit with a credit that is held. *)
Serve(n) == /\ credits[n] >= 1
            /\ credits' = [credits EXCEPT ![n] = @ - 1]
            /\ admitted' = admitted + 1
            /\ UNCHANGED left

(* Lease a batch, all of it or nothing, and admit with its first credit. *)
Lease(n) == /\ credits[n] = 0
            /\ left >= Batch
            /\ left' = left - Batch
            /\ credits' = [credits EXCEPT ![n] = Batch - 1]
            /\ admitted' = admitted + 1

(* The next window begins; credits are carried over. *)
Roll == /\ left' = Limit
        /\ admitted' = 0
        /\ UNCHANGED credits

Next == \E n \in Nodes : Serve(n) \/ Lease(n) \/ Roll

Spec == Init /\ [][Next]_vars

MaxAdmitted == Limit + Cardinality(Nodes) * (Batch - 1)

TypeOK == /\ left \in 0..Limit
          /\ credits \in [Nodes -> 0..(Batch - 1)]
          /\ admitted \in Nat

Overshoot == admitted <= MaxAdmitted

(* False on purpose. *)
OvershootTight == admitted <= MaxAdmitted - 1
WithinLimit == admitted <= Limit
=============================================================================
