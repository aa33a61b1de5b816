"""Scenarios: short stories in text files, told to the model and compared line by line.

    # What this shows and why, in a line or two; names its source or finding.
    # clauses: drop.keep-top, drop.slice.inclusive
    # profile: kip-236     readings: drop.slice=exclusive
    # findings: drop-2
    world kip-236 brokers=1,2,3
    ----
    ok

    submit target=2,3
    ----
    request 0 is pending

A file is a head of comment lines and then blocks, with a blank line after each. A block is one
command line, `----`, and the output that is expected up to the blank line. The first command makes
the world (`reassure_conformance.scenarios.worlds`); all others are for the world to understand. The
head names the clauses the story is about, its profile, and the readings that it is about or that
differ from the profile's.

Files are run in the model alone: no clock, no server, milliseconds. `rewrite` puts what was found
in the place of what was expected; a change to an expectation belongs in a review.
"""

import difflib
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import reassure_spec
from reassure_conformance.report.document import write_text
from reassure_conformance.scenarios.worlds import Arguments, ScenarioError, World, get_world
from reassure_spec.clauses import load_clauses
from reassure_spec.findings import UnknownFinding, get_finding
from reassure_spec.readings import Readings, UnknownReading, get_profile, override_readings

__all__ = [
    "Arguments",
    "Block",
    "Scenario",
    "ScenarioError",
    "World",
    "compare",
    "find_scenarios",
    "format_found",
    "parse_scenario",
    "read_scenario",
    "rewrite",
    "run_scenario",
]

SUFFIX: Final = ".txt"
RULE: Final = "----"
_FIELD: Final = re.compile(r"\b(clauses|profile|readings|findings):")


@dataclass(frozen=True, slots=True)
class Block:
    """One command and the output that is expected of it."""

    line: int
    """Number of the command's line in the file, from 1."""
    text: str
    """The command line as it stands."""
    command: str
    arguments: Mapping[str, str]
    expected: tuple[str, ...]
    first: int
    """Index (from 0) of the first line of the expected output."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """One story."""

    origin: str
    """The file, for messages."""
    area: str
    """Name of the folder in which it lies."""
    name: str
    why: tuple[str, ...]
    """Head lines that are no fields, without the mark."""
    clauses: tuple[str, ...]
    profile: str
    overrides: Mapping[str, str]
    """Readings that the head names, by dotted name; all others are the profile's."""
    readings: Readings
    findings: tuple[str, ...]
    """The findings (`reassure_spec.findings`) that it shows."""
    world: str
    blocks: tuple[Block, ...]
    """The first makes the world."""
    lines: tuple[str, ...] = field(repr=False)
    """The whole file."""


@dataclass(slots=True)
class _Head:
    why: list[str] = field(default_factory=list)
    values: dict[str, list[str]] = field(default_factory=dict)

    def add(self, comment: str) -> None:
        """Take one comment line: fields of the form `name: value`, or a sentence."""
        if _FIELD.match(comment) is None:
            self.why.append(comment)
            return
        parts = _FIELD.split(comment)[1:]
        for name, value in zip(parts[::2], parts[1::2], strict=True):
            items = [item for item in re.split(r"[,\s]+", value.strip()) if item]
            self.values.setdefault(name, []).extend(items)


def _settle(head: _Head) -> tuple[str, dict[str, str], Readings]:
    """Return profile, overrides and the readings that follow. Raises ScenarioError."""
    missing = [name for name in ("clauses", "profile") if not head.values.get(name)]
    if missing or not head.why:
        lacks = " and ".join(missing) or "a sentence that says what the scenario shows"
        raise ScenarioError(f"the head lacks {lacks}")
    unknown = [name for name in head.values["clauses"] if name not in load_clauses()]
    if unknown:
        raise ScenarioError(f"no clause {unknown[0]!r}; `reassure spec list` lists them")
    for name in head.values.get("findings", ()):
        try:
            get_finding(name)
        except UnknownFinding as error:
            raise ScenarioError(error.args[0]) from None
    if len(head.values["profile"]) != 1:
        raise ScenarioError(f"one profile expected, found {head.values['profile']}")
    overrides = {}
    for text in head.values.get("readings", ()):
        name, equals, value = text.partition("=")
        if not equals:
            raise ScenarioError(f"reading {text!r}: write it as name=value")
        overrides[name] = value
    profile = head.values["profile"][0]
    try:
        return profile, overrides, override_readings(get_profile(profile), overrides)
    except UnknownReading as error:
        raise ScenarioError(str(error)) from None


def parse_command(text: str) -> tuple[str, dict[str, str]]:
    """Split a command line into its verb and its arguments.

    Raises ScenarioError for an unclosed quote or an argument that stands twice.

    >>> parse_command("submit target=2,3 legacy")
    ('submit', {'target': '2,3', 'legacy': 'yes'})
    """
    try:
        command, *words = shlex.split(text)
    except ValueError as error:
        raise ScenarioError(f"{text!r}: {error}") from None
    arguments: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if name in arguments:
            raise ScenarioError(f"argument {name!r} stands twice")
        arguments[name] = value if equals else "yes"
    return command, arguments


