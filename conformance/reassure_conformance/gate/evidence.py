"""Evidence: the transactions of a failing story, kept for people and for the judge.

`transactions.jsonl` is for reading; `log/log.N` is a valid transaction log of the same
transactions, which `reassure audit` reads like any other and which `judge_again` judges without
carrying anything out.
"""

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from reassure_conformance.gate.step_fields import MANY
from reassure_conformance.report.display import show_zxid
from reassure_conformance.report.document import write_text
from reassure_judge.judge import Judge
from reassure_judge.verdicts import Violation
from reassure_model.partition import Partition
from reassure_spec.errors import BadData
from reassure_spec.readings import get_profile, override_readings
from reassure_spec.znodes import DELETED_TOPICS, PERSISTENT_ROOTS, PartitionKey
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

BAD_VERSION: Final = -103
"""ZooKeeper's error for a write that expected another version."""
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
        raise BadRun(f"{path} is missing; a run directory is made by `reassure test`") from None
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


# -- the timeline: what a space-time diagram is drawn from

CLIENT: Final = "client"
SERVER: Final = "ZooKeeper"
_SET_UP: Final = ("/brokers", "/config", "/admin", "/controller_epoch")
"""What every cluster begins with; a timeline leaves the writing of it out."""
_LANES: Final = {CLIENT: 0, "controller": 1, "broker": 2, SERVER: 3}
"""The kinds of actors, in the order of their lanes."""


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
        case _:
            return ""


def _name_error(code: int) -> str:
    """Return what ZooKeeper calls an error.

    >>> _name_error(-103), _name_error(-9999)
    ('BadVersion', 'error -9999')
    """
    from kazoo.exceptions import EXCEPTIONS

    if code not in EXCEPTIONS:
        return f"error {code}"
    return str(EXCEPTIONS[code].__name__).removesuffix("Error")


