"""A reviewer's own rules held against the theorems, and theorems in words."""

from typing import Any

import pytest

from reassure_proofs.engine.candidate import (
    CandidateError,
    load_candidate,
    prove_candidate,
    recognise,
)
from reassure_proofs.engine.register import UnknownTheoremError, get_theorems
from reassure_proofs.engine.wording import explain


def rule_of_ranks(assigned: Any, leader: Any, isr: Any, top: Any) -> Any:
    """Drop whoever is not among the first, with lists and a set."""
    ranked = [leader]
    ranked += [r for r in isr if r != leader]
    ranked += [r for r in assigned if r not in ranked]
    kept = set(ranked[:top])
    return [replica for replica in assigned if replica not in kept]


def rule_of_order(assigned: Any, leader: Any, isr: Any, top: Any) -> Any:
    """Drop the last of the assignment, whoever leads."""
    return assigned[top:]


def rule_with_target(assigned: Any, leader: Any, isr: Any, top: Any, target: Any) -> Any:
    """Keep the target as well, and drop nothing where no leader is in sync."""
    if leader == -1 or leader not in isr:
        return ()
    dropped = rule_of_ranks(assigned, leader, isr, top)
    return [replica for replica in dropped if replica not in target]


def rule_without_target(assigned: Any, leader: Any, isr: Any, top: Any, target: Any) -> Any:
    """Take a target and ignore it."""
    return rule_of_ranks(assigned, leader, isr, top)


def rule_for_leaders_in_sync(assigned: Any, leader: Any, isr: Any, top: Any) -> Any:
    """Drop all where the leader is out of sync."""
    return assigned if leader not in isr else rule_of_ranks(assigned, leader, isr, top)


def rule_that_crashes(assigned: Any, leader: Any, isr: Any, top: Any) -> Any:
    """Raise an error where the leader is out of sync."""
    return rule_of_ranks(assigned, isr[isr.index(leader)], isr, top)


def rule_of_strangers(assigned: Any, leader: Any, isr: Any, top: Any) -> Any:
    """Name as many replicas as should go, none of them assigned."""
    gone = rule_of_ranks(assigned, leader, isr, top)
    return [leader + max(assigned) + 1 + max(0, -leader) for _ in gone]


def members_and_stranger(replicas: Any, offsets: Any, pseudo_isr: Any, high_watermark: Any) -> Any:
    """Count in a replica that there is not."""
    ends = zip(replicas, offsets, strict=True)
    held = [r for r, end in ends if r in pseudo_isr and end >= high_watermark]
    return (*held, max(replicas) + 1)


def first_in_sync(assigned: Any, isr: Any, live: Any) -> Any:
    """Elect in the order of the in-sync set."""
    return next((replica for replica in isr if replica in live), None)


def first_assigned(assigned: Any, isr: Any, live: Any) -> Any:
    """Elect in the order of the assignment."""
    return next((replica for replica in assigned if replica in isr and replica in live), None)


def all_that_are_close(replicas: Any, offsets: Any, pseudo_isr: Any, high_watermark: Any) -> Any:
    """Take the pseudo-ISR for the ISR."""
    return pseudo_isr


def _verdicts(candidate: Any, factor: int = 2, profile: str = "kip-236") -> dict[str, str]:
    results = prove_candidate(candidate, factor, profile, assume=("all",))
    return {result.theorem.name: result.verdict for result in results}


@pytest.mark.parametrize(
    ("candidate", "profile"),
    [
        (rule_of_ranks, "kip-236"),
        (rule_with_target, "kip-236-amended"),
        (first_assigned, "kip-236"),
    ],
)
def test_sound_candidate_is_proved(candidate: Any, profile: str) -> None:
    """A rule that is written otherwise and does the same satisfies every theorem."""
    assert set(_verdicts(candidate, profile=profile).values()) == {"proved"}


