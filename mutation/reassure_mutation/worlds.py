"""Small clusters, explored to find what can be killed at all, each state with its shortest way.

A world is one partition and what may happen around it. Those of a protocol stand in its
`worlds.toml`. First everything waits while the controller has something to do, so that what is
found there needs nobody who holds a controller; then anything may happen between two writes as
well.
"""

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib.resources import files
from typing import Any, Final

from reassure_judge.moments import ACTS, RESTS, SUCCEEDS
from reassure_model.outcome import Accepted
from reassure_model.partition import Environment
from reassure_mutation.kills import Reference, Situation, normalise
from reassure_spec.readings import Readings
from reassure_spec.words import spell_replicas
from reassure_spec.znodes import ReplicaList

TOPIC: Final = "orders"
NAME: Final = f"{TOPIC}-0"
"""The partition that a world is about."""
FAILOVER: Final = ("kill controller", "elect")
ANYWHERE: Final = ("cut connection", "expire session", "depose controller")
"""What may happen to a controller in any world."""
LOSSES: Final = ("lose answer after", "lose write after")
"""How a write may go wrong, in the words of a test case that come before how many do not."""


@dataclass(frozen=True, slots=True)
class Move:
    """Something that happens, and that is no write of the controller."""

    lines: tuple[str, ...]
    """The steps of a test case that it is."""
    partition: Any
    around: Environment
    counted: str = ""
    """Under what name it counts against the limits of a world, "" where it has none."""


@dataclass(frozen=True, slots=True)
class World:
    """Where an exploration begins, and how often each kind of move may happen."""

    name: str
    begin: tuple[str, ...]
    """The steps of a test case that lead to where it begins."""
    partition: Any
    around: Environment
    limits: Mapping[str, int] = field(default_factory=dict)
    """By name of what is counted; what is not named does not happen."""
    targets: tuple[Any, ...] = ()
    """What clients may ask for."""
    calm: bool = False
    """Whether it is looked at only while everything waits for the controller."""


def load_worlds(package: str, make: Callable[[Any, frozenset[int]], Any]) -> tuple[World, ...]:
    """Return the worlds of a protocol.

    `make` makes of what is assigned, and of the brokers, what is there before anything is written.
    Where nothing is assigned there is no partition; a list of lists is several partitions.
    """
    worlds = []
    said = tomllib.loads((files(package) / "worlds.toml").read_text(encoding="utf-8"))
    for name, each in said.items():
        members, least = frozenset(range(1, each["brokers"] + 1)), each.get("min-isr", 1)
        assigned = _freeze(each.get("assigned"))
        begin: tuple[str, ...] = ()
        if assigned is not None:
            lists = assigned if isinstance(assigned[0], tuple) else (assigned,)
            more = f" min isr {least}" if least > 1 else ""
            begin = (f"create {TOPIC} with {' and '.join(map(spell_replicas, lists))}{more}",)
        partition, around = make(assigned, members), Environment(members, members, least)
        calm, targets = each.get("calm", False), _freeze(each["targets"])
        worlds.append(World(name, begin, partition, around, each["limits"], targets, calm))
    return tuple(worlds)


def _freeze(value: Any) -> Any:
    """Return a value of a table with tuples for its lists."""
    return tuple(map(_freeze, value)) if isinstance(value, list) else value


def spell_target(target: ReplicaList) -> str:
    """Return what a client asks for, as a step of a test case has it."""
    return spell_replicas(target) or "none"


Moves = Callable[[Any, Environment, World, Readings], Iterator[Move]]
"""From a partition, its surroundings, its world and the readings to what may happen."""


@dataclass(frozen=True, slots=True)
class _Node:
    """A state, with the moves that are left."""

    state: Any
    around: Environment
    left: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Way:
    """How a state was reached first."""

    before: _Node | None
    lines: tuple[str, ...]
    """The steps of the move; none where the controller wrote."""
    rested: bool = True
    """Whether the controller had nothing to do before it."""


