"""The drop rule for any number of brokers, by counting.

What the model's code does is proved for bounded lists only. Here it is first proved, within those
bounds, that the code meets a *contract*: how many replicas of each kind stay, as a relation between
numbers. From the contract alone, with nothing bounded, follow the promises. So a theorem of layer
`contract` speaks of every number of brokers, and of the code as far as the contract is met; the
theorem of layer `code` that carries the link says up to where that is known.

The kinds of replicas: in sync (the leader among them), and assigned but out of sync; and of either,
how many the target names.
"""

# ruff: noqa: D205, D401  # the docstring of a claim is what it claims

from collections.abc import Iterator
from typing import Any, Final

from reassure_proofs.engine.formula import Truth, absent, count, implies, member
from reassure_proofs.engine.statement import (
    LEMMA,
    Claims,
    Hypothesis,
    Parameter,
    Shape,
    Subject,
    Values,
    given,
    says,
)

_NUMBERS: Final = ("in_sync", "others", "top", "minimum", "kept_in_sync", "kept_others")
_OF_A_CONTRACT: Final = tuple(name for name in _NUMBERS if name != "minimum")


def is_smaller_of(value: Any, first: Any, second: Any) -> Truth:
    """Return whether `value` is the smaller of two numbers.

    >>> is_smaller_of(2, 2, 3), is_smaller_of(3, 2, 3)
    (True, False)
    """
    return (value <= first) & (value <= second) & ((value == first) | (value == second))


def meets_drop_contract(
    in_sync: Any, others: Any, top: Any, kept_in_sync: Any, kept_others: Any
) -> Truth:
    """Return whether the right numbers stay: in-sync replicas first, top of them all at most."""
    all_kept = kept_in_sync + kept_others
    return is_smaller_of(kept_in_sync, in_sync, top) & is_smaller_of(
        all_kept, in_sync + others, top
    )


def meets_amended_contract(
    in_sync: Any, others: Any, top: Any, kept_in_sync: Any, kept_others: Any, wanted: Any
) -> Truth:
    """Return the same of the amended rule, which also keeps the `wanted` replicas of the target."""
    enough = (top <= kept_in_sync) | (in_sync <= kept_in_sync)
    kept = kept_in_sync + kept_others
    return enough & (wanted <= kept) & ((kept <= top + wanted) | (kept <= top))


def count_kinds(values: Values, drop: Any) -> tuple[Any, Any, Any, Any, Any]:
    """Return how many replicas are in sync and not, top, and how many of each kind stay."""
    stay = [(r, absent(r, drop)) for r in values["assigned"]]
    kept_in_sync = count(kept & member(replica, values["isr"]) for replica, kept in stay)
    kept_others = count(kept & absent(replica, values["isr"]) for replica, kept in stay)
    in_sync = len(values["isr"])
    others = len(values["assigned"]) - in_sync
    return in_sync, others, values["top"], kept_in_sync, kept_others


def claim_contract(values: Values, drop: Any) -> Truth:
    """The numbers that a drop leaves, in sync and otherwise, are those of the contract."""
    return meets_drop_contract(*count_kinds(values, drop))


def claim_amended_contract(values: Values, drop: Any) -> Truth:
    """The numbers that the amended drop leaves are those of its contract."""
    wanted = count(member(replica, values["target"]) for replica in values["assigned"])
    return meets_amended_contract(*count_kinds(values, drop), wanted)


def _shapes(_: int) -> Iterator[Shape]:
    yield {name: Parameter() for name in (*_NUMBERS, "wanted", "target")}


COUNTS: Final = Subject(
    "counts",
    lambda _: (),
    "the contract",
    _shapes,
    bounded="any number of brokers, on the contract of the drop rule",
    shown="it is about numbers; the code behind them is asked by other theorems",
)
"""Numbers that satisfy the contract; there is no code to run."""

