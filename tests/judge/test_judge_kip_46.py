"""Healing: sound walks hold, and each mistake in records and tasks is named."""

from collections.abc import Callable
from functools import partial
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from walks import HealingWalk, JudgedWalk, find_unplanted, on

from reassure_judge.verdicts import HOLDS, NOT_FOLLOWED, UNKNOWN, VIOLATED
from reassure_model.environment import Die, Failover, Join, Leave, On, Return
from reassure_model.protocols.kip_46 import (
    CreateTask,
    DeleteRecord,
    Generate,
    HealingConfig,
    RecordFailure,
    RemoveTask,
    StartTask,
    Submit,
    Tick,
)
from reassure_model.protocols.kip_46.writes import LIVES
from reassure_spec import znodes
from reassure_spec.clauses import load_clauses
from reassure_spec.readings import Readings, get_profile, override_readings
from reassure_spec.znodes import PartitionKey, ReplicaList, RequestZnode, TaskZnode
from reassure_zookeeper.transactions import Op

PROFILE: Final = "kip-46"
WRITTEN: Final = get_profile(PROFILE)
REPAIRED: Final = override_readings(
    WRITTEN, {"heal.regenerate": "from-plan", "heal.replaces": "all-due", "heal.stale-task": "skip"}
)
STRICT: Final = override_readings(WRITTEN, {"heal.redundancy": "isr-full"})
T0: Final = ("t", 0)
T1: Final = ("t", 1)
Asked = dict[PartitionKey, ReplicaList]


class Judged(JudgedWalk):
    """A walk of healing that a judge follows."""

    def __init__(
        self, readings: Readings = WRITTEN, *, size: int = 1, listed: Asked | None = None
    ) -> None:
        config = HealingConfig(partitions_per_task=size)
        where = {T0: (1, 2), T1: (2, 3)} if listed is None else listed
        super().__init__(HealingWalk(where, 5, readings, config), PROFILE)

    # What may be written

    def record(self, broker: int, since: int = 0) -> Op:
        """Return the write of a record."""
        path, data = znodes.failed_broker_path(broker), znodes.encode_failed_broker(since)
        cluster = self.walk.cluster
        return cluster.put(path, data) if cluster.knows(path) else cluster.create(path, data)

    def no_record(self, broker: int) -> Op:
        """Return the removal of a record."""
        return self.walk.cluster.delete(znodes.failed_broker_path(broker))

    def task(self, number: int, asked: Asked, *, automatic: bool = True) -> Op:
        """Return the making of a task."""
        data = znodes.encode_task(TaskZnode(asked, automatic))
        return self.walk.cluster.create(znodes.task_path(number), data)

    def change_task(self, number: int, asked: Asked) -> Op:
        """Return the change of a task into one of an operator's."""
        data = znodes.encode_task(TaskZnode(asked, automatic=False))
        return self.walk.cluster.put(znodes.task_path(number), data)

    def no_task(self, number: int) -> Op:
        """Return the removal of a task."""
        return self.walk.cluster.delete(znodes.task_path(number))

    def request(self, asked: Asked) -> Op:
        """Return the making of a request."""
        data = znodes.encode_request(RequestZnode(asked))
        return self.walk.cluster.create(znodes.request_path(77), data)


# Sound walks --------------------------------------------------------------------------------------

MOVES: Final = st.tuples(st.integers(0, 12), st.integers(0, 4), st.integers(0, 59))


def choose(what: int, which: int, other: int) -> object:
    """Return the action that three numbers stand for."""
    key, broker = (T0, T1)[which % 2], 1 + which
    match what:
        case 4 | 5:
            return Die(broker)
        case 6:
            return Return(broker)
        case 7:
            return Tick(1000)
        case 8 | 9:
            return On(key, Join(1 + other % 5))
        case 10:
            return On(key, Leave(1 + other % 5))
        case 11:
            return Submit(((key, (broker, 1 + (which + 1 + other % 3) % 5)),))
        case _:
            return Failover()


def play(judged: Judged, moves: list[tuple[int, int, int]]) -> None:
    """Take moves; what is not possible changes nothing."""
    for move in moves:
        if move[0] != 11 or len(judged.walk.state.tasks) <= 3:
            judged.play([(1 + move[1] if move[0] <= 3 else 0, partial(choose, *move))])


