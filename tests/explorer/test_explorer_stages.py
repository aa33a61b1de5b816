"""The lives that protocols tell in tables are the lives that their rules lead through."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from reassure_explorer.engine.interface import Action, Noted
from reassure_explorer.engine.plain import explore_plain
from reassure_explorer.lifecycle import Lifecycle, find_lives
from reassure_explorer.protocols.kafka_zk.scopes import bound
from reassure_explorer.protocols.kip_236.stages import MOVES
from reassure_explorer.scopes.catalogue import get_scope
from reassure_explorer.scopes.machine import MachineScope
from reassure_model.environment import Failover
from reassure_model.machine import find_machines
from reassure_model.outcome import Rejected
from reassure_model.partition import Request
from reassure_model.protocols.topics import make_topic
from reassure_model.writes import ChangeIsr
from reassure_spec.clauses import list_clauses, load_clauses
from reassure_spec.readings import get_profile, override_readings

BY = {"join": ChangeIsr, "leave": ChangeIsr, "submit": Request}
"""What the table of kip-236 calls what others do: the write that it is."""
AMENDED = {
    "move.recheck-before-stop": "yes",
    "move.expand-first": "yes",
    "move.cut-isr": "yes",
}


def name_cause(action: Action, before: Any, scope: MachineScope) -> str:
    """Return the name of the write, other effect or action that a step is."""
    machine = scope.machine
    if action.name != "controller":
        act = next(act for act in machine.acts if act.name == action.name)
        by = BY.get(action.name) if machine.name == "kip-236" else None
        return str((by or act.kind).__name__)
    effect = machine.next_effect(before, scope.readings)
    for name in ("owed", "write"):
        effect = getattr(effect, name, effect)
    return type(effect).__name__


def watch(action: Action, life: Lifecycle[Any], scope: MachineScope) -> Action:
    """Return the action with the stages that it leads from and to as its notes, and clauses."""

    def step(state: Any, parameter: Any) -> Any:
        found = action.step(state, parameter)
        after = found.state if isinstance(found, Noted) else found
        if after is None:
            return None
        before = scope.view(state)
        was = life.find(before, scope.readings)
        now = life.find(scope.view(after), scope.readings)
        ended = [key for key in was if was[key] is not now.get(key, was[key])]
        if not ended:
            return after
        tested = found.notes if isinstance(found, Noted) else ()
        if action.name == "controller":
            # The last is the clause of the obligation.
            tested = tested[:-1]
        by = name_cause(action, before, scope)
        notes = (
            f"{was[key].name} {by} {now[key].name} {each}"
            for key in ended
            for each in (*tested, "")
        )
        return Noted(after, tuple(notes))

    return replace(action, step=step)


def explore_life(
    protocol: str, scope_name: str, profile: str, changes: Mapping[str, str]
) -> set[tuple[str, ...]]:
    """Return each move that a scope reaches: stage, cause, next stage, a clause or ""."""
    readings = override_readings(get_profile(profile), changes)
    scope = get_scope(scope_name).make_source(readings)
    assert isinstance(scope, MachineScope)
    assert scope.machine.name == protocol
    return explore_scope(scope)


def explore_scope(scope: MachineScope) -> set[tuple[str, ...]]:
    """Return each move that a scope reaches, as `explore_life` does."""
    life = find_lives()[scope.machine.name]
    model = scope.make_model("lives")
    actions = tuple(watch(each, life, scope) for each in model.actions)
    watched = replace(model, actions=actions, invariants=(), goals=())
    return {tuple(note.split(" ")) for note in explore_plain(watched, keep_going=True).notes}


def list_table(life: Lifecycle[Any]) -> set[tuple[str, str, str]]:
    """Return the moves of a table, its failovers among them."""
    moves = {(at.name, by.__name__): move.to for (at, by), move in life.moves.items()}
    moves |= {(at.name, Failover.__name__): found for at, found in life.forgets.items()}
    return {(at, by, after.name) for (at, by), found in moves.items() for after in found}


@pytest.mark.parametrize("profile", ["kip-236", "kip-236-amended"])
def test_table_of_moves_is_what_can_happen(profile: str) -> None:
    """Every move of the table is reached in a small scope, by its checks, and no other."""
    life = find_lives()["kip-236"]
    apart = {kind.__name__ for kind in life.apart}
    told = {each for each in explore_life("kip-236", "small", profile, {}) if each[1] not in apart}
    found, table = {each[:3] for each in told}, list_table(life)
    assert found <= table
    assert {each[:2] for each in table} == {each[:2] for each in found}
    for (stage, write), move in MOVES.items():
        put_to = {c for at, by, _, c in told if (at, by) == (stage.name, write.__name__)} - {""}
        assert put_to <= set(move.clauses), (stage, write)
        # What a move has no use for does not stand in the table.
        for check in move.checks:
            assert put_to & set(list_clauses(check)), (stage, write, check)


@pytest.mark.parametrize(
    ("protocol", "scope", "readings"),
    [
        ("kafka-42", "moves", ({}, AMENDED)),
        ("kafka-4485", "logs", ({},)),
        ("kip-46", "healing", ({},)),
        ("kip-236-legacy", "old-znode", ({},)),
    ],
)
def test_every_life_is_what_can_happen(
    protocol: str, scope: str, readings: tuple[Mapping[str, str], ...]
) -> None:
    """What ends a stage in a small scope, and where it leads, is what the table says, all of it."""
    life = find_lives()[protocol]
    apart = {kind.__name__ for kind in life.apart}
    told = (explore_life(protocol, scope, protocol, changes) for changes in readings)
    found = {each[:3] for some in told for each in some if each[1] not in apart}
    assert found == list_table(life)


def test_the_life_of_a_shipped_partition_is_what_can_happen() -> None:
    """Small worlds reach the moves of the table: a death, two calls, an entry that never leaves.

    The scope `shipped` reaches the same, and takes a minute.
    """
    machine = find_machines()["kafka-zk"]
    life = find_lives()[machine.name]
    apart = {kind.__name__ for kind in life.apart}
    times = {"calls": 1, "writes": 1, "deaths": 0, "failovers": 1}
    found: set[tuple[str, ...]] = set()
    for entries, more in (
        (((2,),), {"deaths": 1}),
        (((2,),), {"calls": 2, "writes": 2}),
        (((2, 2),), {}),
    ):
        bounds = bound(2, (1,), ((2,),), times | more, entries)
        scope = MachineScope(machine, bounds, get_profile("kafka-zk"))
        found |= {each[:3] for each in explore_scope(scope) if each[1] not in apart}
    assert found == list_table(life)


def test_the_life_of_a_deletion_is_what_can_happen() -> None:
    """Two partitions, of which one may be moved, and every death and failover: the table's moves.

    Topics have no scope of their own; without growth there are few enough states of one.
    """
    machine = find_machines()["topics"]
    life = find_lives()[machine.name]
    readings = get_profile("kafka-zk")
    first = make_topic(((1, 2), (2,)), frozenset({1, 2}))
    sets = {"brokers": (1, 2), "partitions": (0,)}
    known = {first, replace(first, may_delete=False)}
    left, found = list(known), set()
    while left:
        topic = left.pop()
        for action in machine.enabled(topic, readings, sets):
            answer = machine.step(topic, action, readings)
            if isinstance(answer, Rejected):
                continue
            ((key, was),) = life.find(topic, readings).items()
            now = life.find(answer.state, readings)[key]
            if now is not was and not isinstance(action, life.apart):
                cause = answer.effects[0] if answer.effects else action
                found.add((was.name, type(cause).__name__, now.name))
            if answer.state not in known:
                known.add(answer.state)
                left.append(answer.state)
    assert found == list_table(life)


def test_what_lives_are_put_to_is_known() -> None:
    """Each move's checks name clauses that there are, and each stage can be come to."""
    lives = find_lives()
    expected = {"kip-236", "kip-236-legacy", "kip-46", "kafka-42", "kafka-4485"}
    assert expected | {"kafka-zk", "topics"} <= lives.keys()
    for name, life in lives.items():
        clauses = {clause for move in life.moves.values() for clause in move.clauses}
        assert clauses <= load_clauses().keys(), name
        assert all(move.clauses for move in life.moves.values() if move.checks), name
        reached = {stage for move in life.moves.values() for stage in move.to}
        assert reached == set(life.stages), name