def _gist(data: bytes) -> str:
    """Return what matters of a znode's content, in a few characters."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return show_data(data)[:20]
    if not isinstance(value, dict):
        return show_data(data)[:20]
    if "isr" in value:
        return f"leader {value['leader']} isr {value['isr']} epoch {value['leader_epoch']}"
    if "top" in value:
        return f"top {value['top']} target {value['assignment']}"
    for key in ("partitions", "assignments"):
        if key in value:
            return _show_lists(value[key])
    return ""


def _show_lists(lists: Any) -> str:
    """Return the replica lists of partitions, of many with the same one the first and the last.

    >>> _show_lists({"0": [1, 2], **{str(n): [3] for n in range(1, 120)}})
    '{0: [1, 2], 1..119: [3]}'
    """
    if not isinstance(lists, dict):
        return json.dumps(lists).replace('"', "")
    shown: list[str] = []
    for text, equal in groupby(lists, lambda name: _show_lists(lists[name])):
        names = list(equal)
        if len(names) >= MANY:
            names = [f"{names[0]}..{names[-1]}"]
        shown += [f"{name}: {text}" for name in names]
    return f"{{{', '.join(shown)}}}"


def _is_set_up(op: Op, chroot: str) -> bool:
    """Whether an op only makes a path that every cluster has, before anything happens."""
    path = getattr(op, "path", "").removeprefix(chroot)
    roots = (*PERSISTENT_ROOTS, DELETED_TOPICS, *_SET_UP, "")
    return isinstance(op, Create) and (path in roots or path.startswith("/config/brokers/"))


def list_writes(
    transactions: Iterable[Transaction], names: Mapping[int, str], chroot: str
) -> Iterator[str]:
    """Yield a line for each transaction of a cluster: its zxid, who wrote it, and what.

    `names` are those of `name_sessions`.
    """
    for transaction in transactions:
        gist = _gist_of(transaction, chroot) if _touches(transaction, chroot) else ""
        if gist:
            who = names.get(transaction.session_id, CLIENT)
            yield f"{show_zxid(transaction.zxid)} {who}: {gist}"


def _gist_of(transaction: Transaction, chroot: str) -> str:
    """Return in short what a transaction did, but for what every cluster begins with.

    Of one that was refused it says so where it was lost to another's write, or where the log says
    what was tried: a lone write that found its znode there, or not there, changed nothing.
    """
    if transaction.error is not None:
        tried = transaction.attempted or ()
        if not tried and transaction.error != BAD_VERSION:
            return ""
        what = "; ".join(text for op in tried if (text := _short(op, chroot)))
        return f"refused: {_name_error(transaction.error)}{f' ({what})' if what else ''}"
    ops = (op for op in transaction.ops if not _is_set_up(op, chroot))
    return "; ".join(text for op in ops if (text := _short(op, chroot)))


class _Timeline:
    """Turns the transactions of a failing story into rows, judging each once more on the way."""

    def __init__(
        self, profile: str, readings: Mapping[str, str], failure: Mapping[str, Any]
    ) -> None:
        self._judge = Judge(profile, override_readings(get_profile(profile), readings))
        self._chroot = str(failure["chroot"])
        self._quiet = frozenset(failure["quiet"])
        self._broken: dict[int, list[str]] = {}
        """The clauses that a transaction broke."""
        self._owed: dict[int, list[str]] = {}
        """Those that were broken by writing nothing after it."""
        for violation in failure["violations"]:
            written = int(violation.get("session", "0"), 16)
            found = self._broken if written else self._owed
            found.setdefault(violation["zxid"], []).append(violation["clause"])
        self._registered: dict[str, str] = {}
        """The lane of whoever registered in a znode."""
        self._data: dict[str, str] = {}
        self._shown: dict[str, dict[str, Any]] = {}

    def take(self, transaction: Transaction, lane: str) -> Iterator[dict[str, Any]]:
        """Judge a transaction and yield its row, and another where what was owed then is missing.

        Of one that only made what every cluster has there is none.
        """
        due = self._list_due()
        self._judge.feed(transaction)
        if transaction.zxid in self._quiet:
            self._judge.quiesce(self._chroot)
        ops = [op for op in transaction.ops if not _is_set_up(op, self._chroot)]
        changes = [change for op in ops for change in self._describe(op)]
        gist = _gist_of(transaction, self._chroot)
        for op in ops:
            if isinstance(op, Create) and op.ephemeral:
                self._registered[op.path.removeprefix(self._chroot)] = lane
        gone = (each["path"] for each in changes if each["after"] is None)
        ended = [self._registered.pop(path) for path in gone if path in self._registered]
        broken = self._broken.get(transaction.zxid, [])
        if gist or broken:
            yield {
                "zxid": transaction.zxid,
                "time_ms": transaction.time_ms,
                "lane": lane,
                "gist": gist,
                "changes": changes,
                "due": due,
                "state": self._find_changed(),
                "ended": ended,
                "broken": broken,
            }
        if transaction.zxid in self._owed:
            owed = self._owed[transaction.zxid]
            yield {"rest": transaction.zxid, "due": self._list_due(), "broken": owed}

    def _list_due(self) -> dict[str, str]:
        due = self._judge.list_due(self._chroot)
        return {name_partition(key): words for key, words in due.items()}

    def _describe(self, op: Op) -> Iterator[dict[str, Any]]:
        """Yield what an op changed: znode, content before and after."""
        gone = op.paths or () if isinstance(op, CloseSession) else ()
        paths = [op.path] if isinstance(op, Create | SetData | Delete) else list(gone)
        for path in paths:
            before = self._data.pop(path, None)
            after = show_data(op.data) if isinstance(op, Create | SetData) else None
            if after is not None:
                self._data[path] = after
            yield {"path": path.removeprefix(self._chroot), "before": before, "after": after}

    def _find_changed(self) -> dict[str, Any]:
        """Return the partitions that are not as they were, as the judge takes them to be."""
        partitions = self._judge.view(self._chroot).partitions
        shown = {name_partition(key): _show_partition(each) for key, each in partitions.items()}
        changed = {name: each for name, each in shown.items() if self._shown.get(name) != each}
        gone: dict[str, Any] = dict.fromkeys(self._shown.keys() - shown.keys())
        self._shown = shown
        return changed | gone


def name_partition(key: PartitionKey) -> str:
    """Return the name of a partition as people write it.

    >>> name_partition(("orders", 0))
    'orders-0'
    """
    return f"{key[0]}-{key[1]}"


def _show_partition(partition: Partition) -> dict[str, Any]:
    state, flight = partition.state, partition.reassignment
    return {
        "assigned": None if partition.assigned is None else list(partition.assigned),
        "leader": None if state is None else state.leader,
        "isr": None if state is None else list(state.isr),
        "leader_epoch": None if state is None else state.leader_epoch,
        "target": None if flight is None else list(flight.target),
        "requests": [request.sequence for request in partition.requests],
    }


def make_timeline(
    profile: str,
    readings: Mapping[str, str],
    failure: Mapping[str, Any],
    transactions: Sequence[Transaction],
) -> dict[str, Any]:
    """Return what happened in a failing story: actors as lanes, steps and transactions as rows.

    `failure` is the record of failure.json. A step stands before the first transaction after it. A
    transaction has beside it what the model had a controller write by then (`due`), the partitions
    that it left changed (`state`) and the clauses that it broke.
    """
    chroot = str(failure["chroot"])
    kept = [t for t in transactions if _touches(t, chroot)]
    names = name_sessions(kept)
    timeline = _Timeline(profile, readings, failure)
    waiting = list(failure["steps"])
    rows: list[dict[str, Any]] = []
    for transaction in kept:
        for row in timeline.take(transaction, names.get(transaction.session_id, CLIENT)):
            while waiting and waiting[0]["after_zxid"] < transaction.zxid:
                rows.append(_describe_step(waiting.pop(0)))
            rows.append(row)
    rows += map(_describe_step, waiting)
    actors = {row["lane"] for row in rows if "lane" in row} | {CLIENT, SERVER}
    lanes = sorted(actors, key=lambda name: (_LANES[name.split()[0]], name))
    return {"lanes": lanes, "rows": rows}


def _describe_step(step: Mapping[str, Any]) -> dict[str, Any]:
    return {name: step[name] for name in ("step", "result", "why")}
