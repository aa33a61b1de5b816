"""The states that a history leaves possible for one partition.

ZooKeeper holds what was written. What a controller has in mind besides (that a drop is due, that it
is completing, what it made of a request) is not written anywhere, and follows from the writes only
as far as the controller takes no *silent step*, one that changes its mind and writes nothing:

* It **looked** at a drop that was due at a moment when nothing was to be dropped. Nothing is due
  any more, whoever joins the in-sync set afterwards.
* It **decided** the lowest request at a moment when that was refused or asked for nothing. It will
  remove the request without recording it, whatever has become of the cluster since.
* It **read** a request that was then withdrawn, or changed. It may still record what it asked for,
  or find out and forget it; what the request asks for by now stays to be done.

So there may be several states, which differ in this only; a write maps the set. After a write that
no rule allows there is no telling what its author takes to be the case, and everything that would
make sense of his write is possible (`believe`).

After a violation a partition may stay wrong for long, and every write that leaves it so would be
rejected for it again. Such a write is a *follow-up*, unless it is wrong in something else as well:
that shows when it is judged as if what was wrong already were right (`look_past`).
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final, NamedTuple

from reassure_model.partition import Environment, LeaderAndIsr, Partition, Reassignment, Request
from reassure_model.protocols.kip_236 import (
    NothingToDo,
    Refusal,
    apply_failover,
    decide_request,
    forget,
    must_drop_wait,
    take_up,
)
from reassure_model.protocols.kip_236.assignment_rules import compute_drops
from reassure_model.writes import (
    ChangeIsr,
    CreateReassignment,
    CreateState,
    DeleteReassignment,
    DeleteRequest,
    UpdateReassignment,
    Write,
    WriteAssigned,
    WriteState,
    adopt,
)
from reassure_spec.readings import Readings
from reassure_spec.znodes import NO_LEADER, ReplicaList

RECORDS: Final = (CreateReassignment, UpdateReassignment)
"""The writes that record what the lowest request asks for."""


class PossibleMind(NamedTuple):
    """One state that the history leaves possible."""

    partition: Partition
    decided: str = ""
    """The clause by which the controller has decided the lowest request without a write."""
    withdrawn: bool = False
    """Whether the lowest request is gone, and the controller has it in mind all the same."""


def list_named(partition: Partition, write: Write | None) -> frozenset[int]:
    """Return the brokers that matter to a partition, or to a write to it."""
    lists = [partition.assigned or (), *(request.target for request in partition.requests)]
    if partition.reassignment is not None:
        lists.append(partition.reassignment.target)
    states = [partition.state]
    match write:
        case CreateState(state) | WriteState(state) | ChangeIsr(state, _):
            states.append(state)
        case WriteAssigned(assigned):
            lists.append(assigned)
        case _:  # a record names whom the request names, or is of nobody's asking in any view
            pass
    lists += [(*state.isr, state.leader) for state in states if state is not None]
    return frozenset().union(*lists) - {NO_LEADER}


def is_silent(partition: Partition) -> bool:
    """Whether there is a silent step to think of at all."""
    return partition.drop_due or len(partition.requests) > 0


def take_silent_steps(
    state: PossibleMind, views: Iterable[Environment], readings: Readings
) -> Iterator[PossibleMind]:
    """Yield the states that one silent step leads to, under any of the views."""
    partition = state.partition
    if state.withdrawn:
        yield PossibleMind(drop_head(partition))
    looks = partition.drop_due and not must_drop_wait(partition, readings)
    if looks and frozenset() in compute_drops(partition, readings):
        yield state._replace(partition=replace(partition, drop_due=False))
    if state.decided or state.withdrawn or not partition.requests:
        return
    if not _is_recorded(partition, readings):
        for around in views:
            decision = decide_request(partition.requests[0], partition, around, readings)
            if isinstance(decision, Refusal | NothingToDo):
                yield state._replace(decided=decision.clause)
                return


def _is_recorded(partition: Partition, readings: Readings) -> bool:
    """Whether the lowest request is recorded already, so that it may be removed in any case."""
    head, flight = partition.requests[0], partition.reassignment
    if flight is None or (flight.target, flight.legacy) != (head.target, head.legacy):
        return False
    return readings.request_same_target == "no-change" or partition.taken == flight


def fail_over(state: PossibleMind, readings: Readings) -> PossibleMind:
    """Return the state as the next controller finds it, who remembers nothing."""
    left = drop_head(state.partition) if state.withdrawn else state.partition
    return PossibleMind(apply_failover(left, readings))


def drop_head(partition: Partition) -> Partition:
    """Return the partition without the lowest request."""
    return replace(partition, requests=partition.requests[1:])


def settle_request(state: PossibleMind, write: Write) -> PossibleMind:
    """Return the state after a write with what was in mind about the lowest request settled."""
    if isinstance(write, RECORDS):
        left = drop_head(state.partition) if state.withdrawn else state.partition
        return PossibleMind(left)
    return PossibleMind(state.partition) if isinstance(write, DeleteRequest) else state


def submit_request(state: PossibleMind, request: Request) -> PossibleMind:
    """Return the state after a request was submitted, or changed in its place.

    It does not come before what the controller has in mind.
    """
    requests = state.partition.requests
    first = 1 if state.decided or state.withdrawn else 0
    later = (i for i, each in enumerate(requests) if each.sequence > request.sequence)
    place = next((i for i in later if i >= first), len(requests))
    queue = (*requests[:place], request, *requests[place:])
    return state._replace(partition=replace(state.partition, requests=queue))


def remove_request(state: PossibleMind, sequence: int) -> tuple[PossibleMind, ...]:
    """Return the states after a request was removed by somebody who is not the controller."""
    partition = state.partition
    first = 1 if state.withdrawn else 0
    standing = (each for each in partition.requests[first:] if each.sequence != sequence)
    left = (*partition.requests[:first], *standing)
    gone = state._replace(partition=replace(partition, requests=left))
    if state.withdrawn or not partition.requests or partition.requests[0].sequence != sequence:
        return (gone,)
    if partition.taken == partition.reassignment:
        # Recorded, and nobody waits for its removal: asking again is another request.
        gone = PossibleMind(replace(gone.partition, taken=None))
    return (PossibleMind(gone.partition), PossibleMind(partition, withdrawn=True))


def believe(state: PossibleMind, write: Write, readings: Readings) -> tuple[PossibleMind, ...]:
    """Return what may be the case after a write that no rule allows.

    Either its author did not have it in mind at all, or he takes it for the step that it looks
    like: an expansion, a drop, a completion, a change.
    """
    partition = state.partition
    if isinstance(write, DeleteRequest):
        return remove_request(state, write.sequence)
    after = adopt(partition, write)
    found = [state._replace(partition=after)]
    match write:
        case WriteState(new) | CreateState(new):
            flight = partition.reassignment
            told = replace(after, announce_due=False)
            begins = flight is not None and _completes(flight, new.leader, new.isr)
            found = [state._replace(partition=told)]
            if begins:
                found.append(state._replace(partition=replace(told, completing=True)))
        case WriteAssigned(assigned):
            flight = partition.reassignment
            for announce in (after.announce_due, True):
                for drop in (after.drop_due, False):
                    thought = replace(after, announce_due=announce, drop_due=drop)
                    found.append(state._replace(partition=thought))
                    if flight is not None and assigned == flight.target:
                        done = replace(thought, completing=True)
                        found.append(state._replace(partition=done))
        case CreateReassignment(record) | UpdateReassignment(record):
            taken = take_up(partition, record, readings)
            thoughts = (taken, replace(taken, drop_due=False))
            found = [settle_request(state._replace(partition=p), write) for p in thoughts]
            found.append(state._replace(partition=after))
        case DeleteReassignment():
            forgotten = replace(after, drop_due=False, announce_due=False, completing=False)
            found = [state._replace(partition=forget(forgotten, readings))]
        case _:
            pass
    return tuple(dict.fromkeys(found))


def _completes(flight: Reassignment, leader: int, isr: Iterable[int]) -> bool:
    return leader in flight.target and set(flight.target) <= set(isr)


def look_past(partition: Partition, write: Write) -> tuple[Partition, Write]:
    """Return partition and write with every replica once, and the leader in sync, in both."""
    state = None if partition.state is None else _mend(partition.state)
    assigned = None if partition.assigned is None else _once(partition.assigned)
    mended = replace(partition, assigned=assigned, state=state)
    match write:
        case WriteAssigned(new):
            return mended, WriteAssigned(_once(new))
        case WriteState(new_state):
            return mended, WriteState(_mend(new_state))
        case CreateState(new_state):
            return mended, CreateState(_mend(new_state))
        case ChangeIsr(new_state, writer):
            return mended, ChangeIsr(_mend(new_state), writer)
        case _:
            return mended, write


def _once(replicas: ReplicaList) -> ReplicaList:
    return tuple(dict.fromkeys(replicas))


def _mend(state: LeaderAndIsr) -> LeaderAndIsr:
    leader = () if state.leader in (NO_LEADER, *state.isr) else (state.leader,)
    return replace(state, isr=_once((*state.isr, *leader)))
