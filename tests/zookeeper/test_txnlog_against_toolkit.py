"""The log reader against ZooKeeper's own log tool: the same records, in the same words."""

from __future__ import annotations

import importlib.util
import subprocess
from datetime import UTC, datetime
from pathlib import Path

from reassure_zookeeper.codec import _write_op
from reassure_zookeeper.jars import class_path, server_jars
from reassure_zookeeper.java import find_java
from reassure_zookeeper.jute import Acl
from reassure_zookeeper.transactions import (
    CREATE_CONTAINER,
    CREATE_TTL,
    CloseSession,
    Create,
    CreateSession,
    Delete,
    Error,
    Op,
    Reconfig,
    SetAcl,
    SetData,
    Transaction,
)
from reassure_zookeeper.txnlog import read_log
from reassure_zookeeper.txnlog_writer import write_log

NAMES = {
    -11: "closeSession",
    -10: "createSession",
    -1: "error",
    1: "create",
    2: "delete",
    5: "setData",
    7: "setACL",
    13: "check",
    14: "multi",
    15: "create2",
    16: "reconfig",
    19: "createContainer",
    20: "deleteContainer",
    21: "createTTL",
}


def tool_jars() -> tuple[Path, ...]:
    """Return the jars that run ZooKeeper's tools: one that PySpark has beside the server's."""
    spark = importlib.util.find_spec("pyspark")
    assert spark is not None and spark.origin is not None
    (parser,) = (Path(spark.origin).parent / "jars").glob("commons-cli-[0-9]*.jar")
    return (*server_jars(), parser)


def run_toolkit(log: Path) -> str:
    """Return what ZooKeeper's tool prints for a log, head and foot lines included."""
    answer = subprocess.run(
        [
            find_java().path,
            *("-Duser.timezone=UTC", "-Duser.language=en", "-Duser.country=US"),
            *("-Dfile.encoding=UTF-8", "-Dsun.stdout.encoding=UTF-8", "-Dstdout.encoding=UTF-8"),
            *("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
            *("-cp", class_path(tool_jars())),
            "org.apache.zookeeper.server.persistence.TxnLogToolkit",
            "-d",
            str(log),
        ],
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr.decode()
    return answer.stdout.decode("utf-8", "replace").replace("\u202f", " ")


def in_toolkit_words(transaction: Transaction) -> str:
    """Say a transaction as ZooKeeper's tool says it."""
    moment = datetime.fromtimestamp(transaction.time_ms / 1000, UTC)
    hour = moment.hour % 12 or 12
    day = f"{moment.month}/{moment.day}/{moment:%y}, {hour}:{moment:%M:%S %p} UTC"
    session = transaction.session_id & (1 << 64) - 1
    name = NAMES[transaction.type]
    head = f"{day} session 0x{session:x} cxid 0x{transaction.cxid:x} zxid 0x{transaction.zxid:x}"
    if transaction.type == 14:
        recorded = transaction.attempted or transaction.ops
        said = ";".join(f"{NAMES[op.variant]}:{_raw(op)}" for op in recorded)
    else:
        said = _body(transaction.ops[0])
    return f"{head} {name} {said}".rstrip()


def _raw(op: Op) -> str:
    return _write_op(op).decode("utf-8", "replace")


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _body(op: Op) -> str:
    match op:
        case Create(path, data, acl, ephemeral, cversion, variant, ttl_ms):
            fields = [path, _text(data), _acl(acl)]
            fields += [] if variant in (CREATE_CONTAINER, CREATE_TTL) else [str(ephemeral).lower()]
            fields += [str(cversion)]
            fields += [str(ttl_ms)] if variant == CREATE_TTL else []
            return ",".join(fields)
        case SetData(path, data, version) | Reconfig(path, data, version):
            return f"{path},{_text(data)},{version}"
        case SetAcl(path, acl, version):
            entries = ",".join(f"s{{{_entry(each)}}}" for each in acl)
            return f"'{path},v{{{entries}}},{version}"
        case Delete(path):
            return f"'{path}"
        case CreateSession(timeout_ms):
            return str(timeout_ms)
        case CloseSession(paths):
            return "v{" + ",".join(f"'{path}" for path in paths or ()) + "}"
        case Error(code):
            return str(code)
    raise AssertionError(op)


def _acl(acl: tuple[Acl, ...]) -> str:
    return "[" + ", ".join(f"{_entry(each)}\n" for each in acl) + "]"


def _entry(acl: Acl) -> str:
    return f"{acl.permissions},s{{'{acl.scheme},'{acl.identity}}}"


def _records(printed: str) -> list[str]:
    """Cut what the tool printed into its records, at the beginnings of lines that carry a date."""
    records: list[str] = []
    for line in printed.splitlines(keepends=True)[1:]:
        if (" session 0x" in line and " zxid 0x" in line) or line.startswith("EOF reached"):
            records.append(line)
        else:
            records[-1] += line
    return [record.rstrip() for record in records]


def _assert_same(log: Path, transactions: list[Transaction]) -> None:
    *said, foot = _records(run_toolkit(log))
    assert said == [in_toolkit_words(transaction) for transaction in transactions]
    assert foot == f"EOF reached after {len(transactions)} txns."


def test_recorded_log_reads_as_the_toolkit_reads_it(recording) -> None:
    """Every record of a real log means to the reader what it means to ZooKeeper's own tool."""
    _assert_same(recording.log_file, list(read_log(recording.log_file)))


def test_recording_has_every_kind_of_record_a_client_can_cause(recording) -> None:
    """The agreement above covers all request codes but those of an ensemble's administrator."""
    seen = {transaction.type for transaction in recording.transactions}
    assert seen == set(NAMES) - {13, 16}  # a check comes inside multis, a reconfig by an ensemble


def test_written_log_reads_as_the_toolkit_reads_it(
    tmp_path: Path, every_kind: list[Transaction]
) -> None:
    """A log made by the writer, with every kind of op, is a log to ZooKeeper's own tool."""
    log = write_log(tmp_path, every_kind)
    assert list(read_log(log)) == every_kind
    _assert_same(log, every_kind)