@pytest.mark.parametrize(
    ("candidate", "profile", "broken"),
    [
        (rule_of_order, "kip-236", "drop-leader-kept"),
        (rule_without_target, "kip-236-amended", "drop-amended-target-kept"),
        (first_in_sync, "kip-236", "election-offline-first-in-order"),
        (all_that_are_close, "kip-236", "isr-members-reach-hw"),
    ],
)
def test_faulty_candidate_is_refuted(candidate: Any, profile: str, broken: str) -> None:
    """A rule with a fault is refuted with a counterexample."""
    results = {r.theorem.name: r for r in prove_candidate(candidate, 2, profile, assume=("all",))}
    assert results[broken].verdict == "refuted"
    assert results[broken].counterexample is not None
    assert results[broken].theorem.layer == "candidate"


ALL_BUT_LEADER = ("top-positive", "assigned-distinct", "isr-distinct", "isr-assigned")


@pytest.mark.parametrize(
    ("candidate", "assume", "broken"),
    [
        (rule_for_leaders_in_sync, ALL_BUT_LEADER, {"drop-leader-kept"}),
        (rule_that_crashes, ALL_BUT_LEADER, {"drop-leader-kept", "drop-names-assigned"}),
        (rule_of_strangers, ("all",), {"drop-names-assigned", "drop-leaves-top"}),
        (members_and_stranger, ("all",), {"isr-is-as-defined"}),
    ],
)
def test_candidate_is_not_judged_under_what_was_not_accepted(
    candidate: Any, assume: tuple[str, ...], broken: set[str]
) -> None:
    """A rule fails where it was not accepted that it is never asked, and for strangers always."""
    results = prove_candidate(candidate, 2, assume=assume)
    assert broken <= {each.theorem.name for each in results if each.verdict == "refuted"}
    for each in results:
        named = {item.name for item in each.theorem.assumptions}
        assert not {"leader-in-sync"} & named - set(assume) or assume == ("all",)
        assert each.theorem.shape == ()


def test_sound_candidate_keeps_what_needs_nothing_else_assumed() -> None:
    """With top at least 1 alone, a sound rule keeps the leader wherever it is."""
    verdicts = {r.theorem.name: r.verdict for r in prove_candidate(rule_of_ranks, 2, "kip-236")}
    assert verdicts["drop-names-assigned"] == "proved"
    assert verdicts["drop-leader-kept"] == "refuted"
    results = prove_candidate(rule_of_ranks, 2, assume=("top-positive",))
    verdicts = {r.theorem.name: r.verdict for r in results}
    assert verdicts["drop-leader-kept"] == "proved"


def test_precondition_there_is_not_is_refused_with_those_there_are() -> None:
    """A name that is no precondition of the rule is refused with all that are."""
    with pytest.raises(CandidateError, match="expected one of: top-positive, assigned-distinct"):
        prove_candidate(rule_of_ranks, 2, assume=("leader-in-sink",))


def test_candidate_is_found_by_name(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A candidate is looked for in the working directory."""
    text = "def my_drop(assigned, leader, isr, top):\n    return assigned[:0]\n"
    (tmp_path / "rules_of_a_reviewer.py").write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert recognise(load_candidate("rules_of_a_reviewer:my_drop")).name == "drop"
    results = prove_candidate("rules_of_a_reviewer:my_drop", 2, assume=("all",))
    assert {r.theorem.name for r in results if r.verdict == "refuted"} == {"drop-leaves-top"}


def test_explanation_shows_each_needed_hypothesis_with_its_counterexample() -> None:
    """A theorem in words has its statement, its hypotheses, and a table for each of them."""
    text = explain("drop-isr-at-least-min")
    (theorem,) = get_theorems(["drop-isr-at-least-min"])
    assert theorem.statement in text
    assert text.count("Without it the claim fails:") == len(theorem.hypotheses)
    for hypothesis in (*theorem.hypotheses, *theorem.shape):
        assert hypothesis.sentence in text
    assert "    isr       [1, 1]\n" in text


def test_explanation_of_a_finding_shows_where_it_fails() -> None:
    """A theorem that is expected to be refuted shows its counterexample and its finding."""
    text = explain("drop-target-in-sync-kept")
    assert "drop-4" in text
    assert "It fails for:\n    assigned  [1, 2]" in text


def test_explanation_of_an_unknown_theorem_is_refused() -> None:
    """There is no explanation of a theorem that there is not."""
    with pytest.raises(UnknownTheoremError):
        explain("drop-leader-lost")
