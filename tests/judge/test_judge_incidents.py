"""Violations that are one wound are one incident, which names the bug that has this shape."""

from dataclasses import replace
from pathlib import Path

import pytest
from history_steps import read_log
from test_judge_kafka import PROFILE as OF
from test_judge_kafka import judge_log

from reassure_judge.incidents import Incident, Wound, gather_incidents
from reassure_judge.judge import Judge
from reassure_judge.verdicts import Tally, Violation
from reassure_spec.bugs import find_bugs, find_risk, load_bugs
from reassure_spec.clauses import load_clauses
from reassure_spec.findings import FINDINGS
from reassure_spec.readings import PROFILES, get_profile

SHAPES = {
    "lima": {"kc-0": ["KAFKA-14424"], "ks-0": ["KAFKA-14424"]},
    "echo": {"a-1": ["KAFKA-5083"]},
    "mike": {"one-0": ["KAFKA-5083"], "one-1": ["KAFKA-5083"], "two-0": ["KAFKA-5083"]},
    "old_080": {"t-0": ["KAFKA-1097"], "t-1": ["KAFKA-1097"]},
    "november": {"d-0": ["KAFKA-1097"], "f-0": ["KAFKA-1097"], "g-0": ["KAFKA-1097"]},
    "quebec": {"a-0": ["KAFKA-6082"], "the cluster": ["KAFKA-6082"]},
    "kilo": {"b-0": ["KAFKA-7854"], "a-0": []},
    "oscar": {"z-0": ["zk-2"]},
    "runH": {"z2-0": ["zk-2"], "z3-0": ["zk-2", "KAFKA-13972"]},
}
"""By log of a Kafka with a bug, and partition: the bugs that are named."""


def gather(judge: Judge, release: str | None = None) -> list[Incident]:
    """Return what a judge found as incidents."""
    return gather_incidents(judge.report().violations, judge.profile, release)


@pytest.mark.parametrize("name", SHAPES)
def test_bugs_are_named_by_their_shape(name: str, tmp_path: Path) -> None:
    """Each wound of a log is one incident, with the bugs that leave this shape."""
    found = gather(judge_log(name, tmp_path))
    assert {each.name_place(): [b.id for b in each.bugs] for each in found} == SHAPES[name]
    assert len(found) == len(SHAPES[name])


def test_consequences_stand_under_their_cause(tmp_path: Path) -> None:
    """A stranger that joined, and another after it, are one wound; all violations are there."""
    judge = judge_log("november", tmp_path)
    told = {each.name_place(): each.as_dict() for each in gather(judge)}
    assert (told["g-0"]["first_zxid"], told["g-0"]["last_zxid"]) == (0x32, 0x34)
    assert [each["zxid"] for each in told["d-0"]["consequences"]] == [0x37]
    count = sum(1 + len(each["consequences"]) for each in told.values())
    assert count == len(judge.violations) == 5


def test_what_is_found_amid_a_wound_is_a_part_of_it() -> None:
    """Rules that look at all partitions know of no wound: the place and the time tell."""
    first = Violation(5, "", "t", 0, "state.write-conditional", "/p", 1, "", "", "", "")
    last = replace(first, zxid=9, clause="complete.child-last", cause=5)
    amid = replace(first, zxid=7, clause="legacy.entry.removed-when-done")
    behind, beside = replace(amid, zxid=10), replace(amid, partition=1)
    found = gather_incidents([first, last, amid, behind, beside], "kip-236-legacy")
    assert [(each.cause, each.consequences) for each in found] == [
        (first, (amid, last)),
        (beside, ()),
        (behind, ()),
    ]


def test_wound_is_open_until_nothing_is_wrong() -> None:
    """What is broken behind a legal write that mends the partition is another incident."""
    tally = Tally()
    wound = Wound(tally)
    first = Violation(5, "", "t", 0, "isr.never-empty", "/p", 1, "", "", "", "")
    wound.report(first)
    wound.standing = frozenset({("isr.never-empty", "none")})
    wound.look(frozenset({("isr.never-empty", "none"), ("leader.in-isr", "x")}))
    wound.report(replace(first, zxid=6, clause="leader.in-isr"))
    assert wound.is_open
    wound.look(frozenset())
    assert not wound.is_open
    wound.report(replace(first, zxid=9))
    assert [each.cause for each in tally.violations] == [0, 5, 0]
    told = gather_incidents(tally.violations, "kafka-zk")
    assert [(each.cause.zxid, each.last.zxid) for each in told] == [(5, 6), (9, 9)]


def test_what_one_write_does_to_many_partitions_is_one_incident() -> None:
    """A topic's znode that loses two partitions is one incident with both."""
    first = Violation(5, "", "t", 0, "topic.partitions-kept", "/p", 1, "", "", "", "")
    more = [replace(first, partition=3), replace(first, partition=1, zxid=8)]
    told = gather_incidents([first, *more], "kafka-zk")
    assert [each.partitions for each in told] == [(0, 3), (1,)]
    assert told[0].name_place() == "t-0, t-3"


def test_bug_is_not_named_where_the_release_has_it_mended() -> None:
    """A stranger in the in-sync set of Kafka 3.5 is not the bug that was mended there."""
    shape = "kafka-zk", "isr.change.assigned-only", "broker 1, controller", "", ""
    named = {
        release: [bug.id for bug in find_bugs(*shape, release)]
        for release in (None, "3.4.1", "3.5.0", "3.10")
    }
    assert named[None] == named["3.4.1"] == ["zk-2", "KAFKA-13972"]
    assert named["3.5.0"] == named["3.10"] == ["zk-2"]


def test_data_of_bugs_and_risks_names_what_there_is() -> None:
    """Every clause has a risk and a remedy; bugs name clauses, profiles and findings that exist."""
    known, findings = load_clauses(), {each.id for each in FINDINGS}
    for clause_id in known:
        assert find_risk(clause_id).remedy
    for bug in load_bugs():
        assert set(bug.clauses) <= known.keys()
        assert set(bug.findings) <= findings
        assert set(bug.profiles) <= PROFILES.keys()
        assert all((bug.risk, bug.remedy, bug.source, bug.since))


@pytest.mark.parametrize("name", ["runC2", "hotel_f"])
def test_planted_writes_are_incidents_of_their_own(name: str, tmp_path: Path) -> None:
    """Writes planted in partitions of their own are not put together."""
    judge = Judge(OF[name], get_profile(OF[name]))
    for transaction in read_log(name, tmp_path):
        judge.feed(transaction)
    found = gather(judge)
    places = {(v.topic, v.partition) for v in judge.violations}
    assert {(each.cause.topic, each.partitions[0]) for each in found} == places
    assert len(found) == len(places)
