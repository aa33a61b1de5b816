"""What there is to tell of a cluster: its rows and its lines."""

from typing import Any

from reassure_lab.cluster.lines import list_lines, tell_member, tell_partition, tell_summary
from reassure_lab.cluster.overview import MemberView, Overview, PartitionView
from reassure_lab.cluster.supervisor import ClusterMember


def make_overview(**changes: Any) -> Overview:
    """Return a cluster with a dead broker, a paused one, and a partition on its way."""

    def member(name: str, role: Any, pid: int | None, *, stopped: bool = False) -> ClusterMember:
        number = int(name.rpartition("-")[2])
        address = None if role == "controller" else ("127.0.0.1", 10_000 + number)
        return ClusterMember(name, role, number, address, None, pid, pid is not None, stopped)

    members = (
        MemberView(member("zookeeper-1", "zookeeper", 11)),
        MemberView(member("broker-1", "broker", 12), 25),
        MemberView(member("broker-2", "broker", None)),
        MemberView(member("broker-3", "broker", 14, stopped=True), 27),
        MemberView(member("controller-101", "controller", 15), 3),
    )
    partitions = (
        PartitionView("orders", 0, (1, 2), 1, (1, 2), None, {1: (20, 20), 2: (20, 18)}),
        PartitionView("orders", 1, (1, 2, 3), 1, (1, 3), (1, 3), {1: (7, 5), 3: (5, 5)}),
    )
    return Overview(members, **{"partitions": partitions, "requests": 2, **changes})


def test_rows_tell_members_and_partitions() -> None:
    """Every member has its process and epoch, every partition its leader, sets, move and ends."""
    overview = make_overview()
    assert [tell_member(one) for one in overview.members] == [
        ("zookeeper-1", "11", "127.0.0.1:10001", "alive", "-"),
        ("broker-1", "12", "127.0.0.1:10001", "alive", "25"),
        ("broker-2", "-", "127.0.0.1:10002", "dead", "-"),
        ("broker-3", "14", "127.0.0.1:10003", "paused", "27"),
        ("controller-101", "15", "-", "alive", "3"),
    ]
    assert [tell_partition(one) for one in overview.partitions] == [
        ("orders-0", "1", "1,2", "1,2", "-", "-", "-", "1:20/20 2:20/18"),
        ("orders-1", "1", "1,3 !", "1,2,3", "1,3", "2/2", "2", "1:7/5 3:5/5"),
    ]
    summary = "2 partitions, 1 under-replicated, 1 moving, 2 requests waiting"
    assert tell_summary(overview) == summary
    away = make_overview(partitions=(), trouble="no answer")
    assert tell_summary(away) == "ZooKeeper does not answer: no answer"


def test_lines_tell_what_rows_tell() -> None:
    """As lines, everything that the tables have is told, and nothing that is not there."""
    assert list(list_lines(make_overview(partitions=make_overview().partitions[1:]))) == [
        "zookeeper-1: alive, pid 11, epoch -",
        "broker-1: alive, pid 12, epoch 25",
        "broker-2: dead, pid -, epoch -",
        "broker-3: paused, pid 14, epoch 27",
        "controller-101: alive, pid 15, epoch 3",
        (
            "orders-1: leader 1, in sync 1,3 !, assigned 1,2,3, moves to 1,3, arrived 2/2, "
            "to drop 2, end/mark 1:7/5 3:5/5"
        ),
    ]
