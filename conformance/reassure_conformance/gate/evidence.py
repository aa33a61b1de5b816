"""Evidence: the transactions of a failing story, kept for people and for the judge.

`transactions.jsonl` is for reading; `log/log.N` is a valid transaction log of the same
transactions, which `reassure audit` reads like any other and which `judge_again` judges without
carrying anything out.
"""

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from reassure_conformance.report.display import show_zxid
from reassure_conformance.report.document import write_text
from reassure_judge.judge import Judge
from reassure_judge.verdicts import Violation
from reassure_spec.errors import BadData
from reassure_spec.readings import get_profile, override_readings
from reassure_spec.znodes import DELETED_TOPICS, PERSISTENT_ROOTS
from reassure_zookeeper.transactions import (
    Check,
    CloseSession,
    Create,
    CreateSession,
    Delete,
    Error,
    Op,
    SetData,
    Transaction,
)
from reassure_zookeeper.txnlog import read_logs
from reassure_zookeeper.txnlog_writer import write_log

SHOWN_BYTES: Final = 400
"""How much of a znode's content is shown to people."""


def show_data(data: bytes | None) -> str:
    """Return content as text for people, cut where it is long."""
    text = (data or b"").decode("utf-8", "backslashreplace")
    if len(text) <= SHOWN_BYTES:
        return text
    return f"{text[:SHOWN_BYTES]}... ({len(data or b'')} bytes)"


def _show_op(op: Op) -> dict[str, Any]:
    match op:
        case Create(path=path, data=data, ephemeral=ephemeral):
            shown: dict[str, Any] = {"create": path, "data": show_data(data)}
            return {**shown, "ephemeral": True} if ephemeral else shown
        case Delete(path=path):
            return {"delete": path}
        case SetData(path=path, data=data, version=version):
            return {"set": path, "data": show_data(data), "version": version}
        case Check(path=path, version=version):
            return {"check": path, "version": version}
        case CreateSession(timeout_ms=timeout):
            return {"session": "begins", "timeout_ms": timeout}
        case CloseSession(paths=paths):
            return {"session": "ends", "deletes": list(paths or ())}
        case Error(code=code):
            return {"refused": code}
        case _:
            return {"other": type(op).__name__}


def show_transaction(transaction: Transaction) -> dict[str, Any]:
    """Return one transaction as a record for people."""
    ops = transaction.attempted or transaction.ops
    shown: dict[str, Any] = {
        "zxid": transaction.zxid,
        "session": f"0x{transaction.session_id & 0xFFFFFFFFFFFFFFFF:x}",
        "time_ms": transaction.time_ms,
        "ops": [_show_op(op) for op in ops],
    }
    if transaction.error is not None:
        shown["error"] = transaction.error
    return shown


def _touches(transaction: Transaction, chroot: str) -> bool:
    """Whether a transaction belongs to this cluster, as far as can be told."""
    inside = f"{chroot}/"
    for op in transaction.attempted or transaction.ops:
        path = getattr(op, "path", None)
        if path is None:
            if isinstance(op, CloseSession) and op.paths is not None:
                if any(p.startswith(inside) for p in op.paths):
                    return True
                continue
            return True
        if path == chroot or path.startswith(inside):
            return True
    return False


def write_evidence(folder: Path, chroot: str, transactions: Iterable[Transaction]) -> None:
    """Write `transactions.jsonl` and `log/` into the folder, replacing those that stand there."""
    kept = [transaction for transaction in transactions if _touches(transaction, chroot)]
    lines = (json.dumps(show_transaction(transaction)) + "\n" for transaction in kept)
    write_text(folder / "transactions.jsonl", "".join(lines))
    log = folder / "log"
    shutil.rmtree(log, ignore_errors=True)
    log.mkdir()
    if kept:
        write_log(log, kept)


class BadRun(BadData):
    """A directory that does not hold a run that can be replayed."""


