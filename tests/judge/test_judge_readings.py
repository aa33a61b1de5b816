"""Each value of a reading that the judge carries out makes it judge some history otherwise."""

from typing import Any

import pytest
from history_steps import (
    Act,
    ask,
    change_isr,
    die,
    elect,
    perform,
    put,
    raise_state,
    rest,
    run,
    write,
)

from reassure_judge.judge import Judge
from reassure_model.writes import WriteAssigned
from reassure_spec import znodes
from reassure_spec.readings import READINGS, Readings, override_readings
from reassure_spec.rooms import ROOMS
from reassure_zookeeper.transactions import Create

USUAL = Readings()
CARRIED = [
    pytest.param(reading.name, value, id=f"{reading.name}={value}")
    for reading in READINGS
    for value in reading.values[1:]
    if ROOMS["judge of kip-236"].find_refusal(reading.name, value) is None
]


def work(*target: int) -> tuple[Act, ...]:
    """Return a request that the controller carries out as far as it can."""
    return ask(*target), run


def _join_if_assigned(sim: Any) -> None:
    if 3 in sim.partition.assigned:
        sim.change_isr(1, 2, 3)


def _go_on_until_assigned(sim: Any) -> None:
    for step in sim.steps():
        if isinstance(step, WriteAssigned):
            return
        sim.perform(step)


LEAST = znodes.encode_config({znodes.MIN_ISR: "2"})
STORIES: dict[str, tuple[Act, ...]] = {
    "a target is changed in flight, and again once a replica is in sync": (
        *(*work(3, 4), _join_if_assigned, *work(2, 4), _join_if_assigned),
        *(*work(4, 3), _join_if_assigned, elect(), run),
    ),
    "a target that nobody has reached is changed, then there is a failover": (
        *(*work(2, 3), *work(2, 4), elect(), run),
    ),
    "a target shares a replica with the first, in sync or not": (*work(3, 4), *work(4, 2)),
    "the target in flight is asked for once more": (*work(2, 3), *work(2, 3)),
    "a dead broker, one that never was, and fewer replicas than the minimum": (
        *(write(Create(znodes.topic_config_path("orders"), LEAST)), die(4), rest),
        *(*work(1, 4), *work(1, 9), *work(3)),
    ),
    "a target is changed while nobody leads": (
        *(*work(2, 3), change_isr(1), die(1), run, *work(2, 4)),
    ),
    "a target replica falls behind after the announcement": (
        *(
            *work(1, 3),
            change_isr(1, 2, 3),
            _go_on_until_assigned,
            change_isr(1),
            put(WriteAssigned((1, 3))),
        ),
    ),
    "the first is elected unasked, and then one out of sync where no other lives": (
        *(die(1), run, lambda sim: sim.register(1), run, change_isr(2, 1)),
        *(raise_state(leader=1, isr=(2, 1)), change_isr(1), die(1), run),
        raise_state(leader=2, isr=(2,)),
    ),
}
"""By what happens: what clients, brokers and controllers do."""


def tell(make: Any, story: tuple[Act, ...], readings: Readings) -> list[Any]:
    """Tell a story to the reference controller under these readings; return the history."""
    sim = make()
    sim.judge = Judge("kip-236", readings)
    sim.start()
    perform(sim, story)
    return sim.history  # type: ignore[no-any-return]


def judge(history: list[Any], readings: Readings) -> list[tuple[str, int]]:
    """Return what is broken in a history, its end being a moment of rest."""
    found = Judge("kip-236", readings)
    for transaction in history:
        found.feed(transaction)
    found.quiesce()
    return [(violation.clause, violation.zxid) for violation in found.violations]


@pytest.mark.parametrize(("reading", "value"), CARRIED)
def test_carried_out_value_judges_some_history_otherwise(
    reading: str, value: str, make_simulation: Any
) -> None:
    """What is right under a value is not what is right under the default."""
    readings = override_readings(USUAL, {reading: value})
    values = next(each.values for each in READINGS if each.name == reading)
    controllers = [override_readings(USUAL, {reading: each}) for each in values]
    told = [
        tell(make_simulation, story, each) for story in STORIES.values() for each in controllers
    ]
    assert any(judge(history, readings) != judge(history, USUAL) for history in told)
