"""Observations in an audit: files, rotation, torn and bad lines, and the join with the log."""

import json
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
from observed_walks import Telling, tell_walk

from reassure_conformance.cli import run_command
from reassure_pipeline.audit.observed import is_observations, read_observations, sort_paths
from reassure_spec.observations import (
    KINDS,
    NOBODY,
    BadObservation,
    Observation,
    Stored,
    Writer,
    decode_lines,
    decode_observation,
    encode_observation,
)
from reassure_spec.readings import get_profile
from reassure_spec.znodes import StateZnode, encode_state, state_path
from reassure_zookeeper.transactions import Create, SetData, Transaction, committed
from reassure_zookeeper.txnlog_writer import write_log

AMENDED = get_profile("kip-236-amended")
READINGS = (
    "hw.scope=across-clean-elections",
    "hw.over-stored-isr=yes",
    "hw.served-from=end-at-election",
    "isr.entry=end-at-election",
    "follower.truncation=common-prefix",
)


def tell(seed: int = 5, *, stored: bool = True) -> dict[str, list[Observation]]:
    """Return a sound history by writer, with or without what the controller says."""
    lines = tell_walk(Random(seed), AMENDED, 3, 90).telling.lines
    return {name: told for name, told in lines.items() if stored or name != "controller"}


def write(folder: Path, told: dict[str, list[Observation]]) -> Path:
    """Write one file for each writer."""
    folder.mkdir(exist_ok=True)
    for name, lines in told.items():
        (folder / f"{name}.ndjson").write_bytes(b"".join(map(encode_observation, lines)))
    return folder


def audit(capsys: Any, *arguments: object, profile: str = "kafka-4485") -> tuple[int, Any]:
    """Return the exit code and the document of an audit."""
    given = [part for text in READINGS for part in ("--reading", text)]
    given = given if profile == "kafka-4485" else []
    command = ["audit", *map(str, arguments), "--profile", profile, *given, "--format", "json"]
    code = run_command(command)
    return code, json.loads(capsys.readouterr().out)


def list_broken(document: Any) -> list[tuple[str, str, int]]:
    """Return the violations of a document by clause, file name and line."""
    return [(v["clause"], Path(v["file"]).name, v["line"]) for v in document["violations"]]


def test_sound_files_hold(tmp_path: Path, capsys: Any) -> None:
    """A directory with a file for each writer holds, and says what was not judged and why."""
    code, document = audit(capsys, write(tmp_path, tell()), "--at-rest")
    assert (code, document["verdict"], document["violations"]) == (0, "holds", [])
    assert document["counts"]["observations"] == sum(map(len, tell().values()))
    assert document["counts"]["partitions"] == 1
    reasons = {u["clause"]: u["reason"] for u in document["unjudged"]}
    assert "lead with time_ms" in reasons["isr.pseudo.by-lag"]
    assert "what a word means" in reasons["lag.definition"]


def test_fault_is_named_by_file_and_line(tmp_path: Path, capsys: Any) -> None:
    """A mark beyond the log is violated at the line of the file that says it, with its writer."""
    told = tell()
    line = next(n for n, x in enumerate(told["broker-0"]) if type(x.what).__name__ == "Lead")
    said = told["broker-0"][line]
    told["broker-0"][line] = said._replace(what=said.what._replace(high_watermark=99))  # type: ignore[call-arg]
    code, document = audit(capsys, write(tmp_path, told), "--at-rest")
    assert code == 1
    assert list_broken(document) == [("hw.at-most-leader-end", "broker-0.ndjson", line + 1)]
    (violation,) = document["violations"]
    assert violation["author"] == f"broker-0, run 1, its line {line}"
    assert (violation["before"], violation["expected"]) == ("log end 0", "at most 0")


