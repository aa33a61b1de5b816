"""The worlds of KIP-236: one partition, its requests, and everything that its rules look at."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from reassure_model.environment import Controller, Die, Failover, Join, Leave, Return
from reassure_model.outcome import Accepted
from reassure_model.partition import Environment, Partition
from reassure_model.protocols.kip_236.machine import JUDGEMENT
from reassure_model.protocols.kip_236.system import Submit, System, enabled, step
from reassure_mutation.worlds import FAILOVER, Move, World
from reassure_spec.readings import Readings
from reassure_spec.words import spell_replicas

REFERENCE: Final = JUDGEMENT
NAME: Final = "orders-0"


def list_moves(
    partition: Partition, around: Environment, world: World, readings: Readings
) -> Iterator[Move]:
    """Yield what may happen in a state."""
    system = System(partition, around.live, around.known, around.min_insync_replicas)
    if partition.assigned is not None and not around.deleting:
        asked = replace(around, deleting=True)
        yield Move(("delete topic orders",), partition, asked, "deletions")
    submits = tuple(Submit(target) for target in world.targets) if not partition.requests else ()
    for action in enabled(system, readings, submits):
        outcome = None if isinstance(action, Controller) else step(system, action, readings)
        if isinstance(outcome, Accepted):
            after: System = outcome.state
            lines, counted = _spell(action, partition)
            yield Move(lines, after.partition, replace(around, live=after.live), counted)


def _spell(action: object, partition: Partition) -> tuple[tuple[str, ...], str]:
    """Return the steps of a test case that an action is, and what it counts as."""
    match action:
        case Submit(target):
            return (f"request {NAME} to {spell_replicas(target) or 'none'}",), "requests"
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