ALL: Final = pytest.mark.parametrize(
    "readings", [WRITTEN, REPAIRED, STRICT], ids=["written", "repaired", "strict"]
)


@ALL
@settings(max_examples=50, deadline=None)
@given(moves=st.lists(MOVES, max_size=40), size=st.integers(1, 2), rests=st.booleans())
def test_sound_walks_hold(
    readings: Readings, moves: list[tuple[int, int, int]], size: int, rests: bool
) -> None:
    """Whatever brokers, operators and controllers do, what the model owes and writes is allowed.

    A log of which nobody knows when the cluster rested is never red by a sound controller either.
    """
    judged = Judged(readings, size=size)
    for move in moves:
        play(judged, [move])
        if rests and judged.walk.find_step() is None:
            judged.look_at_rest()
    for broker in range(1, 6):
        if broker not in judged.walk.state.live:
            judged.take(Return(broker))
    judged.finish()
    judges = [judged.judge, *([judged.judge_anew(PROFILE)] if readings == WRITTEN else [])]
    assert [(v.clause, v.zxid, v.reason) for each in judges for v in each.violations] == []


@ALL
def test_operators_task_may_not_be_known_yet(readings: Readings) -> None:
    """A task generated just after an operator's may be made from what was planned before it."""
    judged = Judged(readings, size=1)
    play(judged, [(4, 0, 0), (0, 0, 0), (0, 0, 0), (7, 0, 0), (0, 0, 0), (11, 0, 1), (0, 0, 0)])
    judged.finish()
    assert [(v.clause, v.zxid, v.reason) for v in judged.judge.violations] == []


@pytest.mark.parametrize("noticed", [True, False])
def test_topic_made_lately_may_not_be_known_yet(noticed: bool) -> None:
    """A record may go without a task for a topic that was made just before, and only then."""
    judged = Judged()
    judged.take(Die(2), "rest")
    judged.client(
        judged.walk.cluster.create(znodes.topic_path("new"), znodes.encode_topic({0: (2,)}))
    )
    if noticed:
        judged.look_at_rest()
    judged.take(Tick(1000), DeleteRecord)
    zxid = judged.control(judged.no_record(2))
    red = [("heal.record.deleted-when-scheduled", zxid)]
    assert [each for each in judged.broken() if each[1] == zxid] == (red if noticed else [])
    assert bool(judged.judge.undecided["heal.record.deleted-when-scheduled"]) is not noticed


@ALL
def test_failover_at_every_place_is_sound(readings: Readings) -> None:
    """Whichever write was the last of a controller's, the next one heals all the same."""
    exercised: set[str] = set()
    for place in range(40):
        judged = Judged(readings)
        judged.take(Die(2), Tick(1000))
        judged.fail_over_at(place, 16, Tick(1000))
        assert judged.broken() == []
        held = [partition.assigned for _, partition in judged.walk.state.partitions]
        assert all(2 not in (replicas or ()) for replicas in held)
        exercised |= judged.exercised()
    assert "heal.failover.generated-again" in exercised


RECORDS: Final = {"heal.record.first-failure", "heal.record.format"}
TASKS: Final = {
    "heal.generate.persisted",
    "heal.generate.replaces-failed",
    "heal.target.no-duplicate",
    "heal.target.live",
    "heal.target.rack",
    "heal.target.even",
    "heal.target.lowest-id",
    "heal.record.deleted-when-scheduled",
    "heal.task.in-order",
    "heal.task.as-reassignment",
    "heal.task.started",
    "heal.task.one-at-a-time",
    "heal.cancel.never-running",
    "heal.cancel.enough-replicas",
}


