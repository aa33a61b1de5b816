"""Rules that the executor once proved falsely: each is refuted or refused by name, by it alone."""

import functools
import itertools
from collections.abc import Callable
from typing import Any

import pytest

from reassure_proofs.engine import prover
from reassure_proofs.engine.candidate import find_theorems, prove_candidate

RACKS = {7: "b", 16: ""}


class OddError(Exception):
    """Says of itself that it is the broker 7."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, int) and other * 7 == 49

    __hash__ = None  # type: ignore[assignment]


class PlainError(Exception):
    """Has nothing of its own."""


@functools.cache
def collect(number: int) -> list[int]:
    """Return a list that every caller shares."""
    return [number]


@functools.cache
def is_truth(number: object) -> bool:
    """Return what was asked first, of True or of 1."""
    return number is True


def sound(assigned: Any, leader: Any, isr: Any, top: Any) -> Any:
    """Keep the first of the leader, who is in sync and the others."""
    ranked = [leader]
    ranked += [replica for replica in isr if replica != leader]
    ranked += [replica for replica in assigned if replica not in ranked]
    return [replica for replica in assigned if replica not in ranked[:top]]


def slices_backwards(assigned: Any, leader: Any, isr: Any, top: Any) -> Any:
    """Drop all where a bound before the first takes in the first."""
    if len(assigned[::-1][: -top - 1 : -1]) == len(assigned) and top > 1:
        return assigned
    return sound(assigned, leader, isr, top)


def ends_early_at_any(assigned: Any, leader: Any, isr: Any, top: Any) -> Any:
    """Raise KeyError for the leaders that the set has before 7."""
    any(RACKS[replica] == "b" for replica in {7, leader})
    return sound(assigned, leader, isr, top)


def ends_early_at_all(assigned: Any, leader: Any, isr: Any, top: Any) -> Any:
    """Raise KeyError for the leaders that the set has before 7."""
    all(RACKS[replica] == "" for replica in {7, leader})
    return sound(assigned, leader, isr, top)


def sorts_sets(assigned: Any, leader: Any, isr: Any, top: Any) -> Any:
    """Drop all where of two sets, neither of which is smaller, the first has the leader."""
    pair = sorted({frozenset({leader}), frozenset({7})})
    return assigned if leader != 7 and leader in pair[0] else sound(assigned, leader, isr, top)


def sorts_made_sets(assigned: Any, leader: Any, isr: Any, top: Any) -> Any:
    """Do the same with sets made of the members of a set."""
    pair = sorted({replica} for replica in {7, leader})
    return sound(assigned, leader, isr, top) if 7 in pair[0] else assigned


def changes_what_is_cached(assigned: Any, leader: Any, isr: Any, top: Any) -> Any:
    """Drop all from the second call on."""
    found = collect(leader)
    found.append(leader)
    return assigned if len(found) > 2 else sound(assigned, leader, isr, top)


def caches_equal_keys(assigned: Any, leader: Any, isr: Any, top: Any) -> Any:
    """Drop all where True is not True, since 1 was asked before."""
    is_truth(leader)
    return sound(assigned, leader, isr, top) if is_truth(leader == leader) else assigned


def compares_an_error(assigned: Any, leader: Any, isr: Any, top: Any) -> Any:
    """Drop all where an error says that it is the leader."""
    return assigned if OddError() == leader else sound(assigned, leader, isr, top)


def slices_beyond_a_word(assigned: Any, leader: Any, isr: Any, top: Any) -> Any:
    """Raise ValueError where top is beyond 2^63."""
    first = itertools.islice((leader,), min(top, 1), top)
    return [] if leader in first else sound(assigned, leader, isr, top)


def takes_one_of_two_types(assigned: Any, leader: Any, isr: Any, top: Any) -> Any:
    """Drop all where the common member is taken from the other side."""
    (common,) = {leader} & {leader == 1, leader, 0.5} or {leader}
    return assigned if common is True else sound(assigned, leader, isr, top)


WRONG = (
    slices_backwards,
    ends_early_at_any,
    ends_early_at_all,
    sorts_sets,
    sorts_made_sets,
    changes_what_is_cached,
    caches_equal_keys,
    compares_an_error,
    slices_beyond_a_word,
    takes_one_of_two_types,
)


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no plain inputs tried, so that the executor alone has to get it right."""
    monkeypatch.setattr(prover._Exploration, "try_out", lambda _: (1, {}))


def _verdicts(rule: Callable[..., Any]) -> dict[str, tuple[str, str]]:
    theorems = [
        item for item in find_theorems(rule, assume=("all",)) if item.name == "drop-leader-kept"
    ]
    results = prove_candidate(rule, 2, theorems=theorems)
    return {each.theorem.name: (each.verdict, each.reason) for each in results}


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("rule", WRONG, ids=lambda rule: rule.__name__)
def test_rule_that_is_wrong_for_some_input_is_not_proved(rule: Callable[..., Any]) -> None:
    """The executor alone refutes it, or refuses it with the line."""
    ((verdict, reason),) = _verdicts(rule).values()
    assert verdict in ("refuted", "unknown")
    assert verdict == "refuted" or "test_proofs_soundness.py:" in reason


def refuse_member(replica: int, members: Any) -> None:
    """Raise an error that has nothing of its own."""
    if replica in members:
        raise PlainError


def raises_a_plain_error(assigned: Any, leader: Any, isr: Any, top: Any) -> Any:
    """Catch an error of its own that has nothing of its own."""
    try:
        refuse_member(leader, isr)
    except PlainError:
        return sound(assigned, leader, isr, top)
    return sound(assigned, leader, isr, top)


@functools.cache
def double(number: int) -> int:
    """Return what cannot be changed."""
    return number + number


def caches_numbers(assigned: Any, leader: Any, isr: Any, top: Any) -> Any:
    """Call a cached function that answers numbers."""
    return sound(assigned, leader, isr, top) if double(leader) == leader + leader else assigned


def ranks_a_set(assigned: Any, leader: Any, isr: Any, top: Any) -> Any:
    """Go through a set where the order makes no difference."""
    if any(replica == leader for replica in set(isr)) and max(set(isr)) >= min(set(isr)):
        return sound(assigned, leader, isr, top)
    return sorted(set(assigned))[top:]


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize(
    "rule", [sound, raises_a_plain_error, caches_numbers, ranks_a_set], ids=lambda r: r.__name__
)
def test_rule_that_is_right_is_proved(rule: Callable[..., Any]) -> None:
    """What looks alike and is right is proved."""
    ((verdict, reason),) = _verdicts(rule).values()
    assert (verdict, reason) == ("proved", "")