def read_json(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file of a run directory. Raises BadRun."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BadRun(f"{path} is missing; a run directory is made by `reassure run`") from None
    except (OSError, ValueError) as error:
        raise BadRun(f"{path} cannot be read: {error}") from error
    if not isinstance(value, dict):
        raise BadRun(f"{path}: expected a JSON object")
    return value


def judge_again(folder: Path, profile: str, readings: Mapping[str, str]) -> list[Violation]:
    """Judge the log kept in a run directory and return the violations. Raises BadRun, DamagedLog.

    Nothing is carried out: this says what the evidence is worth by itself.
    """
    failure = read_json(folder / "failure.json")
    chroot, quiet = str(failure["chroot"]), set(failure["quiet"])
    judge = Judge(profile, override_readings(get_profile(profile), readings))
    for transaction in read_logs(folder / "log"):
        judge.feed(transaction)
        if transaction.zxid in quiet:
            judge.quiesce(chroot)
    return [violation for violation in judge.violations if violation.chroot == chroot]


# -- the space-time diagram

_SET_UP: Final = ("/brokers", "/config", "/admin", "/controller_epoch")
"""What every cluster begins with; a diagram leaves the writing of it out."""


def name_sessions(transactions: Iterable[Transaction]) -> dict[int, str]:
    """Tell controllers and brokers by what only they write."""
    names: dict[int, str] = {}
    for transaction in transactions:
        for op in transaction.ops:
            if not isinstance(op, Create) or not op.ephemeral:
                continue
            head, _, last = op.path.rpartition("/")
            if last == "controller":
                names[transaction.session_id] = f"controller {_broker_id(op.data)}"
            elif head.endswith("/brokers/ids"):
                names.setdefault(transaction.session_id, f"broker {last}")
    return names


def _broker_id(data: bytes) -> str:
    try:
        return str(json.loads(data)["brokerid"])
    except (ValueError, KeyError, TypeError):
        return "?"


def _short(op: Op, chroot: str) -> str:
    path = getattr(op, "path", "").removeprefix(chroot)
    for long, short in (
        ("/brokers/topics/", ""),
        ("/partitions/", "-"),
        ("/admin/reassignments/", "child "),
        ("/admin/reassignment_requests/request_", "request "),
    ):
        path = path.replace(long, short)
    match op:
        case Create(data=data) | SetData(data=data):
            verb = "+" if isinstance(op, Create) else "="
            return f"{verb} {path} {_gist(data)}".rstrip()
        case Delete():
            return f"- {path}"
        case CloseSession():
            return "session ends"
        case Error(code=code):
            return f"refused ({code})"
        case _:
            return ""


def _gist(data: bytes) -> str:
    """Return what matters of a znode's content, in a few characters."""
    try:
        value = json.loads(data)
    except ValueError:
        return show_data(data)[:20]
    if not isinstance(value, dict):
        return show_data(data)[:20]
    if "isr" in value:
        return f"leader {value['leader']} isr {value['isr']} epoch {value['leader_epoch']}"
    if "top" in value:
        return f"top {value['top']} target {value['assignment']}"
    for key in ("partitions", "assignments"):
        if key in value:
            return json.dumps(value[key]).replace('"', "")
    return ""


def _is_set_up(op: Op, chroot: str) -> bool:
    """Whether an op only makes a path that every cluster has, before anything happens."""
    path = getattr(op, "path", "").removeprefix(chroot)
    roots = (*PERSISTENT_ROOTS, DELETED_TOPICS, *_SET_UP, "")
    return isinstance(op, Create) and (path in roots or path.startswith("/config/brokers/"))


def _lanes(transactions: Iterable[Transaction], names: Mapping[int, str]) -> list[str]:
    """Return the actors that wrote anything, in the order of the columns."""
    seen = {names.get(t.session_id, "client") for t in transactions} | {"client"}
    order = {"client": 0, "controller": 1, "broker": 2}
    return sorted(seen, key=lambda name: (order.get(name.split()[0], 3), name))


def _rows(transactions: Iterable[Transaction], chroot: str) -> Iterator[tuple[Transaction, str]]:
    for transaction in transactions:
        shown = [
            text
            for op in transaction.ops
            if not _is_set_up(op, chroot) and (text := _short(op, chroot))
        ]
        if shown:
            yield transaction, "; ".join(shown)


def list_writes(
    transactions: Iterable[Transaction], names: Mapping[int, str], chroot: str
) -> Iterator[str]:
    """Yield a line for each transaction of a cluster: its zxid, who wrote it, and what.

    `names` are those of `name_sessions`.
    """
    for transaction, text in _rows((t for t in transactions if _touches(t, chroot)), chroot):
        who = names.get(transaction.session_id, "client")
        yield f"{show_zxid(transaction.zxid)} {who}: {text}"


def draw_diagram(
    steps: Sequence[Mapping[str, Any]], transactions: Sequence[Transaction], chroot: str
) -> Iterator[str]:
    """Yield the lines of a space-time diagram: time runs down, one lane for each actor.

    `steps` are those of failure.json. A row is a transaction: its zxid, a mark in the lane of
    whoever wrote it, and what it wrote. A step stands above the first transaction after it.
    """
    kept = [t for t in transactions if _touches(t, chroot)]
    names = name_sessions(kept)
    rows = list(_rows(kept, chroot))
    lanes = _lanes((t for t, _ in rows), names)
    short = [lane.replace("controller ", "ctl ").replace("broker ", "brk ") for lane in lanes]
    width = max(len(lane) for lane in short) + 2
    yield f"{'zxid':>8}  " + "".join(lane.ljust(width) for lane in short) + "ZooKeeper"
    waiting = list(steps)
    for transaction, text in rows:
        while waiting and waiting[0]["after_zxid"] < transaction.zxid:
            yield f"{'':8}  > {_show_step(waiting.pop(0))}"
        place = lanes.index(names.get(transaction.session_id, "client"))
        marks = "".join(("*" if i == place else "|").ljust(width) for i in range(len(lanes)))
        yield f"{show_zxid(transaction.zxid):>8}  {marks}{text}"
    for step in waiting:
        yield f"{'':8}  > {_show_step(step)}"


def _show_step(step: Mapping[str, Any]) -> str:
    return str(step["step"]) + ("" if step["result"] == "ok" else f"  ({step['result']})")