def test_people_are_shown_the_line(tmp_path: Path, capsys: Any) -> None:
    """In text a violation has file, line and writer, and no znode."""
    told = tell()
    told["broker-0"][1] = told["broker-0"][1]._replace(
        what=told["broker-0"][1].what._replace(high_watermark=3)  # type: ignore[call-arg]
    )
    assert run_command(["audit", str(write(tmp_path, told)), "--profile", "kafka-4485"]) == 1
    said = capsys.readouterr().out
    assert "VIOLATED hw.restored-not-raised\n  line     " in said
    assert "broker-0.ndjson:2\n  of       t-0\n  writer   broker-0, run 1, its line 1\n" in said
    assert "znode" not in said


@pytest.mark.parametrize("count", [1, 2, 5, 12])
def test_rotated_files_are_one(tmp_path: Path, capsys: Any, count: int) -> None:
    """A writer's file may be cut anywhere into `.2`, `.1` and so on; ten comes before nine."""
    told = tell()
    lines = told.pop("broker-1")
    write(tmp_path, told)
    cuts = [len(lines) * n // count for n in range(count + 1)]
    for number, (start, stop) in enumerate(pairwise(cuts)):
        left = count - 1 - number
        name = f"broker-1.ndjson.{left}" if left else "broker-1.ndjson"
        (tmp_path / name).write_bytes(b"".join(map(encode_observation, lines[start:stop])))
    code, document = audit(capsys, tmp_path, "--at-rest")
    assert (code, document["needs"]) == (0, [])


def test_writers_may_share_a_file(tmp_path: Path, capsys: Any) -> None:
    """One file with the lines of all writers in any order is judged as files of their own."""
    lines = Telling(lines=tell()).shuffle(Random(1))
    path = tmp_path / "all"
    path.write_bytes(b"".join(map(encode_observation, lines)))
    code, document = audit(capsys, path, "--at-rest")
    assert (code, document["observed"]["files"]) == (0, [str(path)])


def test_lines_that_come_twice_count_once(tmp_path: Path, capsys: Any) -> None:
    """A copy of a file beside it changes nothing but is told."""
    told = tell()
    write(tmp_path, told)
    (tmp_path / "copy.ndjson").write_bytes((tmp_path / "broker-0.ndjson").read_bytes())
    code, document = audit(capsys, tmp_path, "--at-rest")
    assert (code, document["observed"]["twice"]) == (0, len(told["broker-0"]))


# Lines that cannot be read ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        (b'"kind":"replica"', b'"kind":"replika"', "there is no kind 'replika'; the kinds are: wr"),
        (b'"log_end_offset"', b'"log_end"', "replica: there is no field 'log_end'; the fields "),
        (b'"partition":0', b'"partition":"0"', "partition: expected an integer from 0 to 2147483"),
        (b'"version":1', b'"version":2', "expected version 1, found 2"),
        (b'"version":1,', b'"version":1', "not JSON: "),
        (b'"topic":"t",', b"", "replica: expected a field 'topic', and there is none"),
    ],
)
def test_bad_line_ends_with_65(
    tmp_path: Path, capsys: Any, old: bytes, new: bytes, complaint: str
) -> None:
    """A line that is not of the format ends with 65, file, line and what was expected."""
    told = tell()
    at = next(n for n, x in enumerate(told["broker-1"]) if type(x.what).__name__ == "Replica")
    path = write(tmp_path, told) / "broker-1.ndjson"
    lines = path.read_bytes().splitlines(keepends=True)
    lines[at] = lines[at].replace(old, new)
    path.write_bytes(b"".join(lines))
    code, document = audit(capsys, tmp_path)
    assert code == 65
    assert document["error"]["class"] == "BadObservation"
    assert (document["error"]["file"], document["error"]["line"]) == (str(path), at + 1)
    assert complaint in document["error"]["message"]


