"""The verb `audit`: several archives, members, damage, budgets and later starts, as printed."""

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from reassure_conformance import cli
from reassure_conformance.report.document import result_schema
from reassure_lab.archives.planted import plant_all
from reassure_lab.archives.sample import SampleCluster, write_sample
from reassure_zookeeper.log_survey import list_records, survey_log
from reassure_zookeeper.transactions import Create, Transaction, committed
from reassure_zookeeper.txnlog import read_logs
from reassure_zookeeper.txnlog_writer import write_log

LOGS = Path(__file__).parents[1] / "judge" / "kafka_logs"


NAMED = ("--profile", "kip-236")


def _audit(*arguments: object) -> tuple[int, dict[str, Any]]:
    said: list[str] = []
    code = cli.run_command(["audit", *map(str, arguments), "--format", "json"], said.append)
    document = json.loads(said[-1])
    Draft202012Validator(result_schema()).validate(document)
    return code, document


def _print(*arguments: object) -> str:
    said: list[str] = []
    cli.run_command(["audit", *map(str, arguments), *NAMED], said.append)
    return "\n".join(said)


def _make(place: Path, *files: list[Transaction]) -> Path:
    place.mkdir()
    for history in files:
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


@pytest.mark.parametrize("named", [(), NAMED])
@pytest.mark.parametrize("kind", _KINDS)
def test_bad_archive_ends_nothing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    named: tuple[str, ...],
) -> None:
    """What can be judged is judged; what cannot has its reason, and nothing holds as a whole."""
    sound = _make(tmp_path / "sound", write_sample(topics=1, partitions=1))
    bad = _spoil(tmp_path / "bad", kind, monkeypatch)
    error, reason = _KINDS[kind]
    for paths in ((sound, bad), (bad, sound)):
        code, document = _audit(*paths, *named)
        assert (code, document["verdict"], document["counts"]["not_judged"]) == (2, "unknown", 1)
        assert _list_verdicts(document) == {"sound": "holds", "bad": error}
        assert reason in document["not_judged"][0]["reason"]
        assert any(f"{bad}: not judged: " in need for need in document["needs"])
    code, document = _audit(bad, *named)
    assert document["error"]["class"] == error
    assert code not in (0, 1, 2, 3)


def test_each_archive_has_a_verdict(tmp_path: Path) -> None:
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
    code, document = _audit(*paths, *NAMED, "--members", "apart")
    assert (code, document["verdict"]) == (1, "violated")
    assert _list_verdicts(document) == expected
    said = _print(*paths, "--members", "apart")
    assert f"NOT JUDGED {empty}: " in said
    assert all(f"{path}: {expected[path.name]}" in said for path in sound)


def test_each_archive_is_judged_by_its_own_profile(tmp_path: Path) -> None:
    """Logs of several Kafkas are all judged in one call, each as if it were alone."""
    profiles = {"old_01022": "kafka-42", "runA": "kafka-zk", "runH": "kafka-zk"}
    alone = {}
    for name in profiles:
        (tmp_path / name).mkdir()
        log = gzip.decompress((LOGS / f"{name}.log.gz").read_bytes())
        (tmp_path / name / "log.1").write_bytes(log)
        _, document = _audit(tmp_path / name)
        (alone[name],) = document["archives"]
    code, document = _audit(*(tmp_path / name for name in profiles))
    assert (code, document["verdict"], document["profile"]) == (1, "violated", None)
    assert document["recognised"] is None
    assert document["archives"] == list(alone.values())
    assert [each["profile"] for each in document["archives"]] == list(profiles.values())
    clauses = {each["id"] for each in document["clauses"]}
    assert clauses > {each["clause"] for each in document["violations"]} > set()
    said: list[str] = []
    cli.run_command(["audit", *(str(tmp_path / name) for name in profiles)], said.append)
    assert all(f"{name}: profile {profile}: " in said[0] for name, profile in profiles.items())


