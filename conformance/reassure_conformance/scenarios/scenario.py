"""Scenarios: scripts (`reassure_conformance.script`) told to the model, compared line by line.

The first command makes the world (`reassure_conformance.scenarios.worlds`); all others are for the
world to understand. The head names the clauses that the scenario is about, its profile, and the
readings that it is about or that differ from the profile's. A scenario expects something of at
least one command.

Files are run in the model alone: no clock, no server, milliseconds. `rewrite` puts what was found
in the place of what was expected; a change to an expectation belongs in a review.
"""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import reassure_spec
from reassure_conformance.report.document import write_text
from reassure_conformance.scenarios.worlds import World, get_world
from reassure_conformance.script import (
    RULE,
    SUFFIX,
    ScriptBlock,
    ScriptFile,
    parse_command,
    parse_script,
    read_script,
)
from reassure_spec.clauses import load_clauses
from reassure_spec.findings import UnknownFinding, get_finding
from reassure_spec.readings import Readings, UnknownReading, get_profile, override_readings
from reassure_spec.words import ScenarioError


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
    script: ScriptFile

    @property
    def blocks(self) -> tuple[ScriptBlock, ...]:
        """The commands; the first makes the world."""
        return self.script.blocks


def _settle(script: ScriptFile) -> tuple[str, dict[str, str], Readings]:
    """Return profile, overrides and the readings that follow. Raises ScenarioError."""
    fields = script.fields
    missing = [name for name in ("clauses", "profile") if not fields.get(name)]
    if missing or not script.why:
        lacks = " and ".join(missing) or "a sentence that says what the scenario shows"
        raise ScenarioError(f"the head lacks {lacks}")
    unknown = [name for name in fields["clauses"] if name not in load_clauses()]
    if unknown:
        raise ScenarioError(f"no clause {unknown[0]!r}; `reassure spec list` lists them")
    for name in fields.get("findings", ()):
        try:
            get_finding(name)
        except UnknownFinding as error:
            raise ScenarioError(error.args[0]) from None
    overrides = {}
    for text in fields.get("readings", ()):
        name, equals, value = text.partition("=")
        if not equals:
            raise ScenarioError(f"reading {text!r}: write it as name=value")
        overrides[name] = value
    profile = script.get_field("profile")
    try:
        return profile, overrides, override_readings(get_profile(profile), overrides)
    except UnknownReading as error:
        raise ScenarioError(str(error)) from None


def parse_scenario(text: str, origin: str) -> Scenario:
    """Return the scenario in this text; `origin` is the file's path, for messages and names.

    Raises ScenarioError with file and line for a text that does not keep the format, and for a
    clause, profile or reading that the spec does not have.
    """
    return _make_scenario(parse_script(text, origin))


def _make_scenario(script: ScriptFile) -> Scenario:
    try:
        profile, overrides, readings = _settle(script)
    except ScenarioError as error:
        raise ScenarioError(f"{script.origin}:1: {error}") from None
    if all(block.expected is None for block in script.blocks):
        raise ScenarioError(
            f"{script.origin}: nothing is expected of any command; write {RULE} and the output "
            "below a command"
        )
    for block in script.blocks:
        try:
            parse_command(block.text)
        except ScenarioError as error:
            raise ScenarioError(f"{script.origin}:{block.line}: {error}") from None
    return Scenario(
        origin=script.origin,
        area=Path(script.origin).parent.name,
        name=script.name,
        why=script.why,
        clauses=script.fields["clauses"],
        profile=profile,
        overrides=overrides,
        readings=readings,
        findings=script.fields.get("findings", ()),
        world=script.world,
        script=script,
    )


def read_scenario(path: Path) -> Scenario:
    """Return the scenario in this file. Raises ScenarioError, OSError."""
    return _make_scenario(read_script(path))


def find_area(area: str) -> Path:
    """Return the folder of an area of the spec. Raises ScenarioError where there is none."""
    found = (Path(reassure_spec.__file__).parent / "protocols").glob(f"*/scenarios/{area}")
    try:
        return next(found)
    except StopIteration:
        raise ScenarioError(f"the spec has no area {area!r} of scenarios") from None


def find_scenarios(folder: Path | None = None) -> tuple[Path, ...]:
    """Return every scenario file of the areas in a folder (default: the spec's), by their names."""
    place = folder or Path(reassure_spec.__file__).parent / "protocols"
    found = place.glob(f"*/*{SUFFIX}" if folder else f"*/scenarios/*/*{SUFFIX}")
    return tuple(sorted(found, key=lambda path: (path.parent.name, path.stem)))


def find_scenario(name: str) -> Path:
    """Return where the spec has, or would have, the scenario `area/name`. Raises ScenarioError."""
    area, _, stem = name.partition("/")
    return find_area(area) / f"{stem}{SUFFIX}"


def make_world(scenario: Scenario) -> World:
    """Return the model's world of a scenario. Raises ScenarioError."""
    arguments = dict(scenario.blocks[0].arguments)
    arguments.pop(scenario.world, None)
    return get_world(scenario.world)(scenario.profile, scenario.readings, arguments)


def run_scenario(scenario: Scenario) -> tuple[tuple[str, ...], ...]:
    """Return the output lines that were found, block by block.

    Raises ScenarioError with file and line for a command that the world does not understand. Other
    exceptions are mistakes of the model; they carry file and line as a note.
    """
    found: list[tuple[str, ...]] = []
    world: World | None = None
    for block in scenario.blocks:
        place = f"{scenario.origin}:{block.line}"
        try:
            if world is None:
                world, output = make_world(scenario), ""
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
    lines = list(scenario.script.lines)
    for block, output in reversed(list(zip(scenario.blocks, found, strict=True))):
        if block.expected is not None:
            lines[block.first : block.first + len(block.expected)] = output
    return "\n".join(lines).rstrip("\n") + "\n"


def compare(scenario: Scenario, found: tuple[tuple[str, ...], ...]) -> str:
    """Return a unified diff of the file as it is and as it would be, "" where nothing differs."""
    pairs = zip(scenario.blocks, found, strict=True)
    if all(block.expected in (None, output) for block, output in pairs):
        return ""
    return "\n".join(
        difflib.unified_diff(
            scenario.script.lines,
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