@pytest.mark.parametrize(
    ("readings", "actions", "clauses"),
    [
        (WRITTEN, [Die(2), "rest", Tick(1000)], RECORDS | TASKS),
        (
            REPAIRED,
            [Die(2), "rest", Tick(1000)],
            RECORDS
            | TASKS
            | {
                "heal.generate.all-due",
                "heal.generate.from-plan",
                "heal.task.no-live-replica-removed",
            },
        ),
        (WRITTEN, [Die(2), "rest", Return(2)], {"heal.record.deleted-on-return"}),
        (
            WRITTEN,
            [Die(2), "rest", Tick(1000), StartTask, Return(2)],
            {"heal.cancel.enough-replicas", "heal.cancel.automatic-only"},
        ),
        (REPAIRED, [Die(2), "rest", Tick(1000), StartTask, Die(4)], {"heal.task.stale"}),
        (WRITTEN, [Submit(((T0, (1, 2)),))], {"heal.task.satisfied-skipped"}),
        (WRITTEN, [Submit(((T0, (1, 9)),))], {"heal.task.as-reassignment"}),
    ],
)
def test_clauses_are_put_to_the_test(
    readings: Readings, actions: list[object], clauses: set[str]
) -> None:
    """Each clause of healing that a log can show comes up in a plain story, and holds."""
    judged = Judged(readings)
    judged.take(*actions)
    judged.finish()
    assert judged.broken() == []
    assert clauses - judged.exercised() == set()
    assert {name: judged.verdict(name) for name in clauses} == dict.fromkeys(clauses, HOLDS)


# Planted mistakes ---------------------------------------------------------------------------------


def away() -> Judged:
    """Return a cluster in which broker 2 is recorded and its interval has passed."""
    judged = Judged()
    judged.take(Die(2), "rest", Tick(1000))
    return judged


def generating() -> Judged:
    """Return a cluster that is about to persist its first task, t-0 from [1,2] to [1,4]."""
    judged = away()
    step = judged.until(CreateTask)
    assert isinstance(step, CreateTask)
    assert step.assignments == ((T0, (1, 4)),)
    return judged


def queued() -> Judged:
    """Return a cluster that is about to start the first of two tasks."""
    judged = away()
    judged.until(StartTask)
    assert [task.number for task in judged.walk.state.tasks] == [0, 1]
    return judged


def running() -> Judged:
    """Return a cluster of which the first of two tasks runs."""
    judged = queued()
    judged.rest()
    assert judged.walk.state.get(T0).reassignment is not None
    return judged


def asked_for() -> Judged:
    """Return a cluster of which the first of two tasks is asked for, and does not run yet."""
    judged = queued()
    judged.walk.control()
    return judged


Plant = Callable[[], tuple[Judged, int]]


def _unplaced(judged: Judged) -> int:
    """Let the first task be persisted and the record go before the second is."""
    judged.walk.control()
    return judged.control(judged.no_record(2))


def _second_before_first(judged: Judged) -> int:
    (asked,) = judged.walk.state.tasks[1].assignments
    return judged.control(judged.request(dict([asked])))


def _late_start(judged: Judged) -> int:
    judged.take(Return(2))
    judged.judge.router.settle("")
    return judged.control(judged.request({T0: (1, 4)}))


def _deposed(judged: Judged) -> int:
    session = 0x2000 + judged.walk.cluster.controller
    judged.take(Failover())
    return judged.client(judged.no_record(2), session=session)


def _asked(*actions: object) -> Callable[[], Judged]:
    """Return what makes a cluster of which somebody has asked this."""

    def make() -> Judged:
        judged = Judged()
        judged.take(*actions)
        return judged

    return make


_operators = _asked(Submit(((T0, (1, 4)),)), StartTask)
"""A cluster with an operator's task that is about to start."""


def _malformed(path: str, content: bytes) -> Callable[[Judged], int]:
    return lambda judged: judged.control(judged.walk.cluster.create(path, content))


def generated(target: ReplicaList) -> Plant:
    """Return that another task is persisted than the first one."""
    return on(generating, lambda j: j.control(j.task(0, {T0: target})))


