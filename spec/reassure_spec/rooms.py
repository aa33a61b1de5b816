"""Which room carries out which value of which reading; every other value is refused.

A reading that a room accepts and does not carry out makes its answer one to another question. So
each room declares what it carries out (`ROOMS`), and asks `choose_readings` or `refuse_readings`
before it begins. A reading that a room does not ask about may stay as the profile has it, since the
profile's clauses on it are none of the room's; to settle it otherwise there is refused.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from reassure_spec.errors import BadConfiguration
from reassure_spec.readings import (
    READINGS,
    Readings,
    field_name,
    get_profile,
    override_readings,
)

_VALUES: Final = {reading.name: reading.values for reading in READINGS}


class RefusedReading(BadConfiguration):
    """A value of a reading that a room does not carry out."""


@dataclass(frozen=True, slots=True)
class Room:
    """What one room does with readings."""

    name: str
    asks: tuple[str, ...]
    """The readings that it asks about, by name; any value is carried out that is not refused."""
    unasked: str
    """Why it does not ask about the others."""
    refuses: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """Why a value of a reading that it asks about is refused, by reading and value."""

    def find_refusal(self, reading: str, value: str) -> str | None:
        """Return why a value that somebody chose is refused, None where it is carried out."""
        if reading not in self.asks:
            return self.unasked
        return self.refuses.get((reading, value))


def _begin(*beginnings: str) -> tuple[str, ...]:
    return tuple(name for name in _VALUES if name.startswith(beginnings))


_REQUESTS: Final = (
    *_begin("drop.", "top.", "request.", "target."),
    "offline.drop",
    "move.recheck-before-stop",
    "election.unclean",
    "election.preferred",
)
"""The readings of the rules of KIP-236."""
_MOVES: Final = (*_begin("move."), "election.unclean", "target.dead-replica")
_LOGS: Final = _begin("isr.", "hw.", "follower.", "lag.")
_WRITTEN: Final = (
    "election.unclean",
    "election.preferred",
    "election.order",
    "controller.fenced",
    "insync.writer",
)
"""The readings of what Kafka's own controllers and leaders write."""
_NO_LAG: Final = "how far a replica lags is not in ZooKeeper"
_ONE_PARTITION: Final = "partitions are followed one by one, and a request's fate is decided by all"
_NEVER_ELECTS: Final = "its controller never holds such an election"
_NOT_IN_SCOPE: Final = "no step of these scopes depends on it"
_EXPLORED: Final = {
    ("drop.order", "by-lag"): "the model has no lags",
    ("request.conflict", "whole-request"): _ONE_PARTITION,
    ("election.unclean", "last-resort"): _NEVER_ELECTS,
    ("election.preferred", "automatic"): _NEVER_ELECTS,
}

_UNJUDGED: Final = "no rule on what is in ZooKeeper's log depends on it"
_JUDGED: Final = {
    ("drop.order", "by-lag"): _NO_LAG,
    ("request.conflict", "whole-request"): _ONE_PARTITION,
}

_ALL: Final = (
    Room("model", tuple(_VALUES), ""),
    Room("judge", _REQUESTS, _UNJUDGED, _JUDGED),
    Room("judge of kip-236-legacy", (*_REQUESTS, "legacy.rewrite"), _UNJUDGED, _JUDGED),
    Room("judge of kip-46", (*_REQUESTS, *_begin("heal.")), _UNJUDGED, _JUDGED),
    Room("judge of kafka-4485", _LOGS, "no rule on what observations tell depends on it"),
    Room("judge of kafka-zk", _WRITTEN, "no rule on what is in ZooKeeper's log depends on it"),
    Room(
        "judge of kafka-42",
        (*_WRITTEN, "move.cut-isr", "move.expand-first", "move.same-replicas"),
        "no rule on what is in ZooKeeper's log depends on it",
    ),
    Room(
        "gate of kafka-42",
        (
            *_WRITTEN,
            "move.cut-isr",
            "move.expand-first",
            "move.recheck-before-stop",
            "move.same-replicas",
            "move.dead-at-failover",
            "target.dead-replica",
        ),
        "nothing that the gate asks of a controller depends on it",
    ),
    Room(
        "controller",
        (*_REQUESTS, *_begin("legacy.", "heal."), "move.expand-first", "move.cut-isr"),
        "nothing that it does depends on it",
        {
            ("drop.order", "by-lag"): "a controller does not know how far a replica lags, which "
            "only leaders see, and no znode tells it",
            (
                "request.persist",
                "effects-first",
            ): "it plans each effect anew from what is "
            "stored; where [1,2] has grown to [1,2,3] and no record says so, top would be 3",
            ("move.expand-first", "no"): "it writes the assignment first",
            ("move.cut-isr", "no"): "it takes replicas out of the in-sync set first",
        },
    ),
    Room(
        "controller of kafka-42",
        (
            *_begin("target."),
            "move.expand-first",
            "move.cut-isr",
            "move.recheck-before-stop",
            "move.refuses-partition",
            "move.same-replicas",
            "move.dead-at-failover",
            "election.unclean",
        ),
        "nothing that it does depends on it",
        {
            ("move.refuses-partition", "existing"): "nothing would ever be started",
            ("target.size", "at-least-min-isr"): "it knows of no minimum",
        },
    ),
    Room(
        "broker",
        tuple(name for name in _LOGS if name != "hw.scope"),
        "nothing that a replica does depends on it",
        {("isr.members", "memoryless"): "elections go by the set that is stored"},
    ),
    Room("explorer of kip-236", _REQUESTS, _NOT_IN_SCOPE, _EXPLORED),
    Room(
        "explorer of kip-236-legacy",
        (*_REQUESTS, *_begin("legacy.")),
        _NOT_IN_SCOPE,
        _EXPLORED,
    ),
    Room(
        "explorer of kafka-42",
        _MOVES,
        _NOT_IN_SCOPE,
        {("move.online-from", "assigned"): "its scopes do not follow the states of replicas"},
    ),
    Room("explorer of kip-46", _begin("heal."), _NOT_IN_SCOPE),
    Room("explorer of kafka-4485", _LOGS, _NOT_IN_SCOPE),
    Room("explorer of kafka-zk", (), _NOT_IN_SCOPE),
)