@pytest.mark.parametrize("cut", [1, 7, 40, 90])
def test_torn_line_is_told_and_loses_nothing_else(tmp_path: Path, capsys: Any, cut: int) -> None:
    """A last line that was not finished is named; nobody is blamed, and the rest is judged."""
    told = tell()
    path = write(tmp_path, told) / "broker-2.ndjson"
    path.write_bytes(path.read_bytes()[:-cut])
    code, document = audit(capsys, tmp_path, "--at-rest")
    whole = cut == 1  # but for the end of the line
    torn = {"file": str(path), "line": len(told["broker-2"]), "writer": "broker-2"}
    assert document["observed"]["torn"] == ([] if whole else [torn])
    assert code == (0 if whole else 2)
    assert document["violations"] == []
    assert sum(c["exercised"] for c in document["clauses"]) > 100


def test_next_run_goes_on_behind_a_torn_line(tmp_path: Path) -> None:
    """A torn line amid a file is one where a new run begins behind it, and an error elsewhere."""
    head = Observation("broker-1", 1, 0, "", "", -1, NOBODY, 0, 0, Writer(()))
    again, path = head._replace(run=2), tmp_path / "x"
    torn = encode_observation(head)[:30]
    path.write_bytes(encode_observation(head) + torn + b"\n" + encode_observation(again))
    kinds = [type(said).__name__ for _, said in read_observations(path)]
    assert kinds == ["Observation", "TornLine", "Observation"]
    path.write_bytes(torn + b"\n" + encode_observation(again._replace(sequence=1)))
    with pytest.raises(BadObservation, match="line 1: not JSON"):
        list(read_observations(path))


def test_contradictory_lines_end_with_65(tmp_path: Path, capsys: Any) -> None:
    """Two lines with one number that say different things are an error that names the second."""
    told = tell()
    write(tmp_path, told)
    other = told["broker-0"][1]._replace(leader_epoch=7)
    path = tmp_path / "copy.ndjson"
    path.write_bytes(encode_observation(told["broker-0"][0]) + encode_observation(other))
    code, document = audit(capsys, tmp_path)
    assert (code, document["error"]["line"]) == (65, 2)
    assert "came before, with other content" in document["error"]["message"]


def test_files_in_the_wrong_order_end_with_65(tmp_path: Path, capsys: Any) -> None:
    """Where the names of a writer's files do not follow on each other, it is said how to."""
    lines = tell()["broker-0"]
    (tmp_path / "b.ndjson").write_bytes(b"".join(map(encode_observation, lines[:9])))
    (tmp_path / "a.ndjson").write_bytes(b"".join(map(encode_observation, lines[9:])))
    code, document = audit(capsys, tmp_path)
    assert code == 65
    assert "the oldest with the largest number" in document["error"]["message"]


def test_missing_and_packed_files_are_needed(tmp_path: Path, capsys: Any) -> None:
    """A gap in a writer's lines and a packed file make the verdict unknown, and are named."""
    told = tell()
    told["broker-1"] = told["broker-1"][:8] + told["broker-1"][9:]
    (write(tmp_path, told) / "broker-9.ndjson.3.gz").write_bytes(b"\x1f\x8b")
    code, document = audit(capsys, tmp_path, "--at-rest")
    assert code == 2
    packed, gap = document["needs"]
    assert packed.endswith("broker-9.ndjson.3.gz is not read: unpack it beside the others")
    assert gap.startswith("lines of broker-1 are missing, 1 times")


# Beside transaction logs ------------------------------------------------------------------------


def write_states(folder: Path, stored: list[Observation], *, partition: int = 0) -> Path:
    """Write a transaction log in which a controller stores what the lines say."""
    folder.mkdir()
    path, history = state_path("t", partition), []
    for zxid, line in enumerate(stored, 1):
        said = line.what
        assert isinstance(said, Stored)
        data = encode_state(
            StateZnode(said.leader, line.leader_epoch, line.controller_epoch, said.isr)
        )
        first = zxid == 1
        op = Create(path, data, ephemeral=False) if first else SetData(path, data, said.isr_version)
        history.append(make_transaction(zxid, op))
    write_log(folder, history)
    return folder


