"""The theorems: verdicts, smallest counterexamples, planted faults, and an independent opinion."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from claim_proofs import prove, prove_theorem

from reassure_model.protocols.kip_236 import compute_drop
from reassure_proofs.engine.cache import Cache
from reassure_proofs.engine.necessity import NecessityResult
from reassure_proofs.engine.register import UnknownTheoremError, get_theorems
from reassure_proofs.engine.runner import TheoremResult, prove_all, to_json
from reassure_proofs.engine.statement import Hypothesis, Theorem
from reassure_proofs.engine.wording import examine_page, format_sums, render_section
from reassure_proofs.protocols.kip_236.drop import DROP, ask_drop
from reassure_spec.clauses import load_clauses
from reassure_spec.findings import get_finding
from reassure_spec.readings import Readings

KEPT = Path(__file__).parents[2] / "build" / "proofs"
"""What was proved of the same code before."""
Rule = Callable[..., tuple[int, ...]]
GATE = get_theorems(tier="gate")
FOUND = [theorem for theorem in GATE if theorem.expected == "refuted"]


@pytest.fixture(scope="module", params=[2, pytest.param(3, marks=pytest.mark.slow)])
def factor(request: pytest.FixtureRequest) -> int:
    """The replication factor up to which what is to hold is proved."""
    return int(request.param)


@pytest.fixture(scope="module")
def results(factor: int) -> dict[str, TheoremResult]:
    """Every theorem of the gate, what is to be refuted by up to three replicas."""
    found = [
        *prove_all([each.name for each in GATE if each not in FOUND], factor, cache=Cache(KEPT)),
        *prove_all([each.name for each in FOUND], 3, cache=Cache(KEPT)),
    ]
    return {result.theorem.name: result for result in found}


@pytest.mark.parametrize("theorem", GATE, ids=lambda theorem: theorem.name)
def test_theorem_comes_out_as_expected(theorem: Theorem, results: dict[str, TheoremResult]) -> None:
    """Every theorem has the verdict that the register expects of it."""
    assert results[theorem.name].verdict == theorem.expected


@pytest.mark.parametrize("theorem", get_theorems(), ids=lambda theorem: theorem.name)
def test_theorem_names_a_clause_of_the_spec(theorem: Theorem) -> None:
    """Every theorem but a lemma states a clause that exists, and that belongs to its profile."""
    if not theorem.clause:
        assert theorem.expected == "proved"
        return
    clause = load_clauses()[theorem.clause]
    # A refutation that is expected names the clause that cures it, of whatever profile.
    assert theorem.profile in clause.profiles or theorem.expected == "refuted"


def test_every_proof_has_a_certificate_for_each_shape(
    factor: int, results: dict[str, TheoremResult]
) -> None:
    """What is proved has no gap in any shape, and every path was replayed on the plain code."""
    for name, result in results.items():
        if result.verdict == "proved":
            shapes = result.theorem.shapes(factor)
            assert [item["gap"] for item in result.certificate] == ["unsat"] * len(shapes), name
            assert all(item["paths"] == item["replayed"] for item in result.certificate), name
            assert result.paths > 0, name


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("drop-exclusive-leader-kept", "[1] isr=[1] leader=1 top=1 minimum=1 -> [1]"),
        ("drop-exclusive-isr-at-least-min", "[1] isr=[1] leader=1 top=1 minimum=1 -> [1]"),
        (
            "drop-target-in-sync-kept",
            "[1, 2] isr=[1, 2] leader=1 top=1 minimum=1 target=[2] -> [2]",
        ),
        ("drop-offline-in-sync-copy-kept", "[1] isr=[1] leader=-1 top=1 minimum=1 -> [1]"),
    ],
)
def test_finding_has_its_smallest_instance(
    name: str, sentence: str, results: dict[str, TheoremResult]
) -> None:
    """A refutation that is expected shows the smallest instance, and the report counts it."""
    found = results[name].counterexample
    assert found is not None
    assert found["sentence"] == f"assigned={sentence}"
    assert found["words"].startswith("Not so: with assigned = [1")
    assert results[name].outcome == "finding"


def test_expected_refutation_names_its_finding() -> None:
    """Whatever is expected to be refuted names a finding of the register, and its document."""
    assert len(FOUND) > 4
    for theorem in get_theorems():
        assert bool(theorem.finding) == (theorem.expected == "refuted"), theorem.name
        if theorem.finding:
            assert get_finding(theorem.finding).clauses, theorem.name


def test_exclusive_slice_of_two_replicas_has_the_known_instance() -> None:
    """Two replicas, top and minimum of two: the exclusive slice leaves one in sync."""
    (theorem,) = get_theorems(["drop-exclusive-isr-at-least-min"])
    shapes = [shape for shape in theorem.shapes(2) if shape["assigned"].length == 2]
    two = [shape for shape in shapes if shape["isr"].length == 2]
    result = prove(theorem.subject.function, two, theorem.hypotheses, theorem.claim)
    assert result.counterexample is not None
    assert result.counterexample.arguments["assigned"] == (1, 2)
    assert result.counterexample.outcome in ("[2]", "[1, 2]")


def test_mutant_that_makes_no_difference_is_proved() -> None:
    """A rule that differs in words only is proved: the theorems ask for no particular text."""

    def rule(
        assigned: Any, leader: Any, isr: Any, top: Any, target: Any, readings: Readings
    ) -> Any:
        return compute_drop(assigned, leader, isr, top, (), readings, assigned)

    function = partial(ask_drop, readings=Readings(), rule=rule)
    assert prove_theorem("drop-isr-at-least-min", 2, function).verdict == "proved"


# The independent opinion: plain numbers, plain Python, no formula and no solver. Names of replicas
# do not matter to the rule, so that the numbers from 1 upwards stand for all.


def _states(factor: int) -> Iterator[tuple[Any, Any, int, int, int]]:
    """Yield (assigned, isr, leader, top, minimum) that satisfy the hypotheses."""
    for size in range(1, factor + 1):
        assigned = tuple(range(1, size + 1))
        for in_sync in range(1, size + 1):
            for isr in permutations(assigned, in_sync):
                for leader in isr:
                    for top in range(1, size + 2):
                        for minimum in range(1, min(top, in_sync) + 1):
                            yield assigned, isr, leader, top, minimum


@pytest.mark.parametrize(("slicing", "violations"), [("inclusive", False), ("exclusive", True)])
def test_enumeration_agrees_with_the_proofs(slicing: str, violations: bool) -> None:
    """Running the model on every state of up to three replicas gives the solver's verdicts."""
    leader_lost = min_broken = wrong_size = states = 0
    for assigned, isr, leader, top, minimum in _states(3):
        states += 1
        drop = compute_drop(assigned, leader, isr, top, (), Readings(drop_slice=slicing))
        leader_lost += leader in drop
        min_broken += len(set(isr) - set(drop)) < minimum
        wrong_size += len(assigned) - len(drop) != min(top, len(assigned))
    assert states > 200
    assert [leader_lost > 0, min_broken > 0, wrong_size > 0] == [violations] * 3


