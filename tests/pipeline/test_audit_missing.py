"""What an audit says of what it did not see: nothing judged is never green."""

import gzip
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from pipeline_steps import Audit, Server, audit_spark

from reassure_judge.protocols import NoRules, find_protocols
from reassure_judge.trees import KAFKAS_OWN, TREES
from reassure_lab.archives.planted import NEW, OLD
from reassure_lab.archives.sample import SampleCluster, write_sample
from reassure_pipeline.audit.audit_report import AuditReport
from reassure_pipeline.audit.run_audit import audit_named
from reassure_spec.readings import get_profile
from reassure_spec.znodes import REASSIGNMENT_REQUESTS, REASSIGNMENTS
from reassure_zookeeper.errors import LogsMissing
from reassure_zookeeper.transactions import Create, Transaction, committed
from reassure_zookeeper.txnlog import log_files


def _foreign(*paths: str) -> list[Transaction]:
    return [committed(Create(path), zxid=zxid) for zxid, path in enumerate(paths, start=1)]


@pytest.mark.parametrize("judge", [audit_named, audit_spark])
@pytest.mark.parametrize("profile", ["kafka-4485", "nobodys"])
def test_profile_without_rules_is_refused(
    server: Server, profile: str, judge: Callable[..., AuditReport]
) -> None:
    """No log is judged under a profile that there are no rules for it, by either engine."""
    folder = server("one", write_sample(topics=1, partitions=1))
    why = {
        "kafka-4485": "its rules read observations",
        "nobodys": f"there are rules for {', '.join(find_protocols())}",
    }
    with pytest.raises(NoRules, match=why[profile]):
        judge([folder], profile, get_profile("kafka-4485"))


_CLUSTER = ("/brokers", "/brokers/ids", "/brokers/topics")


@pytest.mark.parametrize("chroot", ["", "/one"])
@pytest.mark.parametrize("tree", KAFKAS_OWN)
@pytest.mark.parametrize("sign", [REASSIGNMENT_REQUESTS, REASSIGNMENTS, None])
def test_kafkas_own_protocol_is_told_from_requests(
    server: Server, audit: Audit, chroot: str, tree: str, sign: str | None
) -> None:
    """A cluster that writes Kafka's own trees and none of KIP-236 is said to be foreign."""
    paths = [chroot + path for path in (*_CLUSTER, tree, *filter(None, [sign]))]
    found = list(audit(server("one", _foreign(*paths))).archives[0].find_foreign())
    assert len(found) == (sign is None)
    assert all(f"the cluster at {chroot or '/'} uses" in words for words in found)
    assert all(f"{chroot}{tree} was written 1 times" in words for words in found)


@pytest.mark.parametrize("sign", ["request", "record"])
def test_protocol_is_known_in_the_middle_of_a_history(
    server: Server, audit: Audit, sign: str
) -> None:
    """A request or a record is sign enough where the parents' creation is not seen."""
    name = f"{REASSIGNMENT_REQUESTS}/request_0000000000"
    path = name if sign == "request" else f"{REASSIGNMENTS}/orders"
    report = audit(server("one", _foreign("/brokers/ids/1", KAFKAS_OWN[0], path)))
    assert list(report.archives[0].find_foreign()) == []


@pytest.mark.parametrize(
    "paths",
    [
        ("/hbase", "/hbase/rs", "/hbase/rs/1"),
        ("/zookeeper/config",),
        ("/consumers/controller", "/consumers/controller_epoch"),
        ("/brokers",),
    ],
)
@pytest.mark.parametrize("at_rest", [True, False])
def test_history_of_somebody_else_is_vacuous(
    server: Server, audit: Audit, paths: tuple[str, ...], at_rest: bool
) -> None:
    """A log in which no cluster is does not hold: the verdict says what log was needed."""
    report = audit(server("one", _foreign(*paths)), at_rest=at_rest)
    assert report.verdict == "vacuous"
    assert len(report.needs) == 1
    assert "it has no Kafka cluster" in report.needs[0]
    assert report.archives[0].clusters == ()


def test_cluster_in_which_nothing_moves_is_vacuous(server: Server, audit: Audit) -> None:
    """A cluster that only says that it exists puts nothing to the test."""
    report = audit(server("one", _foreign("/brokers", "/brokers/ids", "/brokers/topics")))
    assert report.verdict == "vacuous"
    assert report.needs == ("no write that a clause is about: add logs in which partitions change",)


def test_last_file_alone_does_not_hold(server: Server, audit: Audit) -> None:
    """The last of several files, without a snapshot, is never green, wherever it begins."""
    history = write_sample(topics=2, partitions=2)
    whole = audit(server("whole", history))
    assert whole.verdict == "holds"
    for cut in range(10, len(history), 23):
        report = audit(server(f"from-{cut}", history[cut:]))
        assert report.verdict in ("unknown", "vacuous")
        assert any("begins inside a history" in n or "no cluster" in n for n in report.needs)
        assert report.violations == ()


