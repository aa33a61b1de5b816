"""How much of KAFKA-42 the standard scopes look at.

Brokers return, replicas join and records are written as often as they can.
"""

from reassure_explorer.scopes.copies import CopiesWorld
from reassure_explorer.scopes.machine import Bounds
from reassure_model.kafka_42 import make_move


def bound_moves(world: CopiesWorld) -> Bounds:
    """Return the bounds of a partition that admin commands move."""
    return Bounds(
        make_move(world.assigned, frozenset(world.members)),
        {"brokers": world.members, "targets": world.targets},
        {
            "commands": world.requests,
            "deaths": world.deaths,
            "failovers": world.failovers,
            "interrupts": world.interrupts,
        },
        without=("others-end", "stall"),
    )
