"""Files of observations: which there are, what stands in them, and how the judge takes them.

A file is known by its content, whatever it is called: its first line is a JSON object with a `kind`
and a `writer`. Files that differ in a number behind the last dot only (`observations.ndjson.2`,
`.1`, and the one without) are one, rotated: the largest number is the oldest. A file may hold lines
of several writers. The order of files of different writers means nothing.

**Torn lines.** A writer that is killed may leave its last line half written. It counts as missing,
and nothing else does: where it is the last of a file, or a new run begins on the line behind it.
Any other line that cannot be read is an error.

**The same line twice**, as where a file was copied and then rotated, counts once. Two lines with
the same writer, run and sequence that say different things are an error.
"""

import re
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from reassure_judge.protocols import get_observing, get_rules
from reassure_judge.rules import OBSERVATIONS
from reassure_judge.verdicts import Location, Tally, Violation
from reassure_pipeline.archives.archive import RECOGNISED, Archive, contain, read_archive
from reassure_pipeline.archives.remote_logs import find_uri, list_logs
from reassure_spec.clauses import clauses_of_profile
from reassure_spec.observations import (
    NOBODY,
    BadObservation,
    Observation,
    Stored,
    Writer,
    decode_observation,
)
from reassure_spec.readings import Readings, field_name
from reassure_spec.znodes import BadZnode, decode_state
from reassure_zookeeper.transactions import Create, SetData, Transaction

if TYPE_CHECKING:
    from reassure_judge.observed.judge import ObservationJudge

PAGE: Final = "docs/observations.md"
_HEAD: Final = 4096
_ROTATED: Final = re.compile(r"(.*)\.([0-9]+)", re.DOTALL)
_CALLED_LIKE: Final = re.compile(r"\.(?:ndjson|jsonl)(?:[.-]|$)")
_PACKED: Final = re.compile(r"\.(?:ndjson|jsonl)\b.*\.(?:gz|bz2|xz|zst|lz4)$")
_NAMED: Final = re.compile(rb'"writer"\s*:\s*"((?:[^"\\]|\\.)*)"')
_STATE: Final = re.compile(r"(.*)/brokers/topics/([^/]+)/partitions/([0-9]+)/state", re.DOTALL)
_SHOWN: Final = 20

StateKey = tuple[str, str, int]


# Files ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Paths:
    """What the paths of an audit lead to."""

    logs: tuple[Path, ...]
    """What may hold transaction logs."""
    files: tuple[Path, ...]
    """Files of observations, in the order in which to read them."""
    packed: tuple[Path, ...]
    """What is called like one, and packed."""


def sort_paths(paths: Sequence[Path]) -> Paths:
    """Tell files of observations from transaction logs, by content; directories may hold both."""
    logs: list[Path] = []
    files: dict[Path, Path] = {}
    packed: list[Path] = []
    for path in paths:
        if find_uri(path):
            logs.append(path)
            continue
        if path.is_dir():
            inside = sorted(entry for entry in path.iterdir() if entry.is_file())
            found = [entry for entry in inside if is_observations(entry)]
            packed += [entry for entry in inside if _PACKED.search(entry.name)]
            if not found or list_logs(path):
                logs.append(path)
        else:
            found = [path] if is_observations(path) else []
            logs += [] if found else [path]
        for entry in found:
            files.setdefault(entry.resolve(), entry)
    return Paths(tuple(logs), tuple(sorted(files.values(), key=_rank)), tuple(packed))


def is_observations(path: Path) -> bool:
    """Whether a file is one of observations: it begins with a JSON object, and is named like one.

    What is called like a file of observations is one, and an error if it is not.
    """
    if _PACKED.search(path.name):
        return False
    with path.open("rb") as file:
        head = file.read(_HEAD).lstrip()
    if _CALLED_LIKE.search(path.name):
        return bool(head)
    return head.startswith(b"{") and b'"kind"' in head and b'"writer"' in head


def _rank(path: Path) -> tuple[str, str, int]:
    match = _ROTATED.fullmatch(path.name)
    name, number = (match[1], int(match[2])) if match else (path.name, 0)
    return str(path.parent), name, -number


@dataclass(frozen=True, slots=True)
class TornLine:
    """A line that was not finished."""

    file: str
    line: int
    writer: str

    def as_dict(self) -> dict[str, Any]:
        """Return the record that reports print."""
        return {"file": self.file, "line": self.line, "writer": self.writer}


