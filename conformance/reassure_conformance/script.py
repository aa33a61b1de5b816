"""Scripts: the text format of everything that is told, to the model or to a live cluster.

    # Why this is told, in comment lines, among them fields of the form `name: value`.
    # profile: NAME
    world reassignment brokers=1,2,3

    submit target=2,3
    ----
    request 0 is pending

    controller

A file is a head of comment lines and then commands, a line each. The first makes the world, and the
world says what the others mean. A command may be followed by `----` and the output that is expected
of it, up to the next blank line; without that nothing is expected of its output.
"""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Final

from reassure_spec.words import ScenarioError

SUFFIX: Final = ".txt"
RULE: Final = "----"
WORLD: Final = "world"
_NAMES: Final = ("clauses", "findings", "profile", "profiles", "readings", "violates")
_FIELD: Final = re.compile(rf"\b({'|'.join(_NAMES)}):")


@dataclass(frozen=True, slots=True)
class ScriptBlock:
    """One command and the output that is expected of it."""

    line: int
    """Number of the command's line in the file, from 1."""
    text: str
    """The command line as it stands."""
    expected: tuple[str, ...] | None
    """None where nothing is expected."""
    first: int
    """Index (from 0) of the first line of the expected output."""

    @property
    def command(self) -> str:
        """The verb. Raises ScenarioError like `parse_command`."""
        return parse_command(self.text)[0]

    @property
    def arguments(self) -> Mapping[str, str]:
        """The arguments by name. Raises ScenarioError like `parse_command`."""
        return parse_command(self.text)[1]


@dataclass(frozen=True, slots=True)
class ScriptFile:
    """One file."""

    origin: str
    """The file, for messages."""
    why: tuple[str, ...]
    """Head lines that are no fields, without the mark."""
    fields: Mapping[str, tuple[str, ...]]
    """The values of each field that the head has, by name."""
    world: str
    blocks: tuple[ScriptBlock, ...]
    """The first makes the world."""
    lines: tuple[str, ...] = field(repr=False)
    """The whole file."""

    @property
    def name(self) -> str:
        """Name of the file, without its ending."""
        return Path(self.origin).stem

    def get_field(self, name: str) -> str:
        """Return the value of a field that has at most one, "" where there is none."""
        values = self.fields.get(name, ())
        if len(values) > 1:
            raise ScenarioError(f"{self.origin}:1: one {name} expected, found {list(values)}")
        return values[0] if values else ""


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


def parse_script(text: str, origin: str) -> ScriptFile:
    """Return the script in this text; `origin` is the file's path, for messages and names.

    Raises ScenarioError with file and line for a text that does not keep the format.
    """
    lines = tuple(text.splitlines())
    start = 0
    while start < len(lines) and (lines[start].startswith("#") or not lines[start].strip()):
        start += 1
    why, fields = _parse_head([line[1:].strip() for line in lines[:start] if line.strip()])
    blocks = tuple(_parse_blocks(lines, start))
    words = blocks[0].text.split() if blocks else []
    if len(words) < 2 or words[0] != WORLD:
        raise ScenarioError(f"{origin}:{start + 1}: the first command must be `{WORLD} NAME`")
    return ScriptFile(origin, why, fields, words[1], blocks, lines)


def format_script(
    why: Iterable[str], fields: Mapping[str, Sequence[str]], world: str, commands: Iterable[str]
) -> str:
    """Return the text of a script; fields without a value are left out."""
    head = [f"# {line}".rstrip() for line in why]
    head += [f"# {name}: {', '.join(values)}" for name, values in fields.items() if values]
    return "\n".join([*head, f"{WORLD} {world}", "", *commands, ""])


def read_scripts(folder: Path) -> Iterator[ScriptFile]:
    """Yield the scripts of a folder, by name. Raises ScenarioError, OSError."""
    return map(read_script, sorted(folder.glob(f"*{SUFFIX}")))


def list_shipped(package: str, folder: str) -> Iterator[ScriptFile]:
    """Yield the scripts in a folder that comes with a package, by name."""
    for entry in sorted((files(package) / folder).iterdir(), key=lambda each: each.name):
        if entry.name.endswith(SUFFIX):
            yield parse_script(entry.read_text(encoding="utf-8"), entry.name)


def read_script(path: Path) -> ScriptFile:
    """Return the script in this file. Raises ScenarioError, OSError."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        where = f"{error.reason} at byte {error.start}"
        raise ScenarioError(f"{path}: not UTF-8 text ({where})") from None
    return parse_script(text, str(path))


def _parse_head(comments: Sequence[str]) -> tuple[tuple[str, ...], dict[str, tuple[str, ...]]]:
    """Return the sentences and the fields; a line has fields or a sentence."""
    why: list[str] = []
    fields: dict[str, tuple[str, ...]] = {}
    for comment in comments:
        if _FIELD.match(comment) is None:
            why += [comment] if comment else []
            continue
        parts = _FIELD.split(comment)[1:]
        for name, value in zip(parts[::2], parts[1::2], strict=True):
            items = tuple(item for item in re.split(r"[,\s]+", value.strip()) if item)
            fields[name] = (*fields.get(name, ()), *items)
    return tuple(why), fields


def _parse_blocks(lines: Sequence[str], start: int) -> Iterator[ScriptBlock]:
    at = start
    while at < len(lines):
        text = lines[at].strip()
        if not text or text.startswith("#"):
            at += 1
            continue
        first = end = at + 2
        if at + 1 >= len(lines) or lines[at + 1].strip() != RULE:
            yield ScriptBlock(at + 1, text, None, first)
            at += 1
            continue
        while end < len(lines) and lines[end].strip():
            end += 1
        yield ScriptBlock(at + 1, text, tuple(line.rstrip() for line in lines[first:end]), first)
        at = end
