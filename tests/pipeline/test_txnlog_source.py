"""The transaction log as a data source of Spark: its rows, damage in it, and following it."""

import json
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from pipeline_steps import Server, flip

from reassure_lab.archives.sample import SampleCluster, write_sample
from reassure_pipeline.spark.gateway import open_spark
from reassure_pipeline.txnlog_source import NAME, TransactionLogFollower, TransactionLogSource
from reassure_zookeeper.transactions import CloseSession, Create, Delete, SetData, committed
from reassure_zookeeper.txnlog import LogFile, log_files

Rows = list[dict[str, Any]]


def _list_rows(batches: Iterable[Any]) -> Rows:
    return list(chain.from_iterable(batch.to_pylist() for batch in batches))


def _read(*folders: Path) -> Rows:
    paths = json.dumps([str(folder) for folder in folders])
    reader = TransactionLogSource({"paths": paths}).reader(None)
    return _list_rows(chain.from_iterable(map(reader.read, reader.partitions())))


def test_there_is_a_row_for_each_operation(server: Server) -> None:
    """Rows hold what the log's own reader reads, in order, with file and byte of each record."""
    history = write_sample(topics=2)
    folder = server("one", history[:100], history[100:])
    rows = _read(folder)
    ops = [(t.zxid, t.session_id, number) for t in history for number in range(len(t.ops))]
    assert [(row["zxid"], row["session"], row["op"]) for row in rows] == ops
    assert {row["file"] for row in rows} == {str(file) for file in log_files(folder)}
    second = next(row for row in rows if row["zxid"] == history[101].zxid)
    file = LogFile(second["file"])
    file.offset = second["offset"]
    assert next(iter(file)) == history[101]


def test_what_an_operation_says_is_in_its_columns(server: Server) -> None:
    """Path, content, version and what goes with a session are in columns of their own."""
    ops = [
        Create("/a", b"one", ephemeral=True, parent_cversion=1),
        SetData("/b", b"two", 7),
        Delete("/\ud800"),
        CloseSession(("/a",)),
    ]
    history = [committed(op, zxid=zxid, session_id=5) for zxid, op in enumerate(ops, 1)]
    rows = _read(server("one", history))
    named = ("kind", "path", "data", "version", "ephemeral")
    assert [tuple(row[name] for name in named) for row in rows] == [
        ("create", "/a", b"one", None, True),
        ("set_data", "/b", b"two", 7, None),
        ("delete", "/\\ud800", None, None, None),
        ("close_session", None, None, None, None),
        ("delete", "/a", None, None, None),
    ]


def test_damage_is_a_row_and_other_files_are_read(server: Server) -> None:
    """A damaged file is read around the damage, which is told with its place; so is a torn tail."""
    history = write_sample(topics=1)
    folder = server("one", history[:50], history[50:100], history[100:])
    _, second, third = log_files(folder)
    flip(second)
    third.write_bytes(third.read_bytes()[:-5])
    rows = _read(folder)
    told = [row for row in rows if row["damage"] is not None]
    assert [row["file"] for row in told] == [str(second), str(third)]
    assert 0 < told[0]["offset"] < second.stat().st_size
    assert told[1]["damage"].startswith("torn: ")
    read = [row["zxid"] for row in rows if row["op"] == 0]
    (lost,) = {t.zxid for t in history[:-1]} - set(read)
    assert read == [t.zxid for t in history[:-1] if t.zxid != lost]


def test_a_stream_goes_on_where_it_stopped(server: Server) -> None:
    """Between two offsets lies what was added, across files, each record once."""
    history = write_sample(topics=1)
    folder = server("one", history[:40])
    follower = TransactionLogFollower([str(folder)])
    start = follower.initialOffset()
    rows: Rows = []
    (log,) = log_files(folder)
    whole = log.read_bytes()
    log.write_bytes(whole[:-7])
    for more in ([], history[40:90]):
        end = follower.latestOffset(start)
        rows += _list_rows(chain.from_iterable(map(follower.read, follower.partitions(start, end))))
        start = end
        if not more:
            log.write_bytes(whole)
            (folder / "version-2" / "log.29").write_bytes(
                next((server("two", history[40:90]) / "version-2").iterdir()).read_bytes()
            )
    assert follower.partitions(start, follower.latestOffset(start)) == []
    end = follower.latestOffset(start)
    assert [row["zxid"] for row in rows if row["op"] == 0] == [t.zxid for t in history[:90]]


@pytest.mark.slow
@pytest.mark.spark
def test_spark_queries_the_log(server: Server, tmp_path: Path) -> None:
    """The format is registered under its name, and read as a table and as a stream."""
    cluster = SampleCluster(brokers=2)
    cluster.create_topic("events", {0: (1, 2)})
    folder = str(server("one", cluster.transactions))
    with open_spark("local[1]") as session:
        session.dataSource.register(TransactionLogSource)
        table = session.read.format(NAME).load(folder)
        (topic,) = table.where("path = '/brokers/topics/events'").collect()
        assert topic.kind == "create"
        stream = session.readStream.format(NAME).load(folder)
        target = stream.writeStream.format("parquet").option("path", str(tmp_path / "out"))
        target = target.option("checkpointLocation", str(tmp_path / "checkpoint"))
        target.trigger(availableNow=True).start().awaitTermination()
        written = session.read.parquet(str(tmp_path / "out"))
        assert written.count() == table.count()
