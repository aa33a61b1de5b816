"""What the rules on writes of healing ask of a cluster, and what becomes of it by an effect."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import chain

from reassure_model.partition import Partition
from reassure_model.protocols.kip_46 import (
    Assignments,
    Cluster,
    CreateTask,
    DeleteRecord,
    Effect,
    RecordFailure,
    RemoveTask,
    StartTask,
    apply_effect,
    compute_plan,
    get_hosted,
)
from reassure_spec.readings import Readings
from reassure_spec.znodes import PartitionKey, ReplicaList


@dataclass(frozen=True, slots=True)
class Healing:
    """A cluster, and what else the rules on writes ask of it."""

    cluster: Cluster
    partitions: Mapping[PartitionKey, Partition] = field(default_factory=dict)
    """The cluster's partitions as ordinary ones, as far as they are known."""
    minimums: Mapping[str, int | None] = field(default_factory=dict)
    """By topic: `min.insync.replicas`, "" for the default; None where nothing says it."""
    placed: frozenset[tuple[int, PartitionKey]] = frozenset()
    """Brokers with a record, each with a partition for which a task was made since."""
    inherited: frozenset[int] = frozenset()
    """Brokers whose record the acting controller has found."""
    chosen: tuple[int, ...] = ()
    """Who took a place, as often as that was, since a record was removed or the term began."""
    started: frozenset[int] = frozenset()
    """Tasks that were started."""
    earlier: tuple[tuple[PartitionKey, ReplicaList], ...] = ()
    """What partitions were assigned, or were to be, and whoever writes may still go by."""
    unrecorded: frozenset[int] = frozenset()
    """Brokers whose record is gone, which whoever writes may not know."""
    certain: bool = True
    """Whether it is known by what replicas whoever writes has counted."""


def follow(state: Healing, effect: Effect, readings: Readings) -> Healing:
    """Return the state after an effect, whoever made it and whether it was allowed or not."""
    cluster = state.cluster
    match effect:
        case RecordFailure(broker):
            others = tuple(each for each in cluster.failed if each[0] != broker)
            cluster = replace(cluster, failed=others)
        case DeleteRecord(broker):
            placed = frozenset(each for each in state.placed if each[0] != broker)
            kept = state.inherited - {broker}
            state = replace(state, placed=placed, inherited=kept, chosen=())
        case CreateTask(assignments, True):
            state = _note_placed(state, assignments, readings)
        case StartTask():
            started = {task.number for task in cluster.tasks[:1]}
            state = replace(state, started=state.started | started)
        case RemoveTask(number):
            state = replace(state, started=state.started - {number})
    return replace(state, cluster=apply_effect(cluster, effect))


def _note_placed(state: Healing, assignments: Assignments, readings: Readings) -> Healing:
    """Note whom a generated task replaces in which partitions, and who takes their places.

    Who would come only with a task that waits, and is not in what this one was made from, is not
    replaced by it.
    """
    placed, chosen = set(state.placed), list(state.chosen)
    failed = {broker for broker, _ in state.cluster.failed}
    for key, target in assignments:
        bases = list_bases(state, key, readings)
        base, places = find_replaced(target, bases, failed) or ((), ())
        chosen += [target[place] for place in places]
        gone = {base[place] for place in places} or failed.intersection(chain(*bases)) - {*target}
        placed |= {(broker, key) for broker in gone}
    return replace(state, placed=frozenset(placed), chosen=tuple(chosen))


def fail_over(state: Healing, _: Readings) -> Healing:
    """Return the state as the next controller finds it."""
    found = frozenset(broker for broker, _ in state.cluster.failed)
    cluster = replace(state.cluster, generation=None)
    return replace(state, cluster=cluster, inherited=found, chosen=())


def list_bases(state: Healing, key: PartitionKey, readings: Readings) -> list[ReplicaList]:
    """Return what a task may be made from for a partition, as things are first."""
    hosted = get_hosted(state.cluster, key)
    earlier = [replicas for each, replicas in state.earlier if each == key]
    if hosted is None:
        return earlier
    plan = compute_plan(state.cluster)[key]
    now = [plan] if readings.heal_regenerate == "from-plan" else [hosted.assigned, plan]
    return [*now, *earlier]


def find_replaced(
    target: ReplicaList, bases: Sequence[ReplicaList], failed: Set[int]
) -> tuple[ReplicaList, tuple[int, ...]] | None:
    """Return what a task was made from, and where it differs; None where nothing fits.

    Only failed brokers are replaced, each in its own place. Of the `bases` that fit the one is
    meant that differs least.
    """
    found = None
    for base in bases:
        if len(base) != len(target):
            continue
        places = tuple(place for place, old in enumerate(base) if old != target[place])
        fits = places and all(base[place] in failed for place in places)
        if fits and (found is None or len(places) < len(found[1])):
            found = (base, places)
    return found
