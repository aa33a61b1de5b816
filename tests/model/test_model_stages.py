"""The life of a reassignment as its table tells it is the life that the rules lead it through."""

from dataclasses import replace
from typing import Any

import pytest

from reassure_explorer.engine.interface import Action, Noted
from reassure_explorer.engine.plain import explore_plain
from reassure_explorer.scopes.catalogue import get_scope
from reassure_explorer.scopes.machine import MachineScope
from reassure_model.kip_236.obligations import next_write
from reassure_model.kip_236.stages import FORGETS, MOVES, Stage, find_stage
from reassure_model.kip_236.state import Request
from reassure_model.kip_236.system import System
from reassure_model.kip_236.writes import ChangeIsr
from reassure_spec.clauses import list_clauses
from reassure_spec.readings import get_profile

BY = {"join": ChangeIsr, "leave": ChangeIsr, "submit": Request}
TABLE = {
    (before, getattr(by, "__name__", by), after)
    for moves in (
        {key: move.to for key, move in MOVES.items()},
        {(stage, "failover"): found for stage, found in FORGETS.items()},
    )
    for (before, by), found in moves.items()
    for after in found
}


def _name_write(action: Action, system: System, reference: MachineScope) -> str:
    if action.name != "controller":
        return getattr(BY.get(action.name), "__name__", action.name)
    owed = next_write(system.partition, system.around, reference.readings)
    assert owed is not None
    return type(owed.write).__name__


def _watch(action: Action, reference: MachineScope) -> Action:
    """Return the action with the stages that it leads from and to as its note."""

    def step(state: Any, parameter: Any) -> Any:
        found = action.step(state, parameter)
        after = found.state if isinstance(found, Noted) else found
        if after is None:
            return None
        before = reference.view(state)
        stages = find_stage(before.partition), find_stage(reference.view(after).partition)
        if stages[0] is stages[1]:
            return after
        names = stages[0].name, _name_write(action, before, reference), stages[1].name
        tested = found.notes if isinstance(found, Noted) else ()
        if action.name == "controller":
            # The last is the clause of the obligation.
            tested = tested[:-1]
        return Noted(after, tuple(" ".join((*names, each)) for each in (*tested, "")))

    return replace(action, step=step)


@pytest.mark.parametrize("profile", ["kip-236", "kip-236-amended"])
def test_table_of_moves_is_what_can_happen(profile: str) -> None:
    """Every move of the table is reached in a small scope, by its checks, and no other."""
    reference = get_scope("small").make_source(get_profile(profile))
    assert isinstance(reference, MachineScope)
    model = reference.make_model("small")
    watched = replace(model, actions=tuple(_watch(each, reference) for each in model.actions))
    told = {tuple(note.split(" ")) for note in explore_plain(watched, keep_going=True).notes}
    found = {(Stage[before], by, Stage[after]) for before, by, after, _ in told}
    assert found <= TABLE
    assert {(before, by) for before, by, _ in TABLE} == {(before, by) for before, by, _ in found}
    for (stage, write), move in MOVES.items():
        put_to = {c for at, by, _, c in told if (at, by) == (stage.name, write.__name__)} - {""}
        assert put_to <= set(move.clauses), (stage, write)
        # What a move has no use for does not stand in the table.
        for check in move.checks:
            assert put_to & set(list_clauses(check)), (stage, write, check)
