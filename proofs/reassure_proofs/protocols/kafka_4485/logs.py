"""Logs of any length, seen at a few positions, and the model run on them.

The model's logs are tuples, and Python's `len` gives plain numbers only. A log of any length is
therefore told by its end and by the records at a few *positions*, which are any positions at all.
Whatever is proved of what stands there is proved of every position. Appending, cutting and copying
need nothing else: what such a log has at a position depends on what others have there. How many
records two logs share does need more, namely where they differ first; so that place is one of the
positions wherever the model asks for it, and the answer is then exact.

The model's own text is run: its module is loaded a second time, with a `len` and a `count_common`
that also know such logs. On plain logs both are the model's and Python's own, and that is how every
path is repeated on a witness.
"""

import builtins
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any, Final, NoReturn, TypeAlias

from reassure_model.protocols.kafka_4485.replication import Log
from reassure_model.protocols.kafka_4485.replication import count_common as count_plain
from reassure_proofs.engine.formula import Number, Truth, all_of, choose, implies, negate
from reassure_proofs.engine.inputs import TooLargeError

NOTHING: Final = -1
"""What is seen beyond the end of a log."""
_LONGEST: Final = 1_000_000
"""How many records a plain log is laid out with at most."""


@dataclass(frozen=True, slots=True, eq=False)
class SeenLog:
    """A log, or a part of one, that is known at some positions only."""

    positions: tuple[Number, ...]
    records: tuple[Number, ...]
    """The record at each position; of no meaning outside the part."""
    end: Number
    """Where the part ends, counted from the beginning of the log."""
    start: Number = 0
    """Where it begins; a part that ends before is empty."""

    def __getitem__(self, part: slice) -> "SeenLog":
        if not _is_whole(self) or part.step is not None:
            _refuse("cuts a part of a log once more")
        start = 0 if part.start is None else self._place(part.start)
        end = self.end if part.stop is None else self._place(part.stop)
        return replace(self, end=end, start=start)

    def __iter__(self) -> Iterator["SeenLog"]:
        """Yield the log in one piece: a tuple that it is unpacked into is a chain of pieces."""
        yield self

    def __eq__(self, other: object) -> Any:
        right = join_pieces(other)
        alike = (mine == theirs for mine, theirs in self._beside(right))
        return (self.end == right.end) & all_of(alike)

    def __ne__(self, other: object) -> Any:
        return negate(self == other)

    __hash__ = None  # type: ignore[assignment]  # equal or not is for the solver

    def _place(self, bound: Number) -> Number:
        """Return the place that the bound of a slice means, as Python has it."""
        if bound < 0:
            return max(self.end + bound, 0)
        return min(bound, self.end)

    def _beside(self, other: "SeenLog") -> Iterator[tuple[Number, Number]]:
        if not (_is_whole(self) and _is_whole(other)):
            _refuse("compares parts of logs")
        for at, mine, theirs in zip(self.positions, self.records, other.records, strict=True):
            yield choose(at < self.end, mine, NOTHING), choose(at < other.end, theirs, NOTHING)


AnyLog: TypeAlias = SeenLog | Log | tuple[Any, ...]
"""A log seen at positions, a chain of its pieces and records, or the model's plain tuple."""


def _refuse(what: str) -> NoReturn:
    from reassure_proofs.engine.symex import GaveUp

    raise GaveUp(f"the code under test {what}, which logs seen at positions cannot follow")


def _is_whole(log: SeenLog) -> bool:
    return type(log.start) is int and log.start == 0


def join_pieces(log: object) -> SeenLog:
    """Return a chain of pieces as one log, and a log as it is."""
    if isinstance(log, SeenLog):
        return log
    if not isinstance(log, tuple) or not log or not isinstance(log[0], SeenLog):
        _refuse("makes a log of something else")
    joined: SeenLog = log[0]
    for piece in log[1:]:
        joined = _add(joined, piece)
    return joined


def _add(log: SeenLog, piece: Any) -> SeenLog:
    if not isinstance(piece, SeenLog):
        records = (
            choose(at == log.end, piece, record)
            for at, record in zip(log.positions, log.records, strict=True)
        )
        return replace(log, records=tuple(records), end=log.end + 1)
    # Records keep their place: what is added has to begin where the log ends, or to be empty.
    if piece.start != min(log.end, piece.end):
        _refuse("joins logs elsewhere than they were cut")
    records = (
        choose(at < log.end, mine, theirs)
        for at, mine, theirs in zip(log.positions, log.records, piece.records, strict=True)
    )
    return replace(log, records=tuple(records), end=max(log.end, piece.end))


def measure(value: Any) -> Any:
    """Return the length of a log, or of anything else."""
    if isinstance(value, SeenLog):
        return value.end if _is_whole(value) else max(value.end - value.start, 0)
    if isinstance(value, tuple) and value and isinstance(value[0], SeenLog):
        return join_pieces(value).end
    return builtins.len(value)


def count_common(log: Any, other: Any) -> Number:
    """Return how many records two logs share from their start.

    Of logs seen at positions: up to the first of the positions at which they differ.
    """
    if not isinstance(log, SeenLog) or not isinstance(other, SeenLog):
        return count_plain(log, other)
    shared = min(log.end, other.end)
    for at, mine, theirs in zip(log.positions, log.records, other.records, strict=True):
        if at < shared and mine != theirs:
            shared = at
    return shared


def make_log(end: Number, positions: Sequence[Number], records: Sequence[Number]) -> Any:
    """Return a log with these records at these positions: a plain one where the end is plain.

    Plain logs have to hold something elsewhere too, and all hold the same. Raises TooLargeError for
    one that is too long to be laid out.

    >>> make_log(3, (1,), (7,))
    (0, 7, 0)
    """
    if not isinstance(end, int):
        return SeenLog(tuple(positions), tuple(records), end)
    if end > _LONGEST:
        raise TooLargeError(f"no log of {end} records is laid out")
    filled = [0] * end
    for at, record in zip(positions, records, strict=True):
        if at < end:
            filled[at] = record
    return tuple(filled)


def look_at(log: AnyLog, positions: Sequence[Number]) -> tuple[Number, ...]:
    """Return the end of a log and what it has at the positions.

    >>> look_at((5, 7), (1, 2))
    (2, 7, -1)
    """
    if isinstance(log, SeenLog) or (log and isinstance(log[0], SeenLog)):
        seen = join_pieces(log)
        pairs = zip(positions, seen.records, strict=True)
        return (seen.end, *(choose(at < seen.end, record, NOTHING) for at, record in pairs))
    return (len(log), *(log[at] if at < len(log) else NOTHING for at in positions))


def is_prefix(
    log: Sequence[Number], end: Number, other: Sequence[Number], positions: Sequence[Number]
) -> Truth:
    """Return whether the first `end` records of one log stand in the other; as `look_at` tells.

    >>> is_prefix((2, 7), 1, (1, 7), (0,)), is_prefix((2, 7), 1, (1, 8), (0,))
    (True, False)
    """
    alike = (
        implies(at < end, mine == theirs)
        for at, mine, theirs in zip(positions, log[1:], other[1:], strict=False)
    )
    return (end <= other[0]) & all_of(alike)


@cache
def load(name: str) -> ModuleType:
    """Return a module of the model that also takes logs seen at positions."""
    spec = find_spec(name)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    vars(module)["len"] = measure
    spec.loader.exec_module(module)
    if hasattr(module, "count_common"):
        vars(module)["count_common"] = count_common
    return module
