"""A partition that waits for a leader though somebody may lead is judged by the log alone."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from re import fullmatch

import pytest
from history_steps import read_log
from test_judge_kafka import PROFILE, SOUND, get_readings

from reassure_judge.judge import Judge
from reassure_judge.protocols.kafka_zk.waiting import LATE
from reassure_zookeeper.transactions import Create, SetData, Transaction

HELD = "election.held"
DONE = "shipped.complete.carried-out"
GRACE_MS = 3000


def judge(name: str, log: list[Transaction], grace_ms: int) -> Judge:
    """Hold a log against its protocol."""
    held = Judge(PROFILE[name], get_readings(PROFILE[name]), grace_ms)
    for transaction in log:
        held.feed(transaction)
    return held


def find_elections(log: list[Transaction]) -> Iterator[tuple[int, str]]:
    """Yield zxid and path of each state by which another leads, as the one before left the set."""
    states = {}
    for transaction in log:
        for op in transaction.ops:
            if isinstance(op, Create | SetData) and op.path.endswith("/state"):
                said, before = json.loads(op.data), states.get(op.path)
                states[op.path] = said
                lost = before is not None and before["leader"] not in (said["leader"], *said["isr"])
                if lost and said["leader"] >= 0:
                    yield transaction.zxid, op.path


def find_complete(log: list[Transaction]) -> Iterator[tuple[int, str]]:
    """Yield zxid and path of the first state in which the whole target of a move is in sync."""
    moves: dict[tuple[str, str], set[int]] = {}
    for transaction in log:
        for op in transaction.ops:
            if not isinstance(op, Create | SetData):
                continue
            match = fullmatch(r"(.*/brokers/topics/[^/]+)(?:/partitions/([0-9]+)/state)?", op.path)
            said = json.loads(op.data) if match else {}
            if match and match[2] is None:
                going = {**said.get("adding_replicas", {}), **said.get("removing_replicas", {})}
                for number in going:
                    gone = said.get("removing_replicas", {}).get(number, [])
                    moves[match[1], number] = {*said["partitions"][number]} - {*gone}
            elif match and moves.get((match[1], match[2]), {-1}) <= {*said["isr"]}:
                del moves[match[1], match[2]]
                yield transaction.zxid, op.path


def withhold(log: list[Transaction], zxid: int, *paths: str) -> list[Transaction]:
    """Return a log in which nothing is written to some znodes from a transaction on."""
    kept = [
        each
        for each in log
        if each.zxid < zxid or all(getattr(op, "path", "") not in paths for op in each.ops)
    ]
    return [replace(each, zxid=number) for number, each in enumerate(kept, 1)]


@pytest.mark.clause(HELD)
@pytest.mark.clause(DONE)
@pytest.mark.parametrize("name", SOUND)
def test_sound_kafka_keeps_nobody_waiting(name: str, tmp_path: Path) -> None:
    """However short the grace, no sound Kafka is said to have left anything waiting."""
    log = read_log(name, tmp_path)
    assert not {HELD, DONE} & {v.clause for v in judge(name, log, 100).violations}
    undecided = judge(name, log, GRACE_MS).undecided
    assert undecided[HELD] == undecided[DONE] == 0


@pytest.mark.clause(HELD)
@pytest.mark.parametrize("name", ["alpha", "v241", "runA"])
def test_election_that_is_never_held_is_named(name: str, tmp_path: Path) -> None:
    """A leader that nobody writes is named where the controller answered what came later."""
    log = read_log(name, tmp_path)
    found = unsure = 0
    for zxid, path in list(find_elections(log))[:8]:
        held = judge(name, withhold(log, zxid, path), GRACE_MS)
        told = [v for v in held.violations if v.clause == HELD]
        assert {v.path for v in told} <= {path}
        found += len(told)
        unsure += held.undecided[HELD]
        assert all("nobody leads" in v.reason and " may" in v.reason for v in told)
        if held.undecided[HELD]:
            assert held.tracking.tally.facts[HELD, LATE]
    assert found >= 2
    assert unsure


@pytest.mark.clause("shipped.complete.carried-out")
def test_move_that_is_never_completed_is_named(tmp_path: Path) -> None:
    """With the target in sync and nothing written of the partition after that, it is stuck."""
    log = read_log("alpha", tmp_path)
    found = unsure = 0
    for zxid, path in list(find_complete(log))[:7]:
        topic = path.partition("/partitions/")[0]
        held = judge("alpha", withhold(log, zxid + 1, path, topic), GRACE_MS)
        told = [v for v in held.violations if v.clause == DONE]
        assert all(v.path.startswith(f"{topic}/") for v in told)  # none of its moves can end
        assert all("is in sync, and the move is not completed" in v.reason for v in told)
        found += len(told)
        unsure += held.undecided[DONE]
    assert found >= 2
    assert unsure


def find_entries_in_sync(log: list[Transaction]) -> Iterator[tuple[int, str]]:
    """Yield zxid and topic of each state in which all is in sync that the old znode asks for."""
    asked: dict[tuple[str, int], set[int]] = {}
    for transaction in log:
        for op in transaction.ops:
            if not isinstance(op, Create | SetData):
                continue
            if op.path.endswith("/admin/reassign_partitions"):
                moves = json.loads(op.data)["partitions"]
                asked = {(m["topic"], m["partition"]): {*m["replicas"]} for m in moves}
            match = fullmatch(r".*/brokers/topics/([^/]+)/partitions/([0-9]+)/state", op.path)
            key = (match[1], int(match[2])) if match else ("", 0)
            if match and key in asked and asked[key] <= {*json.loads(op.data)["isr"]}:
                del asked[key]
                yield transaction.zxid, op.path.partition("/partitions/")[0]


@pytest.mark.clause("move.step.remove-path")
def test_move_by_the_old_znode_that_is_never_completed_is_named(tmp_path: Path) -> None:
    """With what is asked for in sync, and nothing written of the topic after that, it is stuck."""
    log = read_log("n102", tmp_path)
    found = 0
    for zxid, topic in list(find_entries_in_sync(log))[:3]:
        paths = {p for each in log for op in each.ops if (p := getattr(op, "path", ""))}
        kept = [p for p in paths if p.startswith(topic) or p.endswith("/reassign_partitions")]
        held = judge("n102", withhold(log, zxid + 1, *kept), GRACE_MS)
        told = [v for v in held.violations if v.clause == "move.step.remove-path"]
        assert all("the old znode names it still" in v.reason for v in told)
        found += len(told)
    assert found


@pytest.mark.clause("shipped.entry.not-for-ever")
def test_entry_that_names_nothing_for_ever_is_named(tmp_path: Path) -> None:
    """An entry for a partition that is not there is taken out, or somebody waits for ever."""
    log = read_log("n102", tmp_path)
    at = next(n for n, each in enumerate(log) if _writes(each, "/admin/reassign_partitions"))
    ops = log[at].ops
    entry = b'{"version":1,"partitions":[{"topic":"nowhere","partition":0,"replicas":[1]}]}'
    asked = [replace(op, data=entry) if hasattr(op, "data") else op for op in ops]
    log[at] = replace(log[at], ops=tuple(asked))
    held = judge("n102", withhold(log, log[at].zxid + 1, ops[0].path), GRACE_MS)
    told = [v for v in held.violations if v.topic == "nowhere"]
    assert [v.clause for v in told] == ["shipped.entry.not-for-ever"]


def _writes(transaction: Transaction, path: str) -> bool:
    return any(getattr(op, "path", "").endswith(path) for op in transaction.ops)
