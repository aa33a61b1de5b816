"""Lines of a history that are written over: what the judge is asked is what it would be anyway."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
from observed_walks import Telling, tell_term, tell_walk

from reassure_controller.replication import observing
from reassure_controller.replication.observing import Observer, list_files
from reassure_judge.verdicts import Tally
from reassure_pipeline.audit.observed import judge_observations, sort_paths
from reassure_spec.observations import (
    NOBODY,
    Answer,
    Evaluate,
    Fetch,
    Lead,
    Produce,
    Replica,
    Serve,
    What,
    decode_lines,
)
from reassure_spec.readings import Readings, get_profile, override_readings

KEY = ("t", 0)
TIMED = override_readings(get_profile("kip-236-amended"), {"hw.over-stored-isr": "no"})
AMENDED = get_profile("kip-236-amended")


class Killed(Exception):
    """All writers end here."""


class ObservedTelling(Telling):
    """Has brokers write what they say; the last line of all is the `most`th."""

    def __init__(self, directory: Path, rewritten_s: float, most: int) -> None:
        super().__init__()
        self._directory, self._rewritten_s, self._most = directory, rewritten_s, most
        self._observers: dict[int, Observer] = {}

    def say(self, broker: int, epoch: int, what: What) -> None:
        """Write a line, as the broker would; what the controller says is in ZooKeeper's log."""
        if broker == NOBODY:
            return
        self._most -= 1
        if self._most < 0:
            raise Killed
        if broker not in self._observers:
            name = self._directory / str(broker)
            self._observers[broker] = Observer(name, broker, 1, rewritten_s=self._rewritten_s)
        self._observers[broker].say(KEY, 1, epoch, what)

    def judge(self, readings: Readings) -> tuple[Tally, int]:
        """Return what the judge finds in the files, and how many lines they have."""
        for observer in self._observers.values():
            observer.close()
        files = [file for name in self._directory.iterdir() for file in list_files(name)]
        lines = sum(len(file.read_bytes().splitlines()) for file in files)
        _, tally = judge_observations(sort_paths(files), readings, is_over=True)
        return tally, lines


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that goes on by a millisecond with each line."""
    seconds = iter(range(1, 1_000_000))
    monkeypatch.setattr(observing.time, "monotonic", lambda: next(seconds) / 1000)


def tell(
    directory: Path, rewritten_s: float, most: int, story: Callable[[Telling], object]
) -> ObservedTelling:
    """Have a story told until everybody is killed."""
    told = ObservedTelling(directory, rewritten_s, most)
    with suppress(Killed):
        story(told)
    return told


def find_broken(tally: Tally) -> list[str]:
    """Return the clauses that are broken."""
    return [violation.clause for violation in tally.violations if violation.binds()]


@pytest.mark.parametrize("seed", range(24))
def test_what_is_written_over_keeps_every_clause(seed: int, tmp_path: Path) -> None:
    """However long lines may be written over, and whenever all are killed, what is sound holds."""
    random = Random(seed)
    brokers, readings = random.choice((2, 3, 4)), random.choice((TIMED, Readings()))
    if seed % 3 == 0:
        readings = AMENDED

    def story(telling: Telling) -> None:
        if seed % 3 == 0:
            tell_walk(Random(seed), readings, brokers, 300, telling)
        else:
            tell_term(Random(seed), readings, brokers, 300, telling)

    most = random.randint(20, 700)
    plain, lines = tell(tmp_path / "plain", 0.0, most, story).judge(readings)
    tally, fewer = tell(tmp_path / "over", random.choice((0.02, 0.05)), most, story).judge(readings)
    assert find_broken(plain) == find_broken(tally) == []
    assert not tally.undecided
    assert fewer <= lines


MISTAKES = {
    "mark": (Evaluate((0, 1, 2), 101, None, 2_002), "hw.at-most-leader-end"),
    "mark-back": (Evaluate((0, 1, 2), 90, None, 2_002), "hw.never-decreases"),
    "leader": (Evaluate((1, 2), 100, None, 2_002), "lag.leader-none"),
    "credit": (Fetch(2, 99, 0, 100, 2_002, 2_002), "lag.noted-after-serving"),
    "clock": (Fetch(2, 98, 0, 98, 2_002, 2_002), "lag.clock-before-end"),
    "epoch": (Fetch(2, 100, 1, 100, 2_002, 2_002), "fetch.epoch-fenced"),
    "answer": (Answer(101), "hw.acks-all.answered"),
    "shown": (Serve(101, 101), "hw.served-below"),
    "handed-out": (Serve(100, 101), "hw.served-below"),
    "replica": (Replica(100, 101, 2_002), "hw.at-most-leader-end"),
}


def tell_steady(telling: Telling, mistake: str = "") -> None:
    """Tell of a leader at work whose followers keep up; it may say something else once."""
    telling.say(0, 0, Lead(0, 0, (0, 1, 2), (0, 1, 2), 0, 10_000, 1_000))
    for end in range(1, 200):
        now = 1_000 + 10 * end
        said = [
            Replica(end, end - 1, now),
            Produce(end),
            Fetch(1, end, 0, end, now + 1, now + 1),
            Fetch(2, end, 0, end, now + 2, now + 2),
            Evaluate((0, 1, 2), end, None, now + 2),
            Answer(end),
            Serve(end, end),
        ]
        if mistake and end == 100:
            wrong, _ = MISTAKES[mistake]
            at = next(n for n, what in reversed([*enumerate(said)]) if type(what) is type(wrong))
            said[at] = wrong
        for what in said:
            telling.say(0, 0, what)


def test_a_leader_at_work_writes_little(tmp_path: Path) -> None:
    """Of two hundred records of producers that wait there is a handful of lines."""
    plain, lines = tell(tmp_path / "plain", 0.0, 10**6, tell_steady).judge(AMENDED)
    tally, fewer = tell(tmp_path / "over", 1e9, 10**6, tell_steady).judge(AMENDED)
    assert find_broken(plain) == find_broken(tally) == []
    assert set(tally.exercised) == set(plain.exercised)
    assert lines > 1_300
    assert fewer == 2 + 7


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_on_the_way_is_found(mistake: str, tmp_path: Path) -> None:
    """What is wrong for a moment is found, though later lines would have hidden it."""
    for rewritten_s in (0.0, 1e9):
        told = tell(
            tmp_path / str(rewritten_s),
            rewritten_s,
            10**6,
            lambda telling: tell_steady(telling, mistake),
        )
        assert MISTAKES[mistake][1] in find_broken(told.judge(TIMED)[0])


def test_credit_by_the_fetch_before_needs_no_line_of_it(tmp_path: Path) -> None:
    """A fetch that is always one record behind counts by the one before, which it tells itself."""

    def story(telling: Telling) -> None:
        telling.say(0, 0, Lead(0, 0, (0, 1), (0, 1), 0, 10_000, 1_000))
        telling.say(0, 0, Fetch(1, 0, 0, 0, 1_000, 1_000))
        for end in range(1, 100):
            now = 1_000 + 10 * end
            telling.say(0, 0, Replica(end, 0, now))
            telling.say(0, 0, Fetch(1, end - 1, 0, end, now, now - 10))

    told = tell(tmp_path, 1e9, 10**6, story)
    tally, lines = told.judge(TIMED)
    assert find_broken(tally) == []
    assert "lag.credit.last-fetch" in tally.exercised
    assert lines < 10
    last = [*decode_lines((tmp_path / "0" / observing.FILE).read_bytes().splitlines())][-1].what
    assert isinstance(last, Fetch)
    assert (last.before_ms, last.before_end) == (last.caught_up_ms, 98)
