"""Steps of a machine that must be accepted."""

from typing import Any

from reassure_model.environment import Controller
from reassure_model.machine import Machine
from reassure_model.outcome import Accepted
from reassure_spec.readings import Readings


def take(machine: Machine[Any], state: Any, *actions: Any, readings: Readings) -> Any:
    """Return the state after actions that must be accepted."""
    for action in actions:
        outcome = machine.step(state, action, readings)
        assert isinstance(outcome, Accepted), outcome
        state = outcome.state
    return state


def run(machine: Machine[Any], state: Any, readings: Readings) -> tuple[Any, list[Any]]:
    """Let the controller act until it waits; return where it ends, and its effects."""
    effects: list[Any] = []
    while (effect := machine.next_effect(state, readings)) is not None:
        state = take(machine, state, Controller(), readings=readings)
        effects.append(effect)
        assert len(effects) < 60
    return state, effects
