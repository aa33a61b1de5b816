"""One ZooKeeper client as the controller uses it: pipelined reads, atomic writes, named outcomes.

kazoo's many exceptions come down to three answers here. A write was *done*; or it was *refused*,
and ZooKeeper says which operation was to blame; or its outcome is *indefinite*, because the
connection was lost or did not answer in time, and then only reading again can tell.
"""

import re
import socket
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from kazoo.client import KazooClient
from kazoo.exceptions import (
    ConnectionClosedError,
    ConnectionLoss,
    KazooException,
    NodeExistsError,
    NoNodeError,
    OperationTimeoutError,
    RolledBackError,
    RuntimeInconsistency,
    SessionExpiredError,
    UnimplementedError,
)
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.hosts import collect_hosts
from kazoo.protocol.states import Callback, KeeperState
from kazoo.retry import KazooRetry

from reassure_controller.client import Client, Read
from reassure_spec.errors import BadConfiguration
from reassure_spec.znodes import PERSISTENT_ROOTS

TIMEOUT_S: Final = 15.0
"""How long an operation may take before its outcome counts as indefinite."""

VERSION_S: Final = 2.0
"""How long a server may take to say its version."""
_VERSION: Final = re.compile(rb"version: (\d[\d.]*)")

READS_PER_REQUEST: Final = 200
"""How many reads go to ZooKeeper in one request; further requests do not wait for the first."""

Operation = tuple[str, tuple[Any, ...]]
"""A method of a kazoo transaction and its arguments."""


class Indefinite(Exception):
    """It is not known whether an operation was carried out."""


class SessionLost(Indefinite):
    """The session is gone, and with it everything that was held by it."""


class OldZooKeeper(BadConfiguration):
    """A server does not know what it was asked: it is older than ZooKeeper 3.6."""

    def __init__(self) -> None:
        super().__init__(
            "brokers and controllers need ZooKeeper 3.6 or later on every server, which reads many "
            "znodes in one request and watches all that is below a path"
        )


class Refused(Exception):
    """ZooKeeper did not carry out a transaction; none of its operations was."""

    def __init__(self, index: int, error: KazooException) -> None:
        super().__init__(f"operation {index}: {type(error).__name__}")
        self.index = index
        """Which operation was to blame."""
        self.error = error


def connect(
    hosts: str,
    *,
    timeout_s: float = 10.0,
    wait_s: float | None = None,
    make_chroot: bool = True,
    kind: Callable[..., Client] = Client,
) -> Client:
    """Return a started client for `hosts`, which may end in a chroot, of this kind.

    A chroot that is not there is created, unless told not to.

    It comes back from a lost connection in tens of milliseconds and never gives up. Raises kazoo's
    timeout error when no server answers within `wait_s`, or the session timeout.
    """
    wait_s = timeout_s if wait_s is None else wait_s
    retry = KazooRetry(max_tries=-1, delay=0.01, backoff=2, max_delay=0.25, max_jitter=0.2)
    client = kind(hosts=hosts, timeout=timeout_s, connection_retry=retry)
    client.start_async().wait(wait_s)
    if not client.connected:
        client.stop()
        client.close()
        raise KazooTimeoutError(f"no ZooKeeper answered at {hosts} within {wait_s} s")
    chroot = client.chroot
    if chroot and make_chroot:
        # A client cannot create the chroot it lives in, so it steps out of it for a moment.
        client.chroot = ""
        client.ensure_path(chroot)
        client.chroot = chroot
    return client


def find_versions(hosts: str) -> str:
    """Return which version of ZooKeeper each server says it is, asked by `srvr`, in words."""
    found = []
    for host, port in collect_hosts(hosts)[0]:
        try:
            with socket.create_connection((host, port), VERSION_S) as asked:
                asked.sendall(b"srvr")
                said = asked.makefile("rb").readline(1000)
        except OSError as error:
            said = str(error).encode()
        version = _VERSION.search(said)
        what = version[1].decode() if version else f"of an unknown version ({said!r})"
        found.append(f"{what} at {host}:{port}")
    return ", ".join(found)


def start(client: KazooClient) -> None:
    """Start the client unless it was started before; one that is reconnecting is left alone."""
    if client.client_state == KeeperState.CLOSED:
        client.start()


def stop(client: Client) -> None:
    """End the client and its session at once.

    A session can only be closed over a connection: a client that is reconnecting is given a moment,
    as its ephemeral znodes would otherwise stay until the session times out.
    """
    for _ in range(200):
        if client.connected or client.client_state in (KeeperState.CLOSED, KeeperState.AUTH_FAILED):
            break
        client.sleep(0.01)
    client.stop()
    client.close()


