"""What is judged once for all partitions alike comes to what judging each for itself comes to."""

from typing import get_args, get_type_hints

import pytest
from history_steps import garble, judge_alike

from reassure_judge import memo
from reassure_judge.judge import Tracking
from reassure_judge.protocols import make_rules
from reassure_judge.transaction_reader import iterate_observations
from reassure_lab.archives.planted import plant_all
from reassure_lab.archives.sample import SampleCluster, write_sample
from reassure_lab.protocols.kip_236.synthetic import Size, SyntheticHistory
from reassure_spec.readings import get_profile
from reassure_spec.znodes import ReplicaList
from reassure_zookeeper.transactions import Transaction

SAME_EVERYWHERE = {"top"}
"""Numbers that are no names: the model counts with them."""


def _synthesise(transactions: int, faults: int, seed: int) -> list[Transaction]:
    history = SyntheticHistory(Size(transactions, 12, faults, seed))
    return [each for some in history.steps() for each in list(some)]


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("profile", ["kip-236", "kip-236-amended"])
def test_synthetic_histories_are_judged_alike(profile: str, seed: int) -> None:
    """With faults of every kind, and with writes that come out of nowhere."""
    rules = make_rules(profile, get_profile(profile))
    history = _synthesise(2_500, 20, seed)
    judged = judge_alike(rules, history)
    assert judged.tally.steps
    garbled = judge_alike(rules, garble(history, seed))
    assert len(garbled.violations) > len(judged.violations)


@pytest.mark.parametrize("profile", ["kip-236", "kip-236-legacy", "kip-46"])
def test_planted_faults_are_judged_alike(profile: str) -> None:
    """Whatever the protocol keeps of a cluster as a whole."""
    cluster = SampleCluster(chroot="/kafka")
    plant_all(cluster)
    rules = make_rules(profile, get_profile(profile))
    assert judge_alike(rules, cluster.transactions).violations


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there are more steps than are kept they are learned anew, and nothing is lost."""
    monkeypatch.setattr(memo, "_MOST_STEPS", 20)
    rules = make_rules("kip-236", get_profile("kip-236"))
    judged = judge_alike(rules, _synthesise(2_000, 8, 4))
    assert len(judged.tally.steps) <= 20


def test_most_events_take_a_step_that_is_known() -> None:
    """In a history of some length few events are judged for themselves."""
    rules = make_rules("kip-236", get_profile("kip-236"))
    history, tracking = write_sample(topics=20), Tracking(rules)
    for seen in iterate_observations(rules.make_router(), history):
        tracking.observe(seen)
    taken = sum(step.times for step in tracking.tally.steps)
    assert taken > 0.7 * len(history)
    assert len(tracking.tally.steps) < taken / 10


@pytest.mark.parametrize("profile", ["kip-236", "kafka-zk", "kafka-42"])
def test_no_name_is_left_out(profile: str) -> None:
    """Every list of brokers, number and record in a record that has names is named."""
    rules = make_rules(profile, get_profile(profile))
    records = set(rules.names)
    for record, named in rules.names.items():
        hints = {name: hint for name, hint in get_type_hints(record).items() if name != "kind"}
        for name, hint in hints.items():
            parts = {hint, *get_args(hint)}
            is_name = bool(parts & {int, ReplicaList, tuple[ReplicaList, ...], *records})
            of_records = any(set(get_args(part)) & records for part in parts)
            assert (name in named) == ((is_name or of_records) and name not in SAME_EVERYWHERE)
        assert set(named) <= set(hints)
