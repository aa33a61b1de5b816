"""How much of the shipped controllers a scope looks at.

Brokers return, replicas join and records are written as often as they can. The names `effects` and
`places` of the machine stand for what follows from the targets.
"""

from collections.abc import Mapping

from reassure_explorer.scopes.machine import Bounds
from reassure_model.protocols.kafka_zk import (
    Announce,
    Assignment,
    CutIsr,
    DeleteLog,
    Effect,
    Elect,
    Look,
    Record,
    RemoveEntry,
    StartReplica,
    make_shipped,
    reassign_to,
)
from reassure_spec.znodes import ReplicaList


def list_assignments(
    assigned: ReplicaList, wanted: tuple[ReplicaList, ...]
) -> tuple[Assignment, ...]:
    """Return every assignment that a topic's znode can come to hold, the first one first."""
    found = [Assignment(assigned)]
    for now in found:
        after = [reassign_to(now, target) for target in (*wanted, now.original)]
        found += dict.fromkeys(a for a in (*after, Assignment(now.target)) if a not in found)
    return tuple(found)


def list_effects(
    assignments: tuple[Assignment, ...], members: tuple[int, ...]
) -> tuple[Effect, ...]:
    """Return every effect that a plan can hold."""
    targets = tuple(dict.fromkeys(now.target for now in assignments))
    return (
        Look(),
        Announce("A1"),
        Announce("B3"),
        Elect(),
        *(Elect(target) for target in targets),
        *(RemoveEntry(target, "B7") for target in targets),
        RemoveEntry(None, "a call counts"),
        *(Record(now, at) for now in assignments for at in ("U1", "B6")),
        *(CutIsr(replica, at) for replica in members for at in ("U3", "B4", "death")),
        *(DeleteLog(replica, at) for replica in members for at in ("U3", "B5")),
        *(StartReplica(replica) for replica in members),
    )


def bound(
    brokers: int,
    assigned: ReplicaList,
    targets: tuple[ReplicaList, ...],
    times: Mapping[str, int],
    entries: tuple[ReplicaList, ...] = (),
    *,
    cancels: bool = True,
) -> Bounds:
    """Return the bounds of a partition that is moved by calls and by the old znode.

    Calls ask for the `targets`, and where it `cancels` take back what is in flight; `entries` are
    what clients may write into the old znode.
    """
    members = tuple(range(1, brokers + 1))
    assignments = list_assignments(assigned, (*targets, *entries))
    return Bounds(
        make_shipped(assigned, frozenset(members)),
        {
            "brokers": members,
            "targets": (*targets, *((None,) * cancels)),
            "entries": entries,
            "effects": list_effects(assignments, members),
            "places": tuple(range(max(len(now.replicas) for now in assignments))),
        },
        times,
        without=("prefer", "shut-down", "delete-topic", "delete-znode"),
    )
