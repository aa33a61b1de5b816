"""The worlds of KIP-236: one partition, its requests, and everything that its rules look at."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from reassure_model.environment import Controller, Die, Failover, Join, Leave, Return
from reassure_model.outcome import Accepted
from reassure_model.partition import Environment, Partition
from reassure_model.protocols.kip_236.system import Submit, System, enabled, step
from reassure_mutation.worlds import FAILOVER, Move, World
from reassure_spec.readings import Readings
from reassure_spec.words import spell_replicas
from reassure_spec.znodes import ReplicaList

NAME: Final = "orders-0"

NONE: Final = {"requests": 0, "bursts": 0, "deaths": 0, "lags": 0, "failovers": 0, "deletions": 0}


def _make(
    name: str,
    brokers: int,
    assigned: ReplicaList | None,
    targets: tuple[ReplicaList, ...],
    least: int = 1,
    *,
    calm: bool = False,
    **limits: int,
) -> World:
    """Return a world of a partition that is not online yet; without replicas there is none."""
    members = frozenset(range(1, brokers + 1))
    begin: tuple[str, ...] = ()
    if assigned is not None:
        more = f" min isr {least}" if least > 1 else ""
        begin = (f"create orders with {spell_replicas(assigned)}{more}",)
    around = Environment(members, members, least)
    return World(name, begin, Partition(assigned), around, {**NONE, **limits}, targets, calm)


WORLDS: Final = (
    _make(
        "two of three",
        3,
        (1, 2),
        ((2, 3), (1, 3), (1, 2)),
        requests=2,
        bursts=1,
        deaths=1,
        lags=1,
        failovers=1,
    ),
    _make("two deaths", 3, (1, 2), ((2, 3), (1, 3)), requests=2, deaths=2, failovers=1),
    _make(
        "refused",
        3,
        (1, 2),
        ((), (3, 3), (2, 99), (1, -1), (2, 3)),
        requests=2,
        deaths=2,
        deletions=1,
        calm=True,
    ),
    _make("of nothing", 3, None, ((2, 3),), requests=1, failovers=1, calm=True),
    _make(
        "two in sync",
        3,
        (1, 2),
        ((2, 3), (1, 3), (3,)),
        2,
        requests=2,
        deaths=1,
        lags=1,
        failovers=1,
        calm=True,
    ),
    _make(
        "four brokers", 4, (1, 2), ((2, 3), (3, 4), (1, 2)), requests=3, deaths=1, lags=1, calm=True
    ),
)


def list_moves(
    partition: Partition, around: Environment, world: World, readings: Readings
) -> Iterator[Move]:
    """Yield what may happen in a state."""
    system = System(partition, around.live, around.known, around.min_insync_replicas)
    if partition.assigned is not None and not around.deleting:
        asked = replace(around, deleting=True)
        yield Move(("delete topic orders",), partition, asked, "deletions")
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
        asked = " then ".join(f"{NAME} to {_spell_target(each)}" for each in (first, second))
        yield Move((f"burst {asked}",), after.partition, system.around, "bursts")


def _spell_target(target: ReplicaList) -> str:
    return spell_replicas(target) or "none"


def _spell(action: object, partition: Partition) -> tuple[tuple[str, ...], str]:
    """Return the steps of a test case that an action is, and what it counts as."""
    match action:
        case Submit(target):
            return (f"request {NAME} to {_spell_target(target)}",), "requests"
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
