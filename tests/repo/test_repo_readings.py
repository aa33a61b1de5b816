"""Reading by room: whatever is accepted is carried out, whatever is not is refused by name."""

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from reassure_conformance.cli import run_command
from reassure_controller.rules import Rules
from reassure_explorer.scopes.catalogue import SCOPES, get_model
from reassure_judge.judge import Judge
from reassure_judge.protocols import find_protocols
from reassure_judge.rules import LOGS
from reassure_spec.profiles import DEFAULT_PROFILE
from reassure_spec.readings import (
    READINGS,
    Readings,
    field_name,
    get_profile,
    override_readings,
)
from reassure_spec.rooms import (
    ROOMS,
    RefusedReading,
    choose_readings,
    controller_of,
    refuse_readings,
)

ROOT = Path(__file__).parents[2]
PROFILE_OF = {
    room: DEFAULT_PROFILE if room == "model" else room.partition(" of ")[2] for room in ROOMS
}


@pytest.mark.parametrize("room", ROOMS)
def test_every_cell_is_settled(room: str) -> None:
    """A room carries each value out, has it from the profile, or refuses it with a reason."""
    profile = PROFILE_OF[room]
    for reading, value in ((each.name, value) for each in READINGS for value in each.values):
        field = field_name(reading)
        refusal = ROOMS[room].find_refusal(reading, value)
        if refusal is None or getattr(get_profile(profile), field) == value:
            assert getattr(choose_readings(room, profile, {reading: value}), field) == value
            continue
        with pytest.raises(RefusedReading) as refused:
            choose_readings(room, profile, {reading: value})
        said = f"{reading}={value} is not carried out by the {room}: {refusal}; "
        assert said in str(refused.value)


def test_no_room_refuses_its_own_profiles() -> None:
    """What the profiles of a room settle is carried out there or none of its business."""
    for profile in ("kip-236-amended", "kafka-42"):
        refuse_readings(controller_of(profile), get_profile(profile))
    for profile, rules in find_protocols().items():
        if rules.reads == LOGS:
            Judge(profile, get_profile(profile))
    for scope in SCOPES.values():
        get_model(scope.name, scope.profile)


# What is declared is what the code asks about -------------------------------------------------


def find_asked(paths: Iterator[Path]) -> set[str]:
    """Return the fields of `Readings` that these modules read."""
    fields = {field_name(reading.name) for reading in READINGS}
    return {
        node.attr
        for path in paths
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and node.attr in fields
    }


_KIP_236 = (
    "protocols.kip_236.__init__",
    "protocols.kip_236.rules",
    "protocols.kip_236.assignment_rules",
    "protocols.kip_236.record_rules",
    "acts",
)
MODULES: dict[str, tuple[str, ...]] = {
    "judge of kip-236": _KIP_236,
    "judge of kip-236-legacy": (*_KIP_236, "protocols.kip_236_legacy.entries"),
    "judge of kip-46": (
        *_KIP_236,
        "protocols.kip_46.__init__",
        "protocols.kip_46.healing",
        "protocols.kip_46.writes",
    ),
    "explorer of kip-236": _KIP_236,
    "explorer of kip-236-legacy": (*_KIP_236, "protocols.kip_236_legacy.__init__"),
    "explorer of kafka-42": ("protocols.kafka_42",),
    "explorer of kip-46": ("protocols.kip_46.__init__",),
    "explorer of kafka-4485": (
        "protocols.kafka_4485.replication",
        "protocols.kafka_4485.__init__",
        "protocols.kafka_4485.leader_clock",
        "protocols.kafka_4485.invariants",
    ),
    "explorer of kafka-zk": ("protocols.kafka_zk", "protocols.topics"),
}
"""The modules of the model that a room asks."""
_KAFKA = tuple(
    f"judge/reassure_judge/protocols/kafka_zk/{each}.py"
    for each in ("router", "rules", "leaders", "partition", "writes")
)
FILES: dict[str, tuple[str, ...]] = {
    "judge of kafka-42": (*_KAFKA, "judge/reassure_judge/protocols/kafka_42/__init__.py"),
    "gate of kafka-42": (
        *_KAFKA,
        "judge/reassure_judge/protocols/kafka_42/__init__.py",
        "judge/reassure_judge/protocols/kafka_42/monitor.py",
    ),
    "judge of kafka-zk": (*_KAFKA, "judge/reassure_judge/protocols/kafka_zk/__init__.py"),
    "judge of kafka-4485": (
        "judge/reassure_judge/protocols/kafka_4485",
        "model/reassure_model/protocols/kafka_4485/__init__.py",
    ),
    "controller of kip-236": (
        "controller/reassure_controller",
        "controller/reassure_controller/protocols",
    ),
    "broker of kafka-4485": ("controller/reassure_controller/replication",),
}
"""The files of other rooms, or the folders of such files."""
SAME_FILES = {"controller of kip-236": ("controller of kafka-42",)}
"""The rooms that share the files of another one."""
BY_ARGUMENT = {"drop_order"}
"""Readings that no function asks about: the order of the lags is an argument."""


