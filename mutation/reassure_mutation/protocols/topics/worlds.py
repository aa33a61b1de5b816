"""The worlds of what is asked for beside reassignments: a topic, or a partition and its leader."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from reassure_judge import protocols
from reassure_judge.protocols.topics.asked_for import SERVING, Served, find_debt
from reassure_judge.rules import Possible, Rules
from reassure_model.environment import Die, Return
from reassure_model.outcome import Accepted, Rejected
from reassure_model.partition import Environment, LeaderAndIsr, Partition
from reassure_model.protocols.topics import Ask, Complete, Topic, start_states, step
from reassure_model.selectors import Elected, select_offline
from reassure_model.writes import raise_epoch
from reassure_mutation.judged import Judged
from reassure_mutation.worlds import FAILOVER, NAME, TOPIC, Move, World, load_worlds, spell_target
from reassure_spec.readings import Readings
from reassure_spec.znodes import ReplicaList

LIVE: Final = True
"""No log shows what is asked for: only a run knows of these states."""


@dataclass(frozen=True)
class ServedRules(Judged):
    """What is asked of deletions, and of elections by the rules of the profile."""

    rules: Rules[Any, Any]

    def accept(self, state: Possible, write: Any, around: Environment) -> Accepted[Any] | Rejected:
        """Ask the profile about an election, as its log shows it, and else what is served."""
        partition = state.partition.partition
        if isinstance(write, Elected):
            own = self.rules.begin()._replace(partition=partition)
            raised = raise_epoch(partition.state, around, write.leader, write.isr)
            outcome = self.rules.accept(own, raised, around)
            if isinstance(outcome, Rejected):
                return outcome
        return super().accept(state, write, around)


def make_rules(profile: str, readings: Readings) -> ServedRules:
    """Return what is asked of whoever serves."""
    return ServedRules(SERVING, readings, find_debt, protocols.make_rules(profile, readings))


def _begin(assigned: Any, members: frozenset[int]) -> Served:
    if assigned is not None and isinstance(assigned[0], int):
        return Served(partition=Partition(assigned, LeaderAndIsr(assigned[0], 0, 0, assigned)))
    topic = Topic(assigned or (), members, (), has_config=False)
    return Served(start_states(topic), members)


def _load() -> Iterator[World]:
    """Yield the worlds; a topic with a minimum has settings."""
    for world in load_worlds(__package__, _begin):
        topic = world.partition.topic
        if topic is None:
            yield world
            continue
        topic = replace(topic, has_config=world.around.min_insync_replicas > 1)
        yield replace(world, partition=replace(world.partition, topic=topic))


WORLDS: Final = tuple(_load())


def list_moves(
    served: Served, around: Environment, world: World, readings: Readings
) -> Iterator[Move]:
    """Yield what may happen in a state."""
    if served.partition is not None:
        yield from _list_of_leader(served.partition, around)
    elif served.topic is not None:
        yield from _list_of_topic(served, served.topic, around, world.targets)
        after = SERVING.fail_over(served, readings)
        yield Move(FAILOVER, replace(after, there=around.live), around, "failovers")


def _list_of_topic(
    served: Served, topic: Topic, around: Environment, targets: tuple[ReplicaList, ...]
) -> Iterator[Move]:
    def move(line: str, after: Topic, counted: str) -> Move:
        now = replace(around, live=after.live)
        there = served.there | after.live if after.is_asked else after.live
        return Move((line,), replace(served, topic=after, there=there), now, counted)

    if not topic.is_asked and not topic.is_finishing:
        asked = replace(_step(topic, Ask()), waits=True)
        yield move(f"delete topic {TOPIC}", asked, "deletions")
        for target in targets if topic.partitions and not topic.reassigning else ():
            if topic.live.issuperset(target):
                first, *others = topic.partitions
                both = tuple(dict.fromkeys((*target, *first)))
                after = replace(topic, partitions=(both, *others), reassigning=frozenset({0}))
                line = f"request {NAME} to {spell_target(target)}"
                yield move(line, start_states(after), "requests")
    for (target,) in (targets,) if topic.reassigning else ():
        if topic.live.issuperset(target):
            done = _step(topic, Complete(0))
            after = start_states(replace(done, partitions=(target, *topic.partitions[1:])))
            yield move(f"{target[-1]} joins {NAME}", after, "")
    for broker in sorted(around.known):
        if topic.partitions and broker in topic.live:
            yield move(f"broker {broker} dies", _step(topic, Die(broker)), "deaths")
        elif topic.partitions:
            yield move(f"broker {broker} returns", _step(topic, Return(broker)), "")


def _step(topic: Topic, action: Any) -> Topic:
    outcome = step(topic, action)
    assert isinstance(outcome, Accepted)  # nothing of this is refused
    return outcome.state


def _list_of_leader(partition: Partition, around: Environment) -> Iterator[Move]:
    """Yield what may happen until somebody asks for another leader."""
    state = partition.state
    if state is None or around.preferred_asked or around.stopping:
        return

    def move(line: str, after: LeaderAndIsr, counted: str, **changed: Any) -> Move:
        served = Served(partition=replace(partition, state=after))
        return Move((line,), served, replace(around, **changed), counted)

    yield move("ask for preferred leaders", state, "elections", preferred_asked=True)
    for broker in sorted(around.known):
        live = around.live ^ {broker}
        if broker not in around.live:
            yield move(f"broker {broker} returns", state, "", live=live)
            continue
        if len(live) > 0:
            stopping = frozenset({broker})
            yield move(f"broker {broker} shuts down", state, "shutdowns", stopping=stopping)
        elected = select_offline(partition.assigned or (), state.isr, live)
        if elected is not None:
            after = LeaderAndIsr(elected.leader, 0, 0, elected.isr)
            if state.leader != broker:
                after = replace(after, leader=state.leader)
            yield move(f"broker {broker} dies", after, "deaths", live=live)
        joins, leaves = (*state.isr, broker), tuple(r for r in state.isr if r != broker)
        if broker not in state.isr and broker in (partition.assigned or ()):
            yield move(f"{broker} joins {NAME}", replace(state, isr=joins), "")
        elif broker in state.isr and broker != state.leader:
            yield move(f"{broker} leaves {NAME}", replace(state, isr=leaves), "lags")
