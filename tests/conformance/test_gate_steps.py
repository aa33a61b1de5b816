"""Steps and stories: their text says all that is in them; bad text is refused with its place."""

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reassure_conformance.gate import steps as s
from reassure_conformance.gate.malformed_znodes import (
    FOREIGN_KINDS,
    OLD_KINDS,
    RAW_KINDS,
    TOO_LARGE,
)
from reassure_conformance.gate.story import (
    WORLDS,
    ClusterSetting,
    Story,
    format_story,
    parse_story,
    read_folder,
    read_story,
    shipped_stories,
)
from reassure_spec.words import ScenarioError
from reassure_spec.znodes import LegacyEntry

BROKERS = st.integers(0, 9)
REPLICAS = st.lists(st.integers(-1, 9), max_size=3).map(tuple)
TOPIC = st.sampled_from(["orders", "order-events", "a.b_c"])
PARTITION = st.tuples(TOPIC, st.integers(0, 12))
TARGETS = st.lists(st.tuples(PARTITION, REPLICAS), min_size=1, max_size=3).map(tuple)
REQUEST = st.builds(s.Request, TARGETS)
ASSIGNMENTS = st.lists(REPLICAS, min_size=1, max_size=3).map(tuple)
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "allowed": st.booleans(),
    "assignments": ASSIGNMENTS,
    "broker": BROKERS,
    "done": st.booleans(),
    "entries": st.lists(
        st.builds(LegacyEntry, PARTITION, REPLICAS, st.none()), min_size=1, max_size=2
    ).map(tuple),
    "legacy": st.booleans(),
    "min_isr": st.integers(1, 3),
    "partition": PARTITION,
    "requests": st.lists(REQUEST, min_size=2, max_size=3).map(tuple),
    "target": REPLICAS,
    "targets": TARGETS,
    "topic": TOPIC,
    **dict.fromkeys(("effects", "least", "milliseconds", "writes"), st.integers(0, 20)),
}
KINDS: dict[type, list[str]] = {
    s.RawRequest: [*RAW_KINDS, TOO_LARGE],
    s.RawOld: [*OLD_KINDS],
    s.Foreign: [*FOREIGN_KINDS],
}


def build(kind: type[s.ClusterStep]) -> st.SearchStrategy[s.ClusterStep]:
    """Return the strategy of a kind of step, by the names of its fields."""
    own: dict[str, Any] = {each.name: FIELDS.get(each.name) for each in fields(kind)}
    if kind in KINDS:
        own["kind"] = st.sampled_from(KINDS[kind])
    if kind in (s.SetMinIsr, s.SetUnclean):
        own["topic"] = st.one_of(TOPIC, st.just(""))
    return st.builds(kind, **own)


KINDS_OF_STEP = [
    each for each in vars(s).values() if isinstance(each, type) and s.ClusterStep in each.__bases__
]
STEP = st.one_of(list(map(build, KINDS_OF_STEP)))


@given(STEP)
def test_step_text_round_trips(step: s.ClusterStep) -> None:
    """The text of a step is one line from which the same step is read back."""
    text = str(step)
    assert "\n" not in text
    assert s.parse_step(text) == step


@given(st.lists(STEP, min_size=1, max_size=6).map(tuple), st.sampled_from([(1, 2), (1, 2, 3, 7)]))
def test_story_text_round_trips(steps: tuple[s.ClusterStep, ...], brokers: tuple[int, ...]) -> None:
    """The text of a story is read back as the same story, header included."""
    story = Story("told", steps, ClusterSetting(brokers), ("kip-236",), "drop.leader-kept")
    assert parse_story(format_story(story), "told.txt") == story


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("create orders 1,2", "is not a step"),
        ("request orders to 1,2", "is not a partition"),
        ("request orders-0 to one", "is not a replica list"),
        ("request orders-0", "is not a target"),
        ("create orders with x times 1", "write it as 120 times 1,2"),
        ("request orders-5..2 to 3", "write them as orders-0..119"),
        ("create orders with 99999 times 1", "name 10000 at most"),
        ("send funny request", "no malformed request 'funny'"),
        ("plant foreign thing", "no foreign znode 'thing'"),
    ],
)
def test_bad_line_is_refused_with_file_and_line(line: str, complaint: str) -> None:
    """A line that is no step is refused with its file, its line and the reason."""
    with pytest.raises(ScenarioError, match=r"bad\.txt:3: ") as caught:
        parse_story(f"# why\nworld cluster\n{line}\n", "bad.txt")
    assert complaint in str(caught.value)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("# why\nelect\n", "bad.txt:2: the first command must be `world NAME`"),
        ("world tables\nelect\n", "bad.txt: a story is told to `world cluster or brokers`, not"),
        ("world cluster brokers=1,1\nelect\n", "bad.txt:1: name each broker once"),
        ("world cluster brokers=1,x\nelect\n", "bad.txt:1: '1,x' is not a replica list"),
        ("world cluster colour=red\nelect\n", "bad.txt:1: no argument 'colour'; there is: brokers"),
        ("# profiles: kip-1\nworld cluster\nelect\n", "bad.txt:1: no profile 'kip-1'"),
        ("# violates: a, b\nworld cluster\nelect\n", "bad.txt:1: one violates expected"),
        ("world cluster\n\nelect\n----\nok\n", "bad.txt:3: a step has no output"),
        ("world brokers speed=1\n1 fetches\n", "bad.txt:1: 'speed' is not a partition"),
        ("world brokers on=1,2 t-0=3\n1 fetches\n", "bad.txt:1: expected `minimum=N"),
        ("world brokers\n1 sleeps\n", "bad.txt:2: '1 sleeps' is no step"),
        ("# nothing\nworld cluster\n", "bad.txt: a story needs at least one step"),
    ],
)
def test_bad_story_is_refused_with_its_place(text: str, complaint: str) -> None:
    """What is no story of a cluster is refused with its file and line, and what there may be."""
    with pytest.raises(ScenarioError) as caught:
        parse_story(text, "bad.txt")
    assert complaint in str(caught.value)


def test_binary_file_is_refused(tmp_path: Path) -> None:
    """A file that is not text is refused by name."""
    path = tmp_path / "x.txt"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ScenarioError, match=r"x\.txt: not UTF-8"):
        read_story(path)


def test_folder_is_read_by_name(tmp_path: Path) -> None:
    """The stories of a folder come in the order of their names, other files are left alone."""
    for name in ("b.txt", "a.txt", "notes.md"):
        (tmp_path / name).write_text("world cluster\nelect\n")
    assert [story.name for story in read_folder(tmp_path)] == ["a", "b"]


@pytest.mark.parametrize("world", WORLDS)
def test_shipped_stories_are_read_as_they_are_written(world: str) -> None:
    """The text of a story is read back as the same story, in either world."""
    stories = list(shipped_stories(world))
    assert stories
    for story in stories:
        assert parse_story(format_story(story), f"{story.name}.txt") == story


def test_shipped_stories_say_why_and_are_short() -> None:
    """Every shipped story says why it is told and has at most a dozen steps."""
    stories = list(shipped_stories())
    assert len(stories) >= 15
    assert [story.name for story in stories if not story.why or len(story.steps) > 12] == []
