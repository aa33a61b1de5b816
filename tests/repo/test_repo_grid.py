"""The grid: what is of one protocol stands in the folder of that protocol, in every room.

Everything else takes protocols as they come. So no production file outside `protocols/` spells the
name of one as code does: in an import, an identifier, a string, a docstring or its own path. A
document is cited by the name that it has itself (KIP-236, section 3), which is no name of code.
"""

import re
import tomllib
from functools import cache
from pathlib import Path

import pytest

from reassure_spec.protocols import list_folders

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
ROOMS = PROJECT["tool"]["hatch"]["build"]["dev-mode-dirs"]
NAMES = [folder.name for folder in list_folders()]


def make_pattern() -> re.Pattern[str]:
    """Return what finds a protocol's name; one that is an English word counts in imports only."""
    said = [name.replace("-", "[-_]") for name in NAMES if "-" in name]
    constants = [name.replace("-", "_").upper() for name in NAMES if "-" in name]
    words = [name for name in NAMES if "-" not in name and name != "common"]
    return re.compile(
        rf"(?<![A-Za-z0-9])(?:{'|'.join((*said, *constants))})(?![0-9])"
        rf"|protocols(?:\.| import .*\b)(?:{'|'.join(words)})\b"
    )


PATTERN = make_pattern()


@cache
def find_named() -> tuple[str, ...]:
    """Return the production files outside of `protocols/` that name a protocol."""
    paths = [path for room in ROOMS for path in (ROOT / room).rglob("*.py")]
    texts = {path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in paths}
    return tuple(
        name
        for name, text in sorted(texts.items())
        if "/protocols/" not in name and PATTERN.search(f"{name}\n{text}")
    )


def test_no_other_file_names_a_protocol() -> None:
    """No file outside of the protocols' folders names one."""
    assert find_named() == (), "move what is of a protocol to ROOM/protocols/NAME, or derive it"


@pytest.mark.parametrize(
    "text",
    [
        "from reassure_model.protocols.kip_46 import writes",
        "from reassure_model.protocols import kafka_zk, topics",
        "from reassure_model.protocols.topics import step",
        'profile: str = "kip-236-amended"',
        "_REPLICA_KAFKA_42: Final = {}",
        '"""As `kafka_4485` has it."""',
        "judge/reassure_judge/kip_236_legacy.py",
    ],
)
def test_a_name_is_found(text: str) -> None:
    """A protocol's name is found in an import, a string, a constant, prose and a path."""
    assert PATTERN.search(text)


@pytest.mark.parametrize(
    "text", ["Source: KIP-236, section 3", '"/brokers/topics"', "kafka_420", "KAFKA-4485 says"]
)
def test_a_source_is_no_name(text: str) -> None:
    """A document that is cited, and a word that is more than a protocol's name, are not found."""
    assert not PATTERN.search(text)
