"""Steps and stories: their text says all that is in them; bad text is refused with its place."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reassure_conformance.gate import steps as s
from reassure_conformance.gate.story import (
    BadStory,
    Story,
    format_story,
    parse_story,
    read_folder,
    read_story,
    shipped_stories,
)

BROKERS = st.integers(0, 9)
REPLICAS = st.lists(st.integers(-1, 9), max_size=3).map(tuple)
TOPIC = st.sampled_from(["orders", "order-events", "a.b_c"])
PARTITION = st.tuples(TOPIC, st.integers(0, 12))
REQUEST = st.builds(
    s.Request,
    st.lists(st.tuples(PARTITION, REPLICAS), min_size=1, max_size=3).map(tuple),
)
STEP = st.one_of(
    st.builds(
        s.CreateTopic,
        TOPIC,
        st.lists(REPLICAS, min_size=1, max_size=3).map(tuple),
        st.integers(1, 3),
    ),
    REQUEST,
    st.builds(s.Request, st.tuples(st.tuples(PARTITION, REPLICAS)), st.just(True)),
    st.builds(s.Burst, st.lists(REQUEST, min_size=2, max_size=3).map(tuple)),
    st.builds(s.Change, PARTITION, REPLICAS),
    st.builds(s.Cancel, PARTITION),
    st.just(s.Withdraw()),
    REQUEST.map(lambda request: s.Rewrite(request.targets)),
    st.builds(s.Grow, TOPIC, st.lists(REPLICAS, min_size=1, max_size=3).map(tuple)),
    st.builds(s.SetMinIsr, st.one_of(TOPIC, st.just("")), st.integers(1, 5)),
    st.builds(s.Lose, st.integers(0, 20), st.booleans()),
    st.builds(s.Intrude, BROKERS, PARTITION),
    st.builds(s.RawRequest, st.sampled_from([*s.RAW_KINDS, s.TOO_LARGE])),
    st.builds(s.Foreign, st.sampled_from(sorted(s.FOREIGN_KINDS))),
    st.builds(s.Join, BROKERS, PARTITION),
    st.builds(s.Leave, BROKERS, PARTITION),
    st.builds(s.Die, BROKERS),
    st.builds(s.Return, BROKERS),
    st.builds(s.Hold, st.integers(0, 20)),
    st.sampled_from([s.Resume(), s.Kill(), s.Elect(), s.Expire(), s.Cut()]),
)


@given(STEP)
def test_step_text_round_trips(step: s.Step) -> None:
    """The text of a step is one line from which the same step is read back."""
    text = s.format_step(step)
    assert "\n" not in text
    assert s.parse_step(text) == step


@given(st.lists(STEP, min_size=1, max_size=6).map(tuple), st.sampled_from([(1, 2), (1, 2, 3, 7)]))
def test_story_text_round_trips(steps: tuple[s.Step, ...], brokers: tuple[int, ...]) -> None:
    """The text of a story is read back as the same story, header included."""
    story = Story("told", steps, brokers, ("kip-236",), "drop.leader-kept")
    assert parse_story(format_story(story), "told.story") == story


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("create orders 1,2", "is not a step"),
        ("request orders to 1,2", "is not a partition"),
        ("request orders-0 to one", "is not a replica list"),
        ("request orders-0", "is not a target"),
        ("send funny request", "no malformed request 'funny'"),
        ("plant foreign thing", "no foreign znode 'thing'"),
        ("brokers: 1,1", "name each broker once"),
        ("profiles: kip-1", "no profile 'kip-1'"),
        ("colour: red", "no header 'colour'"),
    ],
)
def test_bad_line_is_refused_with_file_and_line(line: str, complaint: str) -> None:
    """A line that is no step and no header is refused with its file, its line and the reason."""
    with pytest.raises(BadStory, match=r"bad\.story:2: ") as caught:
        parse_story(f"# why\n{line}\n", "bad.story")
    assert complaint in str(caught.value)


def test_late_header_is_refused() -> None:
    """A header after the first step is refused, as it would not hold for the steps before."""
    with pytest.raises(BadStory, match=r"late\.story:2: header 'brokers' stands after"):
        parse_story("elect\nbrokers: 1\n", "late.story")


def test_empty_story_is_refused() -> None:
    """A story without a step is refused."""
    with pytest.raises(BadStory, match="at least one step"):
        parse_story("# nothing\n", "empty.story")


def test_binary_file_is_refused(tmp_path: Path) -> None:
    """A file that is not text is refused by name."""
    path = tmp_path / "x.story"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(BadStory, match=r"x\.story: not UTF-8"):
        read_story(path)


def test_folder_is_read_by_name(tmp_path: Path) -> None:
    """The stories of a folder come in the order of their names, other files are left alone."""
    for name in ("b.story", "a.story", "notes.txt"):
        (tmp_path / name).write_text("elect\n")
    assert [story.name for story in read_folder(tmp_path)] == ["a", "b"]


def test_shipped_stories_say_why_and_are_short() -> None:
    """Every shipped story says why it is told and has at most a dozen steps."""
    stories = list(shipped_stories())
    assert len(stories) >= 15
    assert [story.name for story in stories if not story.why or len(story.steps) > 12] == []
