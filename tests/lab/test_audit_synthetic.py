"""Synthetic histories: what was planted in them is what an audit finds, and they are sound logs."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from reassure_conformance.cli import run_command
from reassure_lab.protocols.kip_236.distortions import AUTHORSHIPS, DISTORTIONS, GARBAGE, JUMP
from reassure_lab.protocols.kip_236.synthetic import Faulty, Size, SyntheticHistory, write_archive
from reassure_pipeline.audit.audit_report import AuditReport
from reassure_spec import znodes
from reassure_spec.errors import BadUsage
from reassure_zookeeper.server import Server
from reassure_zookeeper.transactions import SetData, Transaction
from reassure_zookeeper.tree import Tree
from reassure_zookeeper.txnlog import log_files, read_logs

Audit = Callable[..., AuditReport]
Snapshot = Callable[[Path, list[Transaction], int], Path]
KINDS = {*(d.clause for d in DISTORTIONS), *(a[0] for a in AUTHORSHIPS), GARBAGE, JUMP}


def _find(report: AuditReport) -> list[Faulty]:
    found = [Faulty(v.clause, v.topic, v.partition, v.zxid) for v in report.violations]
    return sorted(found, key=lambda fault: fault.zxid)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("partitions", "seed"), [(1, 1), (15, 2), (60, 3), (60, 4)])
def test_planted_violations_are_found_and_nothing_else(
    tmp_path: Path, audit: Audit, partitions: int, seed: int
) -> None:
    """Every planted fault is found at its zxid by its clause, and there is no other finding."""
    truth = write_archive(tmp_path / "made", Size(2_500, partitions, 12, seed), per_file=1_000)
    assert len(log_files(tmp_path / "made")) == 3
    assert _find(audit(tmp_path / "made")) == [Faulty(**fault) for fault in truth["planted"]]
    assert len(truth["planted"]) == 12


def test_every_kind_of_fault_is_planted_and_found(tmp_path: Path, audit: Audit) -> None:
    """In a history with room for it there is a fault of every kind, and each is found."""
    truth = write_archive(tmp_path / "made", Size(15_000, 60, 40, 5))
    planted = [Faulty(**fault) for fault in truth["planted"]]
    assert {fault.clause for fault in planted} == KINDS
    assert _find(audit(tmp_path / "made")) == planted


def test_sound_history_holds_to_the_end(tmp_path: Path, audit: Audit) -> None:
    """Without faults there is no finding, and ZooKeeper's tree can be rebuilt from the logs."""
    write_archive(tmp_path / "made", Size(3_000, 20, 0, 6))
    assert audit(tmp_path / "made").violations == ()
    transactions = list(read_logs(tmp_path / "made"))
    assert [each.zxid for each in transactions] == list(range(1, 3_001))
    tree = Tree().apply_all(transactions)
    assert sum(path.endswith("/state") for path in tree.nodes) == 20


def test_same_seed_makes_the_same_history(tmp_path: Path) -> None:
    """The bytes follow from the size and the seed alone."""

    def write(name: str, seed: int) -> bytes:
        write_archive(tmp_path / name, Size(1_500, 10, 3, seed))
        return b"".join(file.read_bytes() for file in log_files(tmp_path / name))

    first = write("first", 7)
    assert first == write("again", 7)
    assert first != write("other", 8)


def test_fault_without_a_place_is_told(tmp_path: Path) -> None:
    """Where a fault that was asked for is not planted, the truth says so, and since when."""
    history = SyntheticHistory(Size(1_500, 10, 3))
    history._find_kinds = list  # type: ignore[method-assign]
    made = sum(map(len, history.steps()))
    first, *others = history.list_unplanted()
    assert (made, history.planted, len(others)) == (1_500, [], 2)
    assert 0 < first.due_zxid < others[0].due_zxid < others[1].due_zxid <= 1_350
    assert first.waited == pytest.approx(1_500 - first.due_zxid, abs=20)
    assert [other.waited for other in others] == [0, 0]
    truth = write_archive(tmp_path / "made", Size(1_500, 10, 3))
    assert (len(truth["planted"]), truth["unplanted"]) == (3, [])


def test_one_partition_may_be_hot(tmp_path: Path, audit: Audit) -> None:
    """A partition that is to have half of what happens has it, and faults are found as ever."""
    truth = write_archive(tmp_path / "made", Size(4_000, 20, 10, 3, hot=0.5))
    first = znodes.state_path("topic-00000", 0)
    ops = [op for each in read_logs(tmp_path / "made") for op in each.ops]
    written = sum(isinstance(op, SetData) and op.path == first for op in ops)
    assert written / 4_000 == pytest.approx(0.5, abs=0.05)
    assert _find(audit(tmp_path / "made")) == [Faulty(**fault) for fault in truth["planted"]]
    assert len(truth["planted"]) == 10


def test_history_is_handed_on_as_it_is_made() -> None:
    """What was written is handed on at once, and kept nowhere."""
    batches = SyntheticHistory(Size(5_000, 10, 0)).steps()
    assert max(len(batch) for batch in batches) < 200


def test_too_small_a_history_is_refused(tmp_path: Path) -> None:
    """What cannot hold its partitions and faults is refused, and so is a directory in use."""
    with pytest.raises(BadUsage, match="too few for 1000 partitions"):
        Size(5_000, 1_000, 0)
    with pytest.raises(BadUsage, match="one transaction or more"):
        Size(0, 1, 0)
    with pytest.raises(BadUsage, match="one partition or more"):
        Size(1_000, 0, 0)
    (tmp_path / "kept").write_text("")
    with pytest.raises(BadUsage, match="not empty"):
        write_archive(tmp_path, Size(1_500, 10, 0))


def test_verb_writes_what_the_audit_reads(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`reassure lab synth` writes an archive that `reassure audit` takes for what it is."""
    made, said = tmp_path / "made", list[str]()
    asked = ["--transactions", "2k", "--partitions", "10", "--faults", "3", "--seed", "9"]
    assert run_command(["lab", "synth", *asked, str(made), "--format", "json"], said.append) == 0
    assert run_command(["audit", str(made), "--format", "json"], said.append) == 1
    written, found = map(json.loads, said)
    zxids = [fault["zxid"] for fault in written["planted"]]
    assert [fault["zxid"] for fault in found["violations"]] == zxids
    assert json.loads((made / "truth.json").read_text())["planted"] == written["planted"]
    assert sorted(Counter(written["by_clause"]).elements()) == sorted(
        fault["clause"] for fault in written["planted"]
    )
    assert run_command(["lab", "synth", "--transactions", "many", str(made)]) == 64
    assert "not a number like" in capsys.readouterr().err


def test_zookeeper_itself_loads_what_was_written(tmp_path: Path, snapshot: Snapshot) -> None:
    """A server that is started on the logs has every persistent node, with data and versions.

    It asks for the snapshot of an empty tree that a server writes as it begins.
    """
    made = tmp_path / "made"
    write_archive(made, Size(1_500, 20, 3, 8), per_file=1_000)
    snapshot(made, [], 0)
    tree = Tree().apply_all(read_logs(made))
    with Server.start(made) as server:
        client = KazooClient(server.hosts, timeout=60)
        client.start(timeout=120)
        try:
            for path, node in tree.nodes.items():
                if path not in ("", "/") and not node.ephemeral_owner:
                    data, stat = client.get(path)
                    found = data or b"", stat.version, stat.mzxid
                    assert found == (node.data, node.version, node.mzxid)
        finally:
            client.stop()
            client.close()
