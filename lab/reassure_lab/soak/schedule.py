"""Which faults and operations happen when: drawn from a seed, before anything has started.

The same settings give the same schedule. Whom a fault of a controller meets is settled by name, and
so is the place at which a controller that is started again is to end itself.
"""

import itertools
import random
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final, Literal

from reassure_spec.errors import BadUsage

Kind = Literal["kill", "pause", "cut", "half-open", "slow", "full disk"]
TROUBLES: Final[tuple[Kind, ...]] = ("cut", "half-open", "slow")

POINTS: Final = (
    "request.child-written",
    "request.assigned-expanded",
    "request.epoch-raised",
    "request.replicas-started",
    "request.deleted",
    "change.child-written",
    "change.isr-shrunk",
    "change.replicas-dropped",
    "change.replicas-deleted",
    "completion.leader-moved",
    "completion.epoch-raised",
    "completion.isr-shrunk",
    "completion.replicas-deleted",
    "completion.target-assigned",
    "completion.child-deleted",
    "partition.leader-elected",
    "partition.isr-shrunk",
    "partition.state-sent",
    "failover.state-sent",
    "broker.state-sent",
)
"""Where a controller may be made to end itself."""
QUIET_S: Final = 3.0
"""At the beginning nothing happens."""
DOWN_S: Final = (0.3, 6.0)
"""How long somebody is away: shorter and longer than a session lasts."""
MOST_DOWN: Final = {"broker": 2, "zookeeper": 1, "controller": 2}
"""How many of a kind may be away or spoilt at the same time."""
OTHER_TIMES: Final = 20
"""At how many other times a kill, or a full disk, is tried for which there is nobody."""
PAUSES_PER_KILL: Final = 0.25
RARE_PER_KILL: Final = 0.5
"""Connections that are spoilt, and disks that are full."""
STRIKES_PER_KILL: Final = 0.1
"""How many kills are of a leader whose log and followers' logs differ."""
APART_S: Final = 1.0
"""How long there is at least between strikes and what else has a time of its own."""
LEAST_STRIKES: Final = 2
"""As many as there is time for in a soak of less than a minute."""
BEHIND_S: Final = 8.0
"""A broker that fetches nothing for so long is out of sync: LAG_MS, and until a leader looks."""
ALONE_S: Final = 2.0
"""A leader from whom nobody fetches for so long has records of its own, and its followers are in
sync still."""
STRUCK_S: Final = (4.5, 6.0)
"""How long a leader is dead then: longer than a session, so that another one is elected."""
STARVED_S: Final = 13.0
"""Two brokers fetch nothing for so long: whoever leads replicas on both alone is refused acks=all
from when it has seen that (`BEHIND_S`)."""
WIDE_S: Final = 60.0
"""In so long something meets many at once, once each."""
FULL_S: Final = (1.0, 4.0)
"""How long a disk is full."""
ALL_S: Final = 2.0
"""How long all brokers, or all servers, are away at once."""
BROKERS: Final = "brokers"
"""In place of a peer: all brokers but the one that is named beside."""
ALL: Final = "all "
"""In place of a member, before its role: all of them at once."""
OPERATION_S: Final = 40.0
"""In so long each operation is asked for at least once."""
MOVE_S: Final = 1.5
"""How long there is between two requests to move one partition."""
OPERATIONS: Final = (
    ("move", 30), ("move", 300), ("cancel", 1), ("change", 1), ("grow", 1), ("delete", 1),
    ("throttle", 1), ("factor", 1), ("cancel", 30), ("change", 30),
)  # fmt: skip
"""Besides moves of one partition: what, and of how many partitions in one request."""


