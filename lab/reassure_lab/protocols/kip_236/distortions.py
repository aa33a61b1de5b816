"""Writes that break one clause each, made out of a partition of the model as it stands.

A distortion is asked about a partition and the write that the controller owes it, and answers a
write that is wrong by its clause, or None where there is no way to be wrong so. Whether it is
wrong, and by which clause, is for the model to say: `find_wrong` takes only what the model's rules
reject by that clause.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final, NamedTuple

from reassure_model.controllers import ACTING, NONE, find_broken_authority
from reassure_model.outcome import Accepted, Rejected
from reassure_model.partition import Environment, LeaderAndIsr, Partition, Reassignment
from reassure_model.protocols.kip_236 import take_up
from reassure_model.protocols.kip_236.rules import accept_write
from reassure_model.writes import (
    ChangeIsr,
    CreateReassignment,
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

Distort = Callable[[Partition, Environment, Write | None], Write | None]

UNFENCED: Final = "controller.write.epoch-checked"
STRANGER: Final = "controller.write.by-controller"
GARBAGE: Final = "znode.well-formed"
JUMP: Final = "controller.epoch.raised-by-one"


class Distortion(NamedTuple):
    """A way to break a clause."""

    clause: str
    distort: Distort
    spoils: bool = False
    """Whether nothing sound can be written to the partition afterwards."""


def _raise(partition: Partition, around: Environment, leader: int, isr: ReplicaList) -> WriteState:
    state = partition.state
    assert state is not None
    epoch = around.controller_epoch
    return WriteState(LeaderAndIsr(leader, state.leader_epoch + 1, epoch, isr))


def _list_others(partition: Partition, around: Environment) -> list[int]:
    """Return live brokers that have nothing to do with the partition."""
    flight = partition.reassignment
    ours = {*(partition.assigned or ()), *(flight.target if flight is not None else ())}
    return sorted(around.live - ours)


def _raised_by_two(partition: Partition, around: Environment, owed: Write | None) -> Write | None:
    if not isinstance(owed, WriteState):
        return None
    return WriteState(replace(owed.state, leader_epoch=owed.state.leader_epoch + 1))


def _earlier_stamp(partition: Partition, around: Environment, owed: Write | None) -> Write | None:
    if not isinstance(owed, WriteState) or around.controller_epoch < 2:
        return None
    return WriteState(replace(owed.state, controller_epoch=around.controller_epoch - 1))


def _unclean_leader(partition: Partition, around: Environment, owed: Write | None) -> Write | None:
    state = partition.state
    if state is None:
        return None
    waiting = [r for r in partition.assigned or () if r in around.live and r not in state.isr]
    return _raise(partition, around, waiting[0], state.isr) if waiting else None


def _needless_leader(partition: Partition, around: Environment, owed: Write | None) -> Write | None:
    state = partition.state
    followers = () if state is None else [r for r in state.isr if r != state.leader]
    if state is None or not followers:
        return None
    return _raise(partition, around, followers[-1], state.isr)


def _wrong_new_leader(
    partition: Partition, around: Environment, owed: Write | None
) -> Write | None:
    flight = partition.reassignment
    if not isinstance(owed, WriteState) or flight is None or owed.state.leader not in flight.target:
        return None
    return WriteState(replace(owed.state, leader=flight.target[-1]))


def _nobody_leads(partition: Partition, around: Environment, owed: Write | None) -> Write | None:
    state = partition.state
    return None if state is None else _raise(partition, around, NO_LEADER, state.isr)


def _nobody_in_sync(partition: Partition, around: Environment, owed: Write | None) -> Write | None:
    state = partition.state
    return None if state is None else _raise(partition, around, state.leader, ())


def _twice_in_sync(partition: Partition, around: Environment, owed: Write | None) -> Write | None:
    state = partition.state
    if state is None:
        return None
    return _raise(partition, around, state.leader, (*state.isr, state.leader))


def _controller_extends(
    partition: Partition, around: Environment, owed: Write | None
) -> Write | None:
    state = partition.state
    if state is None:
        return None
    waiting = [r for r in partition.assigned or () if r in around.live and r not in state.isr]
    return _raise(partition, around, state.leader, (*state.isr, waiting[0])) if waiting else None


def _follower_writes(partition: Partition, around: Environment, owed: Write | None) -> Write | None:
    state = partition.state
    if state is None or len(state.isr) < 3:
        return None
    writer, gone = [replica for replica in state.isr if replica != state.leader][:2]
    isr = tuple(replica for replica in state.isr if replica != gone)
    return ChangeIsr(replace(state, isr=isr), writer) if writer in around.live else None


def _stranger_joins(partition: Partition, around: Environment, owed: Write | None) -> Write | None:
    state, others = partition.state, _list_others(partition, around)
    if state is None or state.leader not in around.live or not others:
        return None
    return ChangeIsr(replace(state, isr=(*state.isr, others[0])), state.leader)


def _leader_leaves(partition: Partition, around: Environment, owed: Write | None) -> Write | None:
    state = partition.state
    if state is None or state.leader not in around.live or len(state.isr) < 2:
        return None
    isr = tuple(r for r in state.isr if r != state.leader)
    return ChangeIsr(replace(state, isr=isr), state.leader)


def _leader_resigns(partition: Partition, around: Environment, owed: Write | None) -> Write | None:
    state = partition.state
    if state is None or state.leader not in around.live:
        return None
    followers = [r for r in state.isr if r != state.leader and r in around.live]
    return ChangeIsr(replace(state, leader=followers[0]), state.leader) if followers else None


def _twice_assigned(partition: Partition, around: Environment, owed: Write | None) -> Write | None:
    assigned = partition.assigned
    return None if not assigned else WriteAssigned((*assigned, assigned[0]))


def _complete(partition: Partition, around: Environment, owed: Write | None) -> Write | None:
    flight = partition.reassignment
    return None if flight is None else WriteAssigned(flight.target)


def _complete_backwards(
    partition: Partition, around: Environment, owed: Write | None
) -> Write | None:
    flight = partition.reassignment
    if flight is None or owed != WriteAssigned(flight.target):
        return None
    return WriteAssigned(flight.target[::-1])


def _add_stranger(partition: Partition, around: Environment, owed: Write | None) -> Write | None:
    others = _list_others(partition, around)
    if not others or partition.assigned is None:
        return None
    assigned = owed.assigned if isinstance(owed, WriteAssigned) else partition.assigned
    return WriteAssigned((*assigned, others[0]))


def _leave_one_out(partition: Partition, around: Environment, owed: Write | None) -> Write | None:
    if not isinstance(owed, WriteAssigned) or partition.assigned is None:
        return None
    wide = len(owed.assigned) > len(partition.assigned) + 1
    return WriteAssigned(owed.assigned[:-1]) if wide else None


def _expand_at_once(partition: Partition, around: Environment, owed: Write | None) -> Write | None:
    flight, assigned = partition.reassignment, partition.assigned
    if assigned is None:
        return None
    targets = [request.target for request in partition.requests[:1]]
    target = flight.target if flight is not None else targets[0] if targets else ()
    added = tuple(r for r in target if r not in assigned)
    return WriteAssigned(assigned + added) if added else None


def _higher_top(partition: Partition, around: Environment, owed: Write | None) -> Write | None:
    if not isinstance(owed, CreateReassignment | UpdateReassignment):
        return None
    record = owed.reassignment
    return type(owed)(replace(record, top=record.top + 1))


def _unasked(partition: Partition, around: Environment, owed: Write | None) -> Write | None:
    others, assigned = _list_others(partition, around), partition.assigned
    if partition.reassignment is not None or assigned is None or not others:
        return None
    return CreateReassignment(Reassignment((*assigned[1:], others[0]), len(assigned)))


def _end_early(partition: Partition, around: Environment, owed: Write | None) -> Write | None:
    early = partition.reassignment is not None and not partition.requests
    return DeleteReassignment() if early else None


def _forget_request(partition: Partition, around: Environment, owed: Write | None) -> Write | None:
    return DeleteRequest(partition.requests[0].sequence) if partition.requests else None


DISTORTIONS: Final = (
    Distortion("leader-epoch.raised-by-one", _raised_by_two),
    Distortion("state.controller-epoch-stamped", _earlier_stamp),
    Distortion("election.clean", _unclean_leader, spoils=True),
    Distortion("election.only-when-due", _needless_leader),
    Distortion("complete.leader-first-in-sync-target", _wrong_new_leader),
    Distortion("leader.none-only-without-candidate", _nobody_leads, spoils=True),
    Distortion("isr.never-empty", _nobody_in_sync, spoils=True),
    Distortion("isr.no-duplicates", _twice_in_sync, spoils=True),
    Distortion("state.write-conditional", _controller_extends),
    Distortion("isr.change.by-leader", _follower_writes),
    Distortion("isr.change.assigned-only", _stranger_joins, spoils=True),
    Distortion("isr.change.leader-kept", _leader_leaves, spoils=True),
    Distortion("complete.target-in-sync", _complete, spoils=True),
    Distortion("complete.isr-before-assigned", _complete, spoils=True),
    Distortion("complete.target-order", _complete_backwards),
    Distortion("isr.change.keeps-leader", _leader_resigns, spoils=True),
    Distortion("assigned.no-duplicates", _twice_assigned, spoils=True),
    Distortion("expand.target-only", _add_stranger),
    Distortion("expand.whole-target", _leave_one_out),
    Distortion("assigned.change.only-as-due", _add_stranger),
    Distortion("drop.before-expansion", _expand_at_once),
    Distortion("child.before-effects", _expand_at_once),
    Distortion("top.original-length", _higher_top),
    Distortion("top.once-per-chain", _higher_top),
    Distortion("child.from-request", _unasked),
    Distortion("complete.child-last", _end_early),
    Distortion("request.delete.child-first", _forget_request),
)
"""Wrong by what is written."""

AUTHORSHIPS: Final = (
    (UNFENCED, ACTING, False),
    (STRANGER, NONE, True),
)
"""Wrong by who writes what is owed: clause, what he is to the term, whether he checks the epoch."""


def find_wrong(
    distortion: Distortion,
    partition: Partition,
    around: Environment,
    owed: Write | None,
    readings: Readings,
) -> Write | None:
    """Return a write that the model rejects by the clause, None where there is none."""
    write = distortion.distort(partition, around, owed)
    if write is None:
        return None
    outcome = accept_write(partition, write, around, readings)
    found = isinstance(outcome, Rejected) and outcome.clause == distortion.clause
    return write if found else None


def is_forbidden(clause: str, office: str, *, fenced: bool) -> bool:
    """Whether a controller's write by somebody who is this to the term breaks this clause."""
    return [each.clause for each in find_broken_authority(office, fenced=fenced)] == [clause]


def go_on(partition: Partition, write: Write, around: Environment, readings: Readings) -> Partition:
    """Return the partition after a write that may be wrong, as a controller finds it from then on.

    One that takes a wrong record for right goes on from there.
    """
    outcome = accept_write(partition, write, around, readings)
    if isinstance(outcome, Accepted):
        return outcome.state
    match write:
        case CreateReassignment(record) | UpdateReassignment(record):
            return take_up(partition, record, readings)
        case DeleteReassignment():
            partition = replace(partition, drop_due=False, announce_due=False, completing=False)
        case WriteState():
            partition = replace(partition, announce_due=False)
        case _:
            pass
    return adopt(partition, write)
