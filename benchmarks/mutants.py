"""Which small mistakes in model, judge and symbolic executor are noticed, and by what.

Plants one mistake at a time (a comparison turned, a condition made constant, an operand, a filter
or a statement left out, a number off by one) in a copy of the sources and runs the stages of its
room, quickest first, until one of them fails. What no stage notices is printed as a diff: it is
either equivalent, which somebody has to say with a reason, or a hole in the checks.

    python benchmarks/mutants.py [--seed N] [--sample ROOM=N …] [--again FILE] [--tests] [--jobs N]
                                 [--out FILE]

Results are added to FILE, one JSON object a line, and mutants that stand there are not run again.
With `--again` what survived in another such file is planted once more, as far as the sources still
hold the place; with `--tests` proofs and gate are left out, which take most of a survivor's time.
"""

import argparse
import ast
import difflib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
PACKAGES: Final = [
    "spec",
    "zookeeper",
    "model",
    "proofs",
    "explorer",
    "judge",
    "controller",
    "pipeline",
    "conformance",
    "lab",
]
ROOMS: Final = {
    "model": ["model/reassure_model/**/*.py"],
    "judge": ["judge/reassure_judge/*.py"],
    "symex": [
        f"proofs/reassure_proofs/engine/{name}.py"
        for name in ("symex", "symbols", "dialect", "containers")
    ],
}
PYTHON: Final = Path(sys.executable)
PYTEST: Final = f"{PYTHON} -m pytest -q -x -p no:cacheprovider"
REASSURE: Final = f"{PYTHON.with_name('reassure')}"
GATE: Final = f"{REASSURE} run --examples 120 --seed 7"
STAGES: Final = {
    "model": [
        ("judge tests", f"{PYTEST} tests/judge"),
        ("model tests", f"{PYTEST} tests/model"),
        ("finding tests", f"{PYTEST} tests/explorer/test_explorer_findings.py"),
        ("scenarios", f"{PYTEST} tests/scenario --ignore tests/scenario/test_scenario_live.py"),
        ("proofs", f"{REASSURE} prove"),
        ("gate", GATE),
    ],
    "judge": [
        ("judge tests", f"{PYTEST} tests/judge"),
        ("pipeline tests", f"{PYTEST} tests/pipeline --ignore tests/pipeline/test_audit_spark.py"),
        ("gate", GATE),
    ],
    "symex": [
        ("executor tests", f"{PYTEST} tests/proofs/test_proofs_symex.py"),
        ("dialect tests", f"{PYTEST} tests/proofs/test_proofs_dialect.py"),
        ("candidate tests", f"{PYTEST} tests/proofs/test_proofs_candidate.py"),
        ("fuzz tests", f"{PYTEST} tests/proofs/test_proofs_fuzz.py"),
        ("proofs", f"{REASSURE} prove"),
    ],
}
"""Commands of each room; the first that does not exit with 0 has noticed."""
NO_TESTS: Final = ("proofs", "gate")
CPU_S: Final = 200
"""How many seconds of computing a stage may take: what never ends is a mistake that was noticed."""
_COMPARISONS: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_OPERATORS: Final[dict[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
_NAMES: Final = {"any": "all", "all": "any", "min": "max", "max": "min"}


@dataclass(frozen=True, slots=True)
class Mutant:
    """One mistake: a stretch of one file's text, and what stands there instead."""

    room: str
    path: str
    line: int
    start: int
    end: int
    text: str

    @property
    def key(self) -> str:
        """A name that stays the same as long as the file does."""
        return f"{self.path}:{self.line}:{self.start}:{self.text}"


class _Finder(ast.NodeVisitor):
    """Collects the places of one file where a mistake can be made, with the text of each."""

    def __init__(self, source: str) -> None:
        self.found: list[tuple[int, int, int, str]] = []
        self._starts = [0]
        for line in source.encode().splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))

    def _add(self, node: ast.expr | ast.stmt, text: str) -> None:
        assert node.end_lineno is not None and node.end_col_offset is not None
        start = self._starts[node.lineno - 1] + node.col_offset
        end = self._starts[node.end_lineno - 1] + node.end_col_offset
        self.found.append((node.lineno, start, end, text))

    def _replace(self, node: ast.expr, other: ast.expr) -> None:
        self._add(node, f"({ast.unparse(other)})")

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """Look at what a function does, not at its decorators and annotations."""
        for statement in node.body:
            self.visit(statement)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """Look at the methods of a class."""
        for statement in node.body:
            if isinstance(statement, ast.FunctionDef):
                self.visit(statement)

    def visit_Assert(self, node: ast.Assert) -> None:
        """Leave assertions alone: they tell the type checker what is so."""

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """Look at the value of an annotated assignment only."""
        if node.value is not None:
            self.visit(node.value)

    def visit_Expr(self, node: ast.Expr) -> None:
        """Leave a call that is a statement out; docstrings stay."""
        if isinstance(node.value, ast.Call):
            self._add(node, "pass")
            self.visit(node.value)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        """Leave an addition to a variable out."""
        self._add(node, "pass")
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        """Make a condition constant."""
        self._add(node.test, "False")
        self._add(node.test, "True")
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        """Take always the one or always the other side."""
        self._replace(node, node.body)
        self._replace(node, node.orelse)
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        """Turn the first comparison round, or move its border."""
        other = _COMPARISONS.get(type(node.ops[0]))
        if other is not None:
            self._replace(node, ast.Compare(node.left, [other(), *node.ops[1:]], node.comparators))
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        """Take `or` for `and`, or leave one operand out."""
        swapped = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        self._replace(node, ast.BoolOp(swapped, node.values))
        for index in range(len(node.values)):
            rest = [*node.values[:index], *node.values[index + 1 :]]
            self._replace(node, rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest))
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        """Forget a `not`."""
        if isinstance(node.op, ast.Not):
            self._replace(node, node.operand)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        """Take another operator."""
        other = _OPERATORS.get(type(node.op))
        if other is not None:
            self._replace(node, ast.BinOp(node.left, other(), node.right))
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        """Turn a truth value round, put a number off by one."""
        if isinstance(node.value, bool):
            self._replace(node, ast.Constant(not node.value))
        elif isinstance(node.value, int):
            self._replace(node, ast.Constant(node.value + 1))

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Leave messages alone."""

    def visit_Call(self, node: ast.Call) -> None:
        """Take `all` for `any`, `max` for `min`."""
        if isinstance(node.func, ast.Name) and node.func.id in _NAMES:
            self._replace(node, ast.Call(ast.Name(_NAMES[node.func.id]), node.args, node.keywords))
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        """Let everything through a filter."""
        for condition in node.ifs:
            self._add(condition, "True")
        self.generic_visit(node)


def find_mutants(room: str) -> Iterator[Mutant]:
    """Yield every mutant of a room."""
    for pattern in ROOMS[room]:
        for path in sorted(ROOT.glob(pattern)):
            source = path.read_text("utf-8")
            finder = _Finder(source)
            finder.visit(ast.parse(source))
            for line, start, end, text in finder.found:
                yield Mutant(room, str(path.relative_to(ROOT)), line, start, end, text)


def find_again(rows: list[dict[str, str]]) -> Iterator[Mutant]:
    """Yield the mutants that survived, wherever they stand now; print those that stand nowhere."""

    def strip(difference: str) -> list[str]:
        return [line for line in difference.splitlines() if not line.startswith("@@")]

    left = [(row["key"], row["room"], strip(row["diff"])) for row in rows if row["noticed"] is None]
    for room in dict.fromkeys(row_room for _, row_room, _ in left):
        for mutant in find_mutants(room):
            name = f"--- {mutant.path}"
            here = [each for each in left if each[2][0] == name]
            if not here:
                continue
            difference = strip(describe(mutant, change(mutant)))
            for each in here:
                if each[2] == difference:
                    left.remove(each)
                    yield mutant
                    break
    for key, _, _ in left:
        print(f"no longer there: {key}")


def change(mutant: Mutant) -> bytes:
    """Return the file with the mistake in it."""
    before = (ROOT / mutant.path).read_bytes()
    return before[: mutant.start] + mutant.text.encode() + before[mutant.end :]


def describe(mutant: Mutant, after: bytes) -> str:
    """Return the difference that the mistake makes, as text."""
    before = (ROOT / mutant.path).read_bytes()
    lines = (text.decode().splitlines() for text in (before, after))
    return "\n".join(difflib.unified_diff(*lines, mutant.path, mutant.path, lineterm="", n=2))


def list_stages(room: str, path: str, *, tests: bool) -> list[tuple[str, str]]:
    """Return the commands of a room, the tests that are named after the mutated file first."""
    stem = Path(path).stem
    name = "proofs" if room == "symex" else room
    own = sorted((ROOT / "tests" / name).glob(f"test_{name}_{stem}*.py")) if stem else []
    names = " ".join(str(file.relative_to(ROOT)) for file in own)
    first = [("own tests", f"{PYTEST} {names}")] if own else []
    return first + [each for each in STAGES[room] if not (tests and each[0] in NO_TESTS)]


def run_stages(stages: list[tuple[str, str]], folder: Path) -> str | None:
    """Return the first stage that fails in the copy, None where all pass."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(str(folder / package) for package in PACKAGES),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    for stage, command in stages:
        code = subprocess.run(
            ["sh", "-c", f"ulimit -t {CPU_S}; exec {command}"],
            cwd=folder,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        ).returncode
        if code != 0:
            return f"{stage}, out of time" if code == -signal.SIGKILL else stage
    return None


