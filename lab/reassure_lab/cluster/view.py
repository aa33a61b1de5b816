"""A cluster on a terminal: what it is doing, and keys to disturb it.

It is looked at again and again, and keys are carried out one at a time, both beside the screen: a
member may take its time to start. What was asked for last is said below the tables.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.widgets import DataTable, Footer, Header, Static

from reassure_lab.cluster import lines
from reassure_lab.cluster.overview import Overview, Watcher
from reassure_lab.cluster.supervisor import Cluster
from reassure_spec.errors import ReassureError

LOOK_S: Final = 0.5
"""How long it is rested between two looks at the cluster."""

_STYLES: Final = {"alive": "green", "paused": "yellow", "dead": "red", lines.TOO_FEW: "red"}


class ClusterApp(App[bool]):
    """Shows a cluster; its result is whether the cluster is to be left running."""

    TITLE = "reassure lab cluster"
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    #summary, #said { height: auto; padding: 0 1; }
    #members { height: auto; max-height: 50%; }
    #partitions { height: 1fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        ("k", "kill", "Kill"),
        ("r", "restart", "Revive"),
        ("p", "pause", "Pause or resume"),
        ("d", "leave", "Leave it running"),
        ("q", "go_down", "Quit"),
    ]

    def __init__(self, cluster: Cluster, look: Callable[[], Overview]) -> None:
        super().__init__()
        self._cluster = cluster
        self._look = look
        self._seen: Overview | None = None
        self._acting = asyncio.Lock()

    def compose(self) -> ComposeResult:
        """Lay out a summary, two tables, and a line for what was asked for last."""
        yield Header()
        yield Static("starting", id="summary", markup=False)
        yield DataTable[Text](id="members", cursor_type="row")
        yield DataTable[Text](id="partitions", cursor_type="row")
        yield Static(id="said", markup=False)
        yield Footer()

    def on_mount(self) -> None:
        """Begin to look."""
        for name, columns in (
            ("members", lines.MEMBER_COLUMNS),
            ("partitions", lines.PARTITION_COLUMNS),
        ):
            for column in columns:
                self._table(name).add_column(column, key=column)
        self._table("members").focus()
        self.run_worker(self._keep_looking())

    async def _keep_looking(self) -> None:
        while True:
            try:
                self.show(await asyncio.to_thread(self._look))
            except ReassureError as error:  # it was taken down from elsewhere
                self.exit(result=True, message=str(error))
            await asyncio.sleep(LOOK_S)

    def show(self, overview: Overview) -> None:
        """Show how the cluster is doing."""
        self._seen = overview
        self.query_one("#summary", Static).update(lines.tell_summary(overview))
        self._fill("members", [lines.tell_member(one) for one in overview.members])
        if not overview.trouble:  # else what was known last is better than nothing
            self._fill("partitions", [lines.tell_partition(one) for one in overview.partitions])

    def _table(self, name: str) -> DataTable[Text]:
        table: DataTable[Text] = self.query_one(f"#{name}", DataTable)
        return table

    def _fill(self, name: str, rows: Sequence[tuple[str, ...]]) -> None:
        """Have a table show the rows, by their first cell, and leave its cursor where it is."""
        table = self._table(name)
        shown = {str(key.value) for key in table.rows}
        for gone in shown - {row[0] for row in rows}:
            table.remove_row(gone)
        for row in rows:
            cells = [Text(cell, style=_STYLES.get(cell.split(" ")[-1], "")) for cell in row]
            if row[0] not in shown:
                table.add_row(*cells, key=row[0])
                continue
            for column, cell in zip(tuple(table.columns), cells, strict=True):
                table.update_cell(row[0], column, cell, update_width=True)

    # Keys

    def action_kill(self) -> None:
        """Kill the selected member."""
        self._act("kill", self._cluster.kill)

    def action_restart(self) -> None:
        """Start the selected member again."""
        self._act("restart", self._cluster.restart)

    def action_pause(self) -> None:
        """Have the selected member stand still, or go on where it does."""
        members = () if self._seen is None else self._seen.members
        stopped = {one.member.name for one in members if one.member.stopped}
        if self._selected in stopped:
            self._act("resume", self._cluster.resume)
        else:
            self._act("pause", self._cluster.pause)

    def action_leave(self) -> None:
        """Look no more, and leave the cluster running."""
        self.exit(result=True)

    def action_go_down(self) -> None:
        """Look no more; the cluster is to go down, unless it is somebody else's."""
        self.exit(result=False)

    @property
    def _selected(self) -> str | None:
        table = self._table("members")
        if not table.rows:
            return None
        return str(table.coordinate_to_cell_key(table.cursor_coordinate).row_key.value)

    def _act(self, what: str, act: Callable[[str], Any]) -> None:
        name = self._selected
        if name is not None:
            self.run_worker(self._carry_out(what, act, name))

    async def _carry_out(self, what: str, act: Callable[[str], Any], name: str) -> None:
        said = self.query_one("#said", Static)
        async with self._acting:
            said.update(f"{what} {name} …")
            try:
                await asyncio.to_thread(act, name)
            except ReassureError as error:
                said.update(str(error))
            else:
                said.update(f"{what} {name}: done")


def show(watcher: Watcher) -> bool:
    """Show a cluster until somebody has seen enough; return whether it is to be left running."""
    return bool(ClusterApp(watcher.cluster, watcher.look).run())
