"""Logs that come as Parquet: judged as the logs are that they were decoded from."""

import json
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from pipeline_steps import Audit, Server, plant

from reassure_lab.archives.sample import write_sample
from reassure_pipeline.archives.archive import find_archives, read_archive
from reassure_pipeline.archives.restored_logs import BadTable, list_logs
from reassure_pipeline.audit.audit_report import AuditReport
from reassure_pipeline.txnlog_source import TransactionLogSource
from reassure_zookeeper.errors import LogsMissing
from reassure_zookeeper.transactions import (
    CloseSession,
    Create,
    CreateSession,
    Delete,
    Error,
    SetAcl,
    Transaction,
    committed,
    multi,
)


@pytest.fixture
def decode(tmp_path: Path) -> Callable[..., Path]:
    """Leave the logs of some servers as a table, as an audit on Spark leaves it."""

    def work(*servers: Path, leave_out: Callable[[dict[str, Any]], bool] | None = None) -> Path:
        paths = json.dumps([str(path) for path in servers])
        reader = TransactionLogSource({"paths": paths}).reader(None)
        folder = tmp_path / "tables" / "transactions"
        folder.mkdir(parents=True)
        for number, stretch in enumerate(reader.partitions()):
            batches = list(reader.read(stretch))
            rows = list(chain.from_iterable(batch.to_pylist() for batch in batches))
            kept = [row for row in rows if leave_out is None or not leave_out(row)]
            table = pyarrow.Table.from_pylist(kept, schema=batches[0].schema)
            pyarrow.parquet.write_table(table, folder / f"part-{number:05}.parquet")
        return folder.parent

    return work


def _show(report: AuditReport) -> str:
    """Return what a report says, with archives called by the directory of their data."""
    return json.dumps(report.as_json_dict()).replace("/version-2", "")


def test_table_is_judged_as_its_logs_are(
    server: Server, audit: Audit, decode: Callable[..., Path]
) -> None:
    """Two servers' logs, with a fault of each kind in one: the reports say the same."""
    history = plant()
    cut = len(history) // 2
    servers = [server("one", history[:cut], history[cut:]), server("two", write_sample(topics=2))]
    tables = decode(*servers)
    report = audit(tables)
    assert report.verdict == "violated"
    assert _show(report) == _show(audit(*servers))
    names = [archive.archive.name for archive in report.archives]
    assert names == [str(path / "version-2") for path in servers]
    assert _show(audit(tables / "transactions")) == _show(report)


def test_judged_parts_of_transactions_come_back(
    server: Server, decode: Callable[..., Path]
) -> None:
    """Refused ones, ends of sessions, transactions of several operations, of one and of none."""
    history: list[Transaction] = [
        committed(CreateSession(4000), zxid=1, session_id=5),
        multi(Create("/a", b"", ephemeral=True), SetAcl("/", (), 3), zxid=2, session_id=5),
        committed(Error(-101), zxid=3, session_id=6),
        multi(Create("/b", b"x"), Error(-110), zxid=4, session_id=6),
        multi(zxid=5, session_id=6),
        committed(CloseSession(("/a",)), zxid=6, session_id=5),
        committed(CloseSession(None), zxid=7, session_id=6),
        committed(Delete("/b"), zxid=8, session_id=7),
    ]
    (archive,) = find_archives([decode(server("one", history))])
    found = list(read_archive(archive))
    told = [(t.zxid, t.session_id, t.error is None) for t in found]
    assert told == [(t.zxid, t.session_id, t.error is None) for t in history]
    done = [t.ops for t in found if t.error is None]
    created, acl = done[1]
    assert isinstance(created, Create)
    assert (created.path, created.ephemeral) == ("/a", True)
    assert isinstance(acl, SetAcl)
    assert done[2:] == [t.ops for t in history[4:]]


def test_missing_transaction_is_a_hole(
    server: Server, audit: Audit, decode: Callable[..., Path]
) -> None:
    """What comes after a zxid that the table has not got is uncertain, as in logs."""
    history = write_sample(topics=2)
    gone = history[len(history) // 2].zxid
    report = audit(decode(server("one", history), leave_out=lambda row: row["zxid"] == gone))
    assert report.verdict == "unknown"
    (hole,) = report.archives[0].holes
    assert hole.before == gone + 1


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda table: table.drop_columns(["op"]), "has no column op; a table of transactions"),
        (lambda table: table.take(list(range(len(table)))[::-1]), "sort each file of the table"),
        (lambda table: table.slice(0, 0), "has no transaction; name another table"),
        (
            lambda table: table.set_column(
                table.schema.get_field_index("kind"), "kind", pyarrow.array(["odd"] * len(table))
            ),
            "holds an unknown operation, 'odd'",
        ),
    ],
)
def test_table_that_cannot_be_read_is_told(
    server: Server, decode: Callable[..., Path], spoil: Callable[[Any], Any], said: str
) -> None:
    """What is wrong with a table is said with its file, and what to do about it."""
    tables = decode(server("one", write_sample(topics=1)))
    (part,) = (tables / "transactions").iterdir()
    pyarrow.parquet.write_table(spoil(pyarrow.parquet.read_table(part)), part)
    with pytest.raises((BadTable, LogsMissing), match=said):
        list_logs(tables)


def test_what_is_only_called_parquet_is_told(tmp_path: Path) -> None:
    """A file of another format is named, with what to do."""
    (tmp_path / "odd.parquet").write_bytes(b"PAR1 is not enough")
    with pytest.raises(BadTable, match=r"odd\.parquet is not a Parquet file .*; name another"):
        list_logs(tmp_path / "odd.parquet")
