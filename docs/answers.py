"""Answer what `docs/tables.md` asks, of a small fleet that is judged for it, with DuckDB.

`python docs/answers.py` writes the answers anew behind the questions; a test compares them.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import duckdb
from deltalake import DeltaTable
from pieces import make_table

from reassure_lab.archives.planted import plant_all
from reassure_lab.archives.sample import SampleCluster
from reassure_lab.protocols.kip_236.synthetic import Size, SyntheticHistory
from reassure_pipeline.audit.run_audit import audit_paths
from reassure_pipeline.tables.columns import TABLES
from reassure_pipeline.tables.fleet_tables import FleetTables
from reassure_zookeeper.transactions import Transaction
from reassure_zookeeper.txnlog import log_files
from reassure_zookeeper.txnlog_writer import GrowingLog

PAGE: Final = Path(__file__).parent / "tables.md"
_ASKED: Final = re.compile(r"(```sql\n(.*?)```\n)(\n\|.*?\n(?=\n|\Z))?", re.DOTALL)
_FILES: Final = 4


def make_fleet(folder: Path) -> None:
    """Write the logs of some clusters: sound, broken, with a gap, damaged, and none."""
    for number, (name, faults) in enumerate(
        {"berlin": 3, "cairo": 0, "lagos": 0, "quito": 1}.items()
    ):
        made = SyntheticHistory(Size(900, 12, faults, number))
        write(folder / name, [each for some in made.steps() for each in some])
    cluster = SampleCluster()
    plant_all(cluster)
    write(folder / "turin", cluster.transactions)
    log_files(folder / "cairo")[1].unlink()
    write(folder / "osaka", cluster.transactions[:9])
    (log,) = log_files(folder / "osaka")[:1]
    log.write_bytes(b"overwritten" * 99)
    for other in log_files(folder / "osaka")[1:]:
        other.unlink()
    (folder / "perth").mkdir()


def write(folder: Path, history: list[Transaction]) -> None:
    """Write the logs of one server."""
    folder.mkdir()
    log, step = GrowingLog(folder, block=0), -(-len(history) // _FILES)
    for start in range(0, len(history), step):
        log.append(*history[start : start + step])
        log.rotate()


@contextmanager
def open_tables() -> Iterator[Any]:
    """Yield a connection to the tables that audits of two days made of the fleet."""
    with TemporaryDirectory() as made:
        folder = Path(made)
        (folder / "logs").mkdir()
        make_fleet(folder / "logs")
        newest = log_files(folder / "logs" / "berlin")[-1]
        content = newest.read_bytes()
        newest.unlink()
        for day in (30, 31):
            run = datetime(2026, 1, day, 4, tzinfo=UTC)
            tables = FleetTables(folder / "tables", "0.1.0", {}, run)
            places = sorted((folder / "logs").iterdir())
            audit_paths(places, "kip-236", {}, jobs=1, recognise=True, tables=tables)
            newest.write_bytes(content)
        with duckdb.connect() as connection:
            connection.execute("SET TimeZone = 'UTC'")
            for name in TABLES.keys() - {"transactions"}:
                there = DeltaTable(folder / "tables" / name).to_pyarrow_table()
                connection.register(name, shorten(there, str(folder / "logs") + "/"))
            yield connection


def shorten(table: Any, root: str) -> Any:
    """Return a table in which paths do not say where it was made."""
    import pyarrow.compute

    for at, field in enumerate(table.schema):
        if field.type == "string":
            column = pyarrow.compute.replace_substring(table.column(at), root, "/logs/")
            table = table.set_column(at, field, column)
    return table


def answer(page: str) -> str:
    """Return the page with the answers to all that it asks."""
    with open_tables() as connection:

        def ask(found: re.Match[str]) -> str:
            told = connection.sql(found[2])
            if found[2].startswith("CREATE"):
                return found[1]
            rows = [tuple(map(_show, row)) for row in told.fetchall()]
            return "\n".join((found[1], *make_table(tuple(told.columns), rows), ""))

        return _ASKED.sub(ask, page)


def _show(value: object) -> str:
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}"
    return "" if value is None else str(value)


if __name__ == "__main__":
    PAGE.write_text(answer(PAGE.read_text("utf-8")), "utf-8")
