"""What an audit finds in histories that are correct, and in such with planted faults."""

import pytest
from pipeline_steps import Audit, Server

from reassure_conformance import cli
from reassure_judge import verdicts
from reassure_judge.hidden import UNHEARD
from reassure_lab.archives.planted import NEW, OLD, Planted, plant_all
from reassure_lab.archives.sample import SampleCluster, write_sample
from reassure_pipeline.audit.audit_report import AuditReport
from reassure_pipeline.audit.run_audit import audit_named
from reassure_spec import znodes
from reassure_spec.clauses import LEVELS
from reassure_spec.readings import get_profile


def _places(report: AuditReport) -> list[Planted]:
    return [Planted(v.clause, v.topic, v.partition, v.zxid) for v in report.violations]


def test_correct_history_holds(server: Server, audit: Audit) -> None:
    """A correct history has no violation, at its end neither, and puts many clauses to the test."""
    history = write_sample(topics=2)
    report = audit(server("one", history), at_rest=True)
    assert report.verdict == "holds"
    assert report.violations == ()
    body = report.as_json_dict()
    assert body["counts"] == {
        "transactions": len(history),
        "partitions": 20,
        "violations": 0,
        "incidents": 0,
        "not_followed": 0,
        "damaged": 0,
    }
    assert sum(clause["verdict"] == "holds" for clause in body["clauses"]) >= 30
    assert "facts" not in body  # nobody asked for them
    assert body["archives"][0]["begins"] == "beginning"
    assert body["archives"][0]["partial"] is False


def test_planted_faults_are_found_exactly(server: Server, audit: Audit) -> None:
    """Every planted fault is found under its clause and zxid, and nothing else is."""
    cluster = SampleCluster()
    planted = plant_all(cluster)
    report = audit(server("one", cluster.transactions))
    assert _places(report) == sorted(planted, key=lambda place: place.zxid)
    assert len({place.clause for place in planted}) >= 8
    assert report.verdict == "violated"


def test_faults_in_a_chroot_are_found_under_its_path(server: Server, audit: Audit) -> None:
    """Clusters that share one log are judged apart, and the path of a finding has the chroot."""
    good, bad = SampleCluster(chroot="/good"), SampleCluster(chroot="/bad")
    bad.zxid = bad.transactions[-1].zxid
    good.create_topic("events", {0: OLD})
    good.reassign("events", {0: NEW})
    bad.time_ms += 60_000
    bad.create_topic("events", {0: OLD})
    zxid = bad.write_state("events", 0, leader=2)
    last = good.transactions[-1].zxid
    for transaction in bad.transactions:
        transaction.zxid += last  # type: ignore[misc]
    report = audit(server("one", good.transactions, bad.transactions))
    assert [(v.zxid, v.chroot) for v in report.violations] == [(zxid + last, "/bad")]
    found = report.as_json_dict()["violations"][0]
    assert found["path"] == "/bad" + znodes.state_path("events", 0)


def test_what_is_owed_counts_only_at_rest(server: Server, audit: Audit) -> None:
    """A history that ends with work undone is blamed for it only where its end is a rest."""
    cluster = SampleCluster()
    cluster.create_topic("events", {0: OLD})
    cluster.begin_reassign("events", {0: NEW})
    cluster.join("events", 0, NEW)
    folder = server("one", cluster.transactions)
    assert audit(folder).verdict == "holds"
    found = audit(folder, at_rest=True).violations
    assert [(v.clause, v.zxid, v.session) for v in found] == [
        ("complete.carried-out", cluster.zxid, 0)
    ]