UNREAD = ("log.80.tgz", "log.80.bz2", "log.80.zst", "log.80.old", "log.8A", "log-80", "LOG.80.xz")


@pytest.mark.parametrize("name", [*UNREAD, "version-2.tar.gz", "old.tgz", "old.zip"])
@pytest.mark.parametrize("as_file", [True, False])
def test_what_is_not_read_is_named(server: Server, audit: Audit, name: str, as_file: bool) -> None:
    """Packed and renamed logs beside a good one are named, and the whole does not hold."""
    history = write_sample(topics=1, partitions=2)
    folder = server("one", history)
    log = folder / "version-2" / "log.1"
    packed = folder / "version-2" / name
    packed.write_bytes(gzip.compress(log.read_bytes()))
    report = audit(log if as_file else folder)
    assert report.verdict == "unknown"
    assert report.as_json_dict()["archives"][0]["unread"] == [str(packed)]
    assert len(report.needs) == 1
    assert str(packed) in report.needs[0]


@pytest.mark.parametrize("ending", [".gz", ".zip"])
def test_packed_logs_are_read_as_they_are(server: Server, audit: Audit, ending: str) -> None:
    """Rotated logs packed each by itself come to the same, also beside one that is there plain."""
    history = write_sample(topics=2)
    folder = server("one", history[:100], history[100:200], history[200:])
    plain = audit(folder)
    for log in log_files(folder)[:2]:
        packed = log.with_name(log.name + ending)
        if ending == ".gz":
            packed.write_bytes(gzip.compress(log.read_bytes()))
        else:
            with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
                archive.write(log, log.name)
    log_files(folder)[0].unlink()
    assert len(log_files(folder)) == 3
    report = audit(folder)
    assert (report.verdict, report.clauses) == (plain.verdict, plain.clauses)
    content = packed.read_bytes()
    log_files(folder)[1].unlink()
    packed.write_bytes(content[: len(content) // 2])
    (archive,) = audit(folder).archives
    (damage,) = archive.archive.damages
    assert damage.file == packed
    assert "does not unpack" in damage.reason
    assert archive.partial


@pytest.mark.parametrize("name", ["snapshot.80", "currentEpoch", "acceptedEpoch", "myid"])
def test_what_is_no_log_is_not_missed(server: Server, audit: Audit, name: str) -> None:
    """The other files of a server are no part of the history."""
    folder = server("one", write_sample(topics=1, partitions=2))
    (folder / "version-2" / name).write_bytes(b"7")
    assert audit(folder).verdict == "holds"


MAKE: dict[str, Callable[[Path], None]] = {
    "folder": Path.mkdir,
    "loop": lambda path: path.symlink_to(path.name),
    "dangling": lambda path: path.symlink_to("nowhere"),
}


@pytest.mark.parametrize("make", MAKE.values(), ids=MAKE)
@pytest.mark.parametrize("name", ["log.37", "log.1", "snapshot.37"])
def test_what_is_no_file_is_named(
    server: Server, audit: Audit, tmp_path: Path, make: Callable[[Path], None], name: str
) -> None:
    """A directory or a link that leads nowhere, called like a log, is named and no error of ours.

    Alone it makes no archive.
    """
    folder = server("one", write_sample(topics=1, partitions=2))
    (folder / "version-2" / "log.1").rename(folder / "version-2" / "log.0")
    make(folder / "version-2" / name)
    report = audit(folder)
    assert report.verdict == ("holds" if name.startswith("snapshot") else "unknown")
    alone = tmp_path / "alone"
    alone.mkdir()
    make(alone / name)
    with pytest.raises(LogsMissing, match="alone has no transaction"):
        audit(alone)


def test_trees_without_rules_are_named(server: Server, audit: Audit) -> None:
    """Every tree of Kafka's that is not judged is listed with its writes, under its chroot."""
    cluster = SampleCluster(chroot="/kafka/one")
    for tree in TREES:
        for name in ("²", "x"):
            cluster.append(Create(f"/kafka/one{tree}/{name}/{name}/state"))
    cluster.append(Create("/hbase"))
    cluster.append(Create("/hbase/rs"))
    cluster.create_topic("events", {0: OLD})
    cluster.reassign("events", {0: NEW})
    report = audit(server("one", cluster.transactions))
    expected = {f"/kafka/one{tree}": 2 for tree in TREES} | {"/hbase/…": 2}
    assert dict(report.archives[0].unjudged) == expected
    assert report.verdict == "holds"
    listed = report.as_json_dict()["archives"][0]["seen_not_judged"]
    assert {seen["what"] for seen in listed} == {*TREES.values(), ""}
