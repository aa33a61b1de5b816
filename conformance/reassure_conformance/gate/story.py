"""Test cases: a live cluster and a dozen steps, as scripts that a person can read and write.

    # Why this is told, in comment lines.
    # profiles: NAME, NAME
    world cluster brokers=1,2,3

    create orders with 1,2
    request orders-0 to 2,3
    3 joins orders-0

There are two worlds: a `cluster` with controllers, of which brokers are 1,2,3,4 where nothing is
said, and `brokers` with logs, whose first line has a whole setting:

    # violates: log.committed-kept
    world brokers minimum=1 fetch-bytes=1048576 rules=amended on=1,2,3 t-0=1,2,3

    produce 1 with acks -1 to 1
    deliver all

The head may name the `profiles` that it is told for (all of the world, without) and the clause that
it `violates`, for which it was saved. Every command is a step (`reassure_conformance.gate.steps`,
`gate.replication.alphabet`), and none has an output: what is right is for the judge to say. A test
case is carried out leniently: a step that is not possible when its turn comes is skipped, so that a
test case can lose a step and stay one.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, NamedTuple

from reassure_conformance.adapter import ISR, REQUESTS
from reassure_conformance.gate.replication import alphabet
from reassure_conformance.gate.replication.setting import TrialSetting
from reassure_conformance.gate.step_fields import BadStep, parse_replicas
from reassure_conformance.gate.steps import NEEDS, QUEUED, ClusterStep, parse_step
from reassure_conformance.script import (
    ScriptBlock,
    ScriptFile,
    format_script,
    list_shipped,
    parse_script,
    read_script,
    read_scripts,
)
from reassure_spec.errors import BadData
from reassure_spec.readings import PROFILES
from reassure_spec.words import ScenarioError, spell_replicas
from reassure_spec.znodes import ReplicaList

DEFAULT_BROKERS: Final[ReplicaList] = (1, 2, 3, 4)


@dataclass(frozen=True, slots=True)
class ClusterSetting:
    """What a cluster with controllers begins with."""

    brokers: ReplicaList = DEFAULT_BROKERS

    def as_arguments(self) -> dict[str, str]:
        """Return the arguments of the first line of a test case."""
        return {"brokers": spell_replicas(self.brokers)}

    @classmethod
    def parse(cls, arguments: Mapping[str, str]) -> "ClusterSetting":
        """Return the setting of these arguments. Raises BadStep."""
        others = arguments.keys() - {"brokers"}
        if others:
            raise BadStep(f"no argument {min(others)!r}; there is: brokers")
        brokers = parse_replicas(arguments.get("brokers", spell_replicas(DEFAULT_BROKERS)))
        if not brokers or len(set(brokers)) != len(brokers) or min(brokers) < 0:
            raise BadStep("name each broker once, as in brokers=1,2,3")
        return cls(brokers)


class StoryWorld(NamedTuple):
    """What is driven in test cases of one kind."""

    setting: type[ClusterSetting] | type[TrialSetting]
    parse_step: Callable[[str], ClusterStep]
    folder: tuple[str, str]
    """The package, and its folder, of those that are shipped."""


CLUSTER: Final = "cluster"
BROKERS: Final = "brokers"
WORLDS: Final[Mapping[str, StoryWorld]] = {
    CLUSTER: StoryWorld(ClusterSetting, parse_step, ("reassure_conformance.gate", "stories")),
    BROKERS: StoryWorld(
        TrialSetting, alphabet.parse_step, ("reassure_conformance.gate.replication", "tales")
    ),
}


@dataclass(frozen=True, slots=True)
class Story:
    """A cluster and what is done to it."""

    name: str
    steps: tuple[ClusterStep, ...]
    setting: ClusterSetting | TrialSetting = ClusterSetting()
    profiles: tuple[str, ...] = ()
    """Profiles that it is told for; empty means all."""
    violates: str = ""
    """The clause that it showed broken when it was saved, "" where none."""
    why: tuple[str, ...] = field(default=(), compare=False)
    """Comment lines, without the mark."""

    @property
    def world(self) -> str:
        """What is driven."""
        return CLUSTER if isinstance(self.setting, ClusterSetting) else BROKERS

    @property
    def brokers(self) -> ReplicaList:
        """The brokers of the cluster."""
        return self.setting.brokers

    @property
    def needs(self) -> frozenset[str]:
        """The capabilities that it takes."""
        return frozenset(NEEDS[type(step)] for step in self.steps if type(step) in NEEDS)

    def asks_nothing_but(self, abilities: Set[str]) -> bool:
        """Whether each step can be asked for of one with these capabilities and routes.

        Who is in sync comes about by itself, where nobody can say it.
        """
        queued = any(isinstance(step, QUEUED) for step in self.steps)
        return self.needs <= {*abilities, ISR} and (REQUESTS in abilities or not queued)

    def is_for(self, profile: str) -> bool:
        """Whether the story is told for this profile."""
        return not self.profiles or profile in self.profiles

    def with_steps(self, steps: Sequence[ClusterStep]) -> "Story":
        """Return the story with other steps."""
        return replace(self, steps=tuple(steps))

    def on(self, brokers: ReplicaList) -> "Story":
        """Return the story of a cluster with other brokers."""
        return replace(self, setting=ClusterSetting(brokers))

    def lines(self) -> tuple[str, ...]:
        """Return the steps, as text."""
        return tuple(map(str, self.steps))


def format_story(story: Story) -> str:
    """Return the text of a story; `parse_story` reads it back."""
    fields = {"profiles": story.profiles, "violates": (story.violates,) if story.violates else ()}
    told = (f"{name}={value}" for name, value in story.setting.as_arguments().items())
    return format_script(story.why, fields, " ".join((story.world, *told)), story.lines())


def parse_story(text: str, origin: str) -> Story:
    """Return the story of this text; `origin` is the file, for messages and for its name.

    Raises ScenarioError with file and line when a line is neither comment nor step.
    """
    return _make_story(parse_script(text, origin))


def make_story(lines: Sequence[str]) -> Story:
    """Return the story of these lines, the first of which makes its world."""
    return parse_story("\n".join(lines), "aim")


def read_story(path: Path, world: str = CLUSTER) -> Story:
    """Return the story in this file, of this world. Raises ScenarioError, OSError."""
    return _make_story(read_script(path), world)


def _make_story(script: ScriptFile, *worlds: str) -> Story:
    if script.world not in (worlds or WORLDS):
        raise ScenarioError(
            f"{script.origin}: a story is told to `world {' or '.join(worlds or WORLDS)}`, "
            f"not to {script.world!r}"
        )
    for profile in script.fields.get("profiles", ()):
        if profile not in PROFILES:
            known = ", ".join(PROFILES)
            raise ScenarioError(f"{script.origin}:1: no profile {profile!r}; there are: {known}")
    world = WORLDS[script.world]
    first, *others = script.blocks
    if not others and script.world == CLUSTER:
        raise ScenarioError(f"{script.origin}: a story needs at least one step")
    arguments = {name: value for name, value in first.arguments.items() if name != script.world}
    line = first.line
    try:
        setting = world.setting.parse(arguments)
        steps = []
        for block in others:
            line = block.line
            steps.append(_read_step(block, world))
    except (BadData, ScenarioError) as error:
        raise ScenarioError(f"{script.origin}:{line}: {error}") from None
    return Story(
        script.name,
        tuple(steps),
        setting,
        script.fields.get("profiles", ()),
        script.get_field("violates"),
        script.why,
    )


def _read_step(block: ScriptBlock, world: StoryWorld) -> ClusterStep:
    if block.expected is not None:
        raise BadStep("a step has no output; what is right is for the judge to say")
    return world.parse_step(block.text)


def read_folder(folder: Path, world: str = CLUSTER) -> Iterator[Story]:
    """Yield the stories of a world in a folder, by name. Raises ScenarioError, OSError."""
    return (_make_story(script, world) for script in read_scripts(folder))


def shipped_stories(world: str = CLUSTER) -> Iterator[Story]:
    """Yield the stories of a world that come with the package, by name."""
    return map(_make_story, list_shipped(*WORLDS[world].folder))
