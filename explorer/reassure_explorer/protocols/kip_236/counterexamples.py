"""What readers take for granted of a change under KIP-236 as amended, and the trace against it."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

from reassure_explorer.counterexamples import Make, SmallWorld
from reassure_explorer.engine.search import remember
from reassure_model.environment import Controller, Die, Failover, Leave, Return
from reassure_model.outcome import Accepted
from reassure_model.protocols.kip_236 import next_write, system
from reassure_model.protocols.kip_236.machine import MACHINE
from reassure_model.protocols.kip_236.system import Submit, System
from reassure_model.writes import UpdateReassignment, WriteAssigned
from reassure_spec.readings import Readings
from reassure_spec.words import spell_replicas
from reassure_spec.znodes import ReplicaList


def make_online(assigned: ReplicaList, brokers: ReplicaList, readings: Readings) -> System:
    """Return a healthy partition that leads."""
    online = system.step(system.make_system(assigned, brokers), Controller(), readings)
    assert isinstance(online, Accepted)  # nothing is in flight yet
    return online.state


Asked = tuple[System, int]
"""A partition, and how many targets were asked for."""


def _follow(
    asked: Asked, targets: tuple[ReplicaList, ...], readings: Readings
) -> Iterator[tuple[Any, Asked]]:
    """Yield what may happen to a partition that is asked for one target after another."""
    state, many = asked
    asked_next = tuple(map(Submit, targets[many : many + 1]))
    for action in system.enabled(state, readings, asked_next):
        if isinstance(action, Leave | Return):
            continue
        outcome = system.step(state, action, readings)
        assert isinstance(outcome, Accepted)  # whatever is possible keeps the rules
        yield action, (outcome.state, many + isinstance(action, Submit))


def _find_second_drop(memory: tuple[Asked, bool], readings: Readings) -> str | None:
    """Say so when a drop is owed though that of the same change is done."""
    (state, _), dropped = memory
    owed = next_write(state.partition, state.around, readings)
    if not dropped or owed is None or owed.clause != "drop.carried-out":
        return None
    left = owed.write.assigned if isinstance(owed.write, WriteAssigned) else ()
    return f"assigned [{spell_replicas(left)}] ({owed.clause})"


def _make(
    readings: Readings, called: str, assigned: ReplicaList, targets: tuple[ReplicaList, ...]
) -> SmallWorld:
    brokers = tuple(sorted({*assigned, *(replica for target in targets for replica in target)}))

    def update(asked: Asked, dropped: bool, action: Any, _: Asked) -> bool:
        """Remember whether the drop of the last change is done."""
        owed = next_write(asked[0].partition, asked[0].around, readings)
        if not isinstance(action, Controller) or owed is None:
            return dropped
        ends = isinstance(owed.write, WriteAssigned) and owed.clause == "drop.carried-out"
        return ends or (dropped and not isinstance(owed.write, UpdateReassignment))

    start = make_online(assigned, brokers, readings)
    return SmallWorld(
        ((start, 0), False),
        remember(partial(_follow, targets=targets, readings=readings), update),
        {called: partial(_find_second_drop, readings=readings)},
        {Die: 1, Failover: 1},
        MACHINE.say,
        MACHINE.vocabulary.say_opening(start),
        ("owed",),
    )


WORLDS: Final[Mapping[str, Make]] = {
    "story-one-drop-for-a-change": partial(_make, assigned=(2,), targets=((1, 4), (1, 3))),
}
