"""Writes for many partitions are on their way together; each partition's steps keep their order."""

from collections import Counter
from itertools import count
from typing import Any

import pytest

from reassure_controller import engine
from reassure_controller.context import Context, LiveBroker, PartitionContext
from reassure_controller.effects import DeleteReassignment, PartitionEffect, Phase, Step
from reassure_controller.pipelining import PipelinedEngine, interleave
from reassure_controller.reassignment_steps import plan_changes
from reassure_controller.rules import Rules
from reassure_controller.session import Indefinite, settle
from reassure_spec.znodes import (
    REASSIGNMENTS,
    PartitionKey,
    ReassignmentZnode,
    StateZnode,
    decode_topic,
    encode_topic,
    state_path,
    topic_path,
)

MANY = 50
SOME = 200
"""Partitions of which each has to be looked after by itself."""
AT_ONCE = 20
TARGET = (2, 3)


def plan_completion(partitions: int) -> tuple[Step, ...]:
    """Return the plan that completes so many reassignments from 1, 2 to 2, 3."""
    context = Context(
        epoch=1,
        brokers={one: LiveBroker(one, one, "", 0) for one in (1, 2, 3)},
        topic_versions={"t": 0},
    )
    for number in range(partitions):
        context.put(
            ("t", number),
            PartitionContext(
                (1, 2, 3),
                StateZnode(1, 0, 1, (1, 2, 3)),
                0,
                ReassignmentZnode(2, TARGET, legacy=False),
                0,
                Phase.WAIT,
            ),
        )
    return plan_changes(context, list(context.partitions), Rules())


def of(plan: Any, key: PartitionKey) -> list[Step]:
    """Return the steps of one partition."""
    return [step for step in plan if step.key == key]


def test_each_partition_keeps_the_order_of_its_steps() -> None:
    """The steps are the same; only those of different partitions change places."""
    plan = plan_completion(3)
    together = interleave(plan)
    for number in range(3):
        assert of(together, ("t", number)) == of(plan, ("t", number))
    assert [type(step) for step in together[:3]] == [type(plan[0])] * 3
    ends = [step for step in together if isinstance(step, DeleteReassignment)]
    assert ends == together[-3:]
    assert [(end.key, end.with_parent) for end in ends] == [
        (("t", 0), False),
        (("t", 1), False),
        (("t", 2), True),
    ]


def move_many(
    cluster: Any,
    on_point: Any = lambda _: None,
    partitions: int = MANY,
    joined: int | None = None,
) -> Any:
    """Have a controller that pipelines take over all but the completion of a request."""
    cluster.create_topic("t", dict.fromkeys(range(partitions), (1, 2)))
    controller = cluster.controller(on_point=on_point, at_once=AT_ONCE)
    controller.drain(60)
    cluster.request({("t", number): TARGET for number in range(partitions)})
    controller.drain(60)
    for number in range(partitions if joined is None else joined):
        cluster.join("t", number, 3)
    return controller


def assert_moved(cluster: Any, partitions: int = MANY) -> None:
    """Everything is where it was asked for, and nothing is left of the request."""
    assert {cluster.assigned("t", number) for number in range(partitions)} == {TARGET}
    assert {cluster.state("t", number).isr for number in range(partitions)} == {TARGET}
    assert cluster.reassigning() == []
    assert cluster.admin.exists(f"{REASSIGNMENTS}/t") is None


