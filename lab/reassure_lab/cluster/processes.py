"""Processes that are found again by their id, and never mistaken for others.

An id is given to another process once its owner is gone. So a process is known by its id together
with the moment it started, in the kernel's ticks since the boot, and by the boot.
"""

import contextlib
import os
import select
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

GONE: Final = ("Z", "X")
"""States of a process that has ended and is merely waiting to be collected."""
STOPPED: Final = ("T", "t")


def read_boot() -> str:
    """Return what tells this boot of the machine from others."""
    return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()


def _read_stat(pid: int) -> tuple[str, int] | None:
    """Return the state of a process and the ticks at which it started; None where there is none."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text("ascii", "replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = text.rpartition(")")[2].split()
    return fields[0], int(fields[19])


@dataclass(frozen=True, slots=True)
class Process:
    """A process that ran once, and may be running still."""

    pid: int
    started: int
    """In ticks since the boot."""
    boot: str

    @classmethod
    def find(cls, pid: int) -> Self:
        """Return the process that has an id now. Raises ProcessLookupError."""
        found = _read_stat(pid)
        if found is None:
            raise ProcessLookupError(f"no process {pid}")
        return cls(pid, found[1], read_boot())

    @property
    def state(self) -> str | None:
        """The kernel's letter for what it does; None where it is not known any more."""
        found = _read_stat(self.pid)
        if found is None or found[1] != self.started or read_boot() != self.boot:
            return None
        return found[0]

    @property
    def is_alive(self) -> bool:
        """Whether it has not ended."""
        return self.state not in (None, *GONE)

    @property
    def is_stopped(self) -> bool:
        """Whether it was told to stop and not yet to go on."""
        return self.state in STOPPED

    def send(self, number: signal.Signals) -> None:
        """Send it a signal; one that has ended gets none, nor does another with its id."""
        with self._open() as descriptor, contextlib.suppress(ProcessLookupError):
            if descriptor is not None:
                signal.pidfd_send_signal(descriptor, number)

    def wait(self, timeout_s: float) -> bool:
        """Wait until it has ended, every thread of it; return whether it has."""
        with self._open() as descriptor:
            if descriptor is None:
                return True
            poll = select.poll()
            poll.register(descriptor, select.POLLIN)
            return bool(poll.poll(timeout_s * 1000))

    @contextlib.contextmanager
    def _open(self) -> Iterator[int | None]:
        """Hold on to it, so that its id stays its own meanwhile; None where it is not there."""
        try:
            descriptor = os.pidfd_open(self.pid)
        except ProcessLookupError:
            yield None
            return
        try:
            yield None if self.state is None else descriptor
        finally:
            os.close(descriptor)
