"""Approaches: how generation gets into a situation, step by step.

An approach is a generator of steps. It looks at how things stand before each of them, so that what
it asks for is possible, and it draws what does not matter: which brokers, which lists, how many
effects. What it leaves open is filled by the guide after it has ended.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from reassure_conformance.gate import steps as s
from reassure_conformance.gate.moment import ClusterMoment
from reassure_spec.znodes import PartitionKey, ReplicaList

Draw = Callable[[int], int]
"""Gives a number from 0 to n - 1."""
Approach = Callable[[ClusterMoment, Draw], Iterator[s.ClusterStep]]

MORE_EFFECTS: Final = 4
"""How many effects beyond those of the reference controller are drawn at least."""
MOST_EFFECTS: Final = 8
"""How many effects are waited for until the write is next that is to be met."""
MORE_WRITES: Final = 2
"""How many writes beyond those of the reference controller are drawn, and one less."""
TOPIC = "orders"
KEY: PartitionKey = (TOPIC, 0)


def pick(now: ClusterMoment, draw: Draw, count: int) -> ReplicaList:
    """Draw so many brokers in some order; the first ones where zeros are drawn."""
    left = list(now.brokers)
    return tuple(left.pop(draw(len(left))) for _ in range(min(count, len(left))))


def pick_others(now: ClusterMoment, draw: Draw, than: ReplicaList, count: int = 1) -> ReplicaList:
    """Draw so many brokers that are not among these."""
    left = [broker for broker in now.brokers if broker not in than]
    return tuple(left.pop(draw(len(left))) for _ in range(min(count, len(left))))


def create(now: ClusterMoment, draw: Draw, count: int = 2, partitions: int = 1) -> s.CreateTopic:
    """Make the topic, with so many replicas of each partition."""
    return s.CreateTopic(TOPIC, tuple(pick(now, draw, count) for _ in range(partitions)))


def get_in_sync(now: ClusterMoment, key: PartitionKey = KEY) -> ReplicaList:
    """Return the in-sync replicas, none where there is no state."""
    partition = now.view.partitions.get(key)
    return () if partition is None or partition.state is None else partition.state.isr


def get_assigned(now: ClusterMoment, key: PartitionKey = KEY) -> ReplicaList:
    """Return the assigned replicas, none where there is no such partition."""
    partition = now.view.partitions.get(key)
    return () if partition is None else partition.assigned or ()


def get_leader(now: ClusterMoment, key: PartitionKey = KEY) -> int:
    """Return the leader, -1 where there is none."""
    partition = now.view.partitions.get(key)
    return -1 if partition is None or partition.state is None else partition.state.leader


def move(now: ClusterMoment, draw: Draw, key: PartitionKey = KEY) -> s.Request:
    """Ask for a target with a replica that is not assigned, where there is such a broker."""
    assigned = get_assigned(now, key)
    new = pick_others(now, draw, assigned)
    kept = assigned[draw(len(assigned))] if assigned else new[0]
    target = (*new, kept) if draw(2) else (kept, *new)
    return s.Request(((key, target),))


def catch_up(now: ClusterMoment, *keys: PartitionKey) -> Iterator[s.ClusterStep]:
    """Let every replica of the target join, in one partition after the other."""
    for key in keys or (KEY,):
        partition = now.view.partitions.get(key)
        flight = None if partition is None else partition.reassignment
        for replica in flight.target if flight is not None else ():
            if replica not in get_in_sync(now, key):
                yield s.Join(replica, key)


def fail_over(draw: Draw) -> Iterator[s.ClusterStep]:
    """Let the controller die and another one be elected, which may be held at once."""
    yield s.Kill()
    if draw(2):
        yield s.Hold(draw(4))
    yield s.Elect()


def follow(steps: tuple[s.ClusterStep, ...], effect: str = "") -> Approach:
    """Return the approach that takes these steps as they stand, each where it is possible.

    An implementation may have more effects between two writes than the reference controller, its
    messages for one, and never has fewer. So where the controller is held is drawn; or it goes on
    effect by effect until the next write is of the kind that is given, and the last steps follow.
    """

    def approach(now: ClusterMoment, draw: Draw) -> Iterator[s.ClusterStep]:
        holds = [at for at, step in enumerate(steps) if isinstance(step, s.Hold)]
        for at, step in enumerate(steps):
            if isinstance(step, s.Hold) and not effect:
                step = replace(step, effects=step.effects + draw(step.effects + MORE_EFFECTS))
            elif isinstance(step, s.Lose):
                step = replace(step, writes=step.writes + draw(MORE_WRITES))
            yield step
            if effect and holds and at == holds[-1] + 1:
                for _ in range(MOST_EFFECTS):
                    if not now.held or effect in now.owed:
                        break
                    yield s.Hold(1)

    return approach
