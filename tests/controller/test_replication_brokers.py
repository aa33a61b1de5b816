"""Brokers with logs, stepped: what they refuse, keep, and find again."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from reassure_conformance.adapter.driver import Driver
from reassure_conformance.adapter.replicating import ReplicatingCluster
from reassure_conformance.gate.replication.alphabet import parse_step
from reassure_conformance.gate.replication.brokers import SHIPPED
from reassure_conformance.gate.replication.setting import TrialSetting
from reassure_conformance.gate.replication.trial import Trial
from reassure_controller.messages import LeaderAndIsr
from reassure_controller.replication import errors
from reassure_controller.replication.messages import Consumed, Fetch, Fetched, Produced
from reassure_controller.replication.observing import list_files
from reassure_controller.replication.rules import ReplicationRules
from reassure_spec.observations import Evaluate, Serve, decode_lines
from reassure_spec.observations import Fetch as FetchLine
from reassure_spec.observations import Replica as ReplicaLine
from reassure_spec.readings import get_profile, override_readings

BROKERS, (KEY,) = TrialSetting().brokers, TrialSetting().keys
READINGS = override_readings(get_profile("kafka-4485"), SHIPPED)
Begin = Callable[..., Trial]


@pytest.fixture(scope="module")
def begin(zookeeper_server: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Begin]:
    """Begin trials on the shared server."""
    server, numbers = zookeeper_server, itertools.count()
    with (
        Driver(server.hosts, server.log_dir, "/replication-tests") as driver,
        ReplicatingCluster(server.hosts, BROKERS) as cluster,
    ):

        def make(*steps: str, minimum: int = 1, fetch_bytes: int = 1 << 20) -> Trial:
            cluster.end()
            rules = ReplicationRules(
                READINGS,
                lag_ms_max=1_000,
                min_insync_replicas=minimum,
                fetch_bytes=fetch_bytes,
            )
            folder = tmp_path_factory.mktemp("trial") / str(next(numbers))
            trial = Trial(driver, cluster, folder, TrialSetting(), rules)
            do(trial, *steps)
            return trial

        yield make


def do(trial: Trial, *steps: str) -> None:
    """Carry out steps, all of which are possible."""
    for step in steps:
        assert trial.perform(parse_step(step)), step


def ends(trial: Trial, broker: int) -> tuple[int, int]:
    """Return log end and high watermark of a broker's replica."""
    replica = trial.stepped.replicas(broker).find(KEY)
    assert replica is not None
    return replica.log.end_offset, replica.high_watermark


def ask(trial: Trial, broker: int, request: Fetch) -> Fetched:
    """Return what a broker answers to a fetch."""
    answers: list[Any] = []
    trial.stepped.replicas(broker).serve(request, answers.append)
    (answer,) = answers
    assert isinstance(answer, Fetched)
    return answer


COMMIT = (
    "produce 1 with acks -1 to 1",
    "deliver all",
    "2 fetches and is answered",
    "3 fetches and is answered",
    "2 fetches and is answered",
    "3 fetches and is answered",
)


def list_lines(trial: Trial, *kinds: type, broker: int = 1) -> list[Any]:
    """Return what a broker has written down of these kinds: of fetches and looks, if none."""
    (file,) = list_files(trial.stepped.machines[broker].observations)
    found = [line.what for line in decode_lines(file.read_bytes().splitlines())]
    return [what for what in found if isinstance(what, kinds or (Evaluate, FetchLine))]


def test_nothing_is_written_while_nothing_happens(begin: Begin) -> None:
    """What tells nothing new has no line; the last fetches have, where a follower falls silent."""
    fetch = "2 fetches and is answered", "3 fetches and is answered"
    trial = begin(*COMMIT, *fetch, "wait 500 ms", *fetch)
    for broker in (1, 2, 3):
        trial.stepped.replicas(broker).checkpoint()
    before = [list_lines(trial, object, broker=broker) for broker in (1, 2, 3)]
    for _ in range(5):
        do(trial, "wait 500 ms", *fetch)
        for broker in (1, 2, 3):
            trial.stepped.replicas(broker).checkpoint()
    assert [list_lines(trial, object, broker=broker) for broker in (1, 2, 3)] == before
    now_ms = trial.stepped.machines[1].clock.now_ms()
    do(trial, "wait 1000 ms", "wait 500 ms")
    two, three, first, then, *_ = list_lines(trial, object)[len(before[0]) :]
    assert [(one.follower, one.time_ms) for one in (two, three)] == [(2, now_ms), (3, now_ms)]
    looks = [(one.time_ms - now_ms, one.pseudo_isr) for one in (first, then)]
    assert looks == [(1_000, (1, 2, 3)), (1_500, (1,))]


