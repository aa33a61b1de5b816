"""A real ZooKeeper server, embedded: started in well under a second, gone with its owner.

**Port.**  The owner binds a socket to 127.0.0.1 on a port that the system chooses, never listens on
it, and holds it as long as the `Server` lives.  With address reuse on both sides the server may
listen on that very port, nobody else is handed it, and it stays ours while the server is down for a
restart.  It also keeps a client that is reconnecting meanwhile from being given that port as its
own and so connecting to itself.

**Lifetime.**  The Java process is the child of a few lines of shell that wait for the end of a pipe
whose other end only the owner holds.  However the owner ends, SIGKILL included, the system closes
the pipe and the shell kills Java.  Unlike a parent-death signal this does not depend on which
thread started the server; children that the owner forks close their copy of the pipe at once.

**Data directory.**  A lock on `reassure.lock` is held by the owner, the shell and Java together, so
a directory is free exactly when nothing writes to it any more.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import weakref
from pathlib import Path
from typing import Self

from reassure_zookeeper.errors import ServerError
from reassure_zookeeper.launch import HOST, ServerSettings, prepare

_READY_SECONDS = 60.0
_POLL_SECONDS = 0.004
_PROBE_SECONDS = 2.0
_FIRST_PROBE_SECONDS = 0.05
_END_SECONDS = 5.0

# $1 is a directory to remove if the owner ends without saying "keep"; the rest is the command.
# The shell prints Java's process id, and does not wait for Java before the pipe ends, so that id
# cannot be given to another process in between.
_GUARD = """
owned=$1; shift
exec 3<&0 4>&1 </dev/null >/dev/null
"$@" 3<&- 4>&- &
java=$!
echo "$java" >&4; exec 4>&-
read -r word <&3
kill -9 "$java" 2>/dev/null
wait "$java" 2>/dev/null
if [ -n "$owned" ] && [ "$word" != keep ]; then rm -rf -- "$owned"; fi
"""


class Server:
    """One standalone ZooKeeper on 127.0.0.1, from `Server.start`; a context manager.

    `hosts` is the connection string and stays the same over `kill` and `restart`; `data_dir` and
    `log_dir` are where its files are, `log_dir` being the directory of logs and snapshots.
    """

    hosts: str
    data_dir: Path
    log_dir: Path

    def __init__(self, data_dir: Path | None, settings: ServerSettings) -> None:
        """Prepare a server without starting it; `Server.start` is the way in."""
        self._settings = settings
        self._guard: subprocess.Popen[bytes] | None = None
        self._pid: int | None = None
        self._owns_dir = data_dir is None
        self._stopped = False
        if data_dir is None:
            data_dir = Path(tempfile.mkdtemp(prefix="reassure-zookeeper-"))
        self.data_dir = data_dir.absolute()
        self.log_dir = self.data_dir / "version-2"
        try:
            self._lock = _lock_directory(self.data_dir)
            self._port_holder = _hold_port()
        except BaseException:
            if self._owns_dir:
                shutil.rmtree(self.data_dir, ignore_errors=True)
            raise
        self._port: int = self._port_holder.getsockname()[1]
        self.hosts = f"{HOST}:{self._port}"
        _LIVE.add(self)

    @classmethod
    def start(cls, data_dir: Path | None = None, *, settings: ServerSettings | None = None) -> Self:
        """Start a server and return it ready.

        Without `data_dir` it gets a temporary directory that is removed at `stop`.
        Raises `ServerError` when the directory is in use or not writable or the server does not
        come up, `JavaError` and `JarsError` when it cannot even be tried.
        """
        server = cls(data_dir, settings or ServerSettings())
        try:
            server._launch()
            server._wait_ready()
        except BaseException:
            server.stop()
            raise
        return server

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        """Process id of the running Java; raises `ServerError` while there is none."""
        if self._pid is None:
            raise ServerError(f"the server at {self.hosts} is not running; restart it first")
        return self._pid

    @property
    def running(self) -> bool:
        """Whether the Java process is alive (a server that is still starting counts)."""
        return self._pid is not None and _is_alive(self._pid)

    def kill(self) -> None:
        """End the server with SIGKILL, at once and without any farewell; its files stay."""
        pid = self.pid
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        self._end_guard()

    def restart(self) -> None:
        """Start again on the same port and files, killing first what still runs; wait until ready.

        Raises `ServerError`.
        """
        if self._stopped:
            raise ServerError(f"the server at {self.hosts} was stopped; start a new one instead")
        if self._pid is not None:
            self.kill()
        self._launch()
        self._wait_ready()

    def stop(self) -> None:
        """End the server and give everything back; does nothing the second time."""
        if self._stopped:
            return
        self._stopped = True
        self._end_guard()
        self._port_holder.close()
        os.close(self._lock)
        if self._owns_dir:
            shutil.rmtree(self.data_dir, ignore_errors=True)

    def _wait_ready(self) -> None:
        """Return once the server answers `srvr` in its working mode.

        Raises `ServerError`, with the last lines the server wrote, when it ends or takes longer.
        """
        deadline = time.monotonic() + _READY_SECONDS
        pid = self.pid
        patience = _FIRST_PROBE_SECONDS
        while time.monotonic() < deadline:
            # Alive is asked before and after, lest another program's answer pass for ours.
            if not _is_alive(pid):
                raise ServerError(self._post_mortem("ended while starting"))
            begun = time.monotonic()
            if "Mode:" in _four_letters(self._port, b"srvr", patience) and _is_alive(pid):
                return
            if time.monotonic() - begun >= patience:
                # A server may accept and then never answer what came while it was starting, so
                # asking anew beats waiting; a slow machine is given longer each time.
                patience = min(2 * patience, _PROBE_SECONDS)
            time.sleep(_POLL_SECONDS)
        raise ServerError(self._post_mortem(f"did not answer within {_READY_SECONDS:g} s"))

    def _launch(self) -> None:
        self._check_port()
        owned = str(self.data_dir) if self._owns_dir else ""
        command = ["/bin/sh", "-c", _GUARD, "guard", owned]
        command += prepare(self.data_dir, self._port, self._settings)
        with self._stderr_file.open("wb") as errors:
            guard = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd=self.data_dir,
                pass_fds=(self._lock,),
                start_new_session=True,
            )
        self._guard = guard
        assert guard.stdout is not None
        with guard.stdout as answer:
            line = answer.readline()
        if not line.strip().isdigit():
            raise ServerError(self._post_mortem("could not be launched by /bin/sh"))
        self._pid = int(line)

    def _check_port(self) -> None:
        """Raise if another program listens on our port: it would answer in our server's name."""
        with socket.socket() as probe:
            probe.settimeout(_PROBE_SECONDS)
            if probe.connect_ex((HOST, self._port)) == 0:
                raise ServerError(
                    f"another program listens on {self.hosts}, the port of this server; "
                    "end that program, or start a new server, which gets a port of its own"
                )

    def _end_guard(self) -> None:
        """End the shell, and Java with it, and wait until both are gone."""
        guard, self._guard, self._pid = self._guard, None, None
        if guard is None:
            return
        assert guard.stdin is not None
        with contextlib.suppress(BrokenPipeError), guard.stdin as pipe:
            pipe.write(b"keep\n")
        try:
            guard.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            raise ServerError(
                f"the server at {self.hosts} did not end within {_END_SECONDS:g} s of SIGKILL; "
                f"look at process {guard.pid} and its children"
            ) from None

    @property
    def _stderr_file(self) -> Path:
        return self.data_dir / "server.err"

    def _post_mortem(self, what: str) -> str:
        try:
            written = self._stderr_file.read_text(encoding="utf-8", errors="replace")
        except OSError as problem:
            written = f"(no output: {problem})"
        lines = [line for line in written.splitlines() if line and "SLF4J" not in line]
        said = "\n  ".join(lines[-8:]) or "(it wrote nothing)"
        return (
            f"the ZooKeeper server at {self.hosts} with data in {self.data_dir} {what}; check "
            f"that the directory is intact and the machine has memory left; it wrote:\n  {said}"
        )

    def _forget_in_child(self) -> None:
        """Drop, in a forked child, what keeps the server alive for its owner."""
        if self._stopped:
            return
        self._stopped = True
        guard, self._guard, self._pid = self._guard, None, None
        with contextlib.suppress(OSError):
            os.close(self._lock)
        self._port_holder.close()
        if guard is not None:
            if guard.stdin is not None:
                guard.stdin.close()
            guard.returncode = 0  # the owner waits for it, not this child


