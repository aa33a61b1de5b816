"""The live view of a cluster, without a terminal."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import DataTable, Static

from reassure_lab.cluster.lines import list_lines
from reassure_lab.cluster.overview import MemberView, Overview, PartitionView
from reassure_lab.cluster.supervisor import Member, NoMember
from reassure_lab.cluster.view import ClusterApp


class Told:
    """Stands in for a cluster: notes what is asked of it."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    def kill(self, name: str) -> None:
        """Note it."""
        self.asked.append(("kill", name))

    def restart(self, name: str) -> None:
        """Note it."""
        self.asked.append(("restart", name))

    def pause(self, name: str) -> None:
        """Note it."""
        self.asked.append(("pause", name))

    def resume(self, name: str) -> None:
        """Refuse it."""
        self.asked.append(("resume", name))
        raise NoMember(f"{name} is not running; restart it first")


def make_overview(**changes: Any) -> Overview:
    """Return a cluster with a dead broker, a paused one, and a partition on its way."""

    def member(name: str, role: Any, pid: int | None, *, stopped: bool = False) -> Member:
        number = int(name.rpartition("-")[2])
        address = None if role == "controller" else ("127.0.0.1", 10_000 + number)
        return Member(name, role, number, address, None, pid, pid is not None, stopped)

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


Act = Callable[[ClusterApp, Pilot[Any]], Awaitable[None]]


def drive(cluster: Any, look: Callable[[], Overview], act: Act) -> Any:
    """Run the view without a terminal, act on it, and return what it ends with."""

    async def run() -> Any:
        app = ClusterApp(cluster, look)
        async with app.run_test(size=(120, 30)) as pilot:
            while not app.query_one("#members", DataTable).rows:
                await pilot.pause(0.01)
            await act(app, pilot)
        return app.return_value

    return asyncio.run(asyncio.wait_for(run(), 60))


def read_rows(app: ClusterApp, name: str) -> list[list[str]]:
    """Return the cells of a table."""
    table = app.query_one(f"#{name}", DataTable)
    return [[str(cell) for cell in table.get_row(key)] for key in table.rows]


def read_text(app: ClusterApp, name: str) -> str:
    """Return the text of a line."""
    return str(app.query_one(f"#{name}", Static).content)


def test_members_and_partitions_are_shown() -> None:
    """Every member has its process and epoch, every partition its leader, sets, move and ends."""

    async def look_at(app: ClusterApp, pilot: Pilot[Any]) -> None:
        await pilot.pause()
        assert read_rows(app, "members") == [
            ["zookeeper-1", "11", "127.0.0.1:10001", "alive", "-"],
            ["broker-1", "12", "127.0.0.1:10001", "alive", "25"],
            ["broker-2", "-", "127.0.0.1:10002", "dead", "-"],
            ["broker-3", "14", "127.0.0.1:10003", "paused", "27"],
            ["controller-101", "15", "-", "alive", "3"],
        ]
        assert read_rows(app, "partitions") == [
            ["orders-0", "1", "1,2", "1,2", "-", "-", "-", "1:20/20 2:20/18"],
            ["orders-1", "1", "1,3 !", "1,2,3", "1,3", "2/2", "2", "1:7/5 3:5/5"],
        ]
        summary = "2 partitions, 1 under-replicated, 1 moving, 2 requests waiting"
        assert read_text(app, "summary") == summary

    drive(Told(), make_overview, look_at)


def test_keys_are_for_the_selected_member() -> None:
    """A key kills, revives, pauses or resumes the member under the cursor, and it is said how."""
    cluster = Told()

    async def press(app: ClusterApp, pilot: Pilot[Any]) -> None:
        await pilot.press("down", "k")
        await pilot.pause(0.1)
        assert read_text(app, "said") == "kill broker-1: done"
        await pilot.press("p", "down", "r", "down", "p")
        await pilot.pause(0.3)
        assert read_text(app, "said") == "broker-3 is not running; restart it first"

    drive(cluster, make_overview, press)
    assert cluster.asked == [
        ("kill", "broker-1"),
        ("pause", "broker-1"),
        ("restart", "broker-2"),
        ("resume", "broker-3"),
    ]


@pytest.mark.parametrize(("key", "stays"), [("q", False), ("d", True)])
def test_the_cluster_goes_down_or_stays(key: str, stays: bool) -> None:
    """Who quits has the cluster go down, who leaves has it stay."""

    async def press(_: ClusterApp, pilot: Pilot[Any]) -> None:
        await pilot.press(key)

    assert drive(Told(), make_overview, press) is stays


def test_what_was_known_stays_while_zookeeper_is_away() -> None:
    """Without ZooKeeper it is said so, and partitions are shown as they were known last."""
    told = [make_overview()]

    async def wait(app: ClusterApp, pilot: Pilot[Any]) -> None:
        told[0] = make_overview(partitions=(), trouble="no answer")
        for _ in range(200):
            await pilot.pause(0.02)
            if read_text(app, "summary").startswith("ZooKeeper does not answer: no answer"):
                break
        else:
            pytest.fail("it was not said")
        assert len(read_rows(app, "partitions")) == 2

    drive(Told(), lambda: told[0], wait)


def test_a_picture_can_be_made(tmp_path: Path) -> None:
    """The screen shows members, partitions and keys."""

    async def draw(app: ClusterApp, pilot: Pilot[Any]) -> None:
        await pilot.pause()
        app.save_screenshot("view.svg", str(tmp_path))

    drive(Told(), make_overview, draw)
    picture = re.sub("&#160;", " ", (tmp_path / "view.svg").read_text("utf-8"))
    for text in ("controller-101", "orders-1", "under-replicated", "Kill", "Leave it running"):
        assert text in picture


def test_lines_are_told_where_there_is_no_terminal() -> None:
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
