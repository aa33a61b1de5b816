"""The histories of a soak, judged: what controllers wrote, and what brokers observed."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from reassure_judge.protocols import get_observing
from reassure_lab.soak.checker import Breach
from reassure_pipeline.audit.audit_report import AuditReport
from reassure_pipeline.audit.local import audit_paths
from reassure_spec.rooms import choose_readings, judge_of
from reassure_spec.znodes import TOPICS, decode_state
from reassure_zookeeper.transactions import Create, Error, SetData, Transaction
from reassure_zookeeper.txnlog import read_logs
from reassure_zookeeper.txnlog_writer import write_log

OBSERVED: Final = get_observing().profiles[0]
"""The profile of what brokers observe."""


@dataclass(slots=True)
class JudgedHistories:
    """What came of judging the histories."""

    breaches: list[Breach] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    """Why there is no verdict on some of it."""
    left_open: list[str] = field(default_factory=list)
    """Clauses that some writes or lines kept or broke, depending on what their writer knew."""
    counts: dict[str, int] = field(default_factory=dict)


def judge_histories(
    servers: Sequence[Path],
    merged: Path,
    observed: Sequence[Path],
    profile: str,
    readings: Mapping[str, str],
    min_insync: int,
) -> JudgedHistories:
    """Judge what the ensemble has logged, and with it what brokers observed.

    The logs of all servers are written into one, in `merged`.
    """
    judged = JudgedHistories()
    merge_logs(servers, merged)
    written = _audit([merged], profile, {}, min_insync)
    _take(judged, "log-judged", written)
    judged.counts["judged_transactions"] = sum(one.transactions for one in written.archives)
    judged.counts["leader_elections"] = count_elections(merged)
    told = _audit([merged, *observed], OBSERVED, readings, min_insync)
    _take(judged, "observations-judged", told)
    judged.counts["judged_observations"] = 0 if told.observed is None else told.observed.lines
    return judged


def merge_logs(servers: Sequence[Path], merged: Path) -> None:
    """Write what an ensemble has committed into one log, in a new directory.

    A server that was away for long is sent a snapshot, and its log lacks what came before; one that
    led while nobody followed has logged what never came about. What was committed has been logged
    by a majority.
    """
    found: dict[int, Transaction] = {}
    count: Counter[int] = Counter()
    for server in servers:
        for transaction in read_logs(server):
            count[transaction.zxid] += 1
            known = found.setdefault(transaction.zxid, transaction)
            if any(isinstance(op, Error) and op.overwritten for op in known.attempted):
                found[transaction.zxid] = transaction  # it may tell more of what was refused
    merged.mkdir()
    majority = len(servers) // 2 + 1
    write_log(merged, [found[zxid] for zxid in sorted(found) if count[zxid] >= majority])


def _audit(
    paths: Sequence[Path], profile: str, readings: Mapping[str, str], min_insync: int
) -> AuditReport:
    chosen = choose_readings(judge_of(profile), profile, readings)
    return audit_paths(paths, profile, chosen, None, at_rest=True, min_insync_replicas=min_insync)


def _take(judged: JudgedHistories, promise: str, report: AuditReport) -> None:
    for found in report.violations:
        place = f"{found.topic}-{found.partition}" if found.topic else "the cluster"
        judged.breaches.append(
            Breach(promise, f"{found.clause}: {place}, zxid 0x{found.zxid:x}: {found.expected}")
        )
    judged.unknown += [f"{promise}: {need}" for need in report.needs]
    judged.unknown += [
        f"{promise}: {found.clause}: zxid 0x{found.zxid:x}: it is not certain what was there"
        for archive in report.archives
        for found in archive.unsettled
        if found.binds()
    ]
    judged.left_open += [
        f"{clause.id}: {clause.undecided} times" for clause in report.clauses if clause.undecided
    ]


def count_elections(server: Path) -> int:
    """Return how often a partition got another leader, its first one included."""
    leaders: dict[str, int] = {}
    elections = 0
    for transaction in read_logs(server):
        for op in transaction.ops:
            if not isinstance(op, Create | SetData) or not op.path.endswith("/state"):
                continue
            if op.path.startswith(TOPICS):
                leader = decode_state(op.path, op.data).leader
                elections += leader >= 0 and leaders.get(op.path) != leader
                leaders[op.path] = leader
    return elections
