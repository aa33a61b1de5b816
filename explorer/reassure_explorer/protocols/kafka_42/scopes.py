"""How much of KAFKA-42 a scope looks at.

Brokers return, replicas join and records are written as often as they can.
"""

from collections.abc import Mapping

from reassure_explorer.scopes.machine import Bounds
from reassure_model.protocols.kafka_42 import make_move
from reassure_spec.znodes import ReplicaList


def bound(
    brokers: int,
    assigned: ReplicaList,
    targets: tuple[ReplicaList, ...],
    times: Mapping[str, int],
) -> Bounds:
    """Return the bounds of a partition that admin commands move, brokers numbered from 1."""
    members = tuple(range(1, brokers + 1))
    return Bounds(
        make_move(assigned, frozenset(members)),
        {"brokers": members, "targets": targets},
        times,
        without=("others-end", "stall"),
    )