def test_archives_are_judged_apart(server: Server, audit: Audit) -> None:
    """Two servers' histories do not mix, and the report says which one a violation is in."""
    clean, broken = SampleCluster(), SampleCluster()
    clean.create_topic("events", {0: OLD})
    broken.time_ms += 60_000
    broken.create_topic("events", {0: OLD})
    zxid = broken.write_state("events", 0, leader=2)
    paths = [server("a", clean.transactions), server("b", broken.transactions)]
    body = audit(*paths).as_json_dict()
    assert [(found["archive"], found["zxid"]) for found in body["violations"]] == [
        (str(paths[1]), zxid)
    ]
    assert [row["violations"] for row in body["archives"]] == [0, 1]
    assert body["counts"]["partitions"] == 2
    assert body["counts"]["transactions"] == len(clean.transactions) + len(broken.transactions)


def test_advice_not_followed_is_counted_and_holds(
    server: Server, audit: Audit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where broken clauses are advice an audit holds, lists them, and is violated when strict."""
    cluster = SampleCluster()
    planted = plant_all(cluster)
    monkeypatch.setattr(verdicts, "ADVICE", frozenset(LEVELS))
    report = audit(server("one", cluster.transactions))
    body = report.as_json_dict()
    assert (body["verdict"], body["violations"]) == ("holds", [])
    assert body["counts"]["not_followed"] == len(body["not_followed"]) == len(planted)
    assert {c["verdict"] for c in body["clauses"]} == {"holds", "not exercised", "not followed"}
    strict = report.strictly().as_json_dict()
    assert (strict["verdict"], strict["not_followed"]) == ("violated", [])
    assert strict["violations"] == body["not_followed"]
    assert "not followed" not in {clause["verdict"] for clause in strict["clauses"]}


def test_minimum_of_brokers_own_files_is_told_to_an_audit(server: Server, audit: Audit) -> None:
    """A refusal by a minimum that no znode shows is sound once the audit is told of it."""
    cluster = SampleCluster()
    cluster.create_topic("events", {0: (1, 2, 3)})
    zxid = cluster.remove_request(cluster.submit("events", {0: (4, 5, 6)}))
    path = server("one", cluster.transactions)
    assert [v.zxid for v in audit(path).violations] == [zxid]
    assert audit(path, min_insync_replicas=4).violations == ()


def test_grace_decides_what_is_news(server: Server) -> None:
    """What may be news leaves a clause unknown and the audit with it; told otherwise it is red."""
    cluster = SampleCluster()
    cluster.create_topic("events", {0: OLD})
    cluster.kill(3)
    cluster.write_state("events", 0, isr=(1, 2))
    zxid = cluster.write_isr("events", 0, OLD)
    folder = server("one", cluster.transactions)
    clause = "isr.change.live-only"
    unsure, sure = (
        audit_named([folder], "kip-236", get_profile("kip-236"), grace_ms=grace_ms)
        for grace_ms in (1000, 0)
    )
    assert (unsure.verdict, unsure.violations) == ("unknown", ())
    assert [c.id for c in unsure.clauses if c.verdict == "unknown"] == [clause]
    first = {"clause": clause, "topic": "events", "partition": 0, "zxid": zxid}
    path = znodes.state_path("events", 0)
    told = first | {"path": path, "unless": [UNHEARD]}
    assert unsure.archives[0].as_dict(strict=False)["undecided"] == [told]
    assert sure.verdict == "violated"
    assert [(v.clause, v.zxid) for v in sure.violations] == [(clause, zxid)]


def test_what_is_undecided_is_named_where_it_came_up_first(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    """The text names the first transaction and znode of each clause that is left open."""
    cluster = SampleCluster()
    cluster.create_topic("events", {0: OLD})
    cluster.kill(3)
    zxids = []
    for _ in range(2):
        cluster.write_state("events", 0, isr=(1, 2))
        zxids.append(cluster.write_isr("events", 0, OLD))
    folder = server("one", cluster.transactions)
    assert cli.run_command(["audit", str(folder)]) == 2
    lines = capsys.readouterr().out.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("UNKNOWN isr.change.live-only"))
    assert "2 times" in lines[at]
    path = znodes.state_path("events", 0)
    assert lines[at + 1] == f"  first at 0x{zxids[0]:x} in {folder}: {path}"
    assert lines[at + 2] == f"  holds if one of these is true: {UNHEARD}"