def gather(results: Iterable[Any], timeout_s: float = TIMEOUT_S) -> list[Any]:
    """Wait for pipelined reads; None stands for a znode that does not exist.

    Raises Indefinite or SessionLost when one of them could not be made.
    """
    return [_get(result, timeout_s) for result in results]


def _get(result: Any, timeout_s: float = TIMEOUT_S) -> Any:
    try:
        return result.get(timeout=timeout_s)
    except NoNodeError:
        return None
    except (SessionExpiredError, ConnectionClosedError) as error:
        raise SessionLost(type(error).__name__) from error
    except (ConnectionLoss, OperationTimeoutError, KazooTimeoutError) as error:
        raise Indefinite(type(error).__name__) from error
    except UnimplementedError as error:
        raise OldZooKeeper from error


def fetch(client: Client, paths: Iterable[str]) -> list[Any]:
    """Return content and stat of each znode, None for one that does not exist.

    Raises Indefinite or SessionLost.
    """
    return read(client, [Read(path) for path in paths])


def list_children(client: Client, paths: Iterable[str]) -> list[Any]:
    """Return the names of each znode's children, None for one that does not exist.

    Raises Indefinite or SessionLost.
    """
    return read(client, [Read(path, children=True) for path in paths])


def read(client: Client, reads: Sequence[Read]) -> list[Any]:
    """Return the answers to reads of either kind, None for a znode that does not exist.

    Raises Indefinite or SessionLost.
    """
    size = READS_PER_REQUEST
    pending = [client.read_async(reads[at : at + size]) for at in range(0, len(reads), size)]
    found = [answer for answers in gather(pending) for answer in answers]
    for answer in found:
        if isinstance(answer, Exception) and not isinstance(answer, NoNodeError):
            raise answer
    return [None if isinstance(answer, NoNodeError) else answer for answer in found]


def commit(client: KazooClient, operations: Sequence[Operation]) -> list[Any]:
    """Carry out the operations as one transaction and return their results.

    Raises Refused, Indefinite or SessionLost.
    """
    return settle(submit(client, operations))


def submit(client: KazooClient, operations: Sequence[Operation]) -> Any:
    """Ask for the operations as one transaction; `settle` waits for what comes of it.

    ZooKeeper carries out what one session asks for in the order in which it was asked.
    """
    transaction = client.transaction()
    for name, arguments in operations:
        getattr(transaction, name)(*arguments)
    return transaction.commit_async()


def settle(answer: Any) -> list[Any]:
    """Return the results of a transaction that was submitted.

    Raises Refused, Indefinite or SessionLost.
    """
    results: list[Any] = _get(answer)
    for index, result in enumerate(results):
        if isinstance(result, KazooException) and not isinstance(
            result, RolledBackError | RuntimeInconsistency
        ):
            raise Refused(index, result)
    for index, result in enumerate(results):
        if isinstance(result, KazooException):
            raise Refused(index, result)
    return results


def list_subtree(client: KazooClient, path: str) -> list[str]:
    """Return the paths at and below `path`, deepest first."""
    paths: list[str] = []
    for child in gather([client.get_children_async(path)])[0] or ():
        paths += list_subtree(client, f"{path}/{child}")
    return [*paths, path]


def ensure_roots(client: KazooClient, more: Sequence[str] = ()) -> None:
    """Create the persistent paths that every cluster has, and more, unless they are there."""
    paths: dict[str, None] = {}
    for root in (*PERSISTENT_ROOTS, *more):
        parts = root.split("/")
        for length in range(2, len(parts) + 1):
            paths["/".join(parts[:length])] = None
    while True:
        found = fetch(client, paths)
        missing = [path for path, content in zip(paths, found, strict=True) if content is None]
        if not missing:
            return
        try:
            commit(client, [("create", (path, b"")) for path in missing])
        except Refused as refused:
            if not isinstance(refused.error, NodeExistsError):
                raise  # else somebody else creates them as well


def barrier(client: KazooClient, timeout_s: float = TIMEOUT_S) -> None:
    """Return once every watch event for what was committed before the call has been delivered.

    The server sends events and answers in order, so whatever precedes the answer to a sync is in
    kazoo's callback queue when the answer arrives.
    """
    gather([client.sync_async("/")], timeout_s)
    flush(client, timeout_s)


def flush(client: Client, timeout_s: float = TIMEOUT_S) -> None:
    """Return once every watch event that the client has received has been delivered.

    The events of the client's own writes are among them as soon as the writes are answered.
    """
    passed = threading.Event()  # set by a callback that waits its turn behind the events
    client.handler.dispatch_callback(Callback("watch", passed.set, ()))
    if not passed.wait(timeout_s):
        raise Indefinite("the client's callback queue does not move")


def session_id(client: KazooClient) -> int | None:
    """Return the id of the client's session, or None while it has none."""
    identity = client.client_id
    return None if identity is None else int(identity[0])
