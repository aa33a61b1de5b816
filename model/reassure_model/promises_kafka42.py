"""What a reader of KAFKA-42 takes for granted on the way, beyond `kafka42.PROBLEMS`."""

from reassure_model.kafka42 import Move, StopReplica, next_effect
from reassure_spec.clauses import clause
from reassure_spec.readings import Readings


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
