"""What readers take for granted of a change under KIP-236 as amended, and the trace against it.

And what they take from KIP-236 and KAFKA-4485 together: no record that was shown is lost.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

from reassure_explorer.counterexamples import Make, Meetings, SmallWorld
from reassure_explorer.engine.search import Sketch, remember
from reassure_model.environment import Controller, Die, Failover, Leave, Return
from reassure_model.outcome import Accepted
from reassure_model.protocols.kafka_4485.machine import MACHINE as LOGS
from reassure_model.protocols.kafka_4485.replication import Lag
from reassure_model.protocols.kip_236 import next_write, system
from reassure_model.protocols.kip_236.composition import (
    SOUND,
    Composition,
    Switches,
    list_steps,
    make_composition,
)
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


# Both documents at once -------------------------------------------------------------------------


def _say(action: Any) -> str:
    return (MACHINE if type(action) in MACHINE.kinds else LOGS).say(action)


def _find_problems(readings: Readings) -> Mapping[str, Any]:
    """Return what neither model may reach, of the part that is about it."""
    found: dict[str, Any] = {}
    for machine, part in ((MACHINE, "system"), (LOGS, "replication")):
        for each in machine.properties:
            if each.promised(readings) and not each.when_refused:
                found[each.clause] = partial(_find_broken, machine, part, each, readings)
    return found


def _find_broken(
    machine: Any, part: str, wanted: Any, readings: Readings, state: Composition
) -> str | None:
    broken: str | None = machine.find_broken(wanted, getattr(state, part), readings)
    return broken


def _meet_logs(
    readings: Readings, switches: Switches = SOUND, deaths: int = 0, failovers: int = 0
) -> Sketch:
    """Return a partition on one of two brokers that is asked to move, and to move back."""
    return Sketch(
        make_composition((0,), 2, readings),
        lambda state: list_steps(state, readings, ((1,), (0,)), switches=switches),
        _find_problems(readings),
        {Submit: 2, Die: deaths, Failover: failovers, Lag: 0},
        _say,
    )


MEETINGS: Final[Meetings] = {
    "meeting-of-logs": _meet_logs,
    "meeting-of-logs-and-faults": partial(_meet_logs, deaths=1, failovers=1),
    "meeting-of-logs-and-strangers": partial(_meet_logs, switches=Switches(notes_strangers=True)),
    "meeting-of-logs-and-lost-disks": partial(
        _meet_logs, switches=Switches(loses_disks=True), deaths=1
    ),
}
