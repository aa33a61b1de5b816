"""KAFKA-42: the first reassignment, with a death or an interruption and a failover."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Final

from reassure_conformance.answers.guarantees import Guarantee, judge_machine
from reassure_model.protocols.kafka_42 import make_move
from reassure_model.protocols.kafka_42.machine import MACHINE
from reassure_spec.readings import get_profile, override_readings

_MOVE: Final = {
    "move.expand-first": "yes",
    "move.cut-isr": "yes",
    "move.recheck-before-stop": "yes",
    "election.unclean": "no",
}
"""What repairs it: each is needed."""


def judge(depth: int = 16) -> Iterator[Guarantee]:
    """Yield what must never be during a move, with a failover and a death or an interruption."""
    written = get_profile("kafka-42")
    repaired = override_readings(written, _MOVE)
    choices = {"kafka-42": written, "kafka-42, all four repairs": repaired}
    for name in _MOVE:
        left = {name: written.as_dict()[name]}
        choices[f"kafka-42, all repairs but {name}"] = override_readings(repaired, left)
    starts = []
    for assigned, target in (((1,), (2,)), ((1, 2), (3, 4))):
        move = make_move(assigned, frozenset(assigned + target))
        starts.append(replace(move, path=target, wanted=target))
    faults = ({"deaths": 1, "failovers": 1}, {"failovers": 1, "interrupts": 1})
    return judge_machine(
        MACHINE,
        choices,
        product(starts, [{}], faults),
        f"2 moves, 2 faults, {depth} steps",
        depth,
    )