def test_look_that_concludes_the_same_has_no_line(begin: Begin) -> None:
    """Of the looks after an append and two fetches the one that moves the mark is written."""
    trial = begin(*COMMIT)
    before = list_lines(trial, Evaluate)
    do(trial, *COMMIT)
    (look,) = list_lines(trial, Evaluate)[len(before) :]
    assert (look.pseudo_isr, look.high_watermark) == ((1, 2, 3), 2)


def test_mark_that_a_follower_hears_of_is_written_before_it_is_saved(begin: Begin) -> None:
    """A follower that hears of a mark alone says so with more records, or before it is saved."""
    trial = begin(*COMMIT, "2 fetches and is answered")
    assert ends(trial, 2) == (1, 1)
    assert list_lines(trial, ReplicaLine, broker=2)[-1].high_watermark == 0
    trial.stepped.replicas(2).checkpoint()
    told = list_lines(trial, ReplicaLine, broker=2)
    assert told[-1] == ReplicaLine(1, 1)
    do(trial, *COMMIT)
    assert list_lines(trial, ReplicaLine, broker=2)[len(told) :] == [ReplicaLine(2, 1)]


def test_consumer_that_is_shown_nothing_new_has_no_line(begin: Begin) -> None:
    """One line says how far consumers were shown the log: the mark, or the end of records."""
    trial = begin(*COMMIT)
    for offset in (1, 1, 0, 0, 1):
        trial.stepped.consume(1, KEY, offset)
        do(trial, "deliver all")
    assert list_lines(trial, Serve) == [Serve(1), Serve(1, 1)]


@pytest.mark.clause("hw.acks-all.answered")
def test_producer_is_answered_when_the_mark_passes(begin: Begin) -> None:
    """A producer that waits for all hears nothing until every member has its records."""
    trial = begin(*COMMIT[:-1])
    assert trial.witness.clients[KEY].promised == {}
    do(trial, COMMIT[-1])
    assert trial.witness.clients[KEY].promised == {0: b"0.0"}
    assert ends(trial, 1) == (1, 1)


def test_acks_of_one_and_none(begin: Begin) -> None:
    """The leader's own copy is enough for acks 1; with acks 0 there is no answer at all."""
    trial = begin()
    trial.stepped.produce(1, KEY, [b"a"], 1)
    trial.stepped.produce(1, KEY, [b"b"], 0)
    trial.stepped.produce(1, KEY, [b"c"], 7)
    trial.stepped.network.deliver_all()
    answers = [a for a in trial.stepped.answers if isinstance(a, Produced)]
    assert [(a.error, a.end) for a in answers] == [("", 1), (errors.INVALID_REQUIRED_ACKS, -1)]
    assert ends(trial, 1) == (2, 0)


def test_minimum_is_asked_before_and_after(begin: Begin) -> None:
    """Fewer in sync than the minimum: refused by name, or told so when the mark has passed."""
    trial = begin("produce 1 with acks -1 to 1", "deliver all", "wait 1500 ms", minimum=2)
    assert trial.read()[KEY].state.isr == (1,)
    do(trial, "deliver all")
    assert trial.errors == {errors.NOT_ENOUGH_REPLICAS_AFTER_APPEND: 1}
    do(trial, "produce 1 with acks -1 to 1", "deliver all")
    assert trial.errors[errors.NOT_ENOUGH_REPLICAS] == 1
    assert ends(trial, 1) == (1, 1)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"leader_epoch": -1}, errors.FENCED_LEADER_EPOCH),
        ({"leader_epoch": 9}, errors.UNKNOWN_LEADER_EPOCH),
        ({"replica": 8}, errors.NOT_LEADER_OR_FOLLOWER),
        ({"offset": 5}, errors.OFFSET_OUT_OF_RANGE),
        ({}, errors.NONE),
    ],
)
@pytest.mark.clause("fetch.epoch-fenced")
def test_fetch_is_refused_by_name(begin: Begin, changes: dict[str, int], error: str) -> None:
    """A fetch of another epoch, of a stranger or from nowhere is refused with Kafka's error."""
    trial = begin()
    request = Fetch(KEY, (0, 0), 2, trial.stepped.replicas(2).broker_epoch, 0, 0, 1 << 20)
    assert ask(trial, 1, replace(request, **changes)).error == error
    assert ask(trial, 3, request).error == errors.NOT_LEADER_OR_FOLLOWER


