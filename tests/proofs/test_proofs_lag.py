"""Lags: planted faults in what the leader notes and concludes, and smallest counterexamples."""

from typing import Any

import pytest

from reassure_model.protocols import kafka_4485 as replication_leader
from reassure_model.protocols.kafka_4485 import Follower, estimate_lag, record_fetch
from reassure_proofs.engine.prover import prove
from reassure_proofs.engine.register import get_theorems
from reassure_proofs.protocols.kafka_4485 import lag


def _prove(name: str) -> Any:
    (theorem,) = get_theorems([name])
    return prove(theorem.subject.function, theorem.shapes(2), theorem.assumptions, theorem.claim)


def _credit_now(
    follower: Follower, offset: int, leader_end: int, now_ms: int, readings: Any, rule: str
) -> Follower:
    """Count a follower as caught up now where it has what the leader had at the last fetch."""
    noted = record_fetch(follower, offset, leader_end, now_ms, readings, rule)
    if offset >= follower.last_fetch_leader_end:
        return Follower(offset, now_ms, leader_end, now_ms)
    return noted


def _overwrite_first(
    follower: Follower, offset: int, leader_end: int, now_ms: int, readings: Any, rule: str
) -> Follower:
    """Note the fetch before it is compared."""
    noted = Follower(offset, now_ms, leader_end, follower.last_caught_up_ms)
    return record_fetch(noted, offset, leader_end, now_ms, readings, rule)


def _never_credit(
    follower: Follower, offset: int, leader_end: int, now_ms: int, readings: Any, rule: str
) -> Follower:
    return Follower(offset, now_ms, leader_end, follower.last_caught_up_ms)


@pytest.mark.parametrize(
    ("mutant", "name"),
    [
        (_credit_now, "lag-note-stays-sound"),
        (_never_credit, "lag-estimate-within-gap"),
        (_never_credit, "close-follower-is-in"),
        (_overwrite_first, "lag-estimate-within-gap"),
    ],
)
def test_mutant_of_the_note_is_refuted(
    mutant: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A leader that notes fetches wrongly is refuted."""
    monkeypatch.setattr(lag, "record_fetch", mutant)
    assert _prove(name).verdict == "refuted"


def test_estimate_that_is_short_is_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A leader that assumes a millisecond less breaks the bound and guarantee 2."""

    def short(follower: Follower, now_ms: int) -> int:
        return estimate_lag(follower, now_ms) - 1

    monkeypatch.setattr(lag, "estimate_lag", short)
    monkeypatch.setattr(replication_leader, "estimate_lag", short)
    assert _prove("lag-estimate-never-short").verdict == "refuted"
    assert _prove("lagging-follower-is-out").verdict == "refuted"


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        (
            "lag-estimate-within-less-than-gap",
            {"times_ms": (0,), "ends": (1,), "first_ms": 0, "second_ms": 0, "now_ms": 1},
        ),
        (
            "hw-stall-within-less-than-limit",
            {"times_ms": (0,), "ends": (1,), "follower_ends": (0,), "lag_ms_max": 1},
        ),
    ],
)
def test_constant_is_tight(name: str, arguments: dict[str, Any]) -> None:
    """With the constant less by one the smallest counterexample is the known one."""
    found = _prove(name).counterexample
    assert found is not None
    assert {key: found.arguments[key] for key in arguments} == arguments


def test_error_without_full_responses_has_no_bound() -> None:
    """A follower that stays behind is never credited: the estimate passes any constant."""
    found = _prove("lag-estimate-bounded-without-full-responses").counterexample
    assert found is not None
    estimate, true, _ = lag.fetch_twice(found.arguments)
    assert estimate > true + found.arguments["gap_ms"] + 10_000
