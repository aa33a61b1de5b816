"""The table of what holds under which reading."""

from collections.abc import Callable

import pytest

from reassure_conformance.answers.clause_matrix import find_shown
from reassure_conformance.answers.findings_table import (
    check_finding,
    findings_document,
    render_findings,
)
from reassure_conformance.answers.guarantees import Guarantee, compute_guarantees, find_stories
from reassure_explorer.engine.search import Sketch
from reassure_spec.clauses import load_clauses
from reassure_spec.findings import FINDINGS


def get_row(clause: str, under: str) -> Guarantee:
    """Return the row of a guarantee under a choice of readings."""
    (row,) = [g for g in compute_guarantees() if (g.clause, g.under) == (clause, under)]
    return row


@pytest.mark.parametrize(
    ("clause", "under", "counterexample"),
    [
        ("drop.leader-kept", "kip-236", ""),
        ("drop.leader-kept", "kip-236, drop.slice=exclusive", "A=[1] I=[1] L=1 top=1"),
        ("drop.before-expansion", "kip-236, drop.evaluated=after-expansion", "T=[1, 2]: drop [2]"),
        ("complete.carried-out", "kip-236", ""),
        ("complete.carried-out", "kip-236, drop.reevaluated-on-failover=yes", "never completes"),
        ("top.bounds-assigned", "kip-236, top.recorded=each-change", "assigned [1, 2, 3, 4]"),
        ("move.leader.holds-committed", "kafka-42", "8 steps"),
        ("move.leader.holds-committed", "kafka-42, all four repairs", ""),
        ("shipped.change.led", "kafka-zk", "15 steps"),
        ("shipped.leader.holds-committed", "kafka-zk", ""),
        ("log.committed-kept", "kafka-4485", "4 steps: append 0; lag 1; advance 0; elect 1"),
        ("log.committed-kept", "kip-236-amended", ""),
    ],
)
def test_guarantee_under_reading(clause: str, under: str, counterexample: str) -> None:
    """Known guarantees hold, and known counterexamples are the smallest that are found."""
    row = get_row(clause, under)
    assert row.verdict == ("violated" if counterexample else "holds")
    assert counterexample in row.counterexample


def test_every_reading_listed_makes_a_difference() -> None:
    """A reading that changes nothing anywhere would say that something holds which was not asked.

    `offline.drop=as-written` makes its in steps alone, `drop.protects` in the rule alone, and
    `isr.entry` with three brokers (scenario election-3).
    """
    base = {(g.clause, g.within, g.under): g.verdict for g in compute_guarantees()}
    differs: dict[str, bool] = {}
    for (clause, within, under), verdict in base.items():
        profile, _, reading = under.partition(", ")
        if "=" in reading:
            same = base[clause, within, profile] == verdict
            differs[reading] = differs.get(reading, False) or not same
    unchanged = {reading for reading, seen in differs.items() if not seen}
    assert unchanged == {
        "follower.truncation=common-prefix",
        "follower.truncation=leader-end",
        "hw.served-from=end-at-election",
        "isr.entry=end-at-election",
        "isr.entry=high-watermark",
        "offline.drop=as-written",
    }


def test_rows_name_clauses() -> None:
    """Every guarantee is a clause of the spec, and stands once under each choice and scope."""
    rows = [(g.clause, g.under, g.within) for g in compute_guarantees()]
    assert len(set(rows)) == len(rows)
    assert {clause for clause, _, _ in rows} <= set(load_clauses())


def test_findings_are_shown_by_their_scenarios() -> None:
    """Every scenario that shows a finding runs as written; others are told apart by their kind."""
    shown = find_shown()
    status = {finding.id: check_finding(shown.get(finding.id, ())) for finding in FINDINGS}
    assert "differs" not in status.values()
    assert status["move-18"] == "shown"
    assert status["heal-4"] == "words"


def test_document_and_tables_have_every_row() -> None:
    """The document has each guarantee and finding, the tables name each counterexample."""
    document = findings_document()
    assert document.counts["findings"] == len(FINDINGS)
    assert len(document.body["guarantees"]) == document.counts["guarantees"]
    text = render_findings(document, "markdown")
    for row in compute_guarantees():
        if row.counterexample:
            assert row.counterexample in text


def test_stories_are_shortest_and_bounded() -> None:
    """What breaks a guarantee is told by a shortest way, and beyond the depth nothing is."""
    ways = find_stories(Sketch(0, lambda n: [("one", n + 1), ("two", n + 2)], {"a": str_if(4)}), 3)
    assert ways == {"a": ("4", ("two", "two"))}
    assert find_stories(Sketch(0, lambda n: [("one", n + 1)], {"a": str_if(4)}), 3) == {}


def str_if(number: int) -> Callable[[int], str | None]:
    """Return a check that is broken at this number alone."""
    return lambda n: str(n) if n == number else None
