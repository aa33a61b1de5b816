"""What a watch keeps on disk, so that it goes on where it was, whatever ended it.

In the directory of a checkpoint:

* `alerts.ndjson`, the journal: a line for each alert, written and synchronised before anybody else
  is told. Each alert stands there *exactly once*, however often the watch was killed.
* `state`: what was judged so far and where reading stands, replaced as a whole from time to time.
* `webhook`: up to which byte of the journal the receiver has answered for.

What was told after the state was written is found again when the watch goes on from that state: it
is the same history, so these are the same alerts with the same ids, and the journal has them
already. A line that was torn when the process or the machine ended is cut off: nobody was told.

The state is Python's own format, which can do anything when it is read: a directory that others may
write to is refused.
"""

import fcntl
import json
import os
import pickle
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import IO, Any, Final, Self

from reassure_pipeline.alerts import Alert
from reassure_spec.errors import BadConfiguration, BadData

JOURNAL: Final = "alerts.ndjson"
STATE: Final = "state"
POSITION: Final = "webhook"
_LOCK: Final = "lock"
_CODE: Final = (
    "reassure_spec",
    "reassure_zookeeper",
    "reassure_model",
    "reassure_judge",
    "reassure_pipeline",
)
_OPEN_TO_OTHERS: Final = 0o022

Identity = Mapping[str, Any]
"""What must be the same for a state to go on from: profile, readings, options and paths."""


class CheckpointRefused(BadConfiguration):
    """A checkpoint that a watch cannot go on from."""


class BadCheckpoint(BadData):
    """A file of a checkpoint is not what was written there."""


@cache
def digest_code() -> str:
    """Return a digest of the code that a state is of: another one may keep other things in mind."""
    digest = sha256(sys.version.encode())
    for name in _CODE:
        folder = Path(str(import_module(name).__file__)).parent
        for path in sorted(folder.rglob("*.py")):
            digest.update(str(path.relative_to(folder)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


class Journal:
    """The alerts, each once, in the order in which they were found."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("ab")
        _cut_torn_line(self._file, path)
        self.size = self._file.tell()
        """Up to which byte it is written."""

    def list_ids(self, start: int) -> Iterator[str]:
        """Yield the ids of the alerts from a byte on. Raises BadCheckpoint."""
        with self.path.open("rb") as file:
            file.seek(start)
            for line in file:
                try:
                    yield str(json.loads(line)["id"])
                except (ValueError, TypeError, KeyError):
                    raise BadCheckpoint(
                        f"{self.path}: a line that begins with {line[:40]!r} is no alert; name a "
                        "new directory for the checkpoint, and keep this one for what was told"
                    ) from None

    def append(self, alerts: Iterable[Alert]) -> None:
        """Write alerts so that they stay there whatever happens next."""
        self._file.write(b"".join(alert.as_line().encode() + b"\n" for alert in alerts))
        self._file.flush()
        os.fsync(self._file.fileno())
        self.size = self._file.tell()

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()


def _cut_torn_line(file: IO[bytes], path: Path) -> None:
    """Cut off a last line that was not finished."""
    whole = file.tell()
    with path.open("rb") as written:
        while whole:
            start = max(0, whole - 65536)
            written.seek(start)
            found = written.read(whole - start).rfind(b"\n")
            if found >= 0:
                whole = start + found + 1
                break
            whole = start
    file.truncate(whole)
    file.seek(whole)


class Checkpoint:
    """The directory of one watch, which nobody else uses meanwhile; a context manager.

    Raises CheckpointRefused where another watch uses it, or others than its owner may write there.
    """

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        status = directory.stat()
        if status.st_uid != os.geteuid() or status.st_mode & _OPEN_TO_OTHERS:
            raise CheckpointRefused(
                f"{directory} can be written to by others, and what stands in a checkpoint is "
                "trusted: own it, and run chmod go-w on it, or name another directory"
            )
        self._lock = (directory / _LOCK).open("wb")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._lock.close()
            raise CheckpointRefused(
                f"{directory} is used by another watch: end that, or name another directory"
            ) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.close()

    @property
    def _state(self) -> Path:
        return self.directory / STATE

    def read_identity(self) -> dict[str, Any] | None:
        """Return what the state is of; None where there is no state. Raises CheckpointRefused."""
        if not self._state.is_file():
            if (self.directory / JOURNAL).is_file():
                raise CheckpointRefused(
                    f"{self.directory} has a journal and no state to go on from: name a new "
                    "directory"
                )
            return None
        with self._state.open("rb") as file:
            return self._read_head(file)

    def _read_head(self, file: IO[bytes]) -> dict[str, Any]:
        try:
            head = json.loads(file.readline())
            return {**head, "identity": dict(head["identity"]), "journal": int(head["journal"])}
        except (ValueError, TypeError, KeyError):
            raise BadCheckpoint(
                f"{self._state} is no state of a watch; name a new directory for the checkpoint"
            ) from None

    def load(self, identity: Identity) -> tuple[Any, int] | None:
        """Return the state, and how large the journal was; None where there is no state.

        Raises CheckpointRefused for a state of something else, and BadCheckpoint.
        """
        if self.read_identity() is None:
            return None
        with self._state.open("rb") as file:
            head = self._read_head(file)
            content = file.read()
        self._refuse_others(head, identity)
        if sha256(content).hexdigest() != head.get("sha256"):
            raise BadCheckpoint(f"{self._state} is damaged; name a new directory")
        return pickle.loads(content), head["journal"]

    def _refuse_others(self, head: Mapping[str, Any], identity: Identity) -> None:
        """Say what a state is of, where that is not what was asked for."""
        there: dict[str, Any] = head["identity"]
        wrong = [
            f"{name} {there.get(name)!r} instead of {value!r}"
            for name, value in identity.items()
            if there.get(name) != value
        ]
        if head.get("code") != digest_code():
            wrong.append("another version of reassure or of Python")
        if wrong:
            raise CheckpointRefused(
                f"{self.directory} is the checkpoint of another watch: {', '.join(wrong)}; go on "
                "as that one, or name a new directory, in which judging begins anew"
            )

    def save(self, identity: Identity, state: Any, journal: int) -> None:
        """Replace the state as a whole; `journal` is how large the journal is by now."""
        content = pickle.dumps(state, pickle.HIGHEST_PROTOCOL)
        head = {
            "identity": dict(identity),
            "code": digest_code(),
            "journal": journal,
            "sha256": sha256(content).hexdigest(),
        }
        fresh = self._state.with_suffix(".new")
        with fresh.open("wb") as file:
            file.write(json.dumps(head).encode() + b"\n")
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self._state)
        folder = os.open(self.directory, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
