"""Judging that is put aside on disk, so that it goes on where it was, whatever ended it.

What is kept is Python's own format (`pickle`), with a line of JSON before it that says what it is
of: its *identity* (profile, readings, options, paths), a digest of the code that made it, and of
the content. It is replaced as a whole. It can do anything when it is read, so a directory that
others may write to is refused.
"""

import fcntl
import json
import os
import pickle
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import IO, Any, Final

from reassure_pipeline.spark.packages import SHIPPED, find_package
from reassure_spec.errors import BadConfiguration

_LOCK: Final = "lock"
_OPEN_TO_OTHERS: Final = 0o022

Identity = Mapping[str, Any]
"""What must be the same for judging to go on: values that JSON has."""


class KeptElsewhere(BadConfiguration):
    """A directory in which nothing may be kept, as somebody else works or may write there."""


class NotKept(Exception):
    """What stands in a file is not what is wanted: the message says what differs."""


class Garbled(NotKept):
    """What stands in a file is not what was written there."""


@cache
def digest_code() -> str:
    """Return a digest of the code that judges: another one may keep other things in mind."""
    digest = sha256(sys.version.encode())
    for name in SHIPPED:
        folder = find_package(name)
        for path in sorted(folder.rglob("*.py")):
            digest.update(str(path.relative_to(folder)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


@contextmanager
def own_directory(directory: Path) -> Iterator[Path]:
    """Make a directory one's own for a while. Raises KeptElsewhere."""
    directory.mkdir(0o700, parents=True, exist_ok=True)
    status = directory.stat()
    if status.st_uid != os.geteuid() or status.st_mode & _OPEN_TO_OTHERS:
        raise KeptElsewhere(
            f"others can write to {directory}, and its content is trusted: own it, and run "
            "chmod go-w on it, or use another directory"
        )
    with (directory / _LOCK).open("wb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise KeptElsewhere(
                f"{directory} is used by another process: end it, or use another directory"
            ) from None
        yield directory


def keep(path: Path, identity: Identity, state: Any, note: Any = None) -> None:
    """Replace what a file keeps, as a whole; `note` has what JSON has. Raises OSError."""
    content = pickle.dumps(state, pickle.HIGHEST_PROTOCOL)
    head = {
        "identity": dict(identity),
        "code": digest_code(),
        "note": note,
        "sha256": sha256(content).hexdigest(),
    }
    fresh = path.with_name(f"{path.name}.new")
    try:
        with fresh.open("wb") as file:
            file.write(json.dumps(head).encode() + b"\n")
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except OSError:
        fresh.unlink(missing_ok=True)  # a disk that is full has better use for it
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def read_identity(path: Path) -> dict[str, Any] | None:
    """Return what a file's content is of, None where there is no file. Raises Garbled."""
    if not path.is_file():
        return None
    with path.open("rb") as file:
        return dict(_read_head(path, file)["identity"])


def take_up(path: Path, identity: Identity) -> tuple[Any, Any] | None:
    """Return what a file keeps, if wanted, and its note; None where there is none.

    Raises NotKept where it is of something else.
    """
    if not path.is_file():
        return None
    with path.open("rb") as file:
        head = _read_head(path, file)
        _compare(head, identity)
        content = file.read()
    if sha256(content).hexdigest() != head["sha256"]:
        raise Garbled(f"{path} is damaged")
    return pickle.loads(content), head["note"]


def _read_head(path: Path, file: IO[bytes]) -> dict[str, Any]:
    try:
        head: dict[str, Any] = json.loads(file.readline())
        if isinstance(head["identity"], dict) and {"code", "note", "sha256"} <= head.keys():
            return head
    except (ValueError, TypeError, KeyError):
        pass
    raise Garbled(f"{path} is not a checkpoint")


def _compare(head: Mapping[str, Any], identity: Identity) -> None:
    there = head["identity"]
    wrong = [
        f"{name} {there.get(name)!r} instead of {value!r}"
        for name, value in identity.items()
        if there.get(name) != value
    ]
    if head["code"] != digest_code():
        wrong.append("another version of reassure or of Python")
    if wrong:
        raise NotKept(f"the checkpoint is of {', '.join(wrong)}")
