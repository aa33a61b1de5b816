"""A profile is a list of protocols and a choice of readings."""

from collections.abc import Callable
from importlib.util import find_spec
from pkgutil import iter_modules

import pytest

from reassure_model import protocols
from reassure_model.machine import find_machines
from reassure_spec.profiles import PROTOCOLS, list_profiles, reads
from reassure_spec.readings import PROFILES, Readings, UnknownReading, override_readings
from reassure_spec.rooms import (
    ROOMS,
    RefusedReading,
    choose_readings,
    controller_of,
    explorer_of,
    gate_of,
    judge_of,
    refuse_readings,
)
from reassure_spec.znodes import REASSIGNMENT_REQUESTS


def test_every_profile_names_its_protocols() -> None:
    """Each profile has protocols, its own first, and each is a folder of the model."""
    assert set(PROTOCOLS) == set(PROFILES)
    for profile, names in PROTOCOLS.items():
        assert profile.startswith(names[0]), profile
        for name in names:
            assert find_spec(f"reassure_model.protocols.{name.replace('-', '_')}") is not None, name


def test_every_protocol_runs_under_a_profile() -> None:
    """No folder of the model, and no machine, is in no profile."""
    folders = {m.name.replace("_", "-") for m in iter_modules(protocols.__path__) if m.ispkg}
    assert all(list_profiles(name) for name in folders | set(find_machines()))


def test_controllers_read_the_paths_of_their_protocols() -> None:
    """Whether a path is looked at depends on the protocols of a profile."""
    assert reads("kip-236", REASSIGNMENT_REQUESTS)
    assert not reads("kafka-42", REASSIGNMENT_REQUESTS)


@pytest.mark.parametrize(
    ("find", "profile", "room"),
    [
        (explorer_of, "kip-46", "explorer of kip-46"),
        (explorer_of, "kip-236-amended", "explorer of kip-236"),
        (controller_of, "kip-46", "controller of kip-236"),
        (judge_of, "kafka-zk", "judge of kafka-zk"),
        (gate_of, "kip-236", "judge of kip-236"),
    ],
)
def test_profile_has_a_room_of_each_kind(
    find: Callable[[str], str], profile: str, room: str
) -> None:
    """A kind of room is that of the profile's first protocol, or the usual one."""
    assert find(profile) == room
    with pytest.raises(UnknownReading, match="nonsense"):
        find("nonsense")


def test_reading_that_a_room_does_not_ask_about_cannot_be_changed_there() -> None:
    """The refusal names reading, room and reason; to leave it as it is is allowed."""
    room = next(each for each in ROOMS.values() if "drop.slice" not in each.asks)
    with pytest.raises(RefusedReading, match=f"drop.slice=exclusive .*{room.name}: .*leave it"):
        choose_readings(room.name, "kip-236", {"drop.slice": "exclusive"})
    assert choose_readings(room.name, "kip-236", {"drop.slice": "inclusive"})


@pytest.mark.parametrize(
    ("room", "reading", "value"),
    [(room.name, *each) for room in ROOMS.values() for each in room.refuses],
)
def test_room_refuses_what_it_does_not_carry_out(room: str, reading: str, value: str) -> None:
    """Whoever has chosen the value, the room says that it does not go by it."""
    readings = override_readings(Readings(), {reading: value})
    with pytest.raises(RefusedReading, match=f"is not carried out by the {room}"):
        refuse_readings(room, readings)
