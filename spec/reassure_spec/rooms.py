"""Which room carries out which value of which reading; every other value is refused.

A room that accepts a reading and does not carry it out answers the wrong question. So each room
declares what it carries out, in the manifests of the protocols, and calls `choose_readings` or
`refuse_readings` before it begins. A reading that a room does not ask about may stay as the profile
has it, since the profile's clauses on it do not concern the room; to change it there is refused.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from reassure_spec.errors import BadConfiguration
from reassure_spec.profiles import DEFAULT_PROFILE, PROTOCOLS
from reassure_spec.protocols import list_folders
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
    alike: Mapping[str, str] = field(default_factory=dict)
    """Why all values come to the same there, by reading: it stays as the profile has it."""

    def find_refusal(self, reading: str, value: str) -> str | None:
        """Return why a value that somebody chose is refused, None where it is carried out."""
        if reading not in self.asks:
            return self.unasked
        return self.alike.get(reading) or self.refuses.get((reading, value))


def _make_rooms() -> Iterator[Room]:
    """Yield every room that a manifest declares, under its own name and that of its protocol."""
    yield Room("model", tuple(_VALUES), "")
    for folder in list_folders():
        for kind, said in folder.manifest.get("rooms", {}).items():
            begun, refused = tuple(said["asks"]), said.get("refuses", ())
            yield Room(
                f"{kind} of {folder.name}",
                tuple(name for name in _VALUES if name.startswith(begun)),
                said["unasked"],
                {(e["reading"], e["value"]): e["why"] for e in refused if "value" in e},
                {e["reading"]: e["why"] for e in refused if "value" not in e},
            )


ROOMS: Final[Mapping[str, Room]] = MappingProxyType({room.name: room for room in _make_rooms()})
"""Every room by name: the model, and `KIND of PROTOCOL` for each that a manifest declares."""


def find_judged_only() -> frozenset[str]:
    """Return the readings that only logs turn on: nothing that acts asks about them."""

    def list_asked(*kinds: str) -> set[str]:
        named = (room for room in ROOMS.values() if room.name.partition(" of ")[0] in kinds)
        return {name for room in named for name in room.asks}

    return frozenset(list_asked("judge") - list_asked("controller", "broker", "explorer"))


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


def _find(kind: str, profile: str) -> str:
    """Return the room of a kind that a profile's first protocol has, or the usual one has.

    Raises UnknownReading for a profile that there is not.
    """
    get_profile(profile)
    own = (f"{kind} of {protocol}" for protocol in (*PROTOCOLS[profile], DEFAULT_PROFILE))
    return next(name for name in own if name in ROOMS)


BROKER: Final = next(name for name in ROOMS if name.startswith("broker of "))
"""The room of the brokers with logs: one protocol alone says how they replicate."""


def explorer_of(profile: str) -> str:
    """Return the room that explores the scopes made for a profile. Raises UnknownReading."""
    return _find("explorer", profile)


def controller_of(profile: str) -> str:
    """Return the room that carries out a profile. Raises UnknownReading where there is none."""
    return _find("controller", profile)


def gate_of(profile: str) -> str:
    """Return the room that judges whoever is driven under a profile. Raises UnknownReading."""
    own = f"gate of {profile}"
    return own if own in ROOMS else judge_of(profile)


def judge_of(profile: str) -> str:
    """Return the room that judges histories by a profile. Raises UnknownReading for none."""
    return _find("judge", profile)
