"""Findings in bounded memory: counts are whole, lists have the first of each clause."""

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pipeline_steps import Audit, Server

from reassure_judge.verdicts import Violation
from reassure_lab.archives.sample import SampleCluster
from reassure_pipeline.audit.listed_findings import LISTED_FINDINGS, Findings

UNFENCED = "controller.write.epoch-checked"
MANY = LISTED_FINDINGS + 50


def break_often(times: int, topics: int = 7, chroot: str = "") -> SampleCluster:
    """Return a cluster whose controller writes so many states without a fence."""
    cluster = SampleCluster(chroot=chroot)
    for topic in range(topics):
        cluster.create_topic(f"topic-{topic}", {0: (1, 2)})
    for number in range(times):
        cluster.write_state(f"topic-{number % topics}", 0, fenced=False)
    return cluster


def test_of_many_findings_the_first_are_listed_and_all_counted(
    server: Server, audit: Audit
) -> None:
    """Of each clause there are the first by zxid; verdict, sums and bins of time have them all."""
    cluster = break_often(MANY)
    cluster.write_state("topic-0", 0, leader=3, isr=(3,))
    path = server("one", cluster.transactions)
    document = audit(path, facts=True).as_json_dict()
    listed = [each["zxid"] for each in document["violations"] if each["clause"] == UNFENCED]
    unfenced = [t.zxid for t in cluster.transactions if t.zxid > cluster.zxid - MANY - 1][:-1]
    assert listed == unfenced[:LISTED_FINDINGS]
    assert document["not_listed"] == {
        "violations": {UNFENCED: MANY - LISTED_FINDINGS},
        "not_followed": {},
        "unsettled": {},
    }
    others = len(document["violations"]) - LISTED_FINDINGS
    assert others > 0
    assert document["counts"]["violations"] == MANY + others
    assert document["archives"][0]["violations"] == MANY + others
    assert sum(document["facts"]["series"]["violations"][UNFENCED].values()) == MANY
    (clause,) = [each for each in document["clauses"] if each["id"] == UNFENCED]
    assert (clause["verdict"], clause["exercised"] >= MANY) == ("violated", True)


def test_lists_end_across_archives_and_are_the_same_for_any_number_of_processes(
    server: Server, audit: Audit
) -> None:
    """The first archive's findings come first; what there is no room for is counted."""
    clusters = [break_often(LISTED_FINDINGS - 10, chroot=f"/{n}") for n in range(2)]
    paths = [server(each.chroot[1:], each.transactions) for each in clusters]
    alone = audit(*paths).as_json_dict()
    told = Counter(each["archive"] for each in alone["violations"])
    assert list(told.values()) == [LISTED_FINDINGS - 10, 10]
    assert alone["not_listed"]["violations"] == {UNFENCED: LISTED_FINDINGS - 20}
    assert alone["counts"]["violations"] == 2 * (LISTED_FINDINGS - 10)
    assert audit(*paths, jobs=3).as_json_dict() == alone


def test_unsettled_findings_are_counted_alike(server: Server, audit: Audit) -> None:
    """In the middle of a history nothing is settled, and the clause is unknown by all of them."""
    cluster = break_often(MANY + 50)
    topics = next(t.zxid for t in cluster.transactions if "topic-0" in str(t.ops))
    document = audit(server("late", cluster.transactions[topics - 1 :])).as_json_dict()
    assert document["verdict"] == "unknown"
    assert document["counts"]["violations"] == 0
    unsettled = [each for each in document["unsettled"] if each["clause"] == UNFENCED]
    more = document["not_listed"]["unsettled"][UNFENCED]
    assert (len(unsettled), len(unsettled) + more > MANY - 50) == (LISTED_FINDINGS, True)
    assert document["archives"][0]["unsettled"] == len(document["unsettled"]) + more


def make_violation(zxid: int, clause: str) -> Violation:
    """Return a finding."""
    return Violation(zxid, "", "t", 0, clause, "/p", 1, "", "", "why", "what", time_ms=zxid)


@given(st.lists(st.sampled_from("abc"), max_size=900), st.integers(0, 2**32), st.integers(1, 5))
def test_findings_are_the_same_however_they_came(clauses: list[str], seed: int, parts: int) -> None:
    """Spread and shuffled they come to the same counts and lists."""
    found = [make_violation(zxid, clause) for zxid, clause in enumerate(clauses, start=1)]
    whole = Findings.gather(found)
    random.Random(seed).shuffle(found)
    together = Findings()
    for part in range(parts):
        together.take_in(Findings.gather(found[part::parts]))
    assert (together.counts, together.listed) == (whole.counts, whole.listed)
    assert together.bins.as_dict() == whole.bins.as_dict()
    assert all(
        count <= LISTED_FINDINGS for count in Counter(v.clause for v in whole.listed).values()
    )


@pytest.mark.parametrize("topics", [1, 50])
def test_memory_of_findings_is_bounded(server: Server, audit: Audit, topics: int) -> None:
    """What an archive hands on is no larger for ten times the findings."""
    (few, many) = (
        audit(server(f"{topics}-{n}", break_often(n, topics).transactions)).archives[0]
        for n in (MANY, 4 * MANY)
    )
    assert len(few.settled.listed) == len(many.settled.listed)
    assert many.settled.counts[UNFENCED] == 4 * MANY
