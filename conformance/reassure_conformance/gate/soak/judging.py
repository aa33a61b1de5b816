"""The histories of a soak, judged: what controllers wrote, and what brokers observed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from reassure_conformance.gate.soak.checking import Breach
from reassure_pipeline.audit import audit_paths
from reassure_pipeline.report import AuditReport
from reassure_spec.rooms import choose_readings, judge_of
from reassure_spec.znodes import TOPICS, decode_state
from reassure_zookeeper.transactions import Create, SetData
from reassure_zookeeper.txnlog import read_logs

OBSERVED: Final = "kafka-4485"
"""The profile of what brokers observe."""


@dataclass(slots=True)
class Judged:
    """What came of judging the histories."""

    breaches: list[Breach] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    """Why there is no verdict on some of it."""
    left_open: list[str] = field(default_factory=list)
    """Clauses that some writes or lines kept or broke, depending on what their writer knew."""
    counts: dict[str, int] = field(default_factory=dict)


def judge_histories(
    servers: Sequence[Path],
    observed: Sequence[Path],
    profile: str,
    readings: Mapping[str, str],
    min_insync: int,
) -> Judged:
    """Judge what one server of the ensemble has logged, and with it what brokers observed.

    Each server has the whole history unless it was away so long that it was sent a snapshot. The
    first one that has is taken.
    """
    judged = Judged()
    for server in servers:
        written = _audit([server], profile, {}, min_insync)
        if not written.needs:
            break
    _take(judged, "log-judged", written)
    judged.counts["judged_transactions"] = sum(one.transactions for one in written.archives)
    judged.counts["leader_elections"] = count_elections(server)
    told = _audit([server, *observed], OBSERVED, readings, min_insync)
    _take(judged, "observations-judged", told)
    judged.counts["judged_observations"] = 0 if told.observed is None else told.observed.lines
    return judged


def _audit(
    paths: Sequence[Path], profile: str, readings: Mapping[str, str], min_insync: int
) -> AuditReport:
    chosen = choose_readings(judge_of(profile), profile, readings)
    return audit_paths(paths, profile, chosen, None, at_rest=True, min_insync_replicas=min_insync)


def _take(judged: Judged, promise: str, report: AuditReport) -> None:
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
