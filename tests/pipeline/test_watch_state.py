"""What is judged so far can be put aside between any two transactions, and taken up elsewhere."""

import pickle
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from reassure_judge.doubt import CERTAIN, Doubt
from reassure_judge.protocols import make_rules
from reassure_lab.archives.planted import plant_all
from reassure_lab.archives.sample import SampleCluster
from reassure_lab.protocols.kip_236.synthetic import Size, SyntheticHistory
from reassure_pipeline.archives.archive import BEGINNING, MIDDLE
from reassure_pipeline.audit.passes import ALL, Judging, Options, Routing, Share
from reassure_spec.readings import get_profile
from reassure_zookeeper.transactions import Transaction

CUTS = 25


def _make_history() -> list[Transaction]:
    """Return faults amid settings, deaths and elections, then a cluster at work."""
    cluster = SampleCluster(chroot="/kafka")
    plant_all(cluster)
    cluster.kill(3)
    cluster.elect(4)
    cluster.register(3)
    made = SyntheticHistory(Size(1_000, 20, 6, 3))
    later = cluster.zxid
    return cluster.transactions + [
        replace(each, zxid=later + each.zxid) for some in made.steps() for each in some
    ]


def _judge(
    history: list[Transaction], profile: str, begins: str, share: Share, cuts: set[int]
) -> tuple[Any, ...]:
    """Judge a history that is put aside after some of its transactions."""
    rules = make_rules(profile, get_profile(profile))
    passes = Routing(begins, None, rules, Options(at_rest=True), share), Judging(rules)
    for number, transaction in enumerate(history):
        routing, judging = passes
        for seen in routing.feed(transaction):
            judging.observe(seen)
        if number in cuts:
            passes = pickle.loads(pickle.dumps(passes))
    routing, judging = passes
    for rest in routing.finish():
        judging.rest(rest)
    judged = judging.sum_up()
    tally = judged.tally
    return (
        sorted(tally.violations),
        tally.exercised,
        tally.undecided,
        tally.first_undecided,
        judged.partitions,
        judged.follow_ups,
        routing.known,
    )


@pytest.mark.parametrize(
    ("profile", "begins", "share"),
    [
        ("kip-236", BEGINNING, ALL),
        ("kip-236", MIDDLE, Share(1, 2)),
        ("kip-236-legacy", BEGINNING, ALL),
        ("kip-46", MIDDLE, ALL),
        ("kafka-zk", BEGINNING, ALL),
    ],
)
def test_judging_goes_on_where_it_was_put_aside(profile: str, begins: str, share: Share) -> None:
    """However often it is put aside, judging comes to what it comes to in one go."""
    history = _make_history()
    whole = _judge(history, profile, begins, share, set())
    assert len(whole[0]) > 3
    cuts = set(Random(7).sample(range(len(history)), CUTS))
    assert _judge(history, profile, begins, share, cuts) == whole


def test_nothing_in_doubt_stays_nothing_in_doubt() -> None:
    """The engine asks whether a doubt is the one that is none, so there must be one such only."""
    doubt = Doubt(frozenset({1}))
    assert pickle.loads(pickle.dumps([CERTAIN, doubt])) == [CERTAIN, doubt]
    assert pickle.loads(pickle.dumps(CERTAIN)) is CERTAIN


def test_what_is_learned_of_partitions_is_not_put_aside() -> None:
    """A history however long is put aside in what its partitions take."""
    rules = make_rules("kip-236", get_profile("kip-236"))
    sizes = []
    for transactions in (3_000, 9_000):
        routing, judging = Routing(BEGINNING, None, rules), Judging(rules)
        for some in SyntheticHistory(Size(transactions, 100, 0)).steps():
            for each in some:
                for seen in routing.feed(each):
                    judging.observe(seen)
        sizes.append(len(pickle.dumps((routing, judging))))
    assert sizes[1] < 1.3 * sizes[0]
