"""Which directories hold the files of one server, and which servers are members of one ensemble."""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

from reassure_pipeline.archives.remote_logs import bring, find_uri
from reassure_zookeeper.errors import DamagedLog
from reassure_zookeeper.transactions import Transaction
from reassure_zookeeper.txnlog import LogFile, get_zxid_in_name, log_files, unread_files

_ENOUGH: Final = 2_000
"""How many transactions two servers have to have logged alike to pass for members of one ensemble,
where they have so many."""
_LOG_NAME: Final = re.compile(r"log\.[0-9a-f]+(?:\.(?:gz|zip))?")


class ArchivedServer(NamedTuple):
    """What is named of one server."""

    name: str
    place: Path
    files: tuple[Path, ...]
    unread: tuple[Path, ...]


def group_by_server(paths: Sequence[Path]) -> dict[Path, list[Path]]:
    """Return the paths by the place of the server that they are of, in their order."""
    groups: dict[Path, list[Path]] = {}
    for path in paths:
        together = path.is_file() and _LOG_NAME.fullmatch(path.name) is not None
        place = path if find_uri(path) else path.resolve()
        groups.setdefault(place.parent if together else place, []).append(path)
    return groups


def find_servers(paths: Sequence[Path]) -> list[ArchivedServer]:
    """Return the servers whose files lie in some directories, each with its files."""
    servers = []
    for place, named in group_by_server(paths).items():
        uri = find_uri(place)
        if uri is not None:
            folder = bring(uri)
            unread = tuple(unread_files(folder))
            servers.append(ArchivedServer(uri, folder, tuple(log_files(folder)), unread))
            continue
        files: dict[Path, Path] = {}
        for path in named:
            for file in log_files(path):
                files.setdefault(file.resolve(), file)
        name = named[0] if len(named) == 1 or not named[0].is_file() else named[0].parent
        ordered = sorted(files.values(), key=get_zxid_in_name)
        servers.append(
            ArchivedServer(str(name), place, tuple(ordered), tuple(unread_files(named[0])))
        )
    return servers


Unreadable = tuple[ArchivedServer, OSError]


def find_families(
    servers: Sequence[ArchivedServer],
) -> tuple[list[list[ArchivedServer]], list[Unreadable]]:
    """Group the servers that have logged the same, in their order; and name those not readable."""
    families: list[list[ArchivedServer]] = []
    first: dict[ArchivedServer, Transaction | None] = {}
    unreadable: list[Unreadable] = []
    for server in servers:
        try:
            batches = LogFile(server.files[0]).batches(growing=True) if server.files else iter(())
            with suppress(DamagedLog):
                first[server] = next(batches, [None])[0]  # of which little is read
            first.setdefault(server)
        except OSError as error:
            unreadable.append((server, error))
    for server in [*first]:
        for family in families:
            if any(
                not _begin_apart(first[server], first[other]) and _share_history(server, other)
                for other in family
            ):
                family.append(server)
                break
        else:
            families.append([server])
    return families, unreadable


def _begin_apart(one: Transaction | None, other: Transaction | None) -> bool:
    """Whether two servers begin with the same zxid, and with something else under it.

    Of a fleet nearly every two do, and nothing more has to be read to see it.
    """
    if one is None or other is None or one.zxid != other.zxid:
        return False
    return _identify(one) != _identify(other)


def share_history(one: Path, other: Path) -> bool:
    """Whether two paths lead to logs of one history, as far as the beginnings of files show.

    Raises `LogsMissing` and OSError.
    """
    (first,), (second,) = find_servers([one]), find_servers([other])
    return _share_history(first, second)


def is_same(one: Transaction, other: Transaction) -> bool:
    """Whether two transactions of two logs are one."""
    return one.zxid == other.zxid and _identify(one) == _identify(other)


def _share_history(one: ArchivedServer, other: ArchivedServer) -> bool:
    """Whether two servers have logged the same: what both have near the beginnings of files."""
    shared = 0
    for first, second in ((one, other), (other, one)):
        for batch in _list_first_batches(first.files):
            there = {each.zxid: each for each in _find_batch(second.files, batch[0].zxid)}
            for transaction in batch:
                found = there.get(transaction.zxid)
                if found is not None:
                    if _identify(found) != _identify(transaction):
                        return False
                    shared += 1
            if shared >= _ENOUGH:
                return True
    return shared > 0


def _identify(transaction: Transaction) -> tuple[object, ...]:
    """Return what is the same in every log; members may write down differently what was refused."""
    ops = () if transaction.error is not None else transaction.ops
    return transaction.session_id, transaction.cxid, transaction.time_ms, ops


def _list_first_batches(files: Sequence[Path]) -> Iterator[list[Transaction]]:
    """Yield the first transactions of each file, of those that begin with whole ones."""
    for file in files:
        try:
            batch = next(LogFile(file).batches(), None)
        except DamagedLog:
            continue
        if batch:
            yield batch


def _find_batch(files: Sequence[Path], zxid: int) -> list[Transaction]:
    """Return some transactions from a zxid on, as far as they are found before any damage."""
    for file in reversed(files):
        if get_zxid_in_name(file) <= zxid:
            if file == files[-1] and _find_last_zxid(file, file.stat().st_mtime_ns) < zxid:
                return []
            try:
                for batch in LogFile(file).batches():
                    if batch[-1].zxid >= zxid:
                        return batch
            except DamagedLog:
                return []
    return []


@lru_cache(maxsize=64)
def _find_last_zxid(file: Path, written_ns: int) -> int:
    """Return the last zxid of a file that can be read before any damage, -1 where there is none.

    `written_ns` is when it was written last.
    """
    log = LogFile(file)
    with suppress(DamagedLog):
        for _ in log.batches():
            pass
    return log.last_zxid
