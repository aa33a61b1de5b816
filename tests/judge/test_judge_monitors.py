"""Driven clusters: what the judge finds by messages, by the clock and by rests, beside the log."""

import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from reassure_judge import protocols
from reassure_judge.live_events import ChangeAsked, Ended, Rested, ShutdownAsked, TimePassed
from reassure_judge.protocols import find_monitors
from reassure_spec import znodes
from reassure_spec.profiles import PROTOCOLS
from reassure_spec.znodes import StateZnode, TaskZnode
from reassure_zookeeper.transactions import Create, Delete, SetData

KEY: Final = ("orders", 0)
CONTROLLER_SESSION: Final = 900


# The register -------------------------------------------------------------------------------------


def test_monitors_are_found_by_their_files() -> None:
    """Each file of a monitor is found for the profiles of its protocol, and for no other."""
    (folder,) = protocols.__path__
    files = {path.parent.name for path in Path(folder).glob("*/monitor.py")}
    found = {
        profile: {each.__module__.split(".")[-2] for each in find_monitors(profile)}
        for profile in PROTOCOLS
    }
    assert {"kafka_42", "kip_46", "topics"} <= files == set().union(*found.values())
    for profile, names in found.items():
        assert names == files & {name.replace("-", "_") for name in PROTOCOLS[profile]}


def test_audit_loads_no_monitor() -> None:
    """Who judges logs alone loads no monitor."""
    code = (
        "import sys; from reassure_judge.protocols import get_rules; get_rules('kip-46');"
        "print([name for name in sys.modules if name.endswith('.monitor') and 'protocols' in name])"
    )
    ran = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert ran.stdout.strip() == "[]"


# Messages -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("told", "broken"), [((1, 2), []), ((1,), ["message.replica-told"])])
def test_beliefs_are_judged_at_rest(drive: Any, told: Iterable[int], broken: list[str]) -> None:
    """A broker that was told nothing is found when the cluster rests, and not before."""
    cluster = drive("kip-236", hears=True)
    for broker in told:
        cluster.tell(broker, zxid=cluster.history[-1].zxid, replicas=(1, 2))
    cluster.look(rests=False)
    assert cluster.found == []
    cluster.look()
    assert cluster.found == broken
    assert bool(cluster.counted("message.replica-told")) is not bool(broken)


def test_message_before_its_write_is_found(drive: Any) -> None:
    """A state that is told before it is stored breaks the order, however the cluster rests."""
    cluster = drive("kip-236", hears=True)
    cluster.tell(1, zxid=1, replicas=(1, 2))
    cluster.look(rests=False)
    assert cluster.found == ["message.stored-first"]


@pytest.mark.parametrize("obeyed", [True, False])
def test_leader_that_cannot_take_a_replica_in_is_found(drive: Any, obeyed: bool) -> None:
    """A leader that refuses who has caught up breaks its clause; one that does not keeps it."""
    cluster = drive("kip-236")
    partition = cluster.judge.view().partitions[KEY]
    cluster.hand_over(ChangeAsked(KEY, partition, 2, joins=True, obeyed=obeyed))
    assert cluster.found == ([] if obeyed else ["message.leader-able"])
    assert cluster.counted("message.leader-able") == int(obeyed)


# Healing ------------------------------------------------------------------------------------------

INTERVAL_MS: Final = 1000


def heal(cluster: Any, away_ms: int, partitions: int = 1) -> None:
    """Let broker 2 stay away for so long, then replace it in so many partitions."""
    cluster.die(2)
    cluster.hand_over(TimePassed(away_ms))
    targets = {("orders", number): (1, 3) for number in range(partitions)}
    data = znodes.encode_task(TaskZnode(targets, automatic=True))
    path = f"{znodes.REASSIGNMENT_TASKS}/task-0000000000"
    cluster.write(Create(path, data), session=CONTROLLER_SESSION, fenced=True)


@pytest.mark.clause("heal.interval")
@pytest.mark.clause("heal.generate.small-tasks")
@pytest.mark.parametrize(
    ("away_ms", "partitions", "broken"),
    [
        (INTERVAL_MS, 1, []),
        (INTERVAL_MS - 1, 1, ["heal.interval"]),
        (INTERVAL_MS, 2, ["heal.generate.small-tasks"]),
    ],
)
def test_healing_is_judged_by_the_clock(
    drive: Any, away_ms: int, partitions: int, broken: list[str]
) -> None:
    """A broker is replaced once it was away for the interval, in tasks of the limit's size."""
    known = {"failure_interval_ms": INTERVAL_MS, "partitions_per_task": 1}
    cluster = drive("kip-46", has_clock=True, **known)
    heal(cluster, away_ms, partitions)
    assert cluster.found == broken
    clauses = {"heal.interval", "heal.generate.small-tasks"}
    assert {each for each in clauses if cluster.counted(each)} == clauses - set(broken)