class NoRoom(BadUsage):
    """So many faults do not fit into so little time."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that goes wrong for a while."""

    at_s: float
    """When, counted from the start of the load."""
    kind: Kind
    member: str
    for_s: float
    """How long the member is dead, stopped, or its connection spoilt."""
    peer: str = ""
    """To whom the connection is spoilt."""
    behind: str = ""
    """A broker that is out of sync: who leads a partition of it dies in place of the member."""
    alone_s: float = 0.0
    """For how long nobody fetches from the member before it dies."""
    crash_at: str = ""
    """Where a controller that is started again is to end itself: POINT:N."""

    def __str__(self) -> str:
        peer = f" to {self.peer}" if self.peer else ""
        crash = f", then until {self.crash_at}" if self.crash_at else ""
        alone = f", alone for {self.alone_s} s, or who leads {self.behind}," if self.behind else ""
        what = f"{self.kind:9} {self.member}{peer}{alone} for {self.for_s} s{crash}"
        return f"{self.at_s:7.2f} s  {what}"

    @property
    def ends_s(self) -> float:
        """When it is over."""
        return self.at_s + self.alone_s + self.for_s


@dataclass(frozen=True, slots=True)
class Operation:
    """One thing that an operator asks for."""

    at_s: float
    kind: str
    size: int
    """How many partitions are in one request."""

    def __str__(self) -> str:
        return f"{self.at_s:7.2f} s  {self.kind:9} of {self.size}"


@dataclass(frozen=True, slots=True)
class Schedule:
    """The faults and operations of a soak, each in the order of their times."""

    seed: int
    seconds: float
    faults: tuple[Fault, ...] = field(repr=False)
    operations: tuple[Operation, ...] = field(default=(), repr=False)

    def as_dict(self) -> dict[str, Any]:
        """Return the schedule as it is written into the directory of a run."""
        return asdict(self)


def default_kills(seconds: float) -> int:
    """Return how many kills there are where nobody says: one in four seconds.

    >>> default_kills(60)
    14
    """
    return max(1, int((seconds - QUIET_S) / 4))


def draw(
    seed: int, seconds: float, kills: int, members: Sequence[str], *, full_disks: bool = False
) -> Schedule:
    """Return the schedule of a seed. Raises NoRoom when there is no time for so many kills."""
    draws = random.Random(seed)
    faults = _draw_blocks(draws, seconds, kills, members)
    kinds: list[Kind] = ["kill"] * (kills - sum(fault.kind == "kill" for fault in faults))
    kinds += ["pause"] * round(kills * PAUSES_PER_KILL)
    rare: tuple[Kind, ...] = (*TROUBLES, *(("full disk",) if full_disks else ()))
    kinds += [kind for _, kind in zip(range(round(kills * RARE_PER_KILL)), itertools.cycle(rare))]
    draws.shuffle(kinds)
    step = (seconds - QUIET_S) / max(1, len(kinds))
    for number, kind in enumerate(kinds):
        times_s = [QUIET_S + (number + draws.random()) * step]
        if kind in ("kill", "full disk"):  # where nobody may have it, it comes at another time
            times_s += [draws.uniform(QUIET_S, seconds) for _ in range(OTHER_TIMES)]
        found = (_draw_fault(draws, kind, round(one, 2), members, faults) for one in times_s)
        faults += itertools.islice((one for one in found if one is not None), 1)
    count = sum(fault.kind == "kill" for fault in faults)
    if count < kills:
        raise NoRoom(
            f"{count} of {kills} kills fit into {seconds:g} s with {len(members)} members: "
            "give more --seconds, or fewer --kills"
        )
    ordered = tuple(sorted(faults, key=lambda fault: fault.at_s))
    return Schedule(seed, seconds, ordered, _draw_operations(draws, seconds))


def _draw_operations(draws: random.Random, seconds: float) -> tuple[Operation, ...]:
    """Return what is asked for: moves of one partition, and each of the others now and then."""
    wanted = [("move", 1)] * int((seconds - QUIET_S) / MOVE_S)
    wanted += OPERATIONS * max(1, int(seconds / OPERATION_S))
    draws.shuffle(wanted)
    step = (seconds - QUIET_S) / len(wanted)
    return tuple(
        Operation(round(QUIET_S + (number + draws.random()) * step, 2), kind, size)
        for number, (kind, size) in enumerate(wanted)
    )


