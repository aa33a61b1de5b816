"""Which faults happen when: drawn from a seed, before anything has started.

The same settings give the same schedule. Whom a fault of a controller meets is settled by name, and
so is the place at which a controller that is started again is to end itself.
"""

import random
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal

from reassure_spec.errors import BadUsage

Kind = Literal["kill", "pause", "cut", "half-open", "slow"]

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
PAUSES_PER_KILL: Final = 0.25
TROUBLES_PER_KILL: Final = 0.35


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
    crash_at: str = ""
    """Where a controller that is started again is to end itself: POINT:N."""

    def __str__(self) -> str:
        peer = f" to {self.peer}" if self.peer else ""
        crash = f", then until {self.crash_at}" if self.crash_at else ""
        return f"{self.at_s:7.2f} s  {self.kind:9} {self.member}{peer} for {self.for_s} s{crash}"


@dataclass(frozen=True, slots=True)
class Schedule:
    """The faults of a soak, in the order of their times."""

    seed: int
    seconds: float
    faults: tuple[Fault, ...] = field(repr=False)

    def as_dict(self) -> dict[str, Any]:
        """Return the schedule as it is written into the directory of a run."""
        faults = [asdict(one) for one in self.faults]
        return {"seed": self.seed, "seconds": self.seconds, "faults": faults}


def default_kills(seconds: float) -> int:
    """Return how many kills there are where nobody says: one in four seconds.

    >>> default_kills(60)
    14
    """
    return max(1, int((seconds - QUIET_S) / 4))


def draw(seed: int, seconds: float, kills: int, members: Sequence[str]) -> Schedule:
    """Return the schedule of a seed. Raises NoRoom when there is no time for so many kills."""
    draws = random.Random(seed)
    kinds: list[Kind] = ["kill"] * kills
    kinds += ["pause"] * round(kills * PAUSES_PER_KILL)
    kinds += [
        draws.choice(("cut", "half-open", "slow")) for _ in range(round(kills * TROUBLES_PER_KILL))
    ]
    draws.shuffle(kinds)
    step = (seconds - QUIET_S) / len(kinds)
    faults: list[Fault] = []
    for number, kind in enumerate(kinds):
        at_s = QUIET_S + (number + draws.random()) * step
        fault = _draw_fault(draws, kind, round(at_s, 2), members, faults)
        if fault is not None:
            faults.append(fault)
    found = sum(fault.kind == "kill" for fault in faults)
    if found < kills:
        raise NoRoom(
            f"{found} of {kills} kills fit into {seconds:g} s with {len(members)} members: "
            "give more --seconds, or fewer --kills"
        )
    return Schedule(seed, seconds, tuple(faults))


def _draw_fault(
    draws: random.Random, kind: Kind, at_s: float, members: Sequence[str], before: Iterable[Fault]
) -> Fault | None:
    """Return a fault of somebody who may have one now, None where nobody may."""
    away = [fault.member for fault in before if fault.at_s + fault.for_s > at_s - 1]
    spoils = kind not in ("kill", "pause")
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
    for_s = round(draws.uniform(*DOWN_S), 2)
    if spoils:
        roles = ("broker", "zookeeper")
        peers = [one for one in members if one != member and role_of(one) in roles]
        return Fault(at_s, kind, member, for_s, peer=draws.choice(peers))
    armed = kind == "kill" and role_of(member) == "controller"
    crash_at = f"{draws.choice(POINTS)}:{draws.randint(1, 3)}" if armed else ""
    return Fault(at_s, kind, member, for_s, crash_at=crash_at)


def role_of(member: str) -> str:
    """Return the role in a member's name.

    >>> role_of("broker-3")
    'broker'
    """
    return member.partition("-")[0]
