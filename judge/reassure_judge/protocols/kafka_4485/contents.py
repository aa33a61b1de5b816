"""What a log holds, told by its leader epochs: where each begins, and where the log ends.

The model writes the epoch of every record down (`Log`), which real logs are too long for. Two logs
hold the same record at an offset where they have the same leader epoch there, as an epoch has one
leader, which writes an offset once.

What a follower takes in a term are the records of that term's leader, older ones among them. So a
log is first known by its *pieces*, each taken in a term; which epochs these hold follows when the
leader's own log is known.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from reassure_spec.observations import LARGEST_OFFSET, Spans

ENDLESS: Final = LARGEST_OFFSET + 1


class LogPiece(NamedTuple):
    """A part of a log, up to the next one."""

    start: int
    epoch: int
    is_told: bool = False
    """Whether all its records are of this epoch; else they were taken in this term."""


class Contents(NamedTuple):
    """A log by its pieces."""

    end: int
    """Log end offset."""
    pieces: tuple[LogPiece, ...] | None = ()
    """None where nobody has said what is in it."""

    def extend(self, end: int, epoch: int) -> "Contents":
        """Return the log with what was taken or written in a term, up to `end`.

        >>> Contents(2, (LogPiece(0, 0),)).extend(3, 4)[1]
        (LogPiece(start=0, epoch=0, is_told=False), LogPiece(start=2, epoch=4, is_told=False))
        """
        piece = LogPiece(self.end, epoch)
        if end <= self.end or self.pieces is None:
            return Contents(max(end, self.end), self.pieces)
        if self.pieces and self.pieces[-1][1:] == piece[1:]:
            return Contents(end, self.pieces)
        return Contents(end, (*self.pieces, piece))

    def cut(self, end: int) -> "Contents":
        """Return the log without what stands at `end` or beyond.

        >>> Contents(3, (LogPiece(0, 0), LogPiece(2, 4))).cut(2)
        Contents(end=2, pieces=(LogPiece(start=0, epoch=0, is_told=False),))
        """
        if end >= self.end:
            return self
        if self.pieces is None:
            return Contents(end, None)
        return Contents(end, tuple(piece for piece in self.pieces if piece.start < end))


def tell(end: int, epochs: Spans) -> Contents:
    """Return a log whose epochs somebody has told."""
    return Contents(end, tuple(LogPiece(start, epoch, True) for epoch, start in epochs))


class Log(NamedTuple):
    """A log by its leader epochs."""

    end: int
    spans: Spans | None = ()
    """None where nobody can say."""


NOTHING: Final = Log(0)


def resolve(contents: Contents, leaders: Mapping[int, Log]) -> Log:
    """Return which epochs a log holds; `leaders` are the logs of the leaders of each term.

    >>> follower = Contents(4, (LogPiece(0, 0), LogPiece(1, 2)))
    >>> resolve(follower, {0: Log(9, ((0, 0),)), 2: Log(9, ((0, 0), (2, 3)))})
    Log(end=4, spans=((0, 0), (2, 3)))
    >>> resolve(follower, {}).spans
    """
    if not contents.pieces:
        return Log(contents.end, None if contents.end else ())
    spans: list[tuple[int, int]] = []
    stops = (*(piece.start for piece in contents.pieces[1:]), contents.end)
    for piece, stop in zip(contents.pieces, stops, strict=True):
        taken: Spans | None = ((piece.epoch, piece.start),)
        if not piece.is_told:
            taken = leaders.get(piece.epoch, Log(0, None)).spans
        if taken is None:
            return Log(contents.end, None)
        begins = max((start for _, start in taken if start <= piece.start), default=0)
        for epoch, start in taken:
            if begins <= start < stop and not (spans and spans[-1][0] == epoch):
                spans.append((epoch, max(start, piece.start)))
    return Log(contents.end, tuple(spans))


def count_common(log: Log, other: Log) -> int | None:
    """Return how many records two logs share from their start, None where nobody can say.

    >>> count_common(Log(3, ((0, 0), (1, 2))), Log(9, ((0, 0), (2, 2))))
    2
    >>> count_common(Log(3, None), Log(0)), count_common(Log(3, None), Log(3))
    (0, None)
    """
    shortest = min(log.end, other.end)
    if shortest == 0:
        return 0
    if log.spans is None or other.spans is None:
        return None
    ours, theirs = log.spans, other.spans
    for at in range(max(len(ours), len(theirs))):
        a = ours[at] if at < len(ours) else None
        b = theirs[at] if at < len(theirs) else None
        if a != b:
            # Up to where either of them goes on with another epoch.
            return min(shortest, *(span[1] for span in (a, b) if span is not None))
    return shortest
