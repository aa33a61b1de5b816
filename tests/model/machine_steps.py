"""Steps of a machine that must be accepted, and states to ask questions about."""

from collections.abc import Iterator
from itertools import product
from typing import Any

from reassure_model.environment import Controller
from reassure_model.machine import Machine
from reassure_model.outcome import Accepted
from reassure_model.partition import LeaderAndIsr, Partition, Reassignment, Request
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


def every_partition() -> Iterator[Partition]:
    """Yield partitions with every combination of a few parts, sensible or not."""
    assigned = ((1, 2), (1, 2, 3), (1, 2, 3, 4))
    led = ((-1, (2,)), (-1, (1, 2, 3)), (1, (1,)), (1, (1, 2)), (3, (1, 2, 3)))
    states = (None, *(LeaderAndIsr(leader, 5, 2, isr) for leader, isr in led))
    targets = (((1, 4), 2), ((3, 1), 2), ((1, 2), 2), ((1,), 1), ((4,), 1))
    flights = (None, *(Reassignment(*each) for each in targets))
    asked = ((), (Request(7, (1, 4)),), (Request(7, (3, 3), legacy=True),))
    flags = product((False, True), repeat=2)
    for parts in product(assigned, states, flights, asked, flags):
        *own, (due, completing) = parts
        yield Partition(*own, drop_due=due, completing=completing)
