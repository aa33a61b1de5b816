"""Each value of a reading that the explorer carries out makes a step of its scopes another one."""

import random
from collections import deque
from collections.abc import Mapping
from typing import Any

import pytest

from reassure_explorer.engine.interface import Model, RangeError
from reassure_explorer.scopes.catalogue import SCOPES, get_model
from reassure_spec.readings import READINGS, field_name, get_profile, override_readings
from reassure_spec.rooms import ROOMS, Room

Cell = tuple[str, str]
"""A reading and a value of it."""
EXPLORERS = [room for name, room in ROOMS.items() if name.startswith("explorer of ")]
MOST_STATES = 1500
"""How many states of a scope are looked at, at most."""
LONGEST = 40
"""Steps of a random walk."""


def take_steps(model: Model, state: Any) -> list[Any]:
    """Return where each action leads, and what each invariant says of a state."""
    steps: list[Any] = []
    for action, parameter in model.list_instances(state):
        try:
            steps.append(model.take(state, action, parameter))
        except RangeError:
            steps.append(RangeError)
    return [*steps, *(each.explain(state) for each in model.invariants)]


def find_told_apart(usual: Model, others: Mapping[Cell, Model]) -> set[Cell]:
    """Return the cells under which some state has other steps than usual.

    The first difference is in a state that both reach. What is nearest is looked at, and in turn
    what random walks come to, which is deeper.
    """
    draw, start = random.Random(1), usual.initial_states
    found = {cell for cell, model in others.items() if model.initial_states != start}
    leads: dict[Any, list[Any]] = {}
    nearest, known, walk = deque(start), set(start), [start[0]]
    while nearest and len(leads) < MOST_STATES and len(found) < len(others):
        if len(walk) == LONGEST or not leads.get(walk[-1], walk):
            walk = [start[0]]
        for state in (nearest.popleft(), walk[-1]):
            if state not in leads:
                steps = take_steps(usual, state)
                left = ((cell, model) for cell, model in others.items() if cell not in found)
                found |= {cell for cell, model in left if take_steps(model, state) != steps}
                leads[state] = [to for step in steps if isinstance(step, list) for to, _ in step]
                nearest.extend(dict.fromkeys(to for to in leads[state] if to not in known))
                known.update(leads[state])
        if leads[walk[-1]]:
            walk.append(draw.choice(leads[walk[-1]]))
    return found


def list_cells(room: Room, profile: str) -> list[Cell]:
    """Return every value of what a room asks about that is another than the profile's."""
    usual = get_profile(profile)
    return [
        (reading.name, value)
        for reading in READINGS
        for value in reading.values
        if reading.name in room.asks and value != getattr(usual, field_name(reading.name))
    ]


@pytest.mark.parametrize("room", EXPLORERS, ids=lambda room: room.name)
def test_value_that_is_carried_out_changes_a_step(room: Room) -> None:
    """And of a reading whose values are said to be alike none does."""
    profile = room.name.removeprefix("explorer of ")
    cells = [
        cell
        for cell in list_cells(room, profile)
        if cell[0] in room.alike or room.find_refusal(*cell) is None
    ]
    wanted = {cell for cell in cells if cell[0] not in room.alike}
    found: set[Cell] = set()
    for scope in reversed(SCOPES.values()):  # the later ones hold more
        if scope.room == room.name and not wanted <= found:
            _, usual = get_model(scope.name, profile)
            others = {
                cell: scope.make_model(override_readings(get_profile(profile), dict([cell])))
                for cell in cells
                if cell not in found
            }
            found |= find_told_apart(usual, others)
    assert sorted(found) == sorted(wanted)