@pytest.fixture(scope="module")
def necessity() -> list[NecessityResult]:
    """What becomes of the gate's theorems without each of their hypotheses."""
    return examine_page("gate")


SUMS = Path(__file__).with_name("hypotheses.sums").read_text(encoding="utf-8")


@pytest.mark.slow
def test_what_is_said_of_hypotheses_is_known(necessity: list[NecessityResult]) -> None:
    """Verdict, counterexample and replay of each hypothesis of the gate are those of before."""
    told = format_sums(render_section(necessity))
    assert told
    assert SUMS.startswith(told)


@pytest.mark.skipif(
    "REASSURE_WHOLE_PAGE" not in os.environ,
    reason="takes minutes: REASSURE_WHOLE_PAGE=1 pytest tests/proofs/test_proofs_theorems.py",
)
def test_whole_page_of_hypotheses_is_known() -> None:
    """The page of hypotheses, built by a process of its own, says what was said before.

    Which of several smallest counterexamples a solver finds depends on what it was asked before.
    """
    command = [sys.executable, "-m", "reassure_proofs.engine.wording"]
    page = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert format_sums(page) == SUMS
    assert "unexpected" not in page
    assert "| unknown |" not in page


def test_sums_tell_theorems_apart() -> None:
    """What is said of one theorem changes its own sum alone, headings between them none."""
    page = "# All\n\n## One\n\n### a\n\nis so\n\n### b\n\nis not\n\n## Two\n\n### c\n\nis\n"
    before = format_sums(page).splitlines()
    after = format_sums(page.replace("is not", "is").replace("## Two", "## Three")).splitlines()
    assert [line.split()[0] for line in before] == ["a", "b", "c"]
    assert [one == two for one, two in zip(before, after, strict=True)] == [True, False, True]


@pytest.mark.slow
def test_every_hypothesis_is_needed_and_no_shape_is(necessity: list[NecessityResult]) -> None:
    """Each hypothesis has a counterexample without it; what only bounds the paths has none."""
    assert [(r.theorem.name, r.hypothesis) for r in necessity if not r.as_expected] == []
    named = {(r.theorem.name, r.hypothesis) for r in necessity}
    assert named >= {(t.name, h.name) for t in GATE if t.expected == "proved" for h in t.hypotheses}