def test_clusters_below_one_zookeeper_are_judged_by_their_own_profiles(tmp_path: Path) -> None:
    """Two generations of Kafka under one ZooKeeper: neither is held to the rules of the other."""
    old = SampleCluster(chroot="/old")
    plant_all(old)
    kafkas = gzip.decompress((LOGS / "runA.log.gz").read_bytes())
    (tmp_path / "kafka").mkdir()
    (tmp_path / "kafka" / "log.1").write_bytes(kafkas)
    last = max(t.zxid for t in read_logs([tmp_path / "kafka" / "log.1"]))
    moved = [replace(each, zxid=each.zxid + last) for each in old.transactions]
    both = [*read_logs([tmp_path / "kafka" / "log.1"]), *moved]
    _, alone = _audit(_make(tmp_path / "old", old.transactions))
    code, document = _audit(_make(tmp_path / "both", both))
    told = {each["profile"]: each for each in document["archives"]}
    assert (code, set(told)) == (1, {"kafka-zk", "kip-236"})
    assert told["kip-236"]["clusters"] == ["/old"]
    assert told["kafka-zk"]["violations"] == 0
    found = [(each["clause"], each["zxid"] - last) for each in document["violations"]]
    assert found == [(each["clause"], each["zxid"]) for each in alone["violations"]]


def test_all_bad_is_an_error(tmp_path: Path) -> None:
    """Where nothing at all can be judged there is no verdict, but the first error."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    code, document = _audit(tmp_path / "one", tmp_path / "two")
    assert (code, document["error"]["class"]) == (65, "LogsMissing")


@pytest.fixture
def history() -> list[Transaction]:
    """Return a history of an ensemble, in its first epoch, with faults in it."""
    cluster = SampleCluster(first_zxid=(1 << 32) + 1)
    plant_all(cluster)
    return cluster.transactions


def test_three_members_give_each_violation_once(tmp_path: Path, history: list[Transaction]) -> None:
    """The same faults are found in one member's log and in those of three, that lack parts."""
    code, alone = _audit(_make(tmp_path / "alone", history), *NAMED)
    third = len(history) // 3
    members = [
        _make(tmp_path / "a", history[: 2 * third]),
        _make(tmp_path / "b", history[:third], history[third + 20 :]),
        _make(tmp_path / "c", history[third:]),
    ]
    also, merged = _audit(*members, *NAMED)
    assert code == also == 1
    assert merged["counts"] == alone["counts"]
    (archive,) = merged["archives"]
    assert archive["members"] == [str(member) for member in members]
    assert archive["holes"] == []
    places = [(each["clause"], each["zxid"]) for each in merged["violations"]]
    assert places == [(each["clause"], each["zxid"]) for each in alone["violations"]]
    _, apart = _audit(*members, *NAMED, "--members", "apart")
    assert len(apart["archives"]) == 3
    assert any("are missing" in need for need in apart["needs"])


def test_what_is_amiss_is_printed(tmp_path: Path, history: list[Transaction]) -> None:
    """A person reads where a log is damaged, and what a lost leader has logged alone."""
    cut = len(history) - 3
    newer = [replace(each, zxid=(2 << 32) + n) for n, each in enumerate(history[cut:], 1)]
    lost = _make(tmp_path / "a", history)
    others = [_make(tmp_path / name, history[:cut], newer) for name in "bc"]
    (log,) = lost.glob("log.*")
    stretch = survey_log(log).ranges[0]
    damaged = list(list_records(stretch))[5]
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


def test_budget_ends_in_good_order_and_goes_on(
    tmp_path: Path, history: list[Transaction], capsys: pytest.CaptureFixture[str]
) -> None:
    """A budget leaves an answer with what is left to do, and the next run begins there."""
    folder = _make(tmp_path / "log", history)
    kept = tmp_path / "kept"
    code, first = _audit(folder, *NAMED, "--budget", 30, "--resume", kept)
    assert (code, first["verdict"], first["counts"]["transactions"]) == (2, "unknown", 30)
    assert first["archives"][0]["judged_to"] == history[29].zxid
    code, rest = _audit(folder, *NAMED, "--resume", kept)
    assert (code, rest) == _audit(folder, *NAMED)
    assert capsys.readouterr().err == ""
    _audit(folder, *NAMED, "--resume", kept, "--grace", 1)
    assert "is judged again: the checkpoint is of grace_ms 30000 instead of 1000" in (
        capsys.readouterr().err
    )


@pytest.mark.parametrize("form", ["0x{:x}", "{}"])
def test_a_later_start_is_a_zxid_in_either_form(
    tmp_path: Path, history: list[Transaction], form: str
) -> None:
    """Findings before the start are not told, and the text says where that was."""
    folder = _make(tmp_path / "log", history)
    since = history[len(history) // 2].zxid
    _, whole = _audit(folder, *NAMED)
    _, late = _audit(folder, *NAMED, "--since", form.format(since))
    told = {each["zxid"] for each in (*late["violations"], *late["unsettled"])}
    assert told == {each["zxid"] for each in whole["violations"] if each["zxid"] >= since}
    assert f"judged from 0x{since:x}" in _print(folder, "--since", form.format(since))