def read_observations(path: Path) -> Iterator[tuple[int, Observation | TornLine]]:
    """Yield the lines of a file that are not empty, numbered from 1. Raises BadObservation."""
    name = str(path)
    last: Observation | None = None
    held: tuple[int, bytes, BadObservation] | None = None
    number, data = 0, b"\n"
    with path.open("rb") as file:
        for number, data in enumerate(file, 1):
            if data.isspace():
                continue
            try:
                said = decode_observation(data, name, number, last)
            except BadObservation as bad:
                if held is not None or not bad.is_json_broken:
                    raise (bad if held is None else held[2]) from None
                held = number, data, bad
                continue
            if held is not None:
                if not isinstance(said.what, Writer) or said.sequence:
                    raise held[2]
                yield held[0], _tear(name, held[0], held[1], (last or said).writer)
                held = None
            last = said
            yield number, said
    if held is not None:
        if data.endswith(b"\n"):
            raise held[2]
        yield held[0], _tear(name, held[0], held[1], last.writer if last else "")


def _tear(file: str, line: int, data: bytes, last: str) -> TornLine:
    """Return a torn line; whose it is stands in it, or it is of who wrote last in that file."""
    match = _NAMED.search(data)
    return TornLine(file, line, match[1].decode("utf-8", "replace") if match else last)


class LineOrder:
    """Sees to it that the lines of each writer come in order, each once."""

    def __init__(self) -> None:
        self.twice = 0
        """How many lines came again."""
        self._runs: dict[tuple[str, int], list[tuple[int, array[int]]]] = {}
        """By writer and run: stretches without a gap, by their first line, with a hash of each."""
        self._run: dict[str, int] = {}

    def is_new(self, said: Observation, file: str, line: int) -> bool:
        """Whether a line has not come before. Raises BadObservation for one that cannot come."""
        key, sequence = (said.writer, said.run), said.sequence
        stretches = self._runs.get(key)
        if stretches is None:
            if said.run < self._run.get(said.writer, -1):
                raise self._complain(said, file, line, f"run {self._run[said.writer]}")
            self._run[said.writer] = said.run
            stretches = self._runs[key] = [(sequence, array("q"))]
        first, hashes = stretches[-1]
        if sequence == first + len(hashes):
            hashes.append(hash(said))
            return True
        if sequence > first + len(hashes):
            stretches.append((sequence, array("q", (hash(said),))))
            return True
        for first, hashes in reversed(stretches):
            if first <= sequence < first + len(hashes):
                if hashes[sequence - first] != hash(said):
                    raise BadObservation(
                        file,
                        line,
                        f"line {sequence} of run {said.run} of {said.writer} came before, with "
                        "other content: give each life of a process a run of its own",
                    )
                self.twice += 1
                return False
        raise self._complain(said, file, line, f"line {stretches[-1][0]} of run {said.run}")

    def _complain(self, said: Observation, file: str, line: int, after: str) -> BadObservation:
        return BadObservation(
            file,
            line,
            f"line {said.sequence} of run {said.run} of {said.writer} comes after {after}: name "
            "the files of one writer in order, the oldest with the largest number",
        )


# The stored state, from ZooKeeper's log ---------------------------------------------------------


class States:
    """What transaction logs say of the stored state of some partitions."""

    def __init__(self, wanted: Iterable[StateKey]) -> None:
        self._lines: dict[StateKey, list[tuple[Observation, str, int]]] = {
            key: [] for key in wanted
        }
        self.unread: list[str] = []
        """Where logs could not be read, in words."""
        self.twice: set[StateKey] = set()
        """Partitions that were made more than once: which life is spoken of nobody says."""

    def read(self, transaction: Transaction, name: str) -> None:
        """Take in what one transaction wrote."""
        if transaction.error is not None:
            return
        for op in transaction.ops:
            if not isinstance(op, Create | SetData):
                continue
            match = _STATE.fullmatch(op.path) if op.path.endswith("/state") else None
            key = (match[1], match[2], int(match[3])) if match else None
            if key is None or key not in self._lines:
                continue
            if isinstance(op, Create) and self._lines[key]:
                self.twice.add(key)
            version = 0 if isinstance(op, Create) else op.version
            try:
                state = decode_state(op.path, op.data)
            except BadZnode:
                continue  # told by the judge of logs
            said = Observation(
                "zookeeper",
                0,
                transaction.zxid,
                *key,
                NOBODY,
                state.controller_epoch,
                state.leader_epoch,
                Stored(state.leader, state.isr, version),
            )
            self._lines[key].append((said, name, transaction.zxid))

    def hand_on(self, judge: "ObservationJudge") -> int:
        """Let the judge know; answer of how many partitions there is something to know."""
        joined = 0
        for key, lines in self._lines.items():
            if key not in self.twice:
                joined += bool(lines)
                for said, name, zxid in lines:
                    judge.join(said, name, zxid)
        return joined


