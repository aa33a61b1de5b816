"""Each cluster in a log is judged by itself: its own profile, readings, version and verdict."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from history_steps import read_log
from pipeline_steps import Server

from reassure_conformance.cli import run_command
from reassure_judge.protocols import NoRules
from reassure_pipeline.audit.audit_report import AuditReport
from reassure_pipeline.audit.run_audit import audit_paths
from reassure_zookeeper.transactions import Create, Transaction


def place(log: Iterable[Transaction], chroot: str, side: int) -> list[Transaction]:
    """Return a log as that of a cluster below a chroot, its sessions told apart from others'."""

    def move(op: Any) -> Any:
        if getattr(op, "paths", None) is not None:
            return replace(op, paths=tuple(chroot + path for path in op.paths))
        return replace(op, path=chroot + op.path) if hasattr(op, "path") else op

    return [
        replace(each, session_id=each.session_id * 4 + side, ops=tuple(map(move, each.ops)))
        for each in log
    ]


def weave(*logs: Sequence[Transaction]) -> list[Transaction]:
    """Return logs as one, by the time of each, with zxids of its own."""
    woven = sorted(
        (each.time_ms - log[0].time_ms, side, number, each)
        for side, log in enumerate(logs)
        for number, each in enumerate(log)
    )
    start = logs[0][0].time_ms
    return [
        replace(each, zxid=zxid, time_ms=start + since)
        for zxid, (since, _, _, each) in enumerate(woven, 1)
    ]


def audit(folder: Path, **options: Any) -> AuditReport:
    """Return the report on logs that say by themselves what they are of."""
    found = audit_paths([folder], "kip-236", {}, jobs=1, recognise=True, **options)
    return found.get_report()


@pytest.fixture
def two(tmp_path: Path, server: Server) -> Path:
    """Write the log of an ensemble with a sound Kafka 0.10.2 and a Kafka 0.8.0 with violations."""
    old, new = read_log("old_080", tmp_path), read_log("old_01022", tmp_path)
    return server("two", weave(place(old, "/old", 1), place(new, "/new", 2)))


def list_verdicts(report: AuditReport) -> dict[str, tuple[str, str | None, int]]:
    """Return by chroot the verdict, the version and the number of violations."""
    told = [each for a in report.as_json_dict()["archives"] for each in a["by_cluster"]]
    return {c["chroot"]: (c["verdict"], c["version"], c["violations"]) for c in told}


def test_two_generations_in_one_ensemble_have_a_verdict_each(two: Path) -> None:
    """Clusters of one profile and of different releases are found, and judged as each is."""
    report = audit(two)
    assert report.verdict == "violated"
    assert list_verdicts(report) == {
        "/old": ("violated", "Kafka 0.8.0 to 0.8.2", 2),
        "/new": ("holds", "Kafka 0.10.2 to 2.3", 0),
    }
    settled = {a.clusters: a.readings["election.order"] for a in report.archives}
    assert settled == {("/old",): "in-sync-set", ("/new",): "assignment"}
    accounted = [archive.account() for archive in report.archives]
    for each in accounted:
        assert each["judged"] + sum(each["passed_over"].values()) == each["read"]
        assert each["passed_over"]["of another cluster"] > 20


def test_cluster_is_chosen_by_its_chroot(two: Path) -> None:
    """A cluster that is named is judged as it is alone; one that is not there is refused."""
    assert audit(two, chroots=("/new",)).verdict == "holds"
    named = audit_paths([two], "kafka-42", {"move.expand-first": "yes"}, chroots=("/old",))
    assert list_verdicts(named.get_report()) == {"/old": ("violated", None, 2)}
    with pytest.raises(NoRules, match="no cluster at /gone: the clusters in the log are at /new"):
        audit(two, chroots=("/gone",))


def test_cluster_that_is_followed_is_chosen_by_its_chroot(two: Path, tmp_path: Path) -> None:
    """Of an ensemble that grows one cluster is judged, by its own rules, and gone on with."""
    command = ["audit", "--follow", "--until-caught-up", "--format", "json", str(two)]
    ways = {"/old": (1, 2), "/new": (0, 0)}
    for chroot, (code, count) in ways.items():
        kept = [*command, "--chroot", chroot, "--checkpoint", str(tmp_path / chroot[1:])]
        for _ in range(2):
            said: list[str] = []
            assert run_command(kept, said.append) == code
            last = json.loads(said[-1])
            assert last["counts"]["violations"] == count
            assert [each["chroot"] for each in last["archives"][0]["by_cluster"]] == [chroot]


def test_clusters_judged_together_have_a_verdict_each(tmp_path: Path, server: Server) -> None:
    """One profile and one pass: what one cluster breaks is not the other's."""
    logs = [
        place(read_log(name, tmp_path), f"/{name}", side)
        for side, name in enumerate(("runH", "v282", "v241"), 1)
    ]
    folder = server("three", weave(*logs))
    verdicts = {chroot: told[0] for chroot, told in list_verdicts(audit(folder)).items()}
    assert verdicts == {"/runH": "violated", "/v282": "holds", "/v241": "unknown"}


def test_cluster_without_partitions_is_vacuous(tmp_path: Path, server: Server) -> None:
    """Brokers alone put no clause about a partition to the test."""
    log = place(read_log("old_01022", tmp_path), "/one", 1)
    last = log[-1]
    broker = Create("/two/brokers/ids/1", b'{"version":4}', ephemeral=True)
    more = [broker, Create("/two/isr_change_notification")]
    added = [
        replace(last, zxid=last.zxid + n, type=1, ops=(op,), error=None, attempted=())
        for n, op in enumerate(more, 1)
    ]
    report = audit_paths([server("both", log + added)], "kafka-42", {"move.expand-first": "yes"})
    verdicts = {c: told[0] for c, told in list_verdicts(report.get_report()).items()}
    assert verdicts["/two"] == "vacuous"
