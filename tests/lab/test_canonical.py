"""What is remembered of the model's answers is what the model says of each partition itself."""

from collections import Counter

import pytest

from reassure_lab.protocols.kip_236 import canonical
from reassure_lab.protocols.kip_236.canonical import Answers, OfferedWrite, PlacedPartition
from reassure_lab.protocols.kip_236.offers import Offer
from reassure_lab.protocols.kip_236.synthetic import Size, SyntheticHistory
from reassure_model.outcome import Accepted
from reassure_model.partition import (
    Environment,
    LeaderAndIsr,
    Partition,
    Request,
    to_znode,
)
from reassure_model.protocols.kip_236 import apply_failover
from reassure_model.protocols.kip_236.rules import accept_write
from reassure_model.writes import ChangeIsr, WriteState
from reassure_spec.readings import get_profile
from reassure_spec.znodes import NO_LEADER, ReplicaList, encode_state
from reassure_zookeeper.transactions import Transaction


class Checking(Answers):
    """Holds each answer against that of the model to the partition with its true numbers."""

    def __init__(self, remembering: Answers) -> None:
        super().__init__(remembering.readings, remembering.around)
        self.asked = Counter[str]()

    def ask(self, place: PlacedPartition, offer: Offer) -> tuple[OfferedWrite, ...]:
        """Return what is remembered, which the model says too."""
        self.asked["offers"] += 1
        partition, steps = place.restore(), super().ask(place, offer)
        spelled = [place.spell(step.write) for step in steps]
        assert spelled == list(offer(partition, self.around, self.readings))
        for step, write in zip(steps, spelled, strict=True):
            self.asked["steps"] += 1
            outcome = accept_write(partition, write, self.around, self.readings)
            assert isinstance(outcome, Accepted) and isinstance(step.after, PlacedPartition)
            assert place.follow(step.after).restore() == outcome.state
            if isinstance(step.write, WriteState | ChangeIsr):
                assert isinstance(write, WriteState | ChangeIsr)
                assert place.encode(step.write.state) == encode_state(to_znode(write.state))
        return steps

    def request(
        self, place: PlacedPartition, sequence: int, target: ReplicaList
    ) -> PlacedPartition:
        """Return where a request leads, which is the partition with that request."""
        self.asked["requests"] += 1
        before, after = place.restore(), super().request(place, sequence, target)
        assert after.restore().requests == (*before.requests, Request(sequence, target))
        assert after.restore().assigned == before.assigned
        assert after.restore().state == before.state
        return after

    def fail_over(self, place: PlacedPartition) -> PlacedPartition:
        """Return where a failover leads, which the model says too."""
        self.asked["failovers"] += 1
        after = super().fail_over(place)
        assert after.restore() == apply_failover(place.restore(), self.readings)
        return after


def _walk(size: Size) -> tuple[SyntheticHistory, list[Transaction]]:
    history = SyntheticHistory(size)
    return history, [each for some in history.steps() for each in some]


@pytest.mark.parametrize("seed", [1, 2])
def test_what_is_remembered_holds_with_the_true_numbers(seed: int) -> None:
    """Wherever a history goes, what was answered of a form is true of the partition."""
    history = SyntheticHistory(Size(4_000, 12, 3, seed))
    history._answers = checking = Checking(history._answers)
    history._next_event = history._event_pause = 40  # brokers come and go, and terms, at all times
    assert sum(map(len, history.steps())) == 4_000
    assert checking.asked["offers"] > checking.asked["steps"] > 3_000
    assert checking.asked["requests"] > 100
    assert checking.asked["failovers"] > 100


def test_forgetting_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A history is the same when what was answered is forgotten again and again."""
    size = Size(2_000, 12, 5, 3)
    remembered, whole = _walk(size)
    monkeypatch.setattr(canonical, "_MOST_ANSWERS", 10)
    forgotten, same = _walk(size)
    assert forgotten._answers._learned <= 10 < remembered._answers._learned
    assert (forgotten.planted, same) == (remembered.planted, whole)


def test_a_partition_is_the_one_that_was_placed() -> None:
    """Forms are shared by partitions that differ in numbers only, and each gets its own back."""
    history, _ = _walk(Size(2_000, 60, 0, 4))
    found = list(history._places.values())
    restored = [place.restore() for place in found]
    assert len({place.form for place in found}) < len(set(restored)) == 60
    assert [history._answers.place(partition).restore() for partition in restored] == restored


def test_nobody_stays_nobody() -> None:
    """A partition without a leader has none in its form, and none where that is written out."""
    state = LeaderAndIsr(NO_LEADER, 7, 3, (9, 4))
    around = Environment(frozenset({4}), frozenset({4, 9}), controller_epoch=5)
    place = Answers(get_profile("kip-236"), around).place(Partition((4, 9), state))
    form = place.form.partition
    assert form.state is not None
    assert (form.assigned, form.state.leader, form.state.isr) == ((0, 1), NO_LEADER, (1, 0))
    assert place.restore() == Partition((4, 9), state)
    assert place.encode(form.state) == encode_state(to_znode(state))
