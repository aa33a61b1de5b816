"""The verb `audit` on archives of years: members, damage, budgets and later starts, as printed."""

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from reassure_conformance import cli
from reassure_conformance.report.document import result_schema
from reassure_lab.archives.planted import plant_all
from reassure_lab.archives.sample import SampleCluster
from reassure_zookeeper.log_survey import list_records, survey_log
from reassure_zookeeper.transactions import Transaction
from reassure_zookeeper.txnlog_writer import write_log


def _write(folder: Path, *files: list[Transaction]) -> Path:
    folder.mkdir()
    for transactions in files:
        write_log(folder, transactions)
    return folder


def _audit(*arguments: object) -> tuple[int, dict[str, Any]]:
    said: list[str] = []
    words = ["audit", *map(str, arguments), "--profile", "kip-236", "--format", "json"]
    code = cli.run_command(words, said.append)
    report = json.loads(said[-1])
    Draft202012Validator(result_schema()).validate(report)
    return code, report


def _print(*arguments: object) -> str:
    said: list[str] = []
    cli.run_command(["audit", *map(str, arguments), "--profile", "kip-236"], said.append)
    return "\n".join(said)


@pytest.fixture
def history() -> list[Transaction]:
    """Return a history of an ensemble, in its first epoch, with faults in it."""
    cluster = SampleCluster(first_zxid=(1 << 32) + 1)
    plant_all(cluster)
    return cluster.transactions


def test_three_members_give_each_violation_once(tmp_path: Path, history: list[Transaction]) -> None:
    """The same faults are found in one member's log and in those of three, that lack parts."""
    code, alone = _audit(_write(tmp_path / "alone", history))
    third = len(history) // 3
    members = [
        _write(tmp_path / "a", history[: 2 * third]),
        _write(tmp_path / "b", history[:third], history[third + 20 :]),
        _write(tmp_path / "c", history[third:]),
    ]
    also, merged = _audit(*members)
    assert code == also == 1
    assert merged["counts"] == alone["counts"]
    (archive,) = merged["archives"]
    assert archive["members"] == [str(member) for member in members]
    assert archive["holes"] == []
    places = [(each["clause"], each["zxid"]) for each in merged["violations"]]
    assert places == [(each["clause"], each["zxid"]) for each in alone["violations"]]
    _, apart = _audit(*members, "--members", "apart")
    assert len(apart["archives"]) == 3
    assert any("are missing" in need for need in apart["needs"])


def test_what_is_amiss_is_printed(tmp_path: Path, history: list[Transaction]) -> None:
    """A person reads where a log is damaged, and what a lost leader has logged alone."""
    cut = len(history) - 3
    newer = [_renumber(each, number) for number, each in enumerate(history[cut:], 1)]
    lost = _write(tmp_path / "a", history)
    others = [_write(tmp_path / name, history[:cut], newer) for name in "bc"]
    (log,) = lost.glob("log.*")
    span = survey_log(log).ranges[0]
    damaged = list(list_records(span))[5]
    content = bytearray(log.read_bytes())
    content[damaged.stop - 2] ^= 1
    log.write_bytes(content)
    text = " ".join(_print(lost, *others).split())
    assert f"one history with {others[0]}, {others[1]}" in text
    assert f"DAMAGED {log} from byte {damaged.start} to byte {damaged.stop}: a record does" in text
    last = history[-1].zxid
    assert f"3 transactions from 0x{last - 2:x} to 0x{last:x}" in text
    assert f"{lost} has logged: was never committed; not judged" in text
    two = " ".join(_print(lost, others[0]).split())
    assert "may have been committed, or not; not judged" in two
    assert "add the logs of the other members" in two


def _renumber(transaction: Transaction, number: int) -> Transaction:
    from dataclasses import replace

    return replace(transaction, zxid=(2 << 32) + number)


def test_budget_ends_in_good_order_and_goes_on(
    tmp_path: Path, history: list[Transaction], capsys: pytest.CaptureFixture[str]
) -> None:
    """A budget leaves an answer with what is left to do, and the next run begins there."""
    folder = _write(tmp_path / "log", history)
    kept = tmp_path / "kept"
    code, first = _audit(folder, "--budget", 30, "--resume", kept)
    assert (code, first["verdict"], first["counts"]["transactions"]) == (2, "unknown", 30)
    assert first["archives"][0]["judged_to"] == history[29].zxid
    code, rest = _audit(folder, "--resume", kept)
    assert (code, rest) == _audit(folder)
    assert capsys.readouterr().err == ""
    _audit(folder, "--resume", kept, "--grace", 1)
    assert "is judged again: the checkpoint is of grace_ms 30000 instead of 1000" in (
        capsys.readouterr().err
    )


@pytest.mark.parametrize("form", ["0x{:x}", "{}"])
def test_a_later_start_is_a_zxid_in_either_form(
    tmp_path: Path, history: list[Transaction], form: str
) -> None:
    """Findings before the start are not told, and the text says where that was."""
    folder = _write(tmp_path / "log", history)
    since = history[len(history) // 2].zxid
    _, whole = _audit(folder)
    _, late = _audit(folder, "--since", form.format(since))
    told = {each["zxid"] for each in (*late["violations"], *late["unsettled"])}
    assert told == {each["zxid"] for each in whole["violations"] if each["zxid"] >= since}
    assert f"judged from 0x{since:x}" in _print(folder, "--since", form.format(since))