def test_earlier_life_is_refused_by_name(begin: Begin) -> None:
    """A request, and an order, of an earlier life of a broker is refused."""
    trial = begin(*COMMIT)
    before = trial.stepped.replicas(3).broker_epoch
    do(trial, "3 crashes", "3 starts", "the controller works", "deliver all")
    stale = Fetch(KEY, (0, 0), 3, before, 1, 1, 1 << 20)
    assert ask(trial, 1, stale).error == errors.STALE_BROKER_EPOCH
    broker = trial.stepped.machines[3].running
    assert broker is not None
    order = LeaderAndIsr(9, 1, *KEY, 3, 9, (3,), 1, 9, (1, 2, 3), is_new=False, broker_epoch=before)
    assert broker.handle(order).result == errors.STALE_BROKER_EPOCH
    late = replace(order, controller_epoch=0, broker_epoch=-1)
    assert broker.handle(late).result == errors.STALE_CONTROLLER_EPOCH


@pytest.mark.clause("hw.follower.from-leader")
def test_mark_outlives_an_orderly_end(begin: Begin) -> None:
    """A broker that ended in order finds its log and its mark again, capped by the log's end."""
    trial = begin(*COMMIT, "2 fetches and is answered", "2 stops", "2 starts")
    assert ends(trial, 2) == (1, 1)
    do(trial, "2 stops", "2 starts", "2 loses power, and 1 batches", "2 starts")
    assert ends(trial, 2) == (0, 0)


@pytest.mark.clause("isr.write.conditional")
def test_leader_that_is_not_told_yet_writes_nothing(begin: Begin) -> None:
    """A leader whose state the controller has changed is refused, and goes on with what it has."""
    trial = begin("3 crashes", "the controller works", "wait 1500 ms")
    assert trial.read()[KEY].state.leader_epoch == 1
    assert set(trial.read()[KEY].state.isr) == {1, 2}
    do(trial, "deliver all", "wait 1500 ms")
    assert trial.read()[KEY].state.isr == (1,)


def test_quota_holds_up_who_is_out_of_sync(begin: Begin) -> None:
    """A throttled follower out of sync gets no more than the limit allows; one in sync does."""
    produced = ("produce 1 with acks 1 to 1",) * 4
    trial = begin(*produced, "deliver all", fetch_bytes=1)
    do(trial, "3 crashes", "3 starts", "the controller works", "deliver all")
    leader = trial.stepped.replicas(1).find(KEY)
    assert leader is not None
    quota = trial.stepped.machines[1].quotas.as_leader
    quota.limit(len(leader.log.read(0, 1)))
    quota.throttled[KEY[0]] = frozenset({KEY[1]})
    do(trial, "3 fetches and is answered")
    assert ends(trial, 3)[0] == 1
    do(trial, "3 fetches and is answered", "2 fetches and is answered")
    assert (ends(trial, 3)[0], ends(trial, 2)[0]) == (1, 1)
    do(trial, "wait 1000 ms", "3 fetches and is answered")
    assert ends(trial, 3)[0] == 2


def test_consumer_reads_below_the_mark(begin: Begin) -> None:
    """A consumer is given what is below the mark, nothing above, and no offset beyond the end."""
    trial = begin(*COMMIT, "produce 1 with acks 1 to 1", "deliver all")
    trial.stepped.consume(1, KEY, 0)
    trial.stepped.consume(1, KEY, 1)
    trial.stepped.consume(1, KEY, 3)
    trial.stepped.network.deliver_all()
    answers = [a for a in trial.stepped.answers if isinstance(a, Consumed)]
    assert [(a.error, a.high_watermark, bool(a.records)) for a in answers] == [
        ("", 1, True),
        ("", 1, False),
        (errors.OFFSET_OUT_OF_RANGE, -1, False),
    ]
