"""How much of the shipped controllers the standard scopes look at.

Brokers return, replicas join and records are written as often as they can. The names `effects` and
`places` of the machine stand for what follows from the targets.
"""

from typing import Final

from reassure_explorer.scopes.copies import CopiesWorld
from reassure_explorer.scopes.machine import Bounded, Bounds
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


def list_assignments(world: CopiesWorld) -> tuple[Assignment, ...]:
    """Return every assignment that a topic's znode can come to hold, the first one first."""
    found = [Assignment(world.assigned)]
    for now in found:
        asked = (*world.targets, *world.entries, now.original)
        after = [reassign_to(now, target) for target in asked]
        found += dict.fromkeys(a for a in (*after, Assignment(now.target)) if a not in found)
    return tuple(found)


def list_effects(world: CopiesWorld) -> tuple[Effect, ...]:
    """Return every effect that a plan can hold."""
    assignments = list_assignments(world)
    targets = tuple(dict.fromkeys(now.target for now in assignments))
    removals = [RemoveEntry(None, "a call counts")]
    return (
        Look(),
        Announce("A1"),
        Announce("B3"),
        Elect(),
        *(Elect(target) for target in targets),
        *(RemoveEntry(target, "B7") for target in targets),
        *removals,
        *(Record(now, at) for now in assignments for at in ("U1", "B6")),
        *(CutIsr(replica, at) for replica in world.members for at in ("U3", "B4", "death")),
        *(DeleteLog(replica, at) for replica in world.members for at in ("U3", "B5")),
        *(StartReplica(replica) for replica in world.members),
    )


def bound_shipped(world: CopiesWorld) -> Bounds:
    """Return the bounds of a partition that is moved by calls and by the old znode."""
    longest = max(len(now.replicas) for now in list_assignments(world))
    return Bounds(
        make_shipped(world.assigned, frozenset(world.members)),
        {
            "brokers": world.members,
            "targets": (*world.targets, *((None,) * world.cancels)),
            "entries": world.entries,
            "effects": list_effects(world),
            "places": tuple(range(longest)),
        },
        {
            "calls": world.requests,
            "writes": world.writes,
            "deaths": world.deaths,
            "failovers": world.failovers,
        },
        without=("prefer", "shut-down", "delete-topic", "delete-znode"),
    )


SCOPES: Final = (
    Bounded(
        "shipped",
        "KIP-455: one replica, three brokers; two calls, one write of the old znode, one death "
        "and one failover",
        bound_shipped(
            CopiesWorld(
                (1,),
                ((2, 3), (2,)),
                3,
                requests=2,
                deaths=1,
                failovers=1,
                entries=((), (2, 2)),
                writes=1,
            )
        ),
    ),
    Bounded(
        "shipped-change",
        "KIP-455: one replica, three brokers; two calls, none of them a cancel, and one death",
        bound_shipped(CopiesWorld((1,), ((3,), (2,)), 3, requests=2, deaths=1, cancels=False)),
    ),
    Bounded(
        "shipped-medium",
        "KIP-455: a partition on two of four brokers; three calls, two deaths, one failover",
        bound_shipped(CopiesWorld((1, 2), ((3, 4), (2, 4)), 4, requests=3, deaths=2, failovers=1)),
    ),
)
