"""The worlds of KIP-236: one partition, its requests, and everything that its rules look at."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from reassure_model.environment import Controller, Die, Failover, Join, Leave, Return
from reassure_model.outcome import Accepted
from reassure_model.partition import Environment, Partition
from reassure_model.protocols.kip_236.system import Submit, System, enabled, step
from reassure_mutation.worlds import FAILOVER, NAME, TOPIC, Move, World, load_worlds, spell_target
from reassure_spec.readings import Readings

WORLDS: Final = load_worlds(__package__, lambda assigned, _: Partition(assigned))


def list_moves(
    partition: Partition, around: Environment, world: World, readings: Readings
) -> Iterator[Move]:
    """Yield what may happen in a state."""
    system = System(partition, around.live, around.known, around.min_insync_replicas)
    if partition.assigned is not None and not around.deleting:
        asked = replace(around, deleting=True)
        yield Move((f"delete topic {TOPIC}",), partition, asked, "deletions")
    submits: tuple[Submit, ...] = ()
    if not partition.requests:
        submits = tuple(Submit(target) for target in world.targets)
        yield from _list_bursts(system, world, readings)
    for action in enabled(system, readings, submits):
        outcome = None if isinstance(action, Controller) else step(system, action, readings)
        if isinstance(outcome, Accepted):
            after: System = outcome.state
            lines, counted = _spell(action, partition)
            yield Move(lines, after.partition, replace(around, live=after.live), counted)


def _list_bursts(system: System, world: World, readings: Readings) -> Iterator[Move]:
    """Yield two requests at once, of which the controller sees both before it does anything."""
    for first, second in zip(world.targets, world.targets[1:], strict=False):
        after = system
        for target in (first, second):
            outcome = step(after, Submit(target), readings)
            assert isinstance(outcome, Accepted)  # anybody may ask for anything
            after = outcome.state
        asked = " then ".join(f"{NAME} to {spell_target(each)}" for each in (first, second))
        yield Move((f"burst {asked}",), after.partition, system.around, "bursts")


def _spell(action: object, partition: Partition) -> tuple[tuple[str, ...], str]:
    """Return the steps of a test case that an action is, and what it counts as."""
    match action:
        case Submit(target):
            return (f"request {NAME} to {spell_target(target)}",), "requests"
        case Join(replica):
            return (f"{replica} joins {NAME}",), ""
        case Leave(replica):
            return (f"{replica} leaves {NAME}",), "lags"
        case Die(broker):
            return (f"broker {broker} dies",), "deaths"
        case Return(broker):
            return (f"broker {broker} returns",), ""
        case _:
            assert isinstance(action, Failover)
            return FAILOVER, "failovers"