def _draw_blocks(
    draws: random.Random, seconds: float, kills: int, members: Sequence[str]
) -> list[Fault]:
    """Return what has a time of its own, one behind the other in any order, as much as fits.

    Strikes; all brokers, or all servers, away at once; two brokers that fetch nothing.
    """
    brokers = [one for one in members if role_of(one) == "broker"]
    roles = dict.fromkeys(role_of(one) for one in members if role_of(one) != "controller")
    minutes = max(1, int(seconds / WIDE_S))
    strikes = min(kills, max(LEAST_STRIKES, round(kills * STRIKES_PER_KILL)))
    wanted = [[Fault(0.0, "kill", f"{ALL}{role}s", ALL_S)] for role in roles] * minutes
    for _ in range(minutes):
        two = draws.sample(brokers, 2)
        wanted.append([Fault(0.0, "cut", one, STARVED_S, peer=BROKERS) for one in two])
    wanted += [_draw_strike(draws, brokers) for _ in range(strikes)]
    free_s, blocks = seconds - QUIET_S, list[tuple[float, list[Fault]]]()
    for block in wanted:
        for_s = max(one.ends_s for one in block) + APART_S
        if for_s <= free_s:
            blocks.append((for_s, block))
            free_s -= for_s
    draws.shuffle(blocks)
    breaks = sorted(draws.uniform(0, free_s) for _ in blocks)
    faults: list[Fault] = []
    begin_s = QUIET_S
    for rest_s, (for_s, block) in zip(breaks, blocks, strict=True):
        faults += [replace(one, at_s=round(begin_s + rest_s + one.at_s, 2)) for one in block]
        begin_s += for_s
    return faults


def _draw_strike(draws: random.Random, brokers: Sequence[str]) -> list[Fault]:
    """Return a leader's death at a time when logs differ, which by chance they hardly ever do.

    Somebody is out of sync then, who should not be elected; and the leader has records that nobody
    else has, which it has to cut off when it comes back.
    """
    leader, other = draws.sample(brokers, 2)
    for_s = round(draws.uniform(*STRUCK_S), 2)
    cut = Fault(0.0, "cut", other, BEHIND_S + ALONE_S + 1, peer=BROKERS)
    return [cut, Fault(BEHIND_S, "kill", leader, for_s, behind=other, alone_s=ALONE_S)]


def _draw_fault(
    draws: random.Random, kind: Kind, at_s: float, members: Sequence[str], before: Iterable[Fault]
) -> Fault | None:
    """Return a fault of somebody who may have one now, None where nobody may."""
    for_s = round(draws.uniform(*DOWN_S), 2)
    away = [
        one
        for fault in before
        if fault.at_s < at_s + for_s + 1 and fault.ends_s > at_s - 1
        for one in list_met(fault.member, members)
    ]
    if kind == "full disk":
        free = [one for one in members if role_of(one) == "broker" and one not in away]
        for_s = round(draws.uniform(*FULL_S), 2)
        return Fault(at_s, kind, draws.choice(free), for_s) if free else None
    spoils = kind in TROUBLES
    free = [
        one
        for one in members
        if one not in away
        and sum(role_of(one) == role_of(other) for other in away) < MOST_DOWN[role_of(one)]
        and not (spoils and role_of(one) == "zookeeper")
    ]
    if not free:
        return None
    member = draws.choice(free)
    if spoils:
        roles = ("broker", "zookeeper")
        peers = [one for one in members if one != member and role_of(one) in roles]
        return Fault(at_s, kind, member, for_s, peer=draws.choice(peers))
    armed = kind == "kill" and role_of(member) == "controller"
    crash_at = f"{draws.choice(POINTS)}:{draws.randint(1, 3)}" if armed else ""
    return Fault(at_s, kind, member, for_s, crash_at=crash_at)


def list_met(member: str, members: Iterable[str]) -> list[str]:
    """Return whom a fault meets: a member, or all of a role.

    >>> list_met("all brokers", ["broker-1", "controller-1", "broker-2"])
    ['broker-1', 'broker-2']
    """
    role = member.removeprefix(ALL).removesuffix("s")
    return [one for one in members if role_of(one) == role] if ALL in member else [member]


def role_of(member: str) -> str:
    """Return the role in a member's name.

    >>> role_of("broker-3")
    'broker'
    """
    return member.partition("-")[0]
