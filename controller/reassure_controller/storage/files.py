"""How files are written so that a crash leaves the old content or the new one."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from reassure_controller.storage.errors import ReadFailed, WriteRefused

Sync = Callable[[int], None]
"""Makes what was written to a file descriptor safe; `os.fsync`, or nothing where nothing lasts."""


@contextmanager
def writing(file: Path) -> Iterator[None]:
    """Raise WriteRefused, which names the file, where the disk does not take it."""
    try:
        yield
    except OSError as error:
        raise WriteRefused(file, error) from error


@contextmanager
def reading(file: Path) -> Iterator[None]:
    """Raise ReadFailed, which names the file, where the disk does not give it."""
    try:
        yield
    except OSError as error:
        raise ReadFailed(file, error) from error


def sync_directory(path: Path, sync: Sync) -> None:
    """Make safe which files the directory has."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        sync(descriptor)
    finally:
        os.close(descriptor)


def make_directory(path: Path, sync: Sync) -> None:
    """Make the directory, and those above it, where they are not there."""
    if not path.is_dir():
        make_directory(path.parent, sync)
        path.mkdir(exist_ok=True)
        sync_directory(path.parent, sync)


def write_atomically(path: Path, text: str, sync: Sync) -> None:
    """Replace the file's content: a reader, also after a crash, finds the old or the new one."""
    temporary = path.with_name(f"{path.name}.tmp")
    try:
        with temporary.open("w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            sync(stream.fileno())
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    sync_directory(path.parent, sync)
