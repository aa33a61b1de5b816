"""A partition that waits for a leader though somebody may lead is judged by the log alone."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from history_steps import read_log
from test_judge_kafka import PROFILE, SOUND, get_readings

from reassure_judge.judge import Judge
from reassure_judge.protocols.kafka_zk.waiting import LATE
from reassure_zookeeper.transactions import Create, SetData, Transaction

HELD = "election.held"
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


def withhold(log: list[Transaction], zxid: int, path: str) -> list[Transaction]:
    """Return a log in which nothing is written to a znode from a transaction on."""
    kept = [
        each
        for each in log
        if each.zxid < zxid or all(getattr(op, "path", "") != path for op in each.ops)
    ]
    return [replace(each, zxid=number) for number, each in enumerate(kept, 1)]


@pytest.mark.clause("election.held")
@pytest.mark.parametrize("name", SOUND)
def test_sound_kafka_keeps_nobody_waiting(name: str, tmp_path: Path) -> None:
    """However short the grace, no log of a sound Kafka says that an election was not held."""
    log = read_log(name, tmp_path)
    assert HELD not in {v.clause for v in judge(name, log, 100).violations}
    assert judge(name, log, GRACE_MS).undecided[HELD] == 0


@pytest.mark.clause("election.held")
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
