"""The life of a failure under KIP-46: from the moment a broker is missed until it is replaced."""

from collections.abc import Mapping
from enum import Enum
from typing import Final

from reassure_explorer.lifecycle import Lifecycle, Moves, lead_to
from reassure_model.environment import Die, Return
from reassure_model.protocols import kip_46 as rules
from reassure_model.protocols.kip_46 import (
    Cluster,
    CreateTask,
    DeleteRecord,
    Finish,
    Generate,
    RecordFailure,
    StartTask,
    compute_plan,
    find_running,
)


class FailureStage(Enum):
    """Where a broker stands; the value says what there is to do."""

    THERE = "it is alive"
    MISSED = "it is not alive and has replicas: that is to be recorded"
    RECORDED = "its failure is recorded: the interval is to pass, then tasks are generated"
    GENERATED = "its tasks are in memory: they are to be persisted"
    PERSISTED = "its tasks are persisted: the record of its failure is to go"
    QUEUED = "its tasks wait for their turn"
    MOVING = "the first of its tasks runs: its replicas are moved"
    REPLACED = "it is not alive and has no replica"
    BACK = "it is alive again: the record of its failure is to go"


S = FailureStage


def find_stage(cluster: Cluster, broker: int) -> FailureStage:
    """Return where a broker stands."""
    recorded = broker in dict(cluster.failed)
    if broker in cluster.live:
        return S.BACK if recorded else S.THERE
    generation = cluster.generation
    if recorded and generation is not None and generation.broker == broker:
        return S.GENERATED if generation.pending else S.PERSISTED
    if recorded:
        return S.RECORDED
    if any(broker in replicas for replicas in compute_plan(cluster).values()):
        return S.MISSED
    if all(broker not in hosted.assigned for hosted in cluster.partitions):
        return S.REPLACED
    running = find_running(cluster)
    moved = {key for key, _ in running.assignments} if running is not None else set()
    mine = any(h.key in moved and broker in h.assigned for h in cluster.partitions)
    return S.MOVING if mine else S.QUEUED


_RECORD: Final = (rules.next_for_records, rules.RecordFailure)
_TASKS: Final = (rules.next_for_generation,)
_CHOOSE: Final = (rules.generate_tasks, rules.choose_replacement, rules.find_due)

MOVES: Final[Moves] = {
    (S.THERE, Die): lead_to(S.MISSED, S.QUEUED, S.MOVING, S.REPLACED),
    (S.MISSED, RecordFailure): lead_to(S.RECORDED, by=_RECORD),
    (S.MISSED, Return): lead_to(S.THERE),
    (S.RECORDED, Generate): lead_to(S.GENERATED, by=_CHOOSE),
    (S.RECORDED, DeleteRecord): lead_to(S.QUEUED, S.REPLACED, by=_TASKS),
    (S.RECORDED, Return): lead_to(S.BACK),
    (S.GENERATED, CreateTask): lead_to(S.PERSISTED, by=_TASKS),
    (S.GENERATED, Return): lead_to(S.BACK),
    (S.PERSISTED, DeleteRecord): lead_to(S.QUEUED, S.MOVING, S.REPLACED, by=_TASKS),
    (S.PERSISTED, Return): lead_to(S.BACK),
    (S.QUEUED, StartTask): lead_to(
        S.MOVING, by=(rules.next_for_tasks, rules.is_redundant, rules.find_stale)
    ),
    (S.QUEUED, CreateTask): lead_to(S.MISSED, by=_TASKS),
    (S.QUEUED, Return): lead_to(S.THERE),
    (S.MOVING, Finish): lead_to(S.REPLACED, by=(rules.apply_effect,)),
    (S.MOVING, CreateTask): lead_to(S.MISSED, by=_TASKS),
    (S.MOVING, Return): lead_to(S.THERE),
    (S.REPLACED, CreateTask): lead_to(S.MISSED, by=_TASKS),
    (S.REPLACED, Return): lead_to(S.THERE),
    (S.BACK, DeleteRecord): lead_to(S.THERE, by=(rules.next_for_records,)),
    (S.BACK, Die): lead_to(S.RECORDED, S.GENERATED, S.PERSISTED),
}
"""Where a step leads from a stage that it ends. A task may name a broker as a new replica that is
not alive by then, so that who was replaced is missed again."""

_AGAIN: Final = frozenset({S.RECORDED})
FORGETS: Final[Mapping[Enum, frozenset[Enum]]] = {S.GENERATED: _AGAIN, S.PERSISTED: _AGAIN}
"""What is in memory only is generated again."""


LIFECYCLE: Final[Lifecycle[Cluster]] = Lifecycle(
    "a broker's failure",
    FailureStage,
    lambda cluster, _: {broker: find_stage(cluster, broker) for broker, _ in cluster.racks},
    MOVES,
    FORGETS,
    apart=(),
)
