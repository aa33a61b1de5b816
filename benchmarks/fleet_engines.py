"""What an audit of a fleet costs: one process, two, and Spark, and then where little is new.

Makes archives of different size, of which some are damaged and some have planted faults, and audits
all of them, each way with tables of its own; then the first way again, where nothing is new, and
where each archive grew by one part in a hundred. Each figure is of a whole command, a median
of the rounds, which are run by turns. It is checked that all planted faults are found and nothing
else, and that each way leaves the same rows.

    python benchmarks/fleet_engines.py [--archives 60] [--transactions 5k] [--rounds 3]
        [--minutes 60]
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from deltalake import DeltaTable
from spark import BOTH, PLAIN, TWO_CORES, Cost, measure, parse_size

from reassure_lab.protocols.kip_236.synthetic import Size, SyntheticHistory
from reassure_zookeeper.transactions import Transaction
from reassure_zookeeper.txnlog import log_files
from reassure_zookeeper.txnlog_writer import GrowingLog

WAYS = (PLAIN, BOTH, TWO_CORES)
FAULTY, DAMAGED = 10, 33
"""Of so many archives one has a planted fault, and of so many one is damaged."""
FILES = 4
Place = tuple[str, int]


class Fleet:
    """Archives in a folder, each a hundredth short of what it will be."""

    def __init__(self, folder: Path, archives: int, transactions: int) -> None:
        self.planted: set[Place] = set()
        """By archive and zxid."""
        self.paths = [folder / f"{number:05d}" for number in range(archives)]
        self._coming: list[tuple[GrowingLog, list[Transaction]]] = []
        for number, path in enumerate(self.paths):
            # From half of what was asked for to one and a half.
            size = transactions // 2 + transactions * number // archives
            damaged, faults = number % DAMAGED == DAMAGED - 1, int(number % FAULTY == 0)
            made = SyntheticHistory(Size(size, max(10, size // 100), faults, number))
            history = [each for some in made.steps() for each in some]
            self.planted |= {(path.name, fault.zxid) for fault in made.planted}
            path.mkdir()
            log, end = GrowingLog(path, block=0), len(history) * 99 // 100
            for start in range(0, end, -(-end // FILES)):
                log.append(*history[start : min(end, start - -end // FILES)])
                log.rotate()
            self._coming.append((log, history[end:]))
            if damaged:
                content = bytearray(log_files(path)[1].read_bytes())
                content[len(content) // 2] ^= 0xFF
                log_files(path)[1].write_bytes(content)

    def grow(self) -> None:
        """Let each archive grow by what is left of it."""
        for log, left in self._coming:
            log.append(*left)


def read_rows(tables: Path) -> dict[str, list[str]]:
    """Return the rows of all tables, but for when they were written."""
    found: dict[str, list[str]] = {}
    for place in sorted(tables.iterdir()):
        if DeltaTable.is_deltatable(str(place)):
            rows: list[dict[str, Any]] = DeltaTable(place).to_pyarrow_table().to_pylist()
            found[place.name] = sorted(repr({**row, "run": None}) for row in rows)
    return found


def check(tables: Path, fleet: Fleet) -> None:
    """Stop where something planted was not found, or something else was."""
    rows = DeltaTable(tables / "findings").to_pyarrow_table().to_pylist()
    found = {(Path(row["archive"]).name, row["zxid"]) for row in rows if row["settled"]}
    if found != fleet.planted:
        raise SystemExit(f"found {sorted(found)} instead of {sorted(fleet.planted)}")


def show(what: str, costs: list[Cost], first: float) -> float:
    """Print a row; return the time on the clock."""
    cost = Cost(*map(statistics.median, zip(*costs, strict=True)))
    ratio = f"{first / cost.clock:.2f}" if first else "1"
    print(
        f"| {what} | {len(costs)} | {cost.clock:.1f} s | {ratio} | {cost.python:.1f} s "
        f"| {cost.java:.1f} s | {cost.peak_mb:,.0f} MB |",
        flush=True,
    )
    return cost.clock


def main() -> None:
    """Print the figures as a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--archives", type=int, default=60)
    parser.add_argument("--transactions", default="5k")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--minutes", type=float, default=60)
    given = parser.parse_args()
    deadline = time.perf_counter() + 60 * given.minutes
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, "logs")
        folder.mkdir()
        fleet = Fleet(folder, given.archives, parse_size(given.transactions))
        paths = [str(path) for path in fleet.paths]

        def run(way: tuple[str, ...], tables: Path) -> Cost:
            options = ["--members", "apart", "--tables", str(tables)]
            cost = measure([*way, *options, *paths], deadline)
            if cost is None:
                raise SystemExit("time is up")
            return cost

        costs: list[list[Cost]] = [[] for _ in WAYS]
        for turn in range(given.rounds):
            for number, way in enumerate(WAYS):
                costs[number].append(run(way, Path(scratch, f"{turn}-{number}")))
                check(Path(scratch, f"{turn}-{number}"), fleet)
            rows = [read_rows(Path(scratch, f"{turn}-{number}")) for number in range(len(WAYS))]
            if rows != rows[:1] * len(WAYS):
                raise SystemExit("the rows differ")
        print("| way | rounds | clock | times as fast | Python | Java | memory |")
        print("|---|---|---|---|---|---|---|")
        first = show(" ".join(PLAIN), costs[0], 0)
        for way, spent in zip(WAYS[1:], costs[1:], strict=True):
            show(" ".join(way), spent, first)
        kept = [Path(scratch, f"{turn}-0") for turn in range(given.rounds)]
        show("nothing new", [run(PLAIN, tables) for tables in kept], first)
        fleet.grow()
        show("1 % new", [run(PLAIN, tables) for tables in kept], first)


if __name__ == "__main__":
    main()