_MISTAKES: Final[dict[str, dict[str, Plant]]] = {
    "heal.record.first-failure": {
        "record-of-a-live-broker": on(Judged, lambda j: j.control(j.record(3))),
        "record-written-anew": on(away, lambda j: j.control(j.record(2, 500))),
    },
    "heal.record.format": {
        "record-without-a-time": on(
            Judged, _malformed(znodes.failed_broker_path(3), b'{"since":1}')
        ),
        "record-of-nobody": on(Judged, _malformed(f"{znodes.FAILED_BROKERS}/three", b"{}")),
    },
    "heal.record.deleted-when-scheduled": {
        "record-gone-too-early": on(away, lambda j: j.control(j.no_record(2))),
        "record-gone-half-way": on(generating, _unplaced),
    },
    "controller.write.by-controller": {
        "record-by-a-client": on(away, lambda j: j.client(j.no_record(2))),
        "record-by-a-deposed-controller": on(away, _deposed),
        "task-generated-by-a-client": on(away, lambda j: j.client(j.task(0, {T0: (1, 4)}))),
        "generated-task-removed-by-a-client": on(queued, lambda j: j.client(j.no_task(0))),
    },
    "controller.write.epoch-checked": {
        "record-unfenced": on(away, lambda j: j.control(j.no_record(2), fenced=False)),
        "start-unfenced": on(queued, lambda j: j.control(j.request({T0: (1, 4)}), fenced=False)),
    },
    "heal.generate.replaces-failed": {
        "task-for-a-live-broker": generated((4, 2)),
        "task-with-fewer-replicas": generated((1,)),
        "task-in-another-order": generated((4, 1)),
        "task-for-nothing": generated((1, 2)),
    },
    "heal.target.live": {"task-to-a-dead-broker": generated((1, 9))},
    "heal.target.no-duplicate": {"task-with-a-replica-twice": generated((1, 1))},
    "heal.generate.persisted": {
        "task-that-is-not-marked": on(
            generating, lambda j: j.control(j.task(0, {T0: (1, 4)}, automatic=False))
        ),
        "task-that-nobody-can-read": on(generating, _malformed(znodes.task_path(0), b"[]")),
        "task-with-a-wrong-name": on(
            generating, _malformed(f"{znodes.REASSIGNMENT_TASKS}/first", b"{}")
        ),
    },
    "heal.target.even": {"task-to-a-full-broker": generated((1, 3))},
    "heal.target.lowest-id": {"task-to-a-higher-id": generated((1, 5))},
    "heal.task.as-reassignment": {
        "start-of-no-task": on(queued, lambda j: j.control(j.request({T0: (1, 5)}))),
        # Of an operator's task one partition is there already.
        "start-of-what-is-there": on(
            _asked(Submit(((T0, (1, 2)), (T1, (2, 4))))),
            lambda j: j.control(j.request({T0: (1, 2), T1: (2, 4)})),
        ),
    },
    "heal.task.in-order": {"start-out-of-turn": on(queued, _second_before_first)},
    "heal.task.one-at-a-time": {"start-while-another-runs": on(running, _second_before_first)},
    "heal.task.satisfied-skipped": {
        "start-of-what-is-done": on(
            _asked(Submit(((T0, (1, 2)),))), lambda j: j.control(j.request({T0: (1, 2)}))
        )
    },
    "heal.task.started-once": {
        "start-of-what-is-asked-for": on(asked_for, lambda j: j.control(j.request({T0: (1, 4)}))),
        "start-of-what-is-moving": on(running, lambda j: j.control(j.request({T0: (1, 4)}))),
    },
    "heal.cancel.enough-replicas": {"start-of-what-is-enough": on(queued, _late_start)},
    "heal.cancel.never-running": {
        "running-task-removed": on(running, lambda j: j.control(j.no_task(0)))
    },
    "heal.cancel.automatic-only": {
        "operators-task-removed": on(_operators, lambda j: j.control(j.no_task(0)))
    },
    "heal.task.started": {
        "task-removed-for-nothing": on(queued, lambda j: j.control(j.no_task(0))),
        "task-changed": on(queued, lambda j: j.control(j.change_task(0, {T0: (1, 4)}))),
    },
}
"""By clause: mistakes that break it."""
PLANTED = {
    name: (clause, plant) for clause, plants in _MISTAKES.items() for name, plant in plants.items()
}