@dataclass(frozen=True, slots=True)
class Found:
    """A state of a world, and the way there."""

    situation: Situation
    ways: tuple[_Way, ...]

    @property
    def interrupts(self) -> bool:
        """Whether something happened between two writes on the way."""
        return self.count_interrupted() > 0

    def count_interrupted(self) -> int:
        """Return how often that was so."""
        return sum(not way.rested for way in self.ways if way.lines)

    def meet(self, *lines: str) -> "Found":
        """Return what comes of this where something happens before the next write."""
        return replace(self, ways=(*self.ways, _Way(None, lines, rested=False)))

    def lose(self, said: str) -> tuple[str, ...]:
        """Return the test case in which the next write goes wrong: `lose answer after`, say."""
        *steps, hold, last = self.meet("").list_steps()[:-2]
        return (*steps, hold.replace("hold after", said), last)

    def list_steps(self) -> tuple[str, ...]:
        """Return the test case that leads an implementation into this state.

        An implementation plans ahead, and sends messages between its writes. So where something
        happens between two writes the number after `hold after` says where to begin to look.
        """
        steps: tuple[str, ...] = ()
        held = False
        moves = [at for at, way in enumerate(self.ways) if way.lines]
        for place, at in enumerate(moves):
            lines = self.ways[at].lines
            after = moves[place + 1] if place + 1 < len(moves) else None
            interrupted = after is not None and not self.ways[after].rested
            hold = (f"hold after {after - at - 1}",) if after is not None and interrupted else ()
            if lines == FAILOVER:
                steps += (lines[0], *hold, lines[1])
            elif held:
                # Who is held and is to be held goes on for so many effects.
                steps += (*lines, *(hold or ("resume",)))
            else:
                steps += (*hold, *lines)
            held = interrupted
        if self.situation.kind == SUCCEEDS:
            written = len(self.ways) - 1 - moves[-1] if moves else 0
            steps = (*steps[:-1], f"hold after {written}", *steps[-1:], *FAILOVER)
        return steps


def explore(world: World, reference: Reference, moves: Moves, *, calm: bool) -> Iterator[Found]:
    """Yield every moment that a right controller comes to in a world, the nearest first.

    With `calm` everything else waits until the controller has nothing to do.
    """
    names, rules = tuple(world.limits), reference.rules
    first = normalise(rules.begin()._replace(partition=world.partition))
    begin = _Node(first, world.around, tuple(world.limits.values()))
    ways: dict[_Node, _Way] = {begin: _Way(None, world.begin)}
    queue = [begin]
    for node in queue:  # it grows
        partition = node.state.partition
        due = reference.judgement.owed(partition, node.around, rules.readings)
        way = _list_ways(node, ways)
        states = reference.expand((node.state,), node.around)
        yield Found(Situation(RESTS if due is None else ACTS, states, node.around), way)
        yield Found(Situation(SUCCEEDS, states, node.around), way)
        found: list[tuple[_Node, tuple[str, ...]]] = []
        if due is not None:
            outcome = rules.accept(node.state, due.write, node.around)
            if isinstance(outcome, Accepted):
                after = rules.follow(node.state, outcome.state, due.write)
                found.append((replace(node, state=normalise(after)), ()))
        if due is None or not calm:
            for move in moves(partition, node.around, world, rules.readings):
                left = _spend(node.left, names, move.counted)
                if left is not None:
                    after = normalise(node.state._replace(partition=move.partition))
                    found.append((_Node(after, move.around, left), move.lines))
        for reached, lines in found:
            if reached not in ways:
                ways[reached] = _Way(node, lines, due is None)
                queue.append(reached)


@dataclass(frozen=True, slots=True)
class Meeting:
    """Something happens between a controller's decision to write and the write."""

    effect: str
    """The kind of write."""
    event: str
    """The step of a test case that comes in between, or what becomes of the write."""
    steps: tuple[str, ...]
    """The shortest test case in which they meet."""
    before: int = 0
    """How often something came between two writes before that."""


def find_meetings(
    world: World, reference: Reference, moves: Moves, known: dict[tuple[str, str], Meeting]
) -> None:
    """Find what can meet in a world: each kind once, where the least else was interrupted."""
    for found in explore(world, reference, moves, calm=False):
        situation = found.situation
        if situation.kind != ACTS:
            continue
        partition, around = situation.states[0].partition, situation.around
        due = reference.rules.find_owed(partition, around)
        assert due is not None  # a controller that rests does not act
        effect, before = type(due.write).__name__, found.count_interrupted()
        events = [each.lines for each in moves(partition, around, world, reference.rules.readings)]
        for lines in (*events, *((each,) for each in ANYWHERE)):
            kind = effect, re.sub(r"\S*\d\S*", "", lines[0])
            if kind not in known or before < known[kind].before:
                steps = found.meet(*lines).list_steps()
                known[kind] = Meeting(effect, lines[0], steps, before)
        for loss in LOSSES:
            kind = effect, loss
            if kind not in known or before < known[kind].before:
                known[kind] = Meeting(effect, f"{loss} 0", found.lose(loss), before)


def _spend(left: tuple[int, ...], names: tuple[str, ...], counted: str) -> tuple[int, ...] | None:
    """Return what is left after a move, None where nothing was."""
    if not counted:
        return left
    if counted not in names:
        return None
    at = names.index(counted)
    return (*left[:at], left[at] - 1, *left[at + 1 :]) if left[at] > 0 else None


def _list_ways(node: _Node, ways: Mapping[_Node, _Way]) -> tuple[_Way, ...]:
    path = [ways[node]]
    while path[-1].before is not None:
        path.append(ways[path[-1].before])
    return tuple(reversed(path))
