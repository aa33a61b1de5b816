"""What tests of the pipeline do to logs, and a watch of them that remembers what it tells."""

import json
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from reassure_conformance.answers.watching import Outlet, WatchRequest, watch_document
from reassure_lab.archives.planted import plant_all
from reassure_lab.archives.sample import SampleCluster
from reassure_lab.protocols.kip_236.synthetic import Faulty, Size, SyntheticHistory
from reassure_pipeline.audit.audit_report import AuditReport
from reassure_pipeline.audit.run_audit import audit_named
from reassure_pipeline.watch.alerts import VIOLATION, Alert
from reassure_pipeline.watch.loop import Ending
from reassure_spec.readings import Readings
from reassure_zookeeper.transactions import Transaction

Server = Callable[..., Path]
Audit = Callable[..., AuditReport]
Snapshot = Callable[[Path, list[Transaction], int], Path]

SIZE = Size(4_000, 40, 20, 1)
"""What is in the archive that the fixture `made` makes."""


def show(report: AuditReport) -> str:
    """Return all that a report says."""
    return json.dumps(report.as_json_dict())


def flip(log: Path, at: int | None = None) -> None:
    """Flip the bits of one byte of a file, in its middle unless it is said where."""
    content = bytearray(log.read_bytes())
    content[len(content) // 2 if at is None else at] ^= 0xFF
    log.write_bytes(content)


def plant(chroot: str = "") -> list[Transaction]:
    """Return a history with a fault of each kind in it."""
    cluster = SampleCluster(chroot=chroot)
    plant_all(cluster)
    return cluster.transactions


def synthesise(
    transactions: int, topics: int, faults: int, seed: int
) -> tuple[list[Transaction], list[Faulty]]:
    """Return a cluster at work, and the faults that were planted in it."""
    made = SyntheticHistory(Size(transactions, topics, faults, seed))
    return [each for some in made.steps() for each in some], made.planted


def audit_spark(
    paths: Sequence[Path],
    profile: str,
    readings: Readings,
    master: str = "local[2]",
    **options: Any,
) -> AuditReport:
    """Judge logs on Spark."""
    return audit_named(paths, profile, readings, master=master, jobs=None, **options)


def read_tables(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of all tables of an audit, in an order that is the same however they came."""
    from deltalake import DeltaTable

    tables = {
        place.name: DeltaTable(place).to_pyarrow_table().to_pylist()
        for place in folder.iterdir()
        if DeltaTable.is_deltatable(str(place))
    }
    return {name: sorted(rows, key=repr) for name, rows in tables.items()}


class Told:
    """Who is told, and remembers."""

    def __init__(self, show: Callable[..., None] | None = None) -> None:
        self.alerts: list[Alert] = []
        self.repeated: list[Alert] = []
        self.said: list[str] = []
        self.outlet = Outlet(self._tell, self.said.append, show)

    def _tell(self, alert: Alert, repeated: bool) -> None:
        (self.repeated if repeated else self.alerts).append(alert)

    def list_broken(self) -> list[tuple[str, str, int, int]]:
        """Return the clauses that were told as violated, and where."""
        return sorted(
            (b["clause"], b["topic"], b["partition"], b["zxid"])
            for b in (alert.body for alert in self.alerts if alert.kind == VIOLATION)
        )


def watch(
    *paths: Path, profile: str = "kip-236", show: Callable[..., None] | None = None, **asked: Any
) -> tuple[Told, dict[str, Any]]:
    """Watch paths until all is judged; return who was told, and the document."""
    told = Told(show)
    ending = Ending(threading.Event(), when_caught_up=True)
    return told, watch_document(
        WatchRequest(paths, ending, profile, **asked), told.outlet
    ).as_dict()
