"""One evaluation of the in-sync set by a leader: pseudo-ISR, high watermark, in-sync set.

Replicas are of any number, and their offsets, lags and times any integers at all.
"""

# ruff: noqa: D401  # the docstring of a claim is what it claims

from collections.abc import Callable, Iterator
from typing import Any, Final

from reassure_model.protocols.kafka_4485 import (
    compute_high_watermark,
    compute_isr,
    compute_pseudo_isr,
)
from reassure_proofs.engine.formula import Truth, all_of, any_of, distinct, implies, member, subset
from reassure_proofs.engine.statement import (
    BROKER,
    ID,
    LIST,
    Claims,
    Hypothesis,
    Parameter,
    Rule,
    Shape,
    Subject,
    Values,
    given,
    ids,
    shaped,
)

FOLLOWERS: Final = "it is about a leader's followers, not a controller"
"""Why no controller shows a counterexample."""


def _evaluation_shapes(replication_factor: int) -> Iterator[Shape]:
    for length in range(1, replication_factor + 1):
        yield {
            "replicas": ids(length),
            "offsets": Parameter(length),
            "lags_ms": Parameter(length),
            "lag_ms_max": Parameter(),
            "high_watermark": Parameter(),
            "leader": ID,
            "leader_end": Parameter(),
        }


def _any_size() -> Shape:
    column = Parameter(kind="column", word="replicas")
    numbers = dict.fromkeys(("lag_ms_max", "high_watermark", "leader_end"), Parameter())
    return {"replicas": LIST, "offsets": column, "lags_ms": column, "leader": BROKER, **numbers}


def evaluate_with(values: Values, define: Callable[..., Any]) -> tuple[Any, Any, Any]:
    """Run the three definitions in their order, with `define` for the in-sync set."""
    replicas, offsets = values["replicas"], values["offsets"]
    pseudo_isr = compute_pseudo_isr(replicas, values["lags_ms"], values["lag_ms_max"])
    high_watermark = compute_high_watermark(values["high_watermark"], replicas, offsets, pseudo_isr)
    return pseudo_isr, high_watermark, define(replicas, offsets, pseudo_isr, high_watermark)


def evaluate(values: Values) -> tuple[Any, Any, Any]:
    """Run the model's three definitions in their order: pseudo-ISR, high watermark, ISR."""
    return evaluate_with(values, compute_isr)


def _rows(values: Values) -> list[tuple[Any, Any, Truth]]:
    """Return each replica with its end, and whether its lag is within the limit."""
    listed = zip(values["replicas"], values["offsets"], values["lags_ms"], strict=True)
    return [(replica, end, lag <= values["lag_ms_max"]) for replica, end, lag in listed]


EVALUATION: Final = Subject(
    "in-sync-evaluation",
    evaluate,
    "the evaluation (pseudo-ISR, high watermark, ISR)",
    _evaluation_shapes,
    any_size=_any_size,
    shown=FOLLOWERS,
)
"""One evaluation by one leader."""

REPLICAS_DISTINCT: Final = Hypothesis(
    "replicas-distinct", "no replica is listed twice", lambda v: distinct(v["replicas"])
)
LEADER_COUNTED: Final = Hypothesis(
    "leader-counted",
    "the leader is one of the replicas, with its own end and within the lag limit",
    lambda v: any_of(
        (replica == v["leader"]) & (end == v["leader_end"]) & close
        for replica, end, close in _rows(v)
    ),
)
HW_WITHIN_LEADER: Final = Hypothesis(
    "hw-within-leader",
    "the high watermark is not beyond the leader's end before the evaluation",
    lambda v: v["high_watermark"] <= v["leader_end"],
)


def _is_minimum(values: Values, moved: Any) -> Truth:
    """Say that a mark is the smallest of the ends that count, or where it was if that is more."""
    rows, before = _rows(values), values["high_watermark"]
    lowest = all_of(implies(close, moved <= end) for _, end, close in rows)
    reached = any_of(close & (end <= moved) for _, end, close in rows)
    stays = (moved == before) & any_of(close & (end <= before) for _, end, close in rows)
    return stays | ((before <= moved) & lowest & reached)


THEOREMS: Final = Claims("kip-236")
"""Every theorem about an evaluation."""
about = THEOREMS.about


@about(EVALUATION, "hw-is-minimum-of-pseudo-isr", "hw.minimum-of-pseudo-isr")
@given(LEADER_COUNTED, REPLICAS_DISTINCT)
def _hw_is_minimum_of_pseudo_isr(values: Values, result: Any) -> Truth:
    """After an evaluation the mark is the smallest end within the lag limit, or where it was."""
    return _is_minimum(values, result[1])


@about(EVALUATION, "isr-is-as-defined", "isr.member.at-or-above-hw")
@given(REPLICAS_DISTINCT, LEADER_COUNTED)
def _members_as_defined(values: Values, result: Any) -> Truth:
    """In sync is exactly who is within the lag limit and has reached the high watermark."""
    _, high_watermark, isr = result
    return subset(isr, values["replicas"]) & all_of(
        member(replica, isr) == (close & (high_watermark <= end))
        for replica, end, close in _rows(values)
    )


@about(EVALUATION, "hw-never-decreases", "hw.never-decreases")
@given(LEADER_COUNTED)
@shaped(REPLICAS_DISTINCT)
def _hw_never_decreases(values: Values, result: Any) -> Truth:
    """On one leader an evaluation never lowers the high watermark."""
    return values["high_watermark"] <= result[1]


@about(EVALUATION, "hw-within-leader", "hw.at-most-leader-end")
@given(LEADER_COUNTED, HW_WITHIN_LEADER)
@shaped(REPLICAS_DISTINCT)
def _hw_within_leader(values: Values, result: Any) -> Truth:
    """An evaluation never moves the high watermark beyond the leader's end."""
    return result[1] <= values["leader_end"]


@about(EVALUATION, "hw-advance-is-replicated", "hw.minimum-of-pseudo-isr")
@given(LEADER_COUNTED)
@shaped(REPLICAS_DISTINCT)
def _advance_is_replicated(values: Values, result: Any) -> Truth:
    """When the high watermark advances, every replica within the lag limit has reached it."""
    high_watermark = result[1]
    reached = all_of(implies(close, high_watermark <= end) for _, end, close in _rows(values))
    return implies(values["high_watermark"] < high_watermark, reached)


@about(EVALUATION, "pseudo-isr-is-by-lag", "isr.pseudo.by-lag")
@given(REPLICAS_DISTINCT, LEADER_COUNTED)
def _pseudo_isr_is_by_lag(values: Values, result: Any) -> Truth:
    """A replica is in the pseudo-ISR if and only if its lag is within the limit."""
    return all_of(member(replica, result[0]) == close for replica, _, close in _rows(values))


@about(EVALUATION, "isr-members-reach-hw", "isr.member.at-or-above-hw")
@given(REPLICAS_DISTINCT, LEADER_COUNTED)
def _members_reach_hw(values: Values, result: Any) -> Truth:
    """Every member of the in-sync set has reached the high watermark."""
    _, high_watermark, isr = result
    return all_of(
        implies(member(replica, isr), high_watermark <= end) for replica, end, _ in _rows(values)
    )


RULE: Final = Rule(
    "in-sync",
    ("replicas", "offsets", "pseudo_isr", "high_watermark"),
    {"": EVALUATION.name},
    evaluate=evaluate_with,
    preconditions=(REPLICAS_DISTINCT, HW_WITHIN_LEADER),
    surroundings=(LEADER_COUNTED,),
)
"""A definition of the in-sync set answers the replicas in sync."""