def make_transaction(zxid: int, op: Any) -> Transaction:
    """Return a transaction with one write."""
    return committed(op, zxid=zxid, session_id=1, cxid=zxid, time_ms=1000 + zxid)


def tell_little(seed: int) -> dict[str, list[Observation]]:
    """Return what brokers say that never tell when they write the in-sync set."""
    told = {}
    for name, lines in tell(seed, stored=False).items():
        kept = [line for line in lines if type(line.what).__name__ != "IsrWrite"]
        kept[0] = kept[0]._replace(what=Writer(tuple(k for k in KINDS if k != "isr_write")))
        told[name] = [line._replace(sequence=number) for number, line in enumerate(kept)]
    return told


def list_states(told: dict[str, list[Observation]]) -> list[Observation]:
    """Return what was stored, by version, whoever wrote it."""
    found = {}
    for lines in told.values():
        for line in lines:
            said = line.what
            if type(said).__name__ == "IsrWrite" and said.isr_version is not None:  # type: ignore[union-attr]
                found[said.isr_version] = line._replace(  # type: ignore[union-attr]
                    what=Stored(line.broker, said.isr, said.isr_version)  # type: ignore[union-attr]
                )
            elif isinstance(said, Stored):
                found[said.isr_version] = line
    return [found[version] for version in sorted(found)]


def test_log_says_what_was_stored(tmp_path: Path, capsys: Any) -> None:
    """Elections are judged by ZooKeeper's log where no controller writes observations."""
    exercised = [0, 0]
    for seed in range(6):
        place = write(tmp_path / str(seed), tell_little(seed))
        log = write_states(tmp_path / f"log-{seed}", list_states(tell(seed)))
        for at, paths in enumerate(((place,), (place, log))):
            _, document = audit(capsys, *paths, "--at-rest")
            assert (document["violations"], document["observed"]["joined"]) == ([], at)
            (clause,) = (c for c in document["clauses"] if c["id"] == "election.clean")
            exercised[at] += clause["exercised"]
    assert exercised[0] < exercised[1]


@pytest.mark.clause("isr.write.conditional")
def test_write_that_the_log_does_not_have_is_named(tmp_path: Path, capsys: Any) -> None:
    """A leader that says to have written another in-sync set than ZooKeeper has is named."""
    whole, told = tell(), tell(stored=False)
    states = list_states(whole)
    writer, at = next(
        (writer, n)
        for writer, lines in told.items()
        for n, line in enumerate(lines)
        if type(line.what).__name__ == "IsrWrite" and line.what.isr_version is not None  # type: ignore[union-attr]
    )
    version = told[writer][at].what.isr_version  # type: ignore[union-attr]
    states = [
        s._replace(what=s.what._replace(isr=(*s.what.isr, 9)))  # type: ignore[union-attr, call-arg]
        if s.what.isr_version == version  # type: ignore[union-attr]
        else s
        for s in states
    ]
    log = write_states(tmp_path / "log", states)
    code, document = audit(capsys, write(tmp_path / "told", told), log, "--at-rest")
    assert code == 1
    assert ("isr.write.conditional", f"{writer}.ndjson", at + 1) in list_broken(document)


def test_log_of_another_cluster_is_no_help(tmp_path: Path, capsys: Any) -> None:
    """Where no partition of the lines is in the logs, the verdict says so."""
    log = write_states(tmp_path / "log", list_states(tell()), partition=7)
    code, document = audit(capsys, write(tmp_path / "told", tell()), log, "--at-rest")
    assert code == 2
    assert "no partition of the observations is in the transaction logs" in document["needs"][0]


def test_without_observations_nothing_is_said(tmp_path: Path, capsys: Any) -> None:
    """The profile without observations is vacuous, and says what it needs."""
    log = write_states(tmp_path / "log", list_states(tell()))
    code, document = audit(capsys, log)
    assert (code, document["verdict"]) == (3, "vacuous")
    assert "no observations" in document["needs"][0]
    assert all(c["verdict"] == "not exercised" for c in document["clauses"])


