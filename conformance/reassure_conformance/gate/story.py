"""Stories: a live cluster and a dozen steps, as scripts that a person can read and write.

    # Why this story is told, in comment lines.
    # profiles: NAME, NAME
    world cluster brokers=1,2,3

    create orders with 1,2
    request orders-0 to 2,3
    3 joins orders-0

`brokers` is 1,2,3,4 where it is left out. The head may name the `profiles` that the story is told
for (all, without) and the clause that it `violates`, for which it was saved. Every command is a
step of `reassure_conformance.gate.steps`, and none has an output: what is right is for the judge to
say. A story is carried out leniently: a step that is not possible when its turn comes is skipped
and reported as skipped, so that a story can lose a step and stay a story.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from reassure_conformance.gate.step_fields import BadStep, parse_replicas
from reassure_conformance.gate.steps import ClusterStep, format_step, parse_step
from reassure_conformance.script import (
    ScriptBlock,
    ScriptFile,
    format_script,
    list_shipped,
    parse_script,
    read_script,
    read_scripts,
)
from reassure_spec.readings import PROFILES
from reassure_spec.words import ScenarioError, spell_replicas
from reassure_spec.znodes import ReplicaList

DEFAULT_BROKERS: Final[ReplicaList] = (1, 2, 3, 4)
WORLD: Final = "cluster"


@dataclass(frozen=True, slots=True)
class Story:
    """A cluster and what is done to it."""

    name: str
    steps: tuple[ClusterStep, ...]
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

    def with_steps(self, steps: tuple[ClusterStep, ...]) -> "Story":
        """Return the story with other steps."""
        return replace(self, steps=steps)


def format_story(story: Story) -> str:
    """Return the text of a story; `parse_story` reads it back."""
    fields = {"profiles": story.profiles, "violates": (story.violates,) if story.violates else ()}
    world = f"{WORLD} brokers={spell_replicas(story.brokers)}"
    return format_script(story.why, fields, world, map(format_step, story.steps))


def parse_story(text: str, origin: str) -> Story:
    """Return the story of this text; `origin` is the file, for messages and for its name.

    Raises ScenarioError with file and line when a line is neither comment nor step.
    """
    return _make_story(parse_script(text, origin))


def read_story(path: Path) -> Story:
    """Return the story in this file. Raises ScenarioError, OSError."""
    return _make_story(read_script(path))


def _make_story(script: ScriptFile) -> Story:
    if script.world != WORLD:
        raise ScenarioError(
            f"{script.origin}: a story is told to `world {WORLD}`, not to {script.world!r}"
        )
    for profile in script.fields.get("profiles", ()):
        if profile not in PROFILES:
            known = ", ".join(PROFILES)
            raise ScenarioError(f"{script.origin}:1: no profile {profile!r}; there are: {known}")
    first, *others = script.blocks
    if not others:
        raise ScenarioError(f"{script.origin}: a story needs at least one step")
    line = first.line
    try:
        brokers = _read_brokers(first)
        steps = []
        for block in others:
            line = block.line
            steps.append(_read_step(block))
    except BadStep as error:
        raise ScenarioError(f"{script.origin}:{line}: {error}") from None
    return Story(
        script.name,
        tuple(steps),
        brokers,
        script.fields.get("profiles", ()),
        script.get_field("violates"),
        script.why,
    )


def _read_brokers(first: ScriptBlock) -> ReplicaList:
    arguments = dict(first.arguments)
    del arguments[WORLD]
    text = arguments.pop("brokers", spell_replicas(DEFAULT_BROKERS))
    if arguments:
        raise BadStep(f"no argument {min(arguments)!r}; there is: brokers")
    brokers = parse_replicas(text)
    if not brokers or len(set(brokers)) != len(brokers) or min(brokers) < 0:
        raise BadStep("name each broker once, as in brokers=1,2,3")
    return brokers


def _read_step(block: ScriptBlock) -> ClusterStep:
    if block.expected is not None:
        raise BadStep("a step has no output; what is right is for the judge to say")
    return parse_step(block.text)


def read_folder(folder: Path) -> Iterator[Story]:
    """Yield the stories of a folder, by name. Raises ScenarioError, OSError."""
    return map(_make_story, read_scripts(folder))


def shipped_stories() -> Iterator[Story]:
    """Yield the stories that come with the package, by name."""
    return map(_make_story, list_shipped("reassure_conformance.gate", "stories"))