COUNTED: Final = Hypothesis(
    "counted",
    "the numbers count replicas, the leader in sync among them",
    lambda v: (v["in_sync"] >= 1) & (v["others"] >= 0) & (v["top"] >= 1),
)
CONTRACT: Final = Hypothesis(
    "contract",
    "the drop rule meets its contract",
    lambda v: meets_drop_contract(*(v[name] for name in _OF_A_CONTRACT)),
)
AMENDED_CONTRACT: Final = Hypothesis(
    "amended-contract",
    "the amended drop rule meets its contract",
    lambda v: meets_amended_contract(*(v[name] for name in (*_OF_A_CONTRACT, "wanted"))),
)
ENOUGH_BEFORE: Final = Hypothesis(
    "isr-at-least-min",
    "the in-sync set has min.insync.replicas members before the drop",
    lambda v: v["minimum"] <= v["in_sync"],
)
TOP_ENOUGH: Final = Hypothesis(
    "top-at-least-min",
    "top is at least min.insync.replicas when the drop is computed",
    lambda v: v["minimum"] <= v["top"],
)
WANTED_OF_TARGET: Final = Hypothesis(
    "wanted-of-target",
    "the replicas of the target that are assigned are no more than the target has",
    lambda v: (v["wanted"] <= v["target"]) & (v["wanted"] >= 0),
)


THEOREMS: Final = Claims("kip-236", layer="contract")
"""Every theorem for any number of brokers."""
about = THEOREMS.about


@about(
    COUNTS, "unbounded-amended-isr-at-least-min", "drop.isr-at-least-min", profile="kip-236-amended"
)
@says("However many brokers there are, the amended drop leaves the minimum in sync.")
@given(AMENDED_CONTRACT, ENOUGH_BEFORE, TOP_ENOUGH)
@about(COUNTS, "unbounded-isr-at-least-min", "drop.isr-at-least-min")
@given(CONTRACT, ENOUGH_BEFORE, TOP_ENOUGH)
def _sufficient(values: Values, _: Any) -> Truth:
    """However many brokers there are, a drop leaves min.insync.replicas replicas in sync."""
    return values["minimum"] <= values["kept_in_sync"]


@about(COUNTS, "unbounded-place-for-the-leader", "drop.leader-kept")
@given(CONTRACT, COUNTED)
def _leader_place(values: Values, _: Any) -> Truth:
    """However many brokers there are, a drop leaves a place for a leader in sync."""
    return values["kept_in_sync"] >= 1


@about(COUNTS, "unbounded-others-first", "drop.rank.leader-isr-rest")
@given(CONTRACT, COUNTED)
def _others_first(values: Values, _: Any) -> Truth:
    """However many brokers there are, an in-sync replica goes only if all others do."""
    return implies(values["kept_in_sync"] < values["in_sync"], values["kept_others"] == 0)


@about(COUNTS, "unbounded-after-expansion-drops-copies", "drop.before-expansion")
@given(CONTRACT, COUNTED)
def _target_dropped(values: Values, _: Any) -> Truth:
    """With top replicas in sync, a drop after the expansion takes every replica that copies."""
    full = values["top"] <= values["in_sync"]
    return implies(full, values["kept_others"] == 0)


@about(COUNTS, "unbounded-evaluated-again-drops-again", LEMMA)
@given(CONTRACT)
def _evaluated_again(values: Values, _: Any) -> Truth:
    """With more than top replicas assigned, every evaluation drops some."""
    before = values["in_sync"] + values["others"]
    return implies(values["top"] < before, values["kept_in_sync"] + values["kept_others"] < before)


@about(COUNTS, "unbounded-bounds-assigned", "top.bounds-assigned", profile="kip-236-amended")
@given(AMENDED_CONTRACT, WANTED_OF_TARGET)
def _bounded(values: Values, _: Any) -> Truth:
    """However many brokers there are, after drop and expansion at most top and the target are
    assigned.
    """
    kept = values["kept_in_sync"] + values["kept_others"]
    return kept - values["wanted"] + values["target"] <= values["top"] + values["target"]
