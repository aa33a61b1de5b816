"""What an audit of a fleet costs: one process, two, and Spark, and then where little is new.

Makes archives of seven kinds (`fleet_bases`) and four sizes, of which three in a hundred are
damaged and four in a hundred have a planted fault, and audits all of them, each way with tables of
its own and recognising what each is of; then two processes again, where nothing is new, and where
each archive grew by one part in a hundred. Only some dozen histories are drawn: the archives are
copies of these under other names, of which every one is read and judged. Each figure is of a whole
command, a median of the rounds, which are run by turns, but for one process, which takes longest
and runs in the first round alone. It is checked that exactly what was planted is found, that
nothing is left out but what cannot be read, and that each way leaves the same rows. From the
figures follows what ten thousand such clusters take on a hundred cores.

    python benchmarks/fleet_engines.py [--archives 60] [--transactions 5k] [--rounds 3]
        [--minutes 120]

`--transactions` is the mean: sizes are 0.4, 0.8, 1.2 and 1.6 of it (12500: 5,000 to 20,000).
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from deltalake import DeltaTable
from fleet_bases import KINDS, FleetBase, make_base
from spark import BOTH, PLAIN, TWO_CORES, Cost, measure, parse_size

WAYS = (PLAIN, BOTH, TWO_CORES)
SIZES: Final = (4, 8, 12, 16)
"""In tenths of what was asked for."""
FAULTY, DAMAGED = 25, 33
"""Of so many archives one has a planted fault, and of so many one is damaged."""
CORES: Final = 100
CLUSTERS: Final = 10_000
Place = tuple[str, int]


class Fleet:
    """Archives in a folder, each a hundredth short of what it will be."""

    def __init__(self, folder: Path, archives: int, transactions: int) -> None:
        self.planted: set[Place] = set()
        """By archive and zxid."""
        self.unreadable: set[str] = set()
        """Archives of which nothing can be judged."""
        self.torn: set[str] = set()
        """Those of which something cannot be read."""
        self.paths = [folder / f"{number:05d}" for number in range(archives)]
        self.transactions = 0
        self._bases: dict[tuple[str, int, bool], FleetBase] = {}
        self._drawn = folder.with_name("bases")
        self._drawn.mkdir()
        self._rests: list[tuple[Path, FleetBase]] = []
        for number, path in enumerate(self.paths):
            is_faulty = number % FAULTY == 0
            size = transactions * SIZES[number // len(KINDS) % len(SIZES)] // 10
            base = self._draw(list(KINDS)[number % len(KINDS)], size, is_faulty=is_faulty)
            self.planted |= {(path.name, zxid) for zxid in base.planted}
            path.mkdir()
            for file in base.files:
                (path / file.name).hardlink_to(file)
            if number % DAMAGED == DAMAGED - 1 and not is_faulty:
                self._damage(path, base, number // DAMAGED)
            else:
                self.transactions += base.transactions
                self._rests.append((path, base))

    def _draw(self, kind: str, size: int, *, is_faulty: bool) -> FleetBase:
        wanted = kind, size, is_faulty
        if wanted not in self._bases:
            number = len(self._bases)
            place = self._drawn / f"{number:03d}"
            self._bases[wanted] = make_base(place, kind, size, number, is_faulty=is_faulty)
        return self._bases[wanted]

    def _damage(self, path: Path, base: FleetBase, number: int) -> None:
        """Damage an archive: a byte in its midst, all of its files, or there are none."""
        for file in base.files if number % 3 else base.files[1:2]:
            content = bytearray(file.read_bytes())
            content[len(content) // 2] ^= 0xFF
            (path / file.name).unlink()
            if number % 3 < 2:
                (path / file.name).write_bytes(b"overwritten" * 99 if number % 3 else content)
        (self.unreadable if number % 3 else self.torn).add(path.name)

    def grow(self) -> None:
        """Let each archive grow by what is left of it."""
        for path, base in self._rests:
            (path / base.rest.name).hardlink_to(base.rest)

    def describe(self) -> str:
        """Return what it is, in words."""
        return (
            f"{len(self.paths):,} archives of {len(KINDS)} kinds, {self.transactions:,} "
            f"transactions, copies of {len(self._bases)} drawn ones; {len(self.planted)} with a "
            f"planted fault, {len(self.torn)} damaged and {len(self.unreadable)} beyond reading"
        )


def read_rows(tables: Path) -> dict[str, list[str]]:
    """Return the rows of all tables, but for when they were written."""
    found: dict[str, list[str]] = {}
    for place in sorted(tables.iterdir()):
        if DeltaTable.is_deltatable(str(place)):
            rows: list[dict[str, Any]] = DeltaTable(place).to_pyarrow_table().to_pylist()
            found[place.name] = sorted(repr({**row, "run": None}) for row in rows)
    return found


def check(tables: Path, fleet: Fleet) -> None:
    """Stop where something planted was not found, or something else was, or was left out."""
    rows: dict[str, list[dict[str, Any]]] = {
        name: DeltaTable(tables / name).to_pyarrow_table().to_pylist()
        for name in ("archives", "incidents")
    }
    found = {(Path(row["archive"]).name, row["first_zxid"]) for row in rows["incidents"]}
    left_out = {Path(r["archive"]).name for r in rows["archives"] if r["verdict"] == "not judged"}
    torn = {Path(row["archive"]).name for row in rows["archives"] if row["damaged"]}
    for what, there, wanted in (
        ("found", found, fleet.planted),
        ("left out", left_out, fleet.unreadable),
        ("damaged", torn, fleet.torn),
    ):
        if there != wanted:
            raise SystemExit(
                f"{what}: {sorted(there - wanted)} too much, {sorted(wanted - there)} missing"
            )


def show(what: str, costs: list[Cost], first: float) -> Cost:
    """Print a row; return the medians."""
    cost = Cost(*map(statistics.median, zip(*costs, strict=True)))
    ratio = f"{first / cost.clock:.2f}" if first else "1"
    print(
        f"| {what} | {len(costs)} | {cost.clock:.1f} s | {ratio} | {cost.python:.1f} s "
        f"| {cost.java:.1f} s | {cost.peak_mb:,.0f} MB |",
        flush=True,
    )
    return cost


def estimate(whole: Cost, least: Cost, daily: float, archives: int) -> None:
    """Print what many clusters take on many cores, by what Spark took of the processor here.

    The driver works alone: it groups archives, takes in reports, and writes tables. `least` is what
    one archive took, and `daily` the part of the time that a day takes of which little is new.
    """
    head = max(0.0, whole.head - least.head) / archives
    each = (whole.python - whole.head + max(0.0, whole.java - least.java)) / archives
    times = least.clock, head * CLUSTERS, each * CLUSTERS / CORES
    print(
        f"\nOn paper, {CLUSTERS:,} such clusters on {CORES} cores: {times[0]:.0f} s to start Spark "
        f"and end it, {times[1]:,.0f} s of the driver alone ({1000 * head:.0f} ms a cluster), and "
        f"{times[2]:,.0f} s of judging ({each:.2f} s a cluster): {sum(times) / 60:.0f} minutes for "
        f"all there is. A day later, with one part in a hundred new, {daily:.0%} of that."
    )


def main() -> None:
    """Print the figures as a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--archives", type=int, default=60)
    parser.add_argument("--transactions", default="5k")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--minutes", type=float, default=120)
    given = parser.parse_args()
    deadline = time.perf_counter() + 60 * given.minutes
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, "logs")
        folder.mkdir()
        fleet = Fleet(folder, given.archives, parse_size(given.transactions))
        print(fleet.describe() + "\n", flush=True)

        def run(way: tuple[str, ...], tables: Path, paths: list[Path]) -> Cost:
            options = ["--members", "apart", "--tables", str(tables)]
            cost = measure([*way, *options, *map(str, paths)], deadline)
            if cost is None:
                raise SystemExit("time is up")
            return cost

        costs: list[list[Cost]] = [[] for _ in WAYS]
        rows = None
        for turn in range(given.rounds):
            for number, way in enumerate(WAYS):
                if turn and way == PLAIN:
                    continue
                tables = Path(scratch, f"{turn}-{number}")
                costs[number].append(run(way, tables, fleet.paths))
                check(tables, fleet)
                rows, before = read_rows(tables), rows
                if before not in (None, rows):
                    raise SystemExit("the rows differ")
                print(f"{' '.join(way)}: {costs[number][-1].clock:.1f} s", flush=True)
        print()
        print("| way | rounds | clock | times as fast | Python | Java | memory |")
        print("|---|---|---|---|---|---|---|")
        first = 0.0
        for way, spent in zip(WAYS, costs, strict=True):
            whole = show(f"`{' '.join(way)}`", spent, first)
            first = first or whole.clock
        both = statistics.median(each.clock for each in costs[1])
        kept = [Path(scratch, f"{turn}-1") for turn in range(given.rounds)]
        show("nothing new", [run(BOTH, tables, fleet.paths) for tables in kept], first)
        fleet.grow()
        grown = show("1 % new", [run(BOTH, tables, fleet.paths) for tables in kept], first)
        alone = [Path(scratch, f"{turn}-alone") for turn in range(given.rounds)]
        one = [run(TWO_CORES, tables, fleet.paths[:1]) for tables in alone]
        least = show("Spark with one archive", one, first)
    estimate(whole, least, grown.clock / both, given.archives)


if __name__ == "__main__":
    main()
