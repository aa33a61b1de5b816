"""Shipped controllers, with a second call and a fault."""

from collections.abc import Iterator
from itertools import product
from typing import Final

from reassure_conformance.answers.guarantees import Guarantee, judge_machine
from reassure_model.outcome import Accepted
from reassure_model.protocols.kafka_zk import Alter, make_shipped
from reassure_model.protocols.kafka_zk.machine import MACHINE
from reassure_spec.readings import Readings, get_profile

_CALLS: Final = ({"targets": (None,)}, {"targets": ((2, 4),)})
"""What a second call asks for: a cancel, or another target."""


def judge(depth: int = 20) -> Iterator[Guarantee]:
    """Yield what must never be under a shipped controller, with a second call and a fault."""
    starts = []
    for assigned, target in (((1,), (2, 3)), ((1, 2), (3, 4))):
        begun = MACHINE.step(
            make_shipped(assigned, frozenset({1, 2, 3, 4})), Alter(target), Readings()
        )
        assert isinstance(begun, Accepted)
        starts.append(begun.state)
    faults = ({"calls": 1, "deaths": 1}, {"calls": 1, "failovers": 1})
    return judge_machine(
        MACHINE,
        {"kafka-zk": get_profile("kafka-zk")},
        product(starts, _CALLS, faults),
        f"2 moves, a second call, 1 fault, {depth} steps",
        depth,
    )