ROOMS: Final[Mapping[str, Room]] = MappingProxyType({room.name: room for room in _ALL})
"""Every room by name; the explorer once for each protocol that it has scopes of."""


def find_judged_only() -> frozenset[str]:
    """Return the readings that only logs turn on: nothing that acts asks about them."""
    looking = ("model", "judge", "gate")
    acting = (room for room in _ALL if not room.name.startswith(looking))
    asked = {name for room in acting for name in room.asks}
    return frozenset(_WRITTEN) - asked


def get_room(name: str) -> Room:
    """Return the room with this name; a name that nobody declared is a mistake of ours."""
    return ROOMS[name]


def _complain(room: Room, reading: str, value: str, reason: str) -> RefusedReading:
    carried = [v for v in _VALUES[reading] if room.find_refusal(reading, v) is None]
    instead = f"; it carries out {', '.join(carried)}" if carried else "; leave it as it is"
    return RefusedReading(
        f"reading {reading}={value} is not carried out by the {room.name}: {reason}{instead}"
    )


def refuse_readings(room_name: str, readings: Readings) -> None:
    """Raise RefusedReading where a room asks about a reading and does not carry out its value."""
    room = get_room(room_name)
    for reading in room.asks:
        value = getattr(readings, field_name(reading))
        reason = room.refuses.get((reading, value))
        if reason is not None:
            raise _complain(room, reading, value, reason)


def choose_readings(room_name: str, profile: str, changes: Mapping[str, str]) -> Readings:
    """Return the readings of a profile with some settled otherwise, for use in a room.

    Raises UnknownReading for what there is not, and RefusedReading, which names reading, room and
    reason, for what the room does not carry out.
    """
    usual = get_profile(profile)
    chosen = override_readings(usual, changes)
    room = get_room(room_name)
    for reading, value in changes.items():
        reason = room.find_refusal(reading, value)
        if reason is not None and value != getattr(usual, field_name(reading)):
            raise _complain(room, reading, value, reason)
    refuse_readings(room_name, chosen)
    return chosen


def explorer_of(profile: str) -> str:
    """Return the room that explores the scopes made for a profile.

    >>> explorer_of("kip-236-amended")
    'explorer of kip-236'
    """
    get_profile(profile)
    return f"explorer of {profile.removesuffix('-amended')}"


def controller_of(profile: str) -> str:
    """Return the room that carries out a profile. Raises UnknownReading where there is none.

    >>> controller_of("kafka-42"), controller_of("kip-46")
    ('controller of kafka-42', 'controller')
    """
    get_profile(profile)
    own = f"controller of {profile}"
    return own if own in ROOMS else "controller"


def gate_of(profile: str) -> str:
    """Return the room that judges whoever is driven under a profile.

    >>> gate_of("kafka-42"), gate_of("kip-46")
    ('gate of kafka-42', 'judge of kip-46')
    """
    own = f"gate of {profile}"
    return own if own in ROOMS else judge_of(profile)


def judge_of(profile: str) -> str:
    """Return the room that judges histories by a profile. Raises UnknownReading for none.

    >>> judge_of("kafka-4485"), judge_of("kip-236")
    ('judge of kafka-4485', 'judge')
    """
    get_profile(profile)
    own = f"judge of {profile}"
    return own if own in ROOMS else "judge"
