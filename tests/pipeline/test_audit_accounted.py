"""Every transaction of an archive is judged, passed over with a reason, or missing."""

from pathlib import Path

from history_steps import read_log
from pipeline_steps import Audit, Server

from reassure_lab.archives.sample import write_sample
from reassure_pipeline.audit.audit_report import AuditReport
from reassure_pipeline.audit.run_audit import audit_paths
from reassure_zookeeper.ensemble import Hole
from reassure_zookeeper.transactions import Create, SetData, committed


def audit_kafka(folder: Path, jobs: int = 1) -> AuditReport:
    """Return the report on the logs of a Kafka that is recognised."""
    return audit_paths([folder], "kip-236", {}, jobs=jobs, recognise=True).get_report()


def test_record_taken_out_of_kafka_is_never_held_against_it(tmp_path: Path, server: Server) -> None:
    """Thirty sound logs with one record less: none is violated, each names what is missing."""
    history = read_log("old_01022", tmp_path)
    whole = audit_kafka(server("whole", history))
    assert (whole.verdict, whole.archives[0].account()["missing"]) == ("holds", 0)
    for gone in range(2, len(history) - 1, len(history) // 31):
        left = [*history[:gone], *history[gone + 1 :]]
        report = audit_kafka(server(f"without-{gone}", left))
        found = report.archives[0]
        assert (report.verdict, report.violations) == ("unknown", ()), history[gone]
        assert found.account()["missing"] == 1
        assert found.account()["read"] == len(left)


def test_what_is_passed_over_has_a_reason(server: Server, audit: Audit) -> None:
    """What no rule is about is counted; several processes count the same as one."""
    history = write_sample(topics=4, partitions=2)
    first = history[-1].zxid + 1
    more = [
        committed(Create("/lock", b""), zxid=first),
        committed(SetData("/lock", b"1", 1), zxid=first + 1),
    ]
    folder = server("one", history + more)
    told = audit(folder).archives[0].account()
    assert told["passed_over"]["without a rule"] == 2 + audit(server("less", history)).archives[
        0
    ].account()["passed_over"].get("without a rule", 0)
    assert told["judged"] + sum(told["passed_over"].values()) == told["read"] == len(history) + 2
    assert audit(folder, jobs=2).archives[0].account() == told


def test_gap_over_epochs_has_no_number() -> None:
    """How many transactions an earlier leader made nobody can say."""
    holes = Hole(7, 10), Hole(7, (1 << 32) + 2), Hole(7, -1)
    assert [hole.count_missing() for hole in holes] == [2, None, None]
