"""The model does not contradict itself: what a controller owes, the rules accept.

Every value of every reading is tried in every profile, on one small partition, with all
interleavings of a few requests, lags, deaths and failovers. Epochs and sequence numbers are counted
from 0 again after each step, so that a story that comes back to where it was is seen to do so.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from reassure_model.environment import Controller, Die, Failover, Join, Leave, NotPossible, On
from reassure_model.outcome import Rejected
from reassure_model.partition import Partition
from reassure_model.protocols import kip_236 as requests
from reassure_model.protocols import kip_236_legacy
from reassure_model.protocols.kip_236 import batch, machine
from reassure_model.protocols.kip_236 import system as model
from reassure_model.protocols.kip_236.machine import MACHINE
from reassure_model.protocols.kip_236.system import System, make_system, step
from reassure_model.protocols.kip_236_legacy import DeleteLegacy, Legacy, WriteLegacy, make_legacy
from reassure_model.protocols.kip_236_legacy.machine import MACHINE as LEGACY
from reassure_model.writes import DeleteReassignment, UpdateReassignment, Write
from reassure_spec.readings import PROFILES, READINGS, Readings, override_readings
from reassure_spec.znodes import LegacyEntry

BUDGET = {Die: 1, Failover: 1, Leave: 0, WriteLegacy: 1, DeleteLegacy: 1}
"""How often each may happen; what is not named may happen as often as it can."""
MORTAL = (1,)
"""Brokers that may die: the one that leads at first."""
TARGETS = ((3,), (2, 3), (2, 3))
"""What the requests ask for: something new, a change, and the same again."""
READ_HERE = ("drop.", "top.", "request.", "target.", "offline.", "move.recheck-before-stop")
"""Readings that one partition and its requests turn on."""


def every_choice(profiles: Iterable[str], *more: str) -> list[Readings]:
    """Return each of these profiles, and each with one reading settled otherwise."""
    names = READ_HERE + more
    choices: dict[Readings, None] = {}
    for profile in profiles:
        here = {n: v for n, v in PROFILES[profile].as_dict().items() if n.startswith(names)}
        base = override_readings(Readings(), here)
        for reading in READINGS:
            for value in reading.values if reading.name.startswith(names) else ():
                choices[override_readings(base, {reading.name: value})] = None
    return list(choices)


def name_choice(readings: Readings) -> str:
    """Return what differs from the first values, for the name of a test."""
    told = readings.as_dict().items()
    first = {reading.name: reading.values[0] for reading in READINGS}
    return ",".join(f"{n}={v}" for n, v in told if first[n] != v) or "as first"


def start() -> System:
    """Return two replicas online on three brokers, with the requests waiting."""
    system = make_system((1, 2), (1, 2, 3))
    for action in (Controller(), *map(model.Submit, TARGETS)):
        outcome = step(system, action, Readings())
        assert not isinstance(outcome, Rejected)
        system = outcome.state
    return MACHINE.normalise(system)


def spend(left: tuple[int, ...], action: object) -> tuple[int, ...] | None:
    """Return what is left to happen after an action, None where too much has happened."""
    rest = tuple(n - isinstance(action, k) for n, k in zip(left, BUDGET, strict=True))
    return rest if min(rest) >= 0 else None


def list_actions(system: System, readings: Readings) -> Iterator[model.Action]:
    """Yield what can happen to the system."""
    for action in model.enabled(system, readings):
        if not isinstance(action, Die) or action.broker in MORTAL:
            yield action


def follow(system: System, action: Any, readings: Readings) -> System | Rejected:
    """Return what becomes of the system, epochs counted anew."""
    outcome = step(system, action, readings)
    return outcome if isinstance(outcome, Rejected) else MACHINE.normalise(outcome.state)


def find_contradiction(
    first: Any, actions: Callable[[Any], Iterable[Any]], follow: Callable[[Any, Any], Any]
) -> str | None:
    """Say where an owed write is rejected, or where the controller alone goes round for ever."""
    start = (first, tuple(BUDGET.values()))
    seen, frontier, written = {start}, [start], {}
    while frontier:
        node = state, left = frontier.pop()
        for action in actions(state):
            rest = spend(left, action)
            after = None if rest is None else follow(state, action)
            if isinstance(after, Rejected) and action == Controller():
                return f"rejected in {state}: {after}"
            if after is None or isinstance(after, Rejected):
                continue
            if action == Controller():
                written[node] = (after, rest)
            if (after, rest) not in seen:
                seen.add((after, rest))
                frontier.append((after, rest))
    return find_round(written)


def find_round(written: dict[Any, Any]) -> str | None:
    """Say where steps of the controller lead back to where they began."""
    for begin in list(written):
        node, chain = begin, {begin}
        while (after := written.pop(node, None)) is not None:
            if after in chain:
                return f"for ever from {after[0]}"
            chain.add(after)
            node = after
    return None


def judge(readings: Readings) -> str | None:
    """Look for a contradiction in the system under these readings."""
    look = partial(list_actions, readings=readings)
    return find_contradiction(start(), look, partial(follow, readings=readings))


@pytest.mark.parametrize("readings", every_choice(PROFILES), ids=name_choice)
@pytest.mark.clause("request.consumed", "child.before-effects", "request.same-target.no-change")
def test_owed_writes_are_accepted(readings: Readings) -> None:
    """Whatever value a reading has, no owed write is rejected and the controller comes to rest."""
    assert judge(readings) is None


# The old znode in front -------------------------------------------------------------------------

PARTITION = ("t", 0)
ENTRIES = (LegacyEntry(PARTITION, (2, 3)),)


EVENTS = (Controller(), WriteLegacy(ENTRIES), DeleteLegacy(), Failover(), On(PARTITION, Join(3)))


def follow_legacy(state: Legacy, action: Any, readings: Readings) -> Any:
    """Return what becomes of the partition and the old znode, None where the action cannot be."""
    try:
        outcome = kip_236_legacy.step(state, action, readings)
    except NotPossible:
        return None
    if isinstance(outcome, Rejected):
        return outcome
    return LEGACY.normalise(outcome.state)


def judge_legacy(readings: Readings) -> str | None:
    """Look for a contradiction with the old znode in front."""
    state = make_legacy({PARTITION: (1, 2)}, frozenset({1, 2, 3}))
    online = kip_236_legacy.step(state, Controller(), readings)
    assert not isinstance(online, Rejected)
    asked = replace(online.state, entries=(LegacyEntry(PARTITION, (3,)),))
    look = partial(follow_legacy, readings=readings)
    return find_contradiction(asked, lambda _: EVENTS, look)


@pytest.mark.parametrize("readings", every_choice(["kip-236-legacy"], "legacy."), ids=name_choice)
@pytest.mark.clause("legacy.translate.request", "legacy.failover.translated-again")
def test_owed_effects_are_accepted_with_the_old_znode(readings: Readings) -> None:
    """Requests that are translated again, or written anew, lead to nothing the rules refuse."""
    assert judge_legacy(readings) is None


# Faults -----------------------------------------------------------------------------------------


RESTART = Readings(request_same_target="restart")


def test_contradiction_names_both_clauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the rules reject what is owed, it is said which clause asks and which forbids."""
    forbidden = Rejected("isr.never-empty", "why")
    monkeypatch.setattr(machine, "step", lambda *_: forbidden)
    said = "partition.new.brought-online asks for what isr.never-empty forbids: why"
    assert machine.find_contradiction(make_system((1, 2), (1, 2)), Readings()) == said


def test_rejected_owed_write_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the rules take no record for the target in flight, a restart that is owed is seen."""
    accept = model.accept_write

    def refuse(partition: Partition, write: Write, *others: Any) -> Any:
        flight = partition.reassignment
        if isinstance(write, UpdateReassignment) and write.reassignment == flight:
            return Rejected("request.same-target.no-change", "the target is the one in flight")
        return accept(partition, write, *others)

    monkeypatch.setattr(model, "accept_write", refuse)
    assert "the target is the one in flight" in (judge(RESTART) or "")


def test_controller_that_never_rests_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nobody remembers that a request was recorded, it is recorded again and again."""
    monkeypatch.setattr(requests, "is_remembered", lambda _: False)
    assert (judge(RESTART) or "").startswith("for ever")


def test_rejected_owed_write_is_seen_with_the_old_znode(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the rules keep every record, the one of a legacy reassignment that is over is seen."""
    accept = batch.accept_write

    def refuse(partition: Partition, write: Write, *others: Any) -> Any:
        if isinstance(write, DeleteReassignment):
            return Rejected("complete.child-last", "it stays")
        return accept(partition, write, *others)

    monkeypatch.setattr(batch, "accept_write", refuse)
    assert "it stays" in (judge_legacy(Readings()) or "")