@pytest.mark.parametrize("known", [{"has_clock": False}, {"has_clock": True, "whole": False}])
def test_healing_is_not_judged_without_its_clock(drive: Any, known: dict[str, bool]) -> None:
    """Where no time is handed over, or not from the beginning, no interval is judged."""
    cluster = drive("kip-46", failure_interval_ms=INTERVAL_MS, **known)
    heal(cluster, 0)
    assert cluster.found == []
    assert not cluster.counted("heal.interval")


# Topics -------------------------------------------------------------------------------------------


def delete(cluster: Any, orders: Iterable[int]) -> Iterator[str]:
    """Delete the topic, of which these brokers are told; yield what is broken."""
    asked = znodes.deleted_topic_path("orders")
    zxid = cluster.write(Create(asked, b""), session=1)
    for broker in orders:
        cluster.tell(broker, zxid=zxid)
    for path in (znodes.state_path("orders", 0), znodes.topic_path("orders"), asked):
        cluster.write(Delete(path), session=CONTROLLER_SESSION, fenced=True)
    cluster.look()
    yield from cluster.found


@pytest.mark.clause("topic.delete.all-successful-first")
@pytest.mark.parametrize(
    ("orders", "broken"), [((1, 2), []), ((1,), ["topic.delete.all-successful-first"])]
)
def test_deletion_is_answered_by_each_replica(
    drive: Any, orders: Iterable[int], broken: list[str]
) -> None:
    """A topic is removed once each of its replicas was told to delete its log."""
    cluster = drive("kip-236", hears=True)
    assert [*delete(cluster, orders)] == broken
    assert bool(cluster.counted("topic.delete.all-successful-first")) is not bool(broken)


@pytest.mark.clause("act.deletion-carried-out")
def test_deletion_that_nothing_hinders_is_owed_at_rest(drive: Any) -> None:
    """Where a controller rests and a topic is to be deleted, the deletion is owed."""
    cluster = drive("kip-236")
    cluster.write(Create(znodes.deleted_topic_path("orders"), b""), session=1)
    cluster.look(rests=False)
    assert cluster.found == []
    cluster.look()
    assert cluster.found == ["act.deletion-carried-out"]


@pytest.mark.clause("act.shutdown-handed-over")
@pytest.mark.parametrize("ended", [True, False])
def test_shutdown_hands_leaders_over(drive: Any, ended: bool) -> None:
    """A broker that stops in good order leads nothing any more; one that dies may."""
    cluster = drive("kip-236")
    cluster.hand_over(ShutdownAsked(1, cluster.judge.view()))
    if ended:
        cluster.hand_over(Ended(1))
    cluster.die(1)
    assert cluster.found == ([] if ended else ["act.shutdown-handed-over"])


# The first reassignment ---------------------------------------------------------------------------


def move(cluster: Any, stopped: Iterable[int], *, late: Iterable[int] = ()) -> None:
    """Move orders-0 to brokers 3 and 4 by the old znode, and stop these brokers before the end."""
    entry = znodes.LegacyEntry(KEY, (3, 4))
    data = znodes.encode_reassign_partitions((entry,))
    cluster.write(Create(znodes.REASSIGN_PARTITIONS, data), session=50)
    cluster.change_isr(1, 2, 3, 4)
    led = cluster.state
    state = StateZnode(3, led.leader_epoch + 1, cluster.epoch, (3, 4))
    path = znodes.state_path("orders", 0)
    zxid = cluster.write(
        SetData(path, znodes.encode_state(state), 1), session=CONTROLLER_SESSION, fenced=True
    )
    for broker in stopped:
        cluster.tell(broker, zxid=zxid)
    topic = znodes.encode_topic({0: (3, 4)})
    path = znodes.topic_path("orders")
    zxid = cluster.write(SetData(path, topic, 1), session=CONTROLLER_SESSION, fenced=True)
    for broker in late:
        cluster.tell(broker, zxid=zxid)
    cluster.write(Delete(znodes.REASSIGN_PARTITIONS), session=CONTROLLER_SESSION, fenced=True)
    cluster.hand_over(Rested(cluster.judge.view()))


@pytest.mark.clause("move.step.stop-old")
@pytest.mark.parametrize(
    ("stopped", "late", "broken"),
    [
        ((1, 2), (), []),
        ((1,), (), ["move.step.stop-old"]),
        ((1,), (2,), ["move.step.write-assigned"]),
    ],
)
def test_move_stops_the_old_replicas_before_its_end(
    drive: Any, stopped: Iterable[int], late: Iterable[int], broken: list[str]
) -> None:
    """Old replicas are told to stop before the target is written as the assignment."""
    cluster = drive("kafka-42", hears=True)
    move(cluster, stopped, late=late)
    assert cluster.found == broken
    assert cluster.counted("move.step.stop-old")


def test_move_is_not_judged_unheard(drive: Any) -> None:
    """Where nobody hears what brokers are told, nothing is said of who was stopped."""
    cluster = drive("kafka-42")
    move(cluster, ())
    assert cluster.found == []
    assert not cluster.counted("move.step.stop-old")