@pytest.mark.parametrize("room", [*MODULES, *FILES])
def test_room_declares_what_its_code_asks(room: str) -> None:
    """The readings that a room asks about are those that its code reads, no more and no fewer."""
    if room in FILES:
        named = [ROOT / name for name in FILES[room]]
        folders = (path for each in named if each.is_dir() for path in each.glob("*.py"))
        asked = find_asked(iter([*folders, *(each for each in named if each.is_file())]))
    else:
        model = ROOT / "model/reassure_model"
        places = (model / name.replace(".", "/") for name in MODULES[room])
        asked = find_asked(
            path
            for place in places
            for path in (place.glob("*.py") if place.is_dir() else [place.with_suffix(".py")])
        )
    found = [each for each in ROOMS.values() if each.name in (room, *SAME_FILES.get(room, ()))]
    declared = {field_name(name) for each in found for name in each.asks}
    # What is refused in every value but one need not be asked about.
    named = (name for each in found for name in (*(one for one, _ in each.refuses), *each.alike))
    settled = {field_name(name) for name in named}
    assert asked - declared == set()
    assert declared - asked - settled - BY_ARGUMENT == set()


# What is refused is refused at the door --------------------------------------------------------

VERBS: dict[str, tuple[str, Callable[[str, Path], list[str]]]] = {
    "audit": ("judge of kip-236", lambda text, path: ["audit", str(path), "--reading", text]),
    "run": ("controller of kip-236", lambda text, _: ["test", "--examples=0", "--reading", text]),
    "check": ("controller of kip-236", lambda text, _: ["check", "--reading", text]),
    "explore": (
        "explorer of kip-236",
        lambda text, _: ["explore", "--scope", "small", "--reading", text],
    ),
}
REFUSED = [
    pytest.param(verb, reading.name, value, id=f"{verb}-{reading.name}={value}")
    for verb, (room, _) in VERBS.items()
    for reading in READINGS
    for value in reading.values[1:]
    if ROOMS[room].find_refusal(reading.name, value) is not None
]


@pytest.mark.parametrize(("verb", "reading", "value"), REFUSED)
def test_refused_value_ends_with_78(
    verb: str, reading: str, value: str, tmp_path: Path, capsys: Any
) -> None:
    """A verb whose room does not carry a value out ends with 78 and says which, where and why."""
    room, make = VERBS[verb]
    assert run_command(make(f"{reading}={value}", tmp_path)) == 78
    said = re.sub(r"\s+", " ", capsys.readouterr().err)
    assert f"{reading}={value}" in said
    assert ROOMS[room].find_refusal(reading, value) in said or "judge" in said


def test_controller_refuses_at_its_own_door() -> None:
    """Whoever makes the controller's rules by hand is refused as well."""
    for profile in ("kip-236", "kafka-42"):
        for (reading, value), reason in ROOMS[controller_of(profile)].refuses.items():
            chosen = override_readings(get_profile(profile), {reading: value})
            with pytest.raises(RefusedReading, match=re.escape(reason)):
                Rules(chosen, profile=profile)


def test_judge_refuses_at_its_own_door() -> None:
    """Whoever makes a judge by hand is refused as well."""
    for (reading, value), reason in ROOMS["judge of kip-236"].refuses.items():
        with pytest.raises(RefusedReading, match=re.escape(reason)):
            Judge("kip-236", override_readings(Readings(), {reading: value}))