def judge(mutant: Mutant, folder: Path, *, tests: bool) -> dict[str, object]:
    """Say which stage notices the mutant, if any."""
    after = change(mutant)
    (folder / mutant.path).write_bytes(after)
    try:
        noticed = run_stages(list_stages(mutant.room, mutant.path, tests=tests), folder)
    finally:
        shutil.copyfile(ROOT / mutant.path, folder / mutant.path)
    return {
        "key": mutant.key,
        "room": mutant.room,
        "noticed": noticed,
        "diff": describe(mutant, after),
    }


def copy_sources(folder: Path) -> None:
    """Copy what the stages need, without environments and caches."""
    ignore = shutil.ignore_patterns(".git", ".venv", "__pycache__", "build", "runs", ".*_cache")
    shutil.copytree(ROOT, folder, ignore=ignore, dirs_exist_ok=True)


def read_rows(path: Path) -> list[dict[str, str]]:
    """Return the results in a file, none where there is no such file."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def choose(options: argparse.Namespace) -> list[Mutant]:
    """Return the mutants to plant: a sample of each room, or what survived before."""
    if options.again is not None:
        return list(find_again(read_rows(options.again)))
    sample: list[Mutant] = []
    for wish in options.sample:
        room, _, count = wish.partition("=")
        every = list(find_mutants(room))
        sample += random.Random(options.seed).sample(every, min(int(count), len(every)))
        print(f"{room}: {count} of {len(every)} mutants")
    return sample


def main() -> int:
    """Run the sample; print who noticed how many, and what nobody noticed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sample", nargs="*", default=["model=75", "judge=40", "symex=40"])
    parser.add_argument("--again", type=Path)
    parser.add_argument("--tests", action="store_true")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("build/mutants.jsonl"))
    options = parser.parse_args()
    sample = choose(options)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    known: dict[str, dict[str, object]] = {row["key"]: {**row} for row in read_rows(options.out)}
    folders: SimpleQueue[Path] = SimpleQueue()
    with tempfile.TemporaryDirectory(prefix="mutants-") as scratch:
        for number in range(options.jobs):
            folder = Path(scratch) / str(number)
            copy_sources(folder)
            folders.put(folder)

        def run(mutant: Mutant) -> dict[str, object]:
            folder = folders.get()
            try:
                return judge(mutant, folder, tests=options.tests)
            finally:
                folders.put(folder)

        todo = [mutant for mutant in sample if mutant.key not in known]
        for room in sorted({mutant.room for mutant in todo}):
            failing = run_stages(list_stages(room, "", tests=options.tests), Path(scratch) / "0")
            if failing is not None:
                print(f"{room}: {failing} fails without any mistake; nothing can be learned")
                return 1
        with (
            ThreadPoolExecutor(options.jobs) as pool,
            options.out.open("a", encoding="utf-8") as out,
        ):
            for done, row in enumerate(pool.map(run, todo), 1):
                known[str(row["key"])] = row
                out.write(json.dumps(row) + "\n")
                out.flush()
                print(
                    f"{done}/{len(todo)} {row['noticed'] or 'SURVIVED'}: {row['key']}", flush=True
                )
    rows = [known[mutant.key] for mutant in sample]
    for room in dict.fromkeys(str(row["room"]) for row in rows):
        stages = Counter(row["noticed"] or "survived" for row in rows if row["room"] == room)
        print(f"{room}: " + ", ".join(f"{stage} {n}" for stage, n in stages.most_common()))
    for row in rows:
        if row["noticed"] is None:
            print(f"\nsurvived:\n{row['diff']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