def test_other_profiles_say_what_takes_observations(tmp_path: Path, capsys: Any) -> None:
    """Logs alone leave the mark's clauses unexercised, with a reason; lines beside them do not."""
    log = write_states(tmp_path / "log", list_states(tell()))
    _, alone = audit(capsys, log, profile="kip-236-amended")
    names = {u["clause"] for u in alone["unjudged"]}
    assert "hw.never-decreases" in names
    assert "election.clean" not in names
    _, both = audit(capsys, log, write(tmp_path / "told", tell()), profile="kip-236-amended")
    verdicts = {c["id"]: c["verdict"] for c in both["clauses"]}
    assert verdicts["hw.never-decreases"] == "holds"
    assert "hw.never-decreases" not in {u["clause"] for u in both["unjudged"]}


def test_observations_alone_are_recognised(tmp_path: Path, capsys: Any) -> None:
    """Where nobody names a profile, and there are no logs, it is the one that needs none."""
    code = run_command(["audit", str(write(tmp_path, tell())), "--format", "json"])
    document = json.loads(capsys.readouterr().out)
    assert (code in (0, 1, 2), document["profile"]) == (True, "kafka-4485")
    assert document["recognised"]["why"] == "there are observations, and no transaction logs"


# Which files ------------------------------------------------------------------------------------


def test_files_are_known_by_content(tmp_path: Path) -> None:
    """A file of observations may have any name; a log, a snapshot and other JSON are none."""
    line = encode_observation(tell()["broker-0"][0])
    cases = {"x": line, "y.log": line, "log.1": b"ZKLG\0", "run.json": b'{"verdict":"holds"}'}
    for name, data in cases.items():
        (tmp_path / name).write_bytes(data)
    assert {name for name in cases if is_observations(tmp_path / name)} == {"x", "y.log"}
    assert [path.name for path in sort_paths([tmp_path]).files] == ["x", "y.log"]


@pytest.mark.parametrize("seed", range(20))
def test_every_line_is_read_as_it_was_written(seed: int) -> None:
    """Decoding gives back what was encoded, whatever the kind."""
    lines = Telling(lines=tell(seed)).shuffle(Random(seed))
    assert [decode_observation(encode_observation(line)) for line in lines] == lines
    own = [line for line in lines if line.writer == lines[0].writer]
    file = [encode_observation(line, before) for before, line in pairwise([None, *own])]
    assert list(decode_lines(file)) == own
    assert sum(map(len, file)) < 0.8 * sum(len(encode_observation(line)) for line in own)
    kinds = {type(line.what) for line in lines}
    assert len(kinds) > len(KINDS) - 3


def test_line_that_follows_on_another_one_says_nothing_without_it() -> None:
    """What leaves its head out stands behind the line that it follows, in one file."""
    first, *_, before, line = tell()["broker-0"]
    short = encode_observation(line, before)
    assert decode_observation(short, before=before) == line
    assert encode_observation(line, first) == encode_observation(line)
    for other in (None, first):
        with pytest.raises(BadObservation, match="expected version 1, found None"):
            decode_observation(short, before=other)


# The page ---------------------------------------------------------------------------------------

PAGE = (Path(__file__).parents[2] / "docs/observations.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", KINDS)
def test_page_shows_each_kind_right_and_wrong(kind: str) -> None:
    """The page has each field of a kind, an example that is read, and one that is not."""
    section = PAGE.partition(f"### `{kind}`\n")[2].partition("\n##")[0]
    right, wrong = (block.partition("\n```")[0] for block in section.split("```json\n")[1:])
    decoded = decode_observation(right)
    assert json.loads(encode_observation(decoded)) == json.loads(right)
    with pytest.raises(BadObservation, match=kind):
        decode_observation(wrong)
    listed = [line.split("`")[1] for line in section.splitlines() if line.startswith("| `")]
    assert listed == [name for name, _, _ in KINDS[kind].fields]
