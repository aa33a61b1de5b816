"""Proofs: all paths of the code, a claim at the end of each, and a certificate that all were seen.

One *shape* (lengths of all sequences) is explored at a time, from the smallest up. All goals that
are about the same code share the exploration. At the end of each path the solver is asked for an
input of that path that breaks the claim. Then, whatever the answers were:

* the **certificate**: a fresh solver is asked for an input that satisfies the hypotheses and takes
  none of the paths. There must be none; a proof without that is not called proved;
* **witnesses**: one input of every path is run through the plain code, which must return what the
  symbolic run returned;
* **plain inputs**: the claims are tried on inputs made of the code's own constants, each asked
  twice; one that breaks a claim, or has two answers, overrules the proof;
* a counterexample is made as small as possible and **replayed** on the plain code; if that does not
  show the violation, the executor is at fault and says so.
"""

import time
from collections.abc import Sequence

from reassure_proofs.any_size.exploration import AnySizeExploration
from reassure_proofs.engine.dialect import find_place
from reassure_proofs.engine.results import (
    ProofGoal,
    ProofObligation,
    ShapeResult,
)
from reassure_proofs.engine.shape_exploration import ShapeExploration
from reassure_proofs.engine.statement import (
    Function,
    Hypothesis,
    Shape,
    is_any_size,
)
from reassure_proofs.engine.symex import (
    EngineFault,
    GaveUp,
    PathLimits,
    TimeIsUp,
    disjunction,
)
from reassure_spec.errors import ReassureError


class ProofFaultError(ReassureError):
    """The proof machinery contradicts itself; no verdict it gave can be trusted."""


def try_shape(
    plain: Function, shape: Shape, hypotheses: Sequence[Hypothesis], goals: Sequence[ProofGoal]
) -> ShapeResult:
    """Try the goals on plain inputs only; what is found is refuted, what is not is unknown.

    Raises UnsteadyError for code that has two answers to one question.
    """
    work = ShapeExploration(
        plain, shape, hypotheses, goals, PathLimits(), hashable=False, plain=plain
    )
    outcome = ShapeResult(reason="plain inputs prove nothing")
    _try_only(work, outcome)
    return outcome


def _try_only(work: ShapeExploration, outcome: ShapeResult) -> None:
    """Note what plain inputs break, of code that could not be explored."""
    try:
        outcome.counterexamples.update(work.try_out()[1])
    except TimeIsUp as stop:
        outcome.reason, outcome.late = str(stop), True
    except GaveUp as stop:
        outcome.reason = str(stop)


def explore_shape(
    function: Function,
    shape: Shape,
    hypotheses: Sequence[Hypothesis],
    goals: Sequence[ProofGoal],
    limits: PathLimits | None = None,
    hashable: bool = False,
    plain: Function | None = None,
) -> ShapeResult:
    """Explore the code for one shape under `hypotheses` and judge every goal on every path.

    `plain` is the code itself where `function` is its twin (`engine.dialect`). Raises
    ProofFaultError when the executor contradicts itself, and UnsteadyError for code that has two
    answers to one question. Limits that were reached are told in the result's `reason`.
    """
    started = time.process_time()
    outcome = ShapeResult()
    work: ShapeExploration | None = None
    try:
        work = begin(function, shape, hypotheses, goals, limits, hashable, plain)
        _explore(work, outcome)
    except GaveUp as stop:
        place = find_place(stop)
        outcome.reason = f"{stop} ({place})" if place else str(stop)
        outcome.late = isinstance(stop, TimeIsUp)
    except EngineFault as fault:
        if plain is None:
            raise ProofFaultError(f"the proof cannot be trusted: {fault}") from fault
        outcome.reason = f"the executor and plain Python do not agree on the code: {fault}"
    if work is not None and outcome.reason and plain is not None and not outcome.late:
        _try_only(work, outcome)
    outcome.queries = work.engine.queries if work is not None else 0
    outcome.seconds = time.process_time() - started
    return outcome


def begin(
    function: Function,
    shape: Shape,
    hypotheses: Sequence[Hypothesis],
    goals: Sequence[ProofGoal],
    limits: PathLimits | None = None,
    hashable: bool = False,
    plain: Function | None = None,
) -> ShapeExploration:
    """Return the exploration of a shape by the engine that it is for, before its first path."""
    kind = AnySizeExploration if is_any_size(shape) else ShapeExploration
    return kind(function, shape, hypotheses, goals, limits or PathLimits(), hashable, plain)


def _explore(work: ShapeExploration, outcome: ShapeResult) -> None:
    work.run()
    tried, found = work.try_out()
    outcome.counterexamples.update(found)
    outcome.certificate, outcome.gap = work.certify(tried)
    outcome.obligations = [
        ProofObligation(
            goal.name, (*work.assumed, *work.extra[goal.name]), disjunction(*violations)
        )
        for goal in work.goals
        if (violations := work.violations.get(goal.name)) is not None
    ]
    if outcome.certificate.gap == "unknown":
        outcome.reason = "the solver does not know whether every input takes an explored path"
    for goal in work.goals:
        if goal.name in work.suspects:
            outcome.counterexamples[goal.name] = work.minimise(goal)