_LIVE: weakref.WeakSet[Server] = weakref.WeakSet()


def _forget_all() -> None:
    for server in list(_LIVE):
        server._forget_in_child()  # noqa: SLF001 - the same module


os.register_at_fork(after_in_child=_forget_all)


def _lock_directory(directory: Path) -> int:
    """Create the directory if need be and lock it; return the descriptor that holds the lock."""
    try:
        (directory / "version-2").mkdir(parents=True, exist_ok=True)
        descriptor = os.open(directory / "reassure.lock", os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as problem:
        raise ServerError(
            f"{directory} cannot hold a server's data ({problem.strerror}); "
            "name a directory that this user can write to"
        ) from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise ServerError(
            f"{directory} is in use by a running server; stop that one, or name another directory"
        ) from None
    return descriptor


def _hold_port() -> socket.socket:
    holder = socket.socket()
    holder.bind((HOST, 0))
    # Lets the server listen on the port, too; holding it needs no reuse, so that comes after.
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return holder


def _is_alive(pid: int) -> bool:
    """Whether a process exists and is not merely waiting to be collected."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rpartition(")")[2].split()[0] not in ("Z", "X")


def _four_letters(port: int, word: bytes, timeout: float = _PROBE_SECONDS) -> str:
    """Ask one of the server's four-letter words; an empty answer if it does not answer."""
    try:
        with socket.create_connection((HOST, port), timeout) as connection:
            connection.sendall(word)
            return b"".join(iter(lambda: connection.recv(4096), b"")).decode("ascii", "replace")
    except OSError:
        return ""