@pytest.mark.parametrize("name", PLANTED)
def test_planted_mistake_is_named_where_it_is(name: str) -> None:
    """Each single mistake is found at its own transaction, by the clause that is meant for it."""
    clause, plant = PLANTED[name]
    judged, zxid = plant()
    assert judged.broken() == [(clause, zxid)]
    assert judged.verdict(clause) in (VIOLATED, NOT_FOLLOWED)


@pytest.mark.clause("heal.task.no-live-replica-removed")
def test_start_that_takes_a_live_replica_out_is_told() -> None:
    """Where stale tasks are to be skipped, starting one is not following that."""
    judged = Judged(REPAIRED)
    judged.take(Die(2), "rest", Tick(1000), StartTask, Return(2), Die(1))
    judged.judge.router.settle("")
    zxid = judged.control(judged.request({T0: (1, 4)}))
    assert judged.broken() == [("heal.task.no-live-replica-removed", zxid)]


@pytest.mark.clause("heal.generate.all-due", "heal.generate.from-plan")
def test_generated_task_that_leaves_another_failed_broker_is_told() -> None:
    """Where all that is due is replaced at once, a target keeps nobody who is away for as long."""
    judged = Judged(REPAIRED, listed={T0: (1, 2)})
    judged.take(Die(2), Die(1), "rest", Tick(1000), CreateTask)
    zxid = judged.control(judged.task(0, {T0: (1, 3)}))
    assert judged.broken() == [("heal.generate.all-due", zxid)]


REST: Final[dict[str, tuple[str, tuple[object, ...]]]] = {
    "record-of-who-is-back": (
        "heal.record.deleted-on-return",
        (Die(2), "rest", Return(2), DeleteRecord),
    ),
    "no-record": ("heal.record.complete", (Die(2), RecordFailure)),
    "record-after-its-tasks": (
        "heal.record.deleted-when-scheduled",
        (Die(2), "rest", Tick(1000), DeleteRecord),
    ),
    "task-that-waits": ("heal.task.started", (Submit(((T0, (1, 4)),)), StartTask)),
    "task-that-is-done": ("heal.task.satisfied-skipped", (Submit(((T0, (1, 2)),)), RemoveTask)),
    "task-that-is-enough": (
        "heal.cancel.enough-replicas",
        (Die(2), "rest", Tick(1000), StartTask, Return(2), RemoveTask),
    ),
    "task-that-is-refused": ("heal.task.as-reassignment", (Submit(((T0, (1, 9)),)), RemoveTask)),
}
"""By what is owed: the clause, and how a cluster gets to where its controller rests and owes it."""


@pytest.mark.parametrize("name", REST)
def test_controller_that_rests_too_early_is_named(name: str) -> None:
    """What is owed to records and tasks at rest is named, once."""
    clause, actions = REST[name]
    judged = _asked(*actions)()
    judged.look_at_rest()
    judged.look_at_rest()
    assert [found for found, _ in judged.broken()].count(clause) == 1


def test_record_of_who_would_only_come_stays() -> None:
    """A task for one broker is none for another, to whom a waiting task would have moved things."""
    judged = away()
    judged.client(judged.task(0, {T0: (5, 1)}, automatic=False))
    judged.take(Die(5))
    judged.control(judged.record(5, 1000))
    judged.control(judged.task(1, {T0: (1, 4), T1: (4, 3)}))
    judged.control(judged.no_record(2))
    judged.look_at_rest()
    assert [found for found, _ in judged.broken()] == ["heal.task.started"]


@pytest.mark.clause("heal.task.refuse-duplicate")
@pytest.mark.parametrize("content", [b"{", b'{"version":1,"assignments":{"t":{"0":[1,1]}}}'])
def test_tasks_that_make_no_sense_are_refused(content: bytes) -> None:
    """An operator's task that nobody can carry out is owed its removal, and that is right."""
    for removes in (False, True):
        judged = Judged()
        path = znodes.task_path(0)
        judged.client(judged.walk.cluster.create(path, content))
        if removes:
            judged.control(judged.no_task(0))
        judged.look_at_rest()
        found = [clause for clause, _ in judged.broken()]
        assert found == ([] if removes else ["heal.task.refuse-duplicate"])