def _parse_blocks(lines: tuple[str, ...], start: int, origin: str) -> Iterator[Block]:
    at = start
    while at < len(lines):
        text = lines[at].strip()
        if not text or text.startswith("#"):
            at += 1
            continue
        if at + 1 >= len(lines) or lines[at + 1].strip() != RULE:
            raise ScenarioError(f"{origin}:{at + 2}: expected {RULE} after the command {text!r}")
        first = end = at + 2
        while end < len(lines) and lines[end].strip():
            end += 1
        try:
            command, arguments = parse_command(text)
        except ScenarioError as error:
            raise ScenarioError(f"{origin}:{at + 1}: {error}") from None
        expected = tuple(line.rstrip() for line in lines[first:end])
        yield Block(at + 1, text, command, arguments, expected, first)
        at = end


def parse_scenario(text: str, origin: str) -> Scenario:
    """Return the scenario in this text; `origin` is the file's path, for messages and names.

    Raises ScenarioError with file and line for a text that does not keep the format, and for a
    clause, profile or reading that the spec does not have.
    """
    lines = tuple(text.splitlines())
    head = _Head()
    start = 0
    while start < len(lines) and (lines[start].startswith("#") or not lines[start].strip()):
        if lines[start].startswith("#"):
            head.add(lines[start][1:].strip())
        start += 1
    try:
        profile, overrides, readings = _settle(head)
    except ScenarioError as error:
        raise ScenarioError(f"{origin}:1: {error}") from None
    blocks = tuple(_parse_blocks(lines, start, origin))
    if not blocks or blocks[0].command != "world" or len(blocks[0].text.split()) < 2:
        raise ScenarioError(f"{origin}:{start + 1}: the first command must be `world NAME`")
    world = blocks[0].text.split()[1]
    return Scenario(
        origin=origin,
        area=Path(origin).parent.name,
        name=Path(origin).stem,
        why=tuple(line for line in head.why if line),
        clauses=tuple(head.values["clauses"]),
        profile=profile,
        overrides=overrides,
        readings=readings,
        findings=tuple(head.values.get("findings", ())),
        world=world,
        blocks=blocks,
        lines=lines,
    )


def read_scenario(path: Path) -> Scenario:
    """Return the scenario in this file. Raises ScenarioError, OSError."""
    return parse_scenario(path.read_text(encoding="utf-8"), str(path))


def scenarios_folder() -> Path:
    """Return the folder that holds the areas, each a folder of scenarios."""
    return Path(reassure_spec.__file__).parent / "scenarios"


def find_scenarios(folder: Path | None = None) -> tuple[Path, ...]:
    """Return every scenario file below the folder (default: the spec's own), in order."""
    return tuple(sorted((folder or scenarios_folder()).glob(f"*/*{SUFFIX}")))


def make_world(scenario: Scenario) -> World:
    """Return the model's world of a scenario. Raises ScenarioError."""
    arguments = dict(scenario.blocks[0].arguments)
    arguments.pop(scenario.world, None)
    return get_world(scenario.world)(scenario.profile, scenario.readings, arguments)


def run_scenario(
    scenario: Scenario, make: Callable[[Scenario], World] = make_world
) -> tuple[tuple[str, ...], ...]:
    """Return the output lines that were found, block by block, in the world that `make` makes.

    Raises ScenarioError with file and line for a command that the world does not understand. Other
    exceptions are mistakes of the model; they carry file and line as a note.
    """
    found: list[tuple[str, ...]] = []
    world: World | None = None
    for block in scenario.blocks:
        place = f"{scenario.origin}:{block.line}"
        try:
            if world is None:
                world, output = make(scenario), ""
            else:
                output = world.run(block.command, block.arguments)
        except ScenarioError as error:
            raise ScenarioError(f"{place}: {block.command}: {error}") from error
        except Exception as error:
            error.add_note(f"{place}: {block.text}")
            raise
        lines = tuple(line.rstrip() for line in (output.strip("\n") or "ok").splitlines())
        if not all(lines):
            raise ScenarioError(f"{place}: the output has a blank line, which would end the block")
        found.append(lines)
    return tuple(found)


def format_found(scenario: Scenario, found: tuple[tuple[str, ...], ...]) -> str:
    """Return the text of the file with what was found in the place of what was expected."""
    lines = list(scenario.lines)
    for block, output in reversed(list(zip(scenario.blocks, found, strict=True))):
        lines[block.first : block.first + len(block.expected)] = output
    return "\n".join(lines).rstrip("\n") + "\n"


def compare(scenario: Scenario, found: tuple[tuple[str, ...], ...]) -> str:
    """Return a unified diff of the file as it is and as it would be, "" where nothing differs."""
    if all(b.expected == output for b, output in zip(scenario.blocks, found, strict=True)):
        return ""
    return "\n".join(
        difflib.unified_diff(
            scenario.lines,
            format_found(scenario, found).splitlines(),
            f"{scenario.origin} (expected)",
            f"{scenario.origin} (found)",
            lineterm="",
        )
    )


def rewrite(path: Path) -> bool:
    """Write what is found into the file; answer whether that changed it.

    Raises ScenarioError, OSError.
    """
    scenario = read_scenario(path)
    text = format_found(scenario, run_scenario(scenario))
    if text == path.read_text(encoding="utf-8"):
        return False
    write_text(path, text)
    return True
