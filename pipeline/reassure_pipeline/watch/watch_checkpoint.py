"""What a watch keeps on disk, so that it goes on where it was, whatever ended it.

In the directory of a checkpoint:

* `alerts.ndjson`, the journal: a line for each alert, written and synchronised before anybody else
  is told. Each alert stands there *exactly once*, however often the watch was killed.
* `state`: what was judged so far and where reading stands, replaced as a whole from time to time.

What was told after the state was written is found again when the watch goes on from that state: it
is the same history, so these are the same alerts with the same ids, and the journal has them
already. A line that was torn when the process or the machine ended is cut off: nobody was told.

The state is kept as everything that is put aside is (`checkpoints.kept_files`): a directory that
others may write to is refused.
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import IO, Any, Final

from reassure_pipeline.checkpoints.kept_files import (
    Garbled,
    Identity,
    NotKept,
    keep,
    read_identity,
    take_up,
)
from reassure_pipeline.watch.alerts import Alert
from reassure_spec.errors import BadConfiguration, BadData

JOURNAL: Final = "alerts.ndjson"
STATE: Final = "state"


class CheckpointRefused(BadConfiguration):
    """A checkpoint that a watch cannot go on from."""


class BadCheckpoint(BadData):
    """A file of a checkpoint is not what was written there."""


Say = Callable[[Alert, bool], None]
"""Given an alert, and whether it was told before."""


def say_nothing(alert: Alert, repeated: bool) -> None:
    """Tell nobody."""


class Journal:
    """The alerts, each once, in the order in which they were found, and who is told of them.

    From the byte `start` on are those that were told after the state was written that judging goes
    on from. Without a path nothing is written. Raises BadCheckpoint.
    """

    def __init__(self, path: Path | None, say: Say = say_nothing, start: int = 0) -> None:
        self._say = say
        self.problem: OSError | None = None
        """Why nothing more is kept: whoever watches tells all that there is, and ends with it."""
        self.size = 0
        """Up to which byte it is written."""
        self._known: set[str] = set()
        self._file: IO[bytes] | None = None
        if path is None:
            return
        try:
            self._file = path.open("ab")
            _cut_torn_line(self._file, path)
            self.size = self._file.tell()
            self._known.update(_list_ids(path, start))
        except OSError as problem:
            self.problem = problem

    def tell(self, alerts: Sequence[Alert]) -> None:
        """Tell alerts, whether they can be written or not.

        Of those that stand in the journal already it is said that they do.
        """
        known = self._known
        fresh = [alert for alert in alerts if alert.id not in known]
        if fresh and self.problem is None:
            try:
                self.append(fresh)
            except OSError as problem:
                self.problem = problem
        for alert in alerts:
            self._say(alert, alert.id in known)
            known.discard(alert.id)

    def append(self, alerts: Iterable[Alert]) -> None:
        """Write alerts so that they stay there whatever happens next. Raises OSError."""
        if self._file is None:
            return
        self._file.write(b"".join(alert.as_line().encode() + b"\n" for alert in alerts))
        self._file.flush()
        os.fsync(self._file.fileno())
        self.size = self._file.tell()

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            with suppress(OSError):  # that of a disk which is full was met before
                self._file.close()


def _list_ids(path: Path, start: int) -> Iterator[str]:
    """Yield the ids of the alerts from a byte on."""
    with path.open("rb") as file:
        file.seek(start)
        for line in file:
            try:
                yield str(json.loads(line)["id"])
            except (ValueError, TypeError, KeyError):
                raise BadCheckpoint(
                    f"{path}: a line that begins with {line[:40]!r} is not an alert; use a "
                    "new directory for the checkpoint, and keep this one for its alerts"
                ) from None


def _cut_torn_line(file: IO[bytes], path: Path) -> None:
    """Cut off a last line that was not finished."""
    if file.tell():
        with path.open("rb") as there, mmap(there.fileno(), 0, access=ACCESS_READ) as written:
            whole = written.rfind(b"\n") + 1
        file.truncate(whole)
        file.seek(whole)


class WatchCheckpoint:
    """What one watch keeps in its directory, which is its own meanwhile (`own_directory`)."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._state = directory / STATE

    def read_identity(self) -> dict[str, Any] | None:
        """Return what the state is of; None where there is no state. Raises CheckpointRefused."""
        try:
            found = read_identity(self._state)
        except Garbled as problem:
            raise _call_bad(problem) from None
        journal = self.directory / JOURNAL
        if found is None and journal.is_file() and journal.stat().st_size:
            raise CheckpointRefused(
                f"{self.directory} has a journal and no state to resume from: use a new directory"
            )
        return found

    def load(self, identity: Identity) -> tuple[Any, int] | None:
        """Return the state, and how large the journal was; None where there is no state.

        Raises CheckpointRefused for a state of something else, and BadCheckpoint.
        """
        if self.read_identity() is None:
            return None
        try:
            return take_up(self._state, identity)
        except Garbled as problem:
            raise _call_bad(problem) from None
        except NotKept as other:
            raise CheckpointRefused(
                f"{self.directory} is the checkpoint of another watch: {other}; use the same "
                "options, or a new directory to judge from the beginning"
            ) from None

    def save(self, identity: Identity, state: Any, journal: int) -> None:
        """Replace the state as a whole; `journal` is how large the journal is by now."""
        keep(self._state, identity, state, journal)


def _call_bad(problem: Garbled) -> BadCheckpoint:
    return BadCheckpoint(f"{problem}; use a new directory for the checkpoint")
