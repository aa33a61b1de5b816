"""What must never be under KAFKA-42, and what a reader takes for granted on the way."""

from reassure_model.copies import (
    find_nothing_held,
    find_outside,
    find_running_unassigned,
    is_led,
)
from reassure_model.protocols.kafka_42 import Move, StopReplica, next_effect
from reassure_spec.clauses import clause
from reassure_spec.readings import Readings


def is_at_rest(move: Move) -> bool:
    """Whether no reassignment is asked for or being carried out."""
    return move.path is None and move.task is None


@clause("move.leader.not-stopped")
def find_stopped_leader(move: Move) -> str | None:
    """Say so when the recorded leader is alive and was stopped (finding move-3)."""
    if not is_led(move) or move.leader in move.running:
        return None
    return f"leader {move.leader} was stopped"


@clause("move.isr.within-assigned")
def find_outside_assigned(move: Move) -> str | None:
    """Say so when leader or in-sync set lie outside the assignment (findings move-5, move-6)."""
    return find_outside(move)


@clause("move.assigned.holds-committed")
def find_emptied_assignment(move: Move) -> str | None:
    """Say so when no assigned replica has the records; at rest (findings move-6, move-8)."""
    return find_nothing_held(move)


@clause("move.cancel.no-strays")
def find_stray(move: Move) -> str | None:
    """Say so when a replica runs that is not assigned; at rest (finding move-7)."""
    return find_running_unassigned(move)


@clause("move.step.stop-old", "move.stop.recheck")
def find_stop_too_early(move: Move, readings: Readings) -> str | None:
    """Say so when an old replica is to be stopped and the target is not in sync.

    Finding move-10: step 5 looks at nothing, so that who died since step 3 is not missed.
    """
    due = next_effect(move, readings)
    if not isinstance(due, StopReplica) or move.task is None:
        return None
    lacking = [replica for replica in move.task.target if replica not in move.isr]
    return f"{due.replica} is to be stopped, not in sync: {lacking}" if lacking else None


@clause("move.start.expand-first")
def find_started_unassigned(move: Move) -> str | None:
    """Say so when a replica was started for a reassignment and is not assigned (finding move-14).

    A leader that counts its assigned replicas only never lets it in.
    """
    if move.task is None:
        return None
    strays = [r for r in move.task.target if r in move.running and r not in move.assigned]
    return f"started and not assigned: {strays}" if strays else None