@pytest.mark.clause("heal.task.started-once")
def test_what_an_operator_asks_for_at_the_same_time_may_be_asked_for_twice() -> None:
    """A controller that may not know of an operator's request starts a task that asks the same."""
    judged = queued()
    judged.client(judged.request({T0: (1, 4)}))
    judged.walk.control()
    judged.feed()
    assert judged.broken() == []
    assert judged.verdict("heal.task.started-once") == UNKNOWN


def test_operator_may_withdraw_a_task() -> None:
    """Whoever wrote a task may take it back; a controller that has read it is not to blame."""
    judged = _operators()
    judged.client(judged.no_task(0))
    assert judged.broken() == []
    judged.control(judged.request({T0: (1, 4)}))
    assert judged.broken() == []
    assert judged.verdict("heal.task.as-reassignment") == UNKNOWN


@pytest.mark.clause("heal.generate.replaces-failed")
def test_task_made_from_what_was_assigned_a_moment_ago_is_in_doubt() -> None:
    """Whoever generates has read the assignment before, and it may have changed meanwhile."""
    judged = away()
    judged.take(Submit(((T0, (4, 1)),)))
    judged.control(judged.request({T0: (4, 1)}))
    judged.control(judged.task(1, {T0: (1, 5)}))
    assert judged.broken() == []
    assert judged.verdict("heal.generate.replaces-failed") == UNKNOWN


def test_task_may_be_made_from_what_an_operator_took_back() -> None:
    """Whoever generates may have read an operator's task before it was withdrawn."""
    judged = generating()
    judged.client(judged.task(5, {T0: (4, 2)}, automatic=False))
    judged.client(judged.no_task(5))
    judged.control(judged.task(0, {T0: (1, 4)}))
    assert judged.broken() == []


def test_task_for_a_partition_that_is_not_there_replaces_nobody() -> None:
    """An operator may name such a partition; who generates a task for it has made it up."""
    judged = generating()
    judged.client(judged.task(5, {("gone", 0): (4, 2)}, automatic=False))
    zxid = judged.control(judged.task(6, {("gone", 0): (1, 4)}))
    assert judged.broken() == [("heal.generate.replaces-failed", zxid)]


def test_generate_writes_nothing() -> None:
    """What a controller has in memory only shows nowhere."""
    judged = away()
    judged.until(Generate)
    zxid = judged.walk.cluster.zxid
    assert judged.walk.control()
    assert judged.walk.cluster.zxid == zxid


def test_under_kip_236_records_and_tasks_are_trees_of_their_own() -> None:
    """Without the profile nothing is said of them, and that they were left out is said."""
    judged = running()
    unjudged = judged.judge_anew("kip-236").router.count_unjudged()
    assert unjudged[znodes.FAILED_BROKERS] > 0
    assert unjudged[znodes.REASSIGNMENT_TASKS] > 0
    assert not judged.judge.router.count_unjudged().keys() & unjudged.keys() - {"/"}


def test_every_act_on_a_znode_has_its_mistake() -> None:
    """For each znode, and each way to write it, every rule about it is broken by a planted one."""
    assert find_unplanted(LIVES, PLANTED.values()) == set()


UNJUDGED: Final = {
    "heal.interval": "neither the interval nor the controller's clock is in a log",
    "heal.generate.small-tasks": "the limit is a setting of the controller's own",
    "heal.quota.hard-share": "bandwidth is used between brokers",
    "heal.config.settings": "what can be set is not in a log",
    "heal.scope.no-balancing": "it allows, and asks for nothing",
}
"""The clauses of healing that no log can put to the test, and why."""


def test_every_clause_of_healing_is_judged_or_says_why_not() -> None:
    """Whatever a log can show of healing is planted, owed or told here."""
    own = {name for name in load_clauses() if name.startswith("heal.")}
    judged = {clause for clause, _ in (*PLANTED.values(), *REST.values())} | RECORDS | TASKS
    judged |= {
        "heal.cancel.automatic-only",
        "heal.failover.generated-again",
        "heal.generate.all-due",
        "heal.generate.from-plan",
        "heal.task.no-live-replica-removed",
        "heal.task.refuse-duplicate",
        "heal.task.stale",
    }
    assert own - judged == set(UNJUDGED)
