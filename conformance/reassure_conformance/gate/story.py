"""Stories: a cluster and a dozen steps, in a text file that a person can read and write.

    # Why this story is told, in comment lines.
    brokers: 1,2,3
    profiles: kip-236, kip-236-amended

    create orders with 1,2
    request orders-0 to 2,3
    3 joins orders-0

The header stands before the first step: `brokers` (default 1,2,3,4), `profiles` (those the story is
told for; default all), `violates` (the clause that it was saved for). Every other line is a step of
`reassure_conformance.gate.steps`. A story is carried out leniently: a step that is not possible
when its turn comes is skipped and reported as skipped, so that a story can lose a step and stay a
story.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from typing import Final

from reassure_conformance.gate.steps import BadStep, Step, format_step, parse_replicas, parse_step
from reassure_spec.errors import BadData
from reassure_spec.readings import PROFILES
from reassure_spec.znodes import ReplicaList

DEFAULT_BROKERS: Final[ReplicaList] = (1, 2, 3, 4)
SUFFIX: Final = ".story"


class BadStory(BadData):
    """A story file that does not keep the format; the message names file and line."""


@dataclass(frozen=True, slots=True)
class Story:
    """A cluster and what is done to it."""

    name: str
    steps: tuple[Step, ...]
    brokers: ReplicaList = DEFAULT_BROKERS
    profiles: tuple[str, ...] = ()
    """Profiles that it is told for; empty means all."""
    violates: str = ""
    """The clause that it showed broken when it was saved, "" where none."""
    why: tuple[str, ...] = field(default=(), compare=False)
    """Comment lines, without the mark."""

    def is_for(self, profile: str) -> bool:
        """Whether the story is told for this profile."""
        return not self.profiles or profile in self.profiles

    def with_steps(self, steps: tuple[Step, ...]) -> "Story":
        """Return the story with other steps."""
        return replace(self, steps=steps)


def format_story(story: Story) -> str:
    """Return the text of a story; `parse_story` reads it back."""
    lines = [f"# {line}".rstrip() for line in story.why]
    lines.append("brokers: " + ",".join(map(str, story.brokers)))
    if story.profiles:
        lines.append("profiles: " + ", ".join(story.profiles))
    if story.violates:
        lines.append(f"violates: {story.violates}")
    lines.append("")
    lines.extend(format_step(step) for step in story.steps)
    return "\n".join(lines) + "\n"


def _header(line: str) -> tuple[str, str] | None:
    name, colon, value = line.partition(":")
    return (name, value.strip()) if colon and name.isalpha() else None


def _parse_header(name: str, value: str, *, too_late: bool) -> dict[str, object]:
    if too_late:
        raise BadStep(f"header {name!r} stands after the first step")
    if name == "brokers":
        brokers = parse_replicas(value)
        if not brokers or len(set(brokers)) != len(brokers) or min(brokers) < 0:
            raise BadStep("brokers: name each broker once, as in 1,2,3")
        return {"brokers": brokers}
    if name == "profiles":
        profiles = tuple(part.strip() for part in value.split(","))
        for profile in profiles:
            if profile not in PROFILES:
                raise BadStep(f"no profile {profile!r}; there are: {', '.join(PROFILES)}")
        return {"profiles": profiles}
    if name == "violates":
        return {"violates": value}
    raise BadStep(f"no header {name!r}; there are: brokers, profiles, violates")


def parse_story(text: str, origin: str) -> Story:
    """Return the story of this text; `origin` is the file, for messages and for its name.

    Raises BadStory with file and line when a line is neither header, comment nor step.
    """
    header: dict[str, object] = {}
    steps: list[Step] = []
    why: list[str] = []
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.strip()
        if not line:
            continue
        try:
            if line.startswith("#"):
                why.append(line[1:].strip())
            elif (found := _header(line)) is not None:
                header.update(_parse_header(*found, too_late=bool(steps)))
            else:
                steps.append(parse_step(line))
        except BadStep as error:
            raise BadStory(f"{origin}:{number}: {error}") from None
    if not steps:
        raise BadStory(f"{origin}: a story needs at least one step")
    story = Story(name=Path(origin).stem, steps=tuple(steps), why=tuple(why))
    return replace(story, **header)  # type: ignore[arg-type]


def read_story(path: Path) -> Story:
    """Return the story in this file. Raises BadStory, OSError."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise BadStory(f"{path}: not UTF-8 text ({error.reason} at byte {error.start})") from None
    return parse_story(text, str(path))


def read_folder(folder: Path) -> Iterator[Story]:
    """Yield the stories of a folder, by name. Raises BadStory, OSError."""
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        yield read_story(path)


def shipped_stories() -> Iterator[Story]:
    """Yield the stories that come with the package, by name."""
    folder = files("reassure_conformance.gate") / "stories"
    for entry in sorted(folder.iterdir(), key=lambda e: e.name):
        if entry.name.endswith(SUFFIX):
            yield parse_story(entry.read_text(encoding="utf-8"), entry.name)
