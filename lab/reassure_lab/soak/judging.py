"""The histories of a soak, judged: what controllers wrote, and what brokers observed."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from reassure_judge.protocols import get_observing
from reassure_lab.soak.guarantees import SoakFindings
from reassure_lab.soak.operator import Wanted
from reassure_lab.soak.seen_events import Event
from reassure_pipeline.audit.audit_report import AuditReport
from reassure_pipeline.audit.run_audit import audit_paths
from reassure_spec.znodes import (
    FAILED_BROKERS,
    REASSIGNMENT_TASKS,
    TOPICS,
    decode_state,
    decode_task,
)
from reassure_zookeeper.transactions import Create, Error, SetData, Transaction
from reassure_zookeeper.txnlog import log_files, read_log, read_logs
from reassure_zookeeper.txnlog_writer import write_log

OBSERVED: Final = get_observing().profiles[0]
"""The profile of what brokers observe."""
_STATE: Final = re.compile(rf"{TOPICS}/([^/]+)/partitions/(\d+)/state")


def judge_histories(
    merged: Path,
    observed: Sequence[Path],
    profile: str,
    readings: Mapping[str, str],
    min_insync: int,
    findings: SoakFindings,
    *,
    with_observations: bool,
) -> list[str]:
    """Judge what the ensemble has logged (`merge_logs`), and with it what brokers observed.

    A full disk does not take observations either, so nothing is said of them then.

    Return the clauses that some writes or lines kept or broke, depending on what their writer knew.
    """
    written = _audit([merged], profile, {}, min_insync)
    _take(findings, "log-judged", written)
    count = sum(one.transactions for one in written.archives)
    findings.count("log-judged", transactions=count)
    reports = [written]
    if with_observations:
        told = _audit([merged, *observed], OBSERVED, readings, min_insync)
        reports.append(told)
        _take(findings, "observations-judged", told)
        lines = 0 if told.observed is None else told.observed.lines
        findings.count("observations-judged", lines=lines)
    else:
        findings.skipped["observations-judged"] = "lines are missing where disks were full"
    return [
        f"{clause.id}: {clause.undecided} times"
        for report in reports
        for clause in report.clauses
        if clause.undecided
    ]


def merge_logs(servers: Sequence[Path], merged: Path) -> None:
    """Write what an ensemble has committed into one log, in a new directory.

    A server that was away for long is sent a snapshot, and its log lacks what came before; one that
    led while nobody followed has logged what never came about. What was committed has been logged
    by a majority. A server that was killed amid a record and then sent a snapshot goes on in its
    next file with a later zxid; so each file is read by itself, up to where it ends.
    """
    found: dict[int, Transaction] = {}
    count: Counter[int] = Counter()
    for server in servers:
        logged = {each.zxid: each for file in log_files(server) for each in read_log(file)}
        count.update(logged.keys())
        for transaction in logged.values():
            known = found.setdefault(transaction.zxid, transaction)
            if any(isinstance(op, Error) and op.overwritten for op in known.attempted):
                found[transaction.zxid] = transaction  # it may tell more of what was refused
    merged.mkdir()
    majority = len(servers) // 2 + 1
    write_log(merged, [found[zxid] for zxid in sorted(found) if count[zxid] >= majority])


def _audit(
    paths: Sequence[Path], profile: str, readings: Mapping[str, str], min_insync: int
) -> AuditReport:
    fleet = audit_paths(paths, profile, readings, at_rest=True, min_insync_replicas=min_insync)
    return fleet.get_report()


def _take(findings: SoakFindings, guarantee: str, report: AuditReport) -> None:
    for found in report.violations:
        place = f"{found.topic}-{found.partition}" if found.topic else "the cluster"
        what = f"{found.clause}: {place}, zxid 0x{found.zxid:x}: {found.expected}"
        findings.break_it(guarantee, what)
    findings.unknown += [f"{guarantee}: {need}" for need in report.needs]
    findings.unknown += [
        f"{guarantee}: {found.clause}: zxid 0x{found.zxid:x}: it is not certain what was there"
        for archive in report.archives
        for found in archive.unsettled
        if found.binds()
    ]


def find_healed(merged: Path, findings: SoakFindings) -> Wanted:
    """Return where healing has put partitions, as its tasks say, and count what it did."""
    name, healed = "failures-healed", Wanted()
    for transaction in read_logs(merged):
        for op in transaction.ops:
            if isinstance(op, Create) and op.path.startswith(f"{FAILED_BROKERS}/"):
                findings.count(name, brokers_missed=1)
            elif isinstance(op, Create) and op.path.startswith(f"{REASSIGNMENT_TASKS}/"):
                findings.count(name, tasks=1)
                for key, target in decode_task(op.path, op.data).assignments.items():
                    healed.setdefault(key, set()).add(target)
    return healed


def tell_states(merged: Path) -> Iterator[Event]:
    """Yield who led each partition from when on, and how many were in sync."""
    for transaction in read_logs(merged):
        for op in transaction.ops:
            if not isinstance(op, Create | SetData):
                continue
            found = _STATE.fullmatch(op.path)
            if found is not None:
                state = decode_state(op.path, op.data)
                yield Event(
                    transaction.time_ms,
                    "zookeeper",
                    "state",
                    found[1],
                    int(found[2]),
                    count=len(state.isr),
                    of=str(state.leader),
                )
