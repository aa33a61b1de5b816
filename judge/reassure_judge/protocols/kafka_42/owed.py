"""What a controller owes before 2.4: as in every version, and the steps of a move (KAFKA-42).

How far a move has come is in the controller's memory. So only what is left to do however far that
is counts as owed: where clients have named several targets nobody knows which one was taken up, and
of a target of which somebody is dead nobody knows whether it was when it was looked at. The epoch
is raised as a move begins and as it ends: once somebody has left the target nobody knows which.
"""

from reassure_judge.protocols.kafka_zk.partition import (
    ENTRIES,
    REFUSED_DEAD,
    DropEntry,
    Logged,
    Owes,
    WriteLists,
    is_within,
)
from reassure_judge.protocols.kafka_zk.writes import next_obligation
from reassure_model.partition import Environment
from reassure_model.protocols.kafka_42 import (
    Due,
    MarkOnline,
    Move,
    RemovePath,
    Task,
    WriteAssigned,
    WriteLeader,
    find_refusal,
    find_step,
    next_for_steps,
)
from reassure_model.protocols.kafka_zk import Assignment
from reassure_model.protocols.kip_236.assignment_rules import has_duplicates
from reassure_model.writes import raise_epoch
from reassure_spec.clauses import clause
from reassure_spec.readings import Readings
from reassure_spec.znodes import ReplicaList


def find_owed(hosted: Logged, around: Environment, readings: Readings) -> Owes | None:
    """Return what the controller has to write next; deaths come before moves."""
    due = next_obligation(hosted, around, readings)
    return due if due is not None else find_owed_to_move(hosted, around, readings)


@clause("move.listener.refuse-same", "move.step.listen", "move.step.remove-path")
def find_owed_to_move(hosted: Logged, around: Environment, readings: Readings) -> Owes | None:
    """Return what is owed to what the old znode asks for."""
    target, state = hosted.entry, hosted.state
    if target is None or state is None or around.deleting or len(hosted.asked) != 1:
        return None
    if has_duplicates(target):
        return None  # it may be refused, and is never carried out
    move = make_move(hosted, target, around)
    if not (hosted.begun or hosted.completing or hosted.done):
        refusal = find_refusal(move, target, readings)
        if refusal is not None:
            doubtful = refusal.clause == REFUSED_DEAD
            return None if doubtful else Owes(DropEntry(), refusal.clause)
    match find_due(move, target, hosted, readings):
        case RemovePath():
            return Owes(DropEntry(), "move.step.remove-path")
        case WriteLeader(leader, isr):
            return Owes(raise_epoch(state, around, leader, isr), "move.step.listen")
        case WriteAssigned(_, 6) if not hosted.completing:
            # Its leader is told of a move that it need not give up for.
            told = raise_epoch(state, around, state.leader, state.isr)
            return Owes(told, ENTRIES.leader_first)
        case WriteAssigned(_, 6) if not is_within(target, state.isr):
            return None
        case WriteAssigned(assigned):
            return Owes(WriteLists(Assignment(assigned)), "move.step.listen")
    return None


def make_move(hosted: Logged, target: ReplicaList, around: Environment) -> Move:
    """Return a move as far as it shows: whoever is to run does, and everybody else was stopped."""
    state, running = hosted.state, frozenset(target)
    assert state is not None
    assigned = hosted.assigned or ()
    return Move(assigned, state.leader, state.isr, around.live, running, running, path=target)


def find_due(move: Move, target: ReplicaList, hosted: Logged, readings: Readings) -> Due:
    """Return what is due next and shows."""
    if hosted.done:
        return RemovePath()
    task = Task(target, 4 if hosted.completing else 2)
    due = next_for_steps(move, find_step(move, task, readings), target, readings)
    return next_for_steps(move, 4, target, readings) if isinstance(due, MarkOnline) else due
