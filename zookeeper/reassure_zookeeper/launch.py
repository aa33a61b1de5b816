"""What a ZooKeeper server is started with: its configuration, its place in an ensemble, its Java.

A server of its own listens for clients alone. One of an ensemble has two more ports, on which the
servers elect their leader and follow it; it knows the others from the same list that they have.
"""

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from reassure_zookeeper.errors import DamagedSnapshot
from reassure_zookeeper.jars import class_path, server_jars
from reassure_zookeeper.java import find_java
from reassure_zookeeper.log_survey import survey_log
from reassure_zookeeper.snapshot import read_snapshot, snapshot_files
from reassure_zookeeper.txnlog import EPOCH_BITS, get_zxid_in_name, log_files

HOST: Final = "127.0.0.1"

_JVM_FLAGS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx256m", "-Xss512k")
_ALONE = "org.apache.zookeeper.server.ZooKeeperServerMain"
_OF_AN_ENSEMBLE = "org.apache.zookeeper.server.quorum.QuorumPeerMain"


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """How a server works. Sessions may ask for timeouts from two ticks to the longest."""

    tick_time_ms: int = 200
    force_sync: bool = False
    """Whether what is written is synced to disk before it is answered."""
    pre_alloc_kib: int = 1024
    snap_count: int = 100_000
    """How many transactions there are between two snapshots."""
    container_check_ms: int = 60_000
    """How often containers and TTL nodes are looked at."""


@dataclass(frozen=True, slots=True)
class Ensemble:
    """Which server this is, and the ports of all: for following the leader, for electing one."""

    own: int
    ports: Mapping[int, tuple[int, int]]


def prepare(
    data_dir: Path, port: int, settings: ServerSettings, ensemble: Ensemble | None = None
) -> list[str]:
    """Write the configuration into the directory; return the command that runs the server.

    Raises JavaError, JarsError, OSError.
    """
    java = find_java()
    lines = {
        "tickTime": settings.tick_time_ms,
        "maxSessionTimeout": 60_000,
        "maxClientCnxns": 0,
        "admin.enableServer": "false",
        "4lw.commands.whitelist": "*",
        "dataDir": data_dir,
        "clientPort": port,
        "clientPortAddress": HOST,
    }
    if ensemble is not None:
        lines |= {"initLimit": 50, "syncLimit": 10}
        for number, (follow, elect) in sorted(ensemble.ports.items()):
            lines[f"server.{number}"] = f"{HOST}:{follow}:{elect}"
        (data_dir / "myid").write_text(f"{ensemble.own}\n", encoding="ascii")
    config = data_dir / "zoo.cfg"
    config.write_text("".join(f"{key}={value}\n" for key, value in lines.items()), "utf-8")
    properties = {
        "jute.maxbuffer": 4 << 20,
        "zookeeper.forceSync": "yes" if settings.force_sync else "no",
        "zookeeper.preAllocSize": settings.pre_alloc_kib,
        "zookeeper.snapCount": settings.snap_count,
        "zookeeper.extendedTypesEnabled": "true",
        "znode.container.checkIntervalMs": settings.container_check_ms,
        # The thread that sees a request come reads it, rather than waking another one for that.
        "zookeeper.nio.numWorkerThreads": 0,
        "zookeeper.jmx.log4j.disable": "true",
        "java.net.preferIPv4Stack": "true",
    }
    return [
        *(str(java.path), *_JVM_FLAGS),
        *(f"-D{key}={value}" for key, value in properties.items()),
        *("-cp", class_path(server_jars())),
        *(_ALONE if ensemble is None else _OF_AN_ENSEMBLE, str(config)),
    ]


def mend_epoch(data_dir: Path) -> str:
    """Let a server start that was killed before it wrote which epoch it had come into.

    A member that joins a new leader keeps what that one has, and only then its epoch. Killed
    between the two it refuses to start for ever, as its `currentEpoch` is older than its last
    transaction (ZOOKEEPER-2354, there still in 3.9.5). As the leader sends first what its epoch
    began with, a member that has a transaction of the epoch has all that was committed before, and
    may say so.

    Returns what was done, to be told; empty where nothing was to do. Raises OSError.
    """
    written = data_dir / "version-2" / "currentEpoch"
    noted = written.read_text("ascii", "replace") if written.is_file() else ""
    if not noted.strip().isdigit():  # what is no number the server refuses by itself
        return ""
    reached = _find_epoch(written.parent, after=int(noted))
    if reached <= int(noted):
        return ""
    # By a name that the server looks for, too, if we end between the two.
    coming = written.with_name("currentEpoch.tmp")
    coming.write_text(str(reached), "ascii")
    coming.replace(written)
    return (
        f"{written}: {reached} instead of {noted.strip()}, the epoch of the last transaction; "
        "a kill had come between the two (ZOOKEEPER-2354)"
    )


def _find_epoch(folder: Path, after: int) -> int:
    """Return the epoch of the last transaction of a log or a snapshot without damage; or 0.

    A snapshot is read only where its name is of an epoch later than `after`.
    """
    surveys = map(survey_log, log_files(folder)[-1:])
    zxids = [each.ranges[-1].last for each in surveys if each.ranges and not each.damages]
    for path in snapshot_files(folder)[-1:]:
        zxid = get_zxid_in_name(path)
        if zxid >> EPOCH_BITS > after:
            with contextlib.suppress(DamagedSnapshot):
                read_snapshot(path)
                zxids.append(zxid)
    return max(zxids, default=0) >> EPOCH_BITS