def test_writes_do_not_wait_for_each_other(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many partitions as are carried on with together have a write on its way at once."""
    waiting, most = Counter[str](), 0
    submit = PipelinedEngine._submit

    def note_submitted(self: Any, *arguments: Any) -> Any:
        nonlocal most
        waiting["writes"] += 1
        most = max(most, waiting["writes"])
        return submit(self, *arguments)

    def note_settled(answer: Any) -> Any:
        waiting["writes"] -= 1
        return settle(answer)

    monkeypatch.setattr(PipelinedEngine, "_submit", note_submitted)
    monkeypatch.setattr(engine, "settle", note_settled)
    move_many(cluster).drain(60)
    assert_moved(cluster)
    assert waiting["writes"] == 0
    assert most == MANY  # the records of the request


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> Counter[PartitionKey]:
    """Count how often something is planned for each partition."""
    counts = Counter[PartitionKey]()
    load = PipelinedEngine.load

    def note(self: Any, plan: tuple[Step, ...]) -> None:
        counts.update({step.key for step in plan if isinstance(step, PartitionEffect)})
        load(self, plan)

    monkeypatch.setattr(PipelinedEngine, "load", note)
    return counts


def list_versions(cluster: Any, partitions: int) -> list[int]:
    """Return how often the state of each partition was written since it was made."""
    return [cluster.admin.get(state_path("t", n))[1].version for n in range(partitions)]


def test_a_conflict_of_one_plans_no_other_anew(cluster: Any, plans: Counter[PartitionKey]) -> None:
    """One partition's state is changed at the last moment: that one alone is planned once more."""
    points: Counter[str] = Counter()

    def on_point(point: str) -> None:
        points[point] += 1
        if point == "completion.isr-shrunk" and points[point] == 1:
            cluster.leave("t", 7, 1)  # the leader is faster

    controller = move_many(cluster, on_point, SOME)
    plans.clear()
    controller.drain(60)
    assert_moved(cluster, SOME)
    others = dict.fromkeys((("t", number) for number in range(SOME)), 1)
    assert plans == others | {("t", 7): 2}
    assert points["completion.leader-moved"] == SOME
    assert points["completion.epoch-raised"] == 1
    assert points["completion.target-assigned"] == SOME
    assert points["completion.isr-shrunk"] == SOME
    # The epoch is raised, 3 joins, 2 leads, and one alone cuts the in-sync set.
    usual = 4
    written = list_versions(cluster, SOME)
    assert written.pop(7) == usual + 1
    assert set(written) == {usual}


def test_a_failover_resumes_each_partition_where_it_stands(
    cluster: Any, plans: Counter[PartitionKey]
) -> None:
    """What is done is left alone, who waits is told once more, who can go on is completed."""
    done, ready = SOME // 2, SOME * 3 // 4
    first = move_many(cluster, partitions=SOME, joined=done)
    first.drain(60)
    first.kill()
    for number in range(done, ready):
        cluster.join("t", number, 3)
    before = list_versions(cluster, SOME)
    plans.clear()
    points: Counter[str] = Counter()
    second = cluster.controller(on_point=lambda point: points.update([point]), at_once=AT_ONCE)
    second.drain(60)
    written = [after - at for after, at in zip(list_versions(cluster, SOME), before, strict=True)]
    assert set(written[:done]) == {0}
    assert set(written[done:ready]) == {2}  # 2 leads, and the in-sync set is cut
    assert set(written[ready:]) == {1}  # who waits has its epoch raised
    assert points["failover.state-sent"] == SOME
    assert {plans["t", n] for n in range(done)} == {1}
    assert {plans["t", n] for n in range(done, SOME)} == {2}
    for number in range(ready, SOME):
        cluster.join("t", number, 3)
    second.drain(60)
    assert_moved(cluster, SOME)


def test_what_somebody_else_does_to_the_topic_is_got_through(cluster: Any) -> None:
    """The topic grows while many assignments are on their way: nothing is overwritten."""
    points: Counter[str] = Counter()

    def on_point(point: str) -> None:
        points[point] += 1
        if point == "completion.target-assigned" and points[point] == 5:
            content = decode_topic("", cluster.admin.get(topic_path("t"))[0])
            cluster.admin.set(topic_path("t"), encode_topic({**content, MANY: (1, 3)}))

    move_many(cluster, on_point).drain(60)
    assert_moved(cluster)
    assert cluster.assigned("t", MANY) == (1, 3)
    assert points["completion.target-assigned"] <= 2 * MANY


@pytest.mark.parametrize("lost", [3, 57, 160])
def test_lost_answers_are_read_anew(
    cluster: Any, monkeypatch: pytest.MonkeyPatch, lost: int
) -> None:
    """The connection goes with many writes on their way: what became of each is read."""
    settled = count()

    def lose(answer: Any) -> Any:
        results = settle(answer)
        if lost <= next(settled) < lost + 10:
            raise Indefinite("the answer was lost")
        return results

    controller = move_many(cluster)
    versions = {n: cluster.admin.get(state_path("t", n))[1].version for n in range(MANY)}
    monkeypatch.setattr(engine, "settle", lose)
    controller.drain(60)
    assert_moved(cluster)
    written = {n: cluster.admin.get(state_path("t", n))[1].version for n in range(MANY)}
    more = Counter(written[n] - versions[n] for n in range(MANY))
    # Those that were carried on with together may have their epoch raised once more.
    assert more[2] >= MANY - AT_ONCE
    assert max(more) <= 4


def test_a_plan_with_a_budget_waits_between_two_effects(cluster: Any) -> None:
    """Whoever holds it between two effects finds it there, as if nothing were pipelined."""
    controller = move_many(cluster, partitions=3)
    for _ in range(200):
        if controller.pump(max_effects=1).idle:
            break
    controller.drain()
    assert_moved(cluster, 3)


def test_assignments_of_a_topic_are_written_one_on_top_of_the_other(cluster: Any) -> None:
    """Many assignments of one topic are on their way, and none conflicts with the one before it."""
    points: Counter[str] = Counter()
    move_many(cluster, lambda point: points.update([point])).drain(60)
    assert points["request.assigned-expanded"] == points["completion.target-assigned"] == MANY


def count_reads(cluster: Any, conflicts: int) -> int:
    """Return how many requests to read a completion of twenty takes, of which some conflict."""
    left: set[int] = set()

    def on_point(point: str) -> None:
        if point == "completion.isr-shrunk" and len(left) < conflicts:
            left.add(number := len(left))
            cluster.leave("t", number, 1)

    controller = move_many(cluster, on_point, AT_ONCE)
    before = dict(controller._client.operations.list())["MultiRead",]
    controller.drain(60)
    assert_moved(cluster, AT_ONCE)
    return int(dict(controller._client.operations.list())["MultiRead",] - before)


def test_what_conflicts_together_is_read_together(make_cluster: Any) -> None:
    """Twenty conflicts at once cost no more requests than one."""
    assert count_reads(make_cluster(), AT_ONCE) == count_reads(make_cluster(), 1)
