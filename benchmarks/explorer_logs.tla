----------------------------- MODULE explorer_logs -----------------------------
(* Scope `logs-three` of the explorer, profile kip-236-amended, for TLC: the same states and steps *)
(* as explorer_logs.pml. A log is the sequence of its records' leader epochs; `shown` is Nothing   *)
(* while consumers are shown nothing; a request is <<"none">>, or its state, epoch and offset.     *)
EXTENDS Integers, Sequences

Brokers == 0..2
Records == 2
Elections == 1
Nothing == Records + 1
NoRequest == <<"none">>

VARIABLES leader, epoch, endAtElection, shown, committed, lags, removals, stale,
          isr, termIsr, pseudo, log, offset, mark, ownEpoch, request

vars == <<leader, epoch, endAtElection, shown, committed, lags, removals, stale,
          isr, termIsr, pseudo, log, offset, mark, ownEpoch, request>>

Min(a, b) == IF a < b THEN a ELSE b
Max(a, b) == IF a > b THEN a ELSE b

Init ==
  /\ leader = 0 /\ epoch = 0 /\ endAtElection = 0 /\ shown = 0 /\ committed = <<>>
  /\ lags = 3 /\ removals = 3 /\ stale = FALSE
  /\ isr = Brokers /\ termIsr = Brokers /\ pseudo = Brokers
  /\ log = [b \in Brokers |-> <<>>]
  /\ offset = [b \in Brokers |-> 0] /\ mark = [b \in Brokers |-> 0]
  /\ ownEpoch = [b \in Brokers |-> 0]
  /\ request = [b \in Brokers |-> IF b = 0 THEN NoRequest ELSE <<"served", 0, 0>>]

(* What consumers see of leader b with this mark, once its term began at this end. *)
Show(b, its, end) ==
  IF its < end
  THEN shown' = Nothing /\ UNCHANGED committed
  ELSE /\ shown' = its
       /\ committed' = IF its > Len(committed) THEN SubSeq(log[b], 1, its) ELSE committed

Append_(b) ==
  /\ leader = b /\ Len(log[b]) < Records
  /\ log' = [log EXCEPT ![b] = Append(@, epoch)]
  /\ UNCHANGED <<leader, epoch, endAtElection, shown, committed, lags, removals, stale,
                 isr, termIsr, pseudo, offset, mark, ownEpoch, request>>

Known(b, c) == IF c = b THEN Len(log[b]) ELSE offset[c]

Advance(b) ==
  /\ leader = b
  /\ LET counted == {Known(b, c) : c \in pseudo \union termIsr} \union {Records}
         nearest == CHOOSE n \in counted : \A other \in counted : n <= other
         its == Max(mark[b], nearest)
     IN mark' = [mark EXCEPT ![b] = its] /\ Show(b, its, endAtElection)
  /\ UNCHANGED <<leader, epoch, endAtElection, lags, removals, stale, isr, termIsr, pseudo,
                 log, offset, ownEpoch, request>>

Refresh(b) ==
  /\ leader = b /\ stale
  /\ termIsr' = isr /\ stale' = FALSE
  /\ UNCHANGED <<leader, epoch, endAtElection, shown, committed, lags, removals, isr, pseudo,
                 log, offset, mark, ownEpoch, request>>

Elect(b) ==
  /\ epoch < Elections /\ b \in isr
  /\ epoch' = epoch + 1 /\ leader' = b
  /\ ownEpoch' = [ownEpoch EXCEPT ![b] = epoch + 1]
  /\ request' = [request EXCEPT ![b] = NoRequest]
  /\ endAtElection' = Len(log[b])
  /\ stale' = FALSE /\ termIsr' = isr /\ pseudo' = isr
  /\ offset' = [c \in Brokers |-> 0]
  /\ Show(b, mark[b], Len(log[b]))
  /\ UNCHANGED <<lags, removals, isr, log, mark>>

Serve(b) ==
  /\ leader # b /\ request[b][1] = "sent" /\ request[b][2] = epoch
  /\ offset' = [offset EXCEPT ![b] = request[b][3]]
  /\ request' = [request EXCEPT ![b] = <<"served", @[2], @[3]>>]
  /\ UNCHANGED <<leader, epoch, endAtElection, shown, committed, lags, removals, stale,
                 isr, termIsr, pseudo, log, mark, ownEpoch>>

Take(b) ==
  /\ leader # b /\ request[b][1] = "served" /\ ownEpoch[b] = epoch
  /\ LET mine == Len(log[b])
         taken == log[b] \o SubSeq(log[leader], mine + 1, Len(log[leader]))
     IN /\ log' = [log EXCEPT ![b] = taken]
        /\ mark' = [mark EXCEPT ![b] = Max(@, Min(mark[leader], Len(taken)))]
        /\ request' = [request EXCEPT ![b] = <<"sent", epoch, Len(taken)>>]
  /\ UNCHANGED <<leader, epoch, endAtElection, shown, committed, lags, removals, stale,
                 isr, termIsr, pseudo, offset, ownEpoch>>

Lag(b) ==
  /\ leader # b /\ b \in pseudo /\ lags > 0
  /\ pseudo' = pseudo \ {b} /\ lags' = lags - 1
  /\ UNCHANGED <<leader, epoch, endAtElection, shown, committed, removals, stale,
                 isr, termIsr, log, offset, mark, ownEpoch, request>>

CatchUp(b) ==
  /\ leader # b /\ b \notin pseudo /\ ownEpoch[b] = epoch
  /\ pseudo' = pseudo \union {b}
  /\ UNCHANGED <<leader, epoch, endAtElection, shown, committed, lags, removals, stale,
                 isr, termIsr, log, offset, mark, ownEpoch, request>>

Join(b) ==
  /\ leader # b /\ b \in pseudo /\ b \notin termIsr /\ ~stale
  /\ offset[b] >= mark[leader] /\ offset[b] >= endAtElection
  /\ termIsr' = termIsr \union {b} /\ isr' = termIsr \union {b}
  /\ UNCHANGED <<leader, epoch, endAtElection, shown, committed, lags, removals, stale,
                 pseudo, log, offset, mark, ownEpoch, request>>

Leave(b) ==
  /\ leader # b /\ b \notin pseudo /\ b \in termIsr /\ ~stale
  /\ termIsr' = termIsr \ {b} /\ isr' = termIsr \ {b}
  /\ UNCHANGED <<leader, epoch, endAtElection, shown, committed, lags, removals, stale,
                 pseudo, log, offset, mark, ownEpoch, request>>

Remove(b) ==
  /\ leader # b /\ b \in isr /\ removals > 0
  /\ isr' = isr \ {b} /\ stale' = TRUE /\ removals' = removals - 1
  /\ UNCHANGED <<leader, epoch, endAtElection, shown, committed, lags, termIsr, pseudo,
                 log, offset, mark, ownEpoch, request>>

(* How many records from the start are the same in both logs. *)
Shared(a, b) ==
  LET ends == {n \in 0..Min(Len(a), Len(b)) : SubSeq(a, 1, n) = SubSeq(b, 1, n)}
  IN CHOOSE n \in ends : \A other \in ends : other <= n

Follow(b) ==
  /\ leader # b /\ ownEpoch[b] # epoch
  /\ LET kept == Shared(log[b], log[leader])
     IN /\ log' = [log EXCEPT ![b] = SubSeq(@, 1, kept)]
        /\ mark' = [mark EXCEPT ![b] = Min(@, kept)]
        /\ request' = [request EXCEPT ![b] = <<"sent", epoch, kept>>]
  /\ ownEpoch' = [ownEpoch EXCEPT ![b] = epoch]
  /\ UNCHANGED <<leader, epoch, endAtElection, shown, committed, lags, removals, stale,
                 isr, termIsr, pseudo, offset>>

Next == \E b \in Brokers :
  \/ Append_(b) \/ Advance(b) \/ Refresh(b) \/ Elect(b) \/ Serve(b) \/ Take(b) \/ Lag(b)
  \/ CatchUp(b) \/ Join(b) \/ Leave(b) \/ Remove(b) \/ Follow(b)

Spec == Init /\ [][Next]_vars
================================================================================
