"""A write of a topic's znode is about one partition: what else changes in it is named."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from re import fullmatch
from typing import Any

import pytest
from history_steps import read_log
from test_judge_kafka import PROFILE, get_readings

from reassure_judge.judge import Judge
from reassure_zookeeper.transactions import Create, SetData, Transaction

LISTS = ("partitions", "adding_replicas", "removing_replicas")


def judge(name: str, log: list[Transaction]) -> list[tuple[int, int, str]]:
    """Return zxid, partition and clause of what is found."""
    held = Judge(PROFILE[name], get_readings(PROFILE[name]))
    for transaction in log:
        held.feed(transaction)
    return [(v.zxid, v.partition, v.clause) for v in held.violations]


def find_moves(log: list[Transaction]) -> Iterator[tuple[int, int, dict[str, Any], str]]:
    """Yield writes that change a partition: where they are, their content, who stays as it was."""
    before: dict[str, Any] = {}
    for number, transaction in enumerate(log):
        for at, op in enumerate(transaction.ops):
            topic = isinstance(op, Create | SetData) and fullmatch(
                r".*/brokers/topics/[^/]+", op.path
            )
            if not topic:
                continue
            said, old = json.loads(op.data), before.get(op.path)
            before[op.path] = said
            if old is None or old["partitions"].keys() != said["partitions"].keys():
                continue
            same = [
                p
                for p in said["partitions"]
                if all(said.get(each, {}).get(p) == old.get(each, {}).get(p) for each in LISTS)
            ]
            still = [p for p in same if not any(p in said.get(each, {}) for each in LISTS[1:])]
            still = [p for p in still if len(said["partitions"][p]) > 1]
            if still and len(same) < len(said["partitions"]):
                yield number, at, said, still[0]


@pytest.mark.clause("shipped.assignment.one-partition")
@pytest.mark.parametrize("name", ["runA", "v282", "n102", "papa"])
def test_move_that_reorders_another_partition_is_named(name: str, tmp_path: Path) -> None:
    """The partition that is put in another order beside one that moves is named at that write."""
    log = read_log(name, tmp_path)
    moves = list(find_moves(log))
    for number, at, said, other in moves[:: max(1, len(moves) // 3)]:
        turned = {**said["partitions"], other: said["partitions"][other][::-1]}
        ops = list(log[number].ops)
        ops[at] = replace(ops[at], data=json.dumps({**said, "partitions": turned}).encode())
        planted = [*log]
        planted[number] = replace(log[number], ops=tuple(ops))
        found = [each for each in judge(name, planted) if each[0] == log[number].zxid]
        assert {clause for _, _, clause in found} & {
            "shipped.assignment.one-partition",
            "assigned.change.only-as-due",
        }


@pytest.mark.clause("shipped.assignment.one-partition")
def test_write_that_adds_partitions_changes_none(tmp_path: Path) -> None:
    """Growth with a change beside it names the partition that was there before."""
    log = read_log("runA", tmp_path)
    number, at, said, other = next(find_moves(log))
    ops = list(log[number].ops)
    grown = {**said["partitions"], "77": said["partitions"][other]}
    ops[at] = replace(ops[at], data=json.dumps({**said, "partitions": grown}).encode())
    log[number] = replace(log[number], ops=tuple(ops))
    found = [each for each in judge("runA", log) if each[0] == log[number].zxid]
    assert [clause for _, _, clause in found] == ["shipped.assignment.one-partition"]
    assert str(found[0][1]) != other
