"""Several archives in one audit: one that cannot be judged ends nothing for the others."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from reassure_conformance import cli
from reassure_conformance.report.document import result_schema
from reassure_lab.archives.planted import plant_all
from reassure_lab.archives.sample import SampleCluster, write_sample
from reassure_zookeeper.transactions import Create, Transaction, committed
from reassure_zookeeper.txnlog_writer import write_log

LOGS = Path(__file__).parents[1] / "judge" / "kafka_logs"


def _audit(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, dict[str, Any]]:
    code = cli.run_command(["audit", *map(str, arguments), "--format", "json"])
    document = json.loads(capsys.readouterr().out)
    Draft202012Validator(result_schema()).validate(document)
    return code, document


def _make(place: Path, history: list[Transaction]) -> Path:
    place.mkdir()
    write_log(place, history)
    return place


def _plant() -> list[Transaction]:
    cluster = SampleCluster()
    plant_all(cluster)
    return cluster.transactions


def _list_verdicts(document: dict[str, Any]) -> dict[str, str]:
    found = {Path(each["path"]).name: each["verdict"] for each in document["archives"]}
    return found | {Path(each["path"]).name: each["error"] for each in document["not_judged"]}


def _spoil(place: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a path that leads to nothing that can be judged."""
    if kind == "foreign file":
        place.write_bytes(b"name: not a log\n")
        return place
    place.mkdir()
    if kind == "garbage":
        (place / "log.1").write_bytes(b"ZKLX" + bytes(range(200)))
    elif kind == "no permission":
        write_log(place, write_sample(topics=1, partitions=1))
        before = Path.open

        def refuse(path: Path, *arguments: Any, **options: Any) -> Any:
            if path.parent == place:
                raise PermissionError(13, "Permission denied", str(path))
            return before(path, *arguments, **options)

        monkeypatch.setattr(Path, "open", refuse)
    return place


_KINDS = {
    "empty": ("LogsMissing", "name a ZooKeeper data directory"),
    "garbage": ("DamagedLog", "is it a transaction log?"),
    "foreign file": ("DamagedLog", "is it a transaction log?"),
    "no permission": ("PermissionError", "Permission denied"),
}


@pytest.mark.parametrize("named", [(), ("--profile", "kip-236")])
@pytest.mark.parametrize("kind", _KINDS)
def test_bad_archive_ends_nothing(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    named: tuple[str, ...],
) -> None:
    """What can be judged is judged; what cannot has its reason, and nothing holds as a whole."""
    sound = _make(tmp_path / "sound", write_sample(topics=1, partitions=1))
    bad = _spoil(tmp_path / "bad", kind, monkeypatch)
    error, reason = _KINDS[kind]
    for paths in ((sound, bad), (bad, sound)):
        code, document = _audit(capsys, *paths, *named)
        assert (code, document["verdict"], document["counts"]["not_judged"]) == (2, "unknown", 1)
        assert _list_verdicts(document) == {"sound": "holds", "bad": error}
        assert reason in document["not_judged"][0]["reason"]
        assert any(f"{bad}: not judged: " in need for need in document["needs"])
    code, document = _audit(capsys, bad, *named)
    assert document["error"]["class"] == error
    assert code not in (0, 1, 2, 3)


def test_each_archive_has_a_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One violated archive of several decides, and each says what it came to."""
    history = write_sample(topics=1, partitions=1)
    expected = {
        "sound": "holds",
        "broken": "violated",
        "holed": "unknown",
        "other": "vacuous",
        "empty": "LogsMissing",
    }
    *sound, empty = paths = [tmp_path / name for name in expected]
    histories = history, _plant(), history[:30] + history[31:]
    for path, written in zip(sound, [*histories, [committed(Create("/a"), zxid=1)]], strict=True):
        _make(path, written)
    empty.mkdir()
    options = "--profile", "kip-236", "--members", "apart"
    code, document = _audit(capsys, *paths, *options)
    assert (code, document["verdict"]) == (1, "violated")
    assert _list_verdicts(document) == expected
    cli.run_command(["audit", *map(str, paths), *options])
    said = capsys.readouterr().out
    assert f"NOT JUDGED {empty}: " in said
    assert all(f"{path}: {expected[path.name]}" in said for path in sound)


def test_two_versions_in_one_call(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Logs of another protocol than the first named are left out, and the first are judged."""
    for name in ("runA", "old_01022"):
        (tmp_path / name).mkdir()
        log = gzip.decompress((LOGS / f"{name}.log.gz").read_bytes())
        (tmp_path / name / "log.1").write_bytes(log)
    first, second = tmp_path / "old_01022", tmp_path / "runA"
    code, document = _audit(capsys, first, second)
    assert (code, document["profile"]) == (2, "kafka-42")
    assert _list_verdicts(document) == {"old_01022": "holds", "runA": "NoRules"}
    assert "it is of profile kafka-zk" in document["not_judged"][0]["reason"]
    _, document = _audit(capsys, second, first)
    assert _list_verdicts(document) == {"runA": "holds", "old_01022": "NoRules"}


def test_all_bad_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where nothing at all can be judged there is no verdict, but the first error."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    code, document = _audit(capsys, tmp_path / "one", tmp_path / "two")
    assert (code, document["error"]["class"]) == (65, "LogsMissing")
