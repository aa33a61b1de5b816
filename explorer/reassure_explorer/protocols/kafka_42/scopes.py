"""How much of KAFKA-42 the standard scopes look at.

Brokers return, replicas join and records are written as often as they can.
"""

from typing import Final

from reassure_explorer.scopes.copies import CopiesWorld
from reassure_explorer.scopes.machine import Bounded, Bounds
from reassure_model.protocols.kafka_42 import make_move


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


SCOPES: Final = (
    Bounded(
        "moves",
        "KAFKA-42: a partition on two of three brokers; one command, one death, one failover, one "
        "interruption",
        bound_moves(CopiesWorld((1, 2), ((2, 3),), 3, deaths=1, failovers=1, interrupts=1)),
    ),
    Bounded(
        "moves-growth",
        "KAFKA-42: one replica that is to move or to become two; two commands, one death, one "
        "failover, one interruption",
        bound_moves(
            CopiesWorld((1,), ((2,), (1, 2)), 2, requests=2, deaths=1, failovers=1, interrupts=1)
        ),
    ),
    Bounded(
        "moves-failover",
        "KAFKA-42: a partition on two of four brokers that moves to the others; one command, one "
        "death, one failover, no interruption",
        bound_moves(CopiesWorld((1, 2), ((3, 4),), 4, deaths=1, failovers=1)),
    ),
    Bounded(
        "moves-medium",
        "KAFKA-42: four brokers, two commands, two deaths, one failover, one interruption",
        bound_moves(
            CopiesWorld(
                (1, 2), ((2, 3), (3, 4)), 4, requests=2, deaths=2, failovers=1, interrupts=1
            )
        ),
    ),
)
