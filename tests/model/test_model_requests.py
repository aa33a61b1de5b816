"""What a request means for a partition."""

from dataclasses import replace

import pytest

from reassure_model.partition import Environment, Partition, Reassignment, Request
from reassure_model.protocols.kip_236 import (
    Change,
    New,
    NothingToDo,
    Refusal,
    decide_request,
    settle_conflicts,
)
from reassure_spec.readings import Readings, get_profile, override_readings

AROUND = Environment(frozenset({1, 2, 3}), frozenset({1, 2, 3, 4}))
CALM = Partition((1, 2))
MOVING = Partition((1, 2, 3), reassignment=Reassignment((1, 3), 2))
LEGACY = replace(MOVING, reassignment=Reassignment((1, 3), 2, legacy=True))
WRITTEN = Readings()


def decide(
    target: tuple[int, ...],
    partition: Partition = CALM,
    readings: Readings = WRITTEN,
    *,
    legacy: bool = False,
    around: Environment = AROUND,
) -> object:
    """Return the decision on a request for this target."""
    return decide_request(Request(7, target, legacy), partition, around, readings)


REFUSED = [
    ("request.refuse.unknown-partition", (1, 2), Partition(), WRITTEN),
    ("request.refuse.empty-target", (), CALM, WRITTEN),
    ("request.refuse.duplicate-replica", (1, 3, 1), CALM, WRITTEN),
    ("request.refuse.negative-replica", (1, -1), CALM, WRITTEN),
    ("request.refuse.unknown-broker", (1, 9), CALM, WRITTEN),
    ("request.refuse.dead-replica", (1, 4), CALM, get_profile("kafka-42")),
    ("request.conflict.legacy-flag", (1, 2), LEGACY, WRITTEN),
]


@pytest.mark.parametrize(
    ("clause", "target", "partition", "readings"),
    [pytest.param(*row, id=row[0], marks=pytest.mark.clause(row[0])) for row in REFUSED],
)
def test_senseless_request_refused_by_clause(
    clause: str, target: tuple[int, ...], partition: Partition, readings: Readings
) -> None:
    """A request that makes no sense for a partition is refused, by the clause that says so."""
    decision = decide(target, partition, readings)
    assert isinstance(decision, Refusal)
    assert decision.clause == clause
    assert decision.reason


def test_first_reason_counts() -> None:
    """Where several refusals apply the first in the order of the checks is named."""
    decision = decide((9, 9, -1))
    assert isinstance(decision, Refusal)
    assert decision.clause == "request.refuse.duplicate-replica"


@pytest.mark.clause("request.conflict.legacy-flag")
def test_flag_conflict_works_both_ways() -> None:
    """Each route is refused where the other one started the reassignment in flight."""
    assert isinstance(decide((1, 2), MOVING, legacy=True), Refusal)
    assert isinstance(decide((1, 2), LEGACY, legacy=True), Change)
    assert isinstance(decide((1, 3), CALM, legacy=True), New)


@pytest.mark.clause("target.at-least-min-isr")
def test_small_target_refused_in_amended_profile_only() -> None:
    """A target below min.insync.replicas is refused as amended and accepted as written."""
    around = replace(AROUND, min_insync_replicas=2)
    assert decide((3,), around=around) == New()
    amended = decide((3,), readings=get_profile("kip-236-amended"), around=around)
    assert isinstance(amended, Refusal)
    assert amended.clause == "target.at-least-min-isr"


@pytest.mark.clause("top.at-least-min-isr")
def test_too_few_assigned_refused_for_new_only() -> None:
    """The check of top concerns the first of a chain, not a change."""
    around = replace(AROUND, min_insync_replicas=4)
    new = decide((1, 3), around=around)
    assert isinstance(new, Refusal)
    assert new.clause == "top.at-least-min-isr"
    assert decide((1, 2), MOVING, around=around) == Change()


@pytest.mark.clause("request.same-target.no-change")
def test_same_target_changes_nothing_unless_read_as_restart() -> None:
    """The target in flight asks for nothing; another order of it is another target."""
    assert decide((1, 3), MOVING) == NothingToDo("request.same-target.no-change")
    assert decide((3, 1), MOVING) == Change()
    assert decide((1, 3), MOVING, Readings(request_same_target="restart")) == Change()


@pytest.mark.clause("request.no-op.nothing-started")
def test_assigned_replicas_ask_for_nothing_unless_reordered() -> None:
    """The replicas that are assigned ask for nothing; another order of them is a move."""
    assert decide((1, 2)) == NothingToDo("request.no-op.nothing-started")
    assert decide((2, 1)) == New()


def test_unknown_and_dead_brokers_wait_where_read_so() -> None:
    """A dead broker is waited for as written, an unknown one where so read; no deletion is."""
    assert decide((1, 4)) == New()
    deleting = decide((1, 3), around=replace(AROUND, deleting=True))
    assert isinstance(deleting, Refusal)
    assert deleting.clause == "shipped.delete.blocks-reassignment"
    assert decide((1, 9), readings=Readings(target_unknown_broker="wait")) == New()


@pytest.mark.parametrize(("value", "refused"), [("per-partition", 1), ("whole-request", 3)])
def test_refusal_of_one_partition(value: str, refused: int) -> None:
    """One bad partition is refused alone, or with the others of its request where it is read so."""
    readings = override_readings(Readings(), {"request.conflict": value})
    bad = Refusal("request.refuse.empty-target", "no replica")
    settled = settle_conflicts((New(), bad, NothingToDo("request.no-op.nothing-started")), readings)
    assert sum(isinstance(each, Refusal) for each in settled) == refused
    assert settled[1] == bad
    assert settle_conflicts((New(), New()), readings) == (New(), New())