# The report -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ObservedReport:
    """What files of observations came to."""

    files: tuple[str, ...]
    lines: int
    partitions: int
    violations: tuple[Violation, ...]
    """All that was broken, advice included."""
    undecided: Mapping[str, Location]
    """Where each clause that may have been kept or broken was so first."""
    torn: tuple[TornLine, ...] = ()
    gaps: Mapping[str, int] = field(default_factory=dict)
    """By writer: how often lines are missing."""
    twice: int = 0
    """Lines that came again, and were counted once."""
    packed: tuple[str, ...] = ()
    joined: int = 0
    """Partitions of which ZooKeeper's log says what was stored."""
    is_joined: bool = False
    """Whether there was such a log to look at."""
    unread: tuple[str, ...] = ()
    """Where such a log could not be read, in words."""

    def as_dict(self) -> dict[str, Any]:
        """Return the record that reports print."""
        return {
            "files": list(self.files),
            "lines": self.lines,
            "partitions": self.partitions,
            "violations": sum(v.binds() for v in self.violations),
            "undecided": [
                {"clause": clause, "topic": place.topic, "partition": place.partition, "at": at}
                for clause, place in self.undecided.items()
                for at in (place.path,)
            ],
            "torn": [torn.as_dict() for torn in self.torn],
            "gaps": dict(self.gaps),
            "twice": self.twice,
            "joined": self.joined,
        }

    def find_needs(self) -> Iterator[str]:
        """Yield what is missing for a verdict on the whole, and what to do about it."""
        for name in self.packed:
            yield f"{name} is not read: unpack it beside the others"
        for place in self.unread:
            yield f"{place}: the stored state is not known there: add the whole file"
        for writer, times in self.gaps.items():
            yield (
                f"lines of {writer} are missing, {times} times: add the files that hold them; "
                "without them some clauses are undecided"
            )
        if self.is_joined and not self.joined:
            yield (
                "no partition of the observations is in the transaction logs: use the logs of the "
                "same cluster, and its chroot in the observations"
            )


def judge_observations(
    paths: Paths, readings: Readings, *, is_over: bool, members: str = RECOGNISED
) -> tuple[ObservedReport, Tally]:
    """Judge files of observations, with what transaction logs say of the stored state.

    `is_over` says that nothing followed on the last line of any (`ObservationJudge.finish`), and
    `members` which logs are of one ensemble (`archive.MEMBERSHIPS`).
    Raises BadObservation for a line that cannot be, and the log reader's errors.
    """
    judge, order = get_observing().make_judge(readings), LineOrder()
    torn: list[TornLine] = []
    for path in paths.files:
        name = str(path)
        for number, said in read_observations(path):
            if isinstance(said, TornLine):
                torn.append(said)
                judge.tear(said.writer)
            elif order.is_new(said, name, number):
                judge.feed(said, name, number)
    states = States(judge.partitions)
    if paths.logs and judge.partitions:
        states = contain(paths.logs, partial(_read_states, judge.partitions), members)
    joined = states.hand_on(judge)
    tally = judge.finish(is_over=is_over)
    report = ObservedReport(
        tuple(map(str, paths.files)),
        judge.lines,
        len(judge.partitions),
        tuple(tally.violations),
        dict(sorted(tally.first_undecided.items())),
        tuple(torn),
        judge.count_gaps(),
        order.twice,
        tuple(map(str, paths.packed)),
        joined,
        bool(paths.logs),
        tuple(states.unread),
    )
    return report, tally


def _read_states(wanted: Iterable[StateKey], archives: Sequence[Archive]) -> States:
    states = States(wanted)
    for archive in archives:
        for damage in archive.damages:
            states.unread.append(f"{damage.file}, byte {damage.offset}: {damage.reason}")
        for transaction in read_archive(archive):
            states.read(transaction, archive.name)
    return states


def list_unjudged(
    profile: str, readings: Readings, exercised: Mapping[str, int], *, given: bool
) -> Iterator[tuple[str, str]]:
    """Yield the clauses of a profile that need observations and were not judged, and why."""
    rules = get_observing()
    for clause in clauses_of_profile(profile):
        name = clause.id
        reading, value = rules.asked.get(name, ("", ""))
        if exercised.get(name) or (name not in rules.needs and name not in rules.unjudged):
            continue
        if name in rules.unjudged:
            yield name, rules.unjudged[name]
        elif reading and getattr(readings, field_name(reading)) != value:
            yield name, f"required under reading {reading}={value} only"
        elif given:
            yield name, f"needs lines of kinds {rules.needs[name]} ({PAGE})"
        elif get_rules(profile).reads == OBSERVATIONS or name not in rules.logged:
            yield name, f"needs observations, and there are none ({PAGE})"