@pytest.mark.slow
def test_counterexample_to_a_missing_hypothesis_is_one_of_the_model(
    necessity: list[NecessityResult],
) -> None:
    """Run on plain numbers, the model breaks the claim where exactly that hypothesis fails."""
    for result in necessity:
        assert result.verdict != "unknown", result.reason
        assert (result.verdict == "needed") == (result.counterexample is not None)
        if result.counterexample is None:
            continue
        theorem = result.theorem
        values = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in result.counterexample["arguments"].items()
        }
        left_out = [h.name for h in theorem.assumptions if not h.holds(values)]
        assert left_out == [result.hypothesis], theorem.name
        if not result.counterexample["outcome"].startswith("raises"):
            assert not theorem.claim(values, theorem.subject.function(values)), theorem.name


def test_hypothesis_that_is_not_needed_is_reported() -> None:
    """A planted hypothesis that the claim does not need is not as expected."""
    idle = Hypothesis("idle", "the minimum is not 7", lambda v: v["minimum"] != 7)
    (theorem,) = get_theorems(["drop-leader-kept"])
    planted = replace(theorem, hypotheses=(*theorem.hypotheses, idle))
    goal = planted.claim, [h for h in planted.assumptions if h.name != "idle"]
    result = prove(planted.subject.function, planted.shapes(1), goal[1], goal[0])
    assert result.verdict == "proved"
    told = NecessityResult(planted, "idle", idle.sentence, "not needed", "", None, "")
    assert not told.as_expected


def test_leader_outside_of_the_assignment_shows_why_it_must_be_in_sync() -> None:
    """Without the leader in sync, the known instance of two replicas breaks the minimum."""
    assigned, isr = (1, 2), (2,)
    drop = compute_drop(assigned, 1, isr, 1, (), Readings())
    assert drop == (2,)
    (theorem,) = get_theorems(["drop-isr-at-least-min"])
    values = {"assigned": assigned, "isr": isr, "leader": 1, "top": 1, "minimum": 1}
    assert [item.name for item in theorem.assumptions if not item.holds(values)] == [
        "leader-in-sync"
    ]
    assert not theorem.claim(values, drop)


def test_report_counts_add_up(results: dict[str, TheoremResult]) -> None:
    """The report's counts agree with its theorems, and findings are not violations."""
    body = to_json(list(results.values()))
    refuted = [item for item in body["theorems"] if item["verdict"] == "refuted"]
    assert body["verdict"] == "holds"
    assert body["counts"] == {
        "theorems": len(GATE),
        "proved": len(GATE) - len(FOUND),
        "refuted": len(FOUND),
        "unknown": 0,
        "findings": len(FOUND),
    }
    assert all(item["counterexample"]["sentence"] for item in refuted)


@pytest.mark.parametrize(
    ("verdict", "expected", "outcome", "overall"),
    [
        ("proved", "proved", "holds", "holds"),
        ("refuted", "refuted", "finding", "holds"),
        ("refuted", "proved", "violated", "violated"),
        ("proved", "refuted", "stale", "vacuous"),
        ("unknown", "proved", "unknown", "unknown"),
        ("unknown", "refuted", "unknown", "unknown"),
    ],
)
def test_outcome_follows_from_verdict_and_expectation(
    verdict: str, expected: str, outcome: str, overall: str
) -> None:
    """Only an expected verdict holds; a refutation nobody expected is a violation."""
    theorem = replace(get_theorems()[0], finding="drop-1" if expected == "refuted" else "")
    result = TheoremResult(theorem, verdict, "", 0.0, 0, 0)
    assert (result.outcome, to_json([result])["verdict"]) == (outcome, overall)


def test_subject_reads_no_target_as_written() -> None:
    """As written, the rule is proved for every target, because it does not look at it."""
    assert all("target" not in shape for shape in DROP.shapes(3))


def test_unknown_name_is_refused() -> None:
    """A theorem name that does not exist gives an error that lists those that do."""
    with pytest.raises(UnknownTheoremError, match="drop-leader-kept"):
        prove_all(["drop-leader-lost"])


def test_listing_theorems_does_not_import_the_solver() -> None:
    """Neither the package, nor the theorems, nor the runner imports z3."""
    code = (
        "import sys, reassure_proofs.engine.register, reassure_proofs.engine.runner\n"
        "sys.exit('z3' in sys.modules)"
    )
    environment = {"PYTHONPATH": ":".join(path for path in sys.path if path)}
    assert subprocess.run([sys.executable, "-c", code], env=environment).returncode == 0
