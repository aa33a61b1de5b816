"""Each value of a reading that the judge carries out makes it judge some history otherwise."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from reassure_judge.judge import Judge
from reassure_model.writes import WriteAssigned, WriteState
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


def changed_in_flight(sim: Any) -> None:
    """Change a target while the first is being copied, and again once a replica is in sync."""
    for target in ((3, 4), (2, 4), (4, 3)):
        sim.submit(*target)
        sim.run()
        sim.change_isr(1, 2, 3) if 3 in sim.partition.assigned else None
    sim.elect()
    sim.run()


def changed_before_it_is_in_sync(sim: Any) -> None:
    """Change a target that nobody has reached, then have a failover."""
    for target in ((2, 3), (2, 4)):
        sim.submit(*target)
        sim.run()
    sim.elect()
    sim.run()


def target_in_sync_is_wanted_again(sim: Any) -> None:
    """Change to a target that shares a replica with the first, in sync or not."""
    sim.submit(3, 4)
    sim.run()
    sim.submit(4, 2)
    sim.run()


def asked_again(sim: Any) -> None:
    """Ask for the target in flight once more."""
    for _ in range(2):
        sim.submit(2, 3)
        sim.run()


def odd_targets(sim: Any) -> None:
    """Ask for a dead broker, for one that never was, and for fewer replicas than the minimum."""
    least = znodes.encode_config({znodes.MIN_ISR: "2"})
    sim.write(Create(znodes.topic_config_path("orders"), least), session=50)
    sim.die(4)
    sim.judge.quiesce()
    for target in ((1, 4), (1, 9), (3,)):
        sim.submit(*target)
        sim.run()


def changed_without_a_leader(sim: Any) -> None:
    """Change a target while nobody leads."""
    sim.submit(2, 3)
    sim.run()
    sim.change_isr(1)
    sim.die(1)
    sim.run()
    sim.submit(2, 4)
    sim.run()


def target_behind_at_the_end(sim: Any) -> None:
    """Complete though a target replica fell behind after the announcement."""
    sim.submit(1, 3)
    sim.run()
    sim.change_isr(1, 2, 3)
    for write in sim.steps():
        if isinstance(write, WriteAssigned):
            break
        sim.perform(write)
    sim.change_isr(1)
    sim.perform(WriteAssigned((1, 3)))


def elected_unasked(sim: Any) -> None:
    """Elect the first replica unasked, and a replica out of sync where no other lives."""
    sim.die(1)
    sim.run()
    sim.register(1)
    sim.run()
    sim.change_isr(2, 1)
    for leader, isr in ((1, (2, 1)), (2, (2,))):
        epoch = sim.state.leader_epoch + 1
        sim.perform(WriteState(replace(sim.state, leader=leader, isr=isr, leader_epoch=epoch)))
        if leader == 1:
            sim.change_isr(1)
            sim.die(1)
            sim.run()


STORIES: tuple[Callable[[Any], None], ...] = (
    changed_in_flight,
    changed_before_it_is_in_sync,
    target_in_sync_is_wanted_again,
    asked_again,
    odd_targets,
    changed_without_a_leader,
    target_behind_at_the_end,
    elected_unasked,
)


def tell(make: Any, story: Callable[[Any], None], readings: Readings) -> list[Any]:
    """Tell a story to the reference controller under these readings; return the history."""
    sim = make()
    sim.judge = Judge("kip-236", readings)
    sim.start()
    story(sim)
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
    told = [tell(make_simulation, story, each) for story in STORIES for each in controllers]
    assert any(judge(history, readings) != judge(history, USUAL) for history in told)
