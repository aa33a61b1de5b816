"""The model does not contradict itself: what a controller owes, the rules accept.

Every value of every reading is tried in every profile, on one small partition, with all
interleavings of a few requests, lags, deaths and failovers. Epochs and sequence numbers are counted
from 0 again after each step, so that a story that comes back to where it was is seen to do so.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from reassure_model import requests
from reassure_model import system as model
from reassure_model.outcome import Rejected
from reassure_model.owed import next_write
from reassure_model.state import Partition
from reassure_model.system import Controller, Die, Failover, Leave, System, make_system, step
from reassure_model.writes import UpdateReassignment, Write
from reassure_spec.readings import PROFILES, READINGS, Readings, override_readings

BUDGET = {Die: 1, Failover: 1, Leave: 0}
"""How often each may happen; what is not named may happen as often as it can."""
MORTAL = (1, 3)
"""Brokers that may die: the one that leads at first, and one that is new."""
TARGETS = ((3,), (2, 3), (2, 3))
"""What the requests ask for: something new, a change, and the same again."""
READ_HERE = ("drop.", "top.", "request.", "target.", "offline.", "move.recheck-before-stop")
"""Readings that one partition and its requests turn on."""

Node = tuple[System, tuple[int, ...]]


def every_choice() -> list[Readings]:
    """Return each profile, and each profile with one reading settled otherwise."""
    choices: dict[Readings, None] = {}
    for profile in PROFILES.values():
        here = {n: v for n, v in profile.as_dict().items() if n.startswith(READ_HERE)}
        base = override_readings(Readings(), here)
        for reading in READINGS:
            for value in reading.values if reading.name.startswith(READ_HERE) else ():
                choices[override_readings(base, {reading.name: value})] = None
    return list(choices)


def name_choice(readings: Readings) -> str:
    """Return what differs from the first values, for the name of a test."""
    told = readings.as_dict().items()
    first = {reading.name: reading.values[0] for reading in READINGS}
    return ",".join(f"{n}={v}" for n, v in told if first[n] != v) or "as first"


def count_anew(system: System) -> System:
    """Return the system with epochs and sequence numbers counted from 0."""
    partition = system.partition
    requests = tuple(replace(r, sequence=i) for i, r in enumerate(partition.requests))
    state = partition.state
    if state is not None:
        state = replace(state, leader_epoch=0, controller_epoch=0)
    partition = replace(partition, requests=requests, state=state)
    sequence = len(requests)
    return replace(system, partition=partition, controller_epoch=0, next_sequence=sequence)


def start() -> Node:
    """Return two replicas online on three brokers, with the requests waiting."""
    system = make_system((1, 2), (1, 2, 3))
    for action in (Controller(), *map(model.Submit, TARGETS)):
        outcome = step(system, action, Readings())
        assert not isinstance(outcome, Rejected)
        system = outcome.state
    return count_anew(system), tuple(BUDGET.values())


def successors(node: Node, readings: Readings) -> Iterator[tuple[model.Action, Node]]:
    """Yield what can happen next; raises AssertionError where the rules reject an owed write."""
    system, left = node
    for action in model.enabled(system, readings):
        rest = tuple(n - isinstance(action, k) for n, k in zip(left, BUDGET, strict=True))
        if min(rest) < 0 or (isinstance(action, Die) and action.broker not in MORTAL):
            continue
        outcome = step(system, action, readings)
        if isinstance(outcome, Rejected):
            owed = next_write(system.partition, system.around, readings)
            assert action != Controller(), f"{owed} of {system}: {outcome}"
            continue
        yield action, (count_anew(outcome.state), rest)


def find_contradiction(readings: Readings) -> str | None:
    """Say where an owed write is rejected, or where the controller alone goes round for ever."""
    first = start()
    seen, frontier, written = {first}, [first], {}
    while frontier:
        node = frontier.pop()
        try:
            for action, after in successors(node, readings):
                if action == Controller():
                    written[node] = after
                if after not in seen:
                    seen.add(after)
                    frontier.append(after)
        except AssertionError as error:
            return str(error)
    for node in list(written):
        chain = {node}
        while (after := written.pop(node, None)) is not None:
            if after in chain:
                return f"for ever from {after[0]}"
            chain.add(after)
            node = after
    return None


@pytest.mark.parametrize("readings", every_choice(), ids=name_choice)
@pytest.mark.clause("request.consumed", "child.before-effects", "request.same-target.no-change")
def test_owed_writes_are_accepted(readings: Readings) -> None:
    """Whatever value a reading has, no owed write is rejected and the controller comes to rest."""
    assert find_contradiction(readings) is None


RESTART = Readings(request_same_target="restart")


def test_rejected_owed_write_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the rules take no record for the target in flight, a restart that is owed is seen."""
    accept = model.accept_write

    def refuse(partition: Partition, write: Write, *others: Any) -> Any:
        flight = partition.reassignment
        if isinstance(write, UpdateReassignment) and write.reassignment == flight:
            return Rejected("request.same-target.no-change", "the target is the one in flight")
        return accept(partition, write, *others)

    monkeypatch.setattr(model, "accept_write", refuse)
    assert "the target is the one in flight" in (find_contradiction(RESTART) or "")


def test_controller_that_never_rests_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nobody remembers that a request was recorded, it is recorded again and again."""
    monkeypatch.setattr(requests, "is_remembered", lambda _: False)
    assert (find_contradiction(RESTART) or "").startswith("for ever")
