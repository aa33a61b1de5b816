"""What a broken clause does to the verdict: a SHOULD is not followed, a MUST is violated."""

import pytest

from reassure_judge.verdicts import NOT_FOLLOWED, VIOLATED, Violation, count_broken, summarise
from reassure_spec.clauses import clauses_of_profile, load_clauses
from reassure_spec.readings import PROFILES


def make_violation(clause: str) -> Violation:
    """A violation of this clause, of anything."""
    return Violation(1, "", "t", 0, clause, "/path", 0, "", "", "", "")


@pytest.mark.parametrize("profile", PROFILES)
def test_level_says_what_a_broken_clause_is(profile: str) -> None:
    """Breaking any clause violates it, or does not follow it where its level is SHOULD or MAY."""
    found = count_broken(make_violation(clause.id) for clause in clauses_of_profile(profile))
    for verdict in summarise(profile, {}, found):
        expected = NOT_FOLLOWED if verdict.level in ("SHOULD", "MAY") else VIOLATED
        assert (verdict.verdict, verdict.exercised) == (expected, 1), verdict.id
    assert {v.verdict for v in summarise(profile, {}, found, strict=True)} == {VIOLATED}


def test_violation_binds_by_its_level() -> None:
    """A violation counts unless its clause is advice; one of no known clause counts."""
    for clause in load_clauses().values():
        assert make_violation(clause.id).binds() is (clause.level not in ("SHOULD", "MAY"))
    assert make_violation("no.such.clause").binds()
