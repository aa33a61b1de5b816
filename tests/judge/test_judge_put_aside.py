"""Judging that is put aside goes on where it was, and one that is shared comes to the same."""

import pickle
from typing import Any

import pytest

from reassure_judge.doubt import CERTAIN
from reassure_judge.judge import Tracking
from reassure_judge.protocols import make_rules
from reassure_lab.archives.planted import plant_all
from reassure_lab.archives.sample import SampleCluster
from reassure_spec.readings import get_profile
from reassure_zookeeper.transactions import Transaction, multi

PROFILES = pytest.mark.parametrize("profile", ["kip-236", "kip-236-legacy", "kip-46", "kafka-zk"])


@pytest.fixture(scope="module")
def history() -> list[Transaction]:
    """A history with mistakes of every kind."""
    cluster = SampleCluster(chroot="/kafka")
    plant_all(cluster)
    return list(cluster.transactions)


def sum_up(tracking: Tracking) -> tuple[Any, ...]:
    """Return all that was found."""
    tally = tracking.sum_up()
    return tally.exercised, tally.undecided, sorted(tally.violations)


@PROFILES
def test_judging_goes_on_after_it_was_put_aside(profile: str, history: list[Transaction]) -> None:
    """Wherever a history is cut, what is found is what would have been found."""
    found = []
    for cuts in (1, 8):
        rules = make_rules(profile, get_profile(profile))
        kept = rules.make_router(), Tracking(rules)
        for number, transaction in enumerate(history):
            router, tracking = kept
            for seen in router.feed(transaction):
                tracking.observe(seen)
            if (number + 1) % (len(history) // cuts) == 0:
                kept = pickle.loads(pickle.dumps(kept))
        found.append(sum_up(kept[1]))
    assert found[0] == found[1]
    assert pickle.loads(pickle.dumps(CERTAIN)) is CERTAIN


@PROFILES
def test_shares_find_together_what_one_finds(profile: str, history: list[Transaction]) -> None:
    """Each topic is judged in one share, and the cluster as a whole in one of them."""
    found: list[set[Any]] = []
    for shares in (1, 3):
        found.append(set())
        for share in range(shares):
            rules = make_rules(profile, get_profile(profile))
            router, tracking = rules.make_router(), Tracking(rules)
            if shares > 1:
                router.owns = lambda _, topic, share=share: len(topic) % 3 == share
            for transaction in history:
                for seen in router.feed(transaction):
                    tracking.observe(seen)
            found[-1] |= {(v.clause, v.zxid, v.path) for v in tracking.sum_up().violations}
    assert found[0] == found[1]


def test_transaction_without_a_write_tells_nothing() -> None:
    """An empty multi is no observation."""
    router = make_rules("kip-236", get_profile("kip-236")).make_router()
    assert router.feed(multi(zxid=1)) == []
