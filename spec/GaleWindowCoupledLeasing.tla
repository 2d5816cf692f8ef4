---------------------- MODULE GaleWindowCoupledLeasing ----------------------
(***************************************************************************)
(* DistributedLeasing with one line changed: credits end with the window   *)
(* that they were granted in.                                              *)
(*                                                                         *)
(* Proved: a window admits at most Limit, for any number of nodes and any  *)
(* batch.  Tight: Limit - 1 is refuted (OvershootTight).  It stays true    *)
(* when nodes hand back what they do not need (WithReturn).                *)
(*                                                                         *)
(* The roll is simultaneous everywhere, which no fleet can do.             *)
(* GaleClockedLeasing keeps the bound without it.                          *)
(***************************************************************************)
EXTENDS Integers, FiniteSets

CONSTANTS Nodes,       \* the fleet
          Limit,       \* what a window may admit
          Batch,       \* the credits of one lease
          WithReturn   \* whether nodes return credits

ASSUME /\ IsFiniteSet(Nodes) /\ Nodes # {}
       /\ Limit \in Nat \ {0}
       /\ Batch \in 1..Limit
       /\ WithReturn \in BOOLEAN

VARIABLES left,      \* what the counter has to give in this window
          credits,   \* what each node holds
          admitted   \* what this window has admitted

vars == <<left, credits, admitted>>

None == [n \in Nodes |-> 0]

Init == /\ left = Limit
        /\ credits = None
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

(* Hand back all that is held. *)
Return(n) == /\ WithReturn
             /\ credits[n] >= 1
             /\ left' = left + credits[n]
             /\ credits' = [credits EXCEPT ![n] = 0]
             /\ UNCHANGED admitted

(* The next window begins; credits end. *)
Roll == /\ left' = Limit
        /\ admitted' = 0
        /\ credits' = None

Next == \E n \in Nodes : Serve(n) \/ Lease(n) \/ Return(n) \/ Roll

Spec == Init /\ [][Next]_vars

TypeOK == /\ left \in 0..Limit
          /\ credits \in [Nodes -> 0..(Batch - 1)]
          /\ admitted \in Nat

Overshoot == admitted <= Limit

(* False on purpose. *)
OvershootTight == admitted <= Limit - 1
=============================================================================
