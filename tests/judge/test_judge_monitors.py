"""Driven clusters: what the judge finds by messages, by the clock and by rests, beside the log."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import pytest

from reassure_judge import protocols
from reassure_judge.live_events import ChangeAsked, TimePassed
from reassure_judge.protocols import find_monitors
from reassure_spec import znodes
from reassure_spec.profiles import PROTOCOLS
from reassure_spec.znodes import TaskZnode
from reassure_zookeeper.transactions import Create

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
    cluster.tell(1, zxid=cluster.history[-1].zxid - 1, replicas=(1, 2))
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


@pytest.mark.parametrize(
    "known",
    [
        {"failure_interval_ms": INTERVAL_MS},
        {"failure_interval_ms": INTERVAL_MS, "has_clock": True, "whole": False},
        {"has_clock": True},
    ],
)
def test_healing_is_not_judged_without_its_clock(drive: Any, known: dict[str, Any]) -> None:
    """Where no time or interval is handed over, or not from the beginning, none is judged."""
    cluster = drive("kip-46", **known)
    heal(cluster, 0)
    assert cluster.found == []
    assert not cluster.counted("heal.interval")
