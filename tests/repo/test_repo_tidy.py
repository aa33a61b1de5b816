"""House rules that no other tool checks."""

import ast
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
ROOMS = tuple(PROJECT["tool"]["hatch"]["build"]["dev-mode-dirs"])
MOST_LINES = 60
PURE = {"os", "time", "random", "threading", "logging", "socket", "datetime", "subprocess"}
TEXT = {".py", ".md", ".txt", ".toml", ".json", ".yml", ".yaml", ".cfg", ".lock", ""}


@cache
def tracked_files() -> tuple[Path, ...]:
    """Return every file that belongs to the project: tracked, or new and not ignored."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    paths = (ROOT / name for name in listed.stdout.splitlines())
    return tuple(path for path in paths if path.is_file())


def python_files(*folders: str) -> Iterator[tuple[Path, ast.Module]]:
    """Yield the Python files below these folders, parsed."""
    for path in tracked_files():
        if path.suffix == ".py" and path.relative_to(ROOT).parts[0] in folders:
            yield path, ast.parse(path.read_text(encoding="utf-8"))


def functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yield every function of a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def count_lines(function: ast.AST) -> int:
    """Return the lines of a function without those of functions and classes inside it."""
    inner = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    lines = (getattr(function, "end_lineno", 0) or 0) - getattr(function, "lineno", 0) + 1
    children = list(ast.iter_child_nodes(function))
    for node in children:
        if isinstance(node, inner):
            lines -= (node.end_lineno or 0) - node.lineno + 1
        else:
            children.extend(ast.iter_child_nodes(node))
    return lines


def test_no_function_is_too_long() -> None:
    """No function has more than 60 lines, decorators and functions inside it aside."""
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"
        for path, tree in python_files(*ROOMS)
        for node in functions(tree)
        if count_lines(node) > MOST_LINES
    ]
    assert found == []


def test_no_ambiguous_acronym_is_a_name() -> None:
    """The acronym with three meanings and its kin are nowhere names in the code."""
    banned = re.compile(
        r"^(?:o|r)?ar$|^(?:oar|rar|trs|ors)_|_(?:ar|oar|rar|trs|ors)$", re.IGNORECASE
    )
    found = []
    for path, tree in python_files(*ROOMS):
        for node in ast.walk(tree):
            name = getattr(node, "id", None) or getattr(node, "arg", None)
            name = name or getattr(node, "attr", None) or getattr(node, "name", None)
            if isinstance(name, str) and banned.search(name):
                found.append(f"{path.relative_to(ROOT)}: {name}")
    assert found == []


def test_modules_and_tests_say_what_they_are() -> None:
    """Each module with code and each test has a docstring, a test's in one sentence."""
    found = [
        str(path.relative_to(ROOT))
        for path, tree in python_files(*ROOMS, "tests", "benchmarks")
        if tree.body and ast.get_docstring(tree) is None
    ]
    for path, tree in python_files("tests"):
        for node in functions(tree):
            if not node.name.startswith("test_") or not path.name.startswith("test_"):
                continue
            docstring = ast.get_docstring(node)
            if docstring is None or not docstring.partition("\n\n")[0].endswith("."):
                found.append(f"{path.relative_to(ROOT)}:{node.lineno} {node.name}")
    assert found == []


def test_model_is_pure() -> None:
    """No module of the model imports a clock, randomness, threads, sockets or logging."""
    found = [
        f"{path.name}: {name}"
        for path, tree in python_files("model")
        for node in ast.walk(tree)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
        if name.partition(".")[0] in PURE
    ]
    assert found == []


def test_no_path_of_one_machine_and_no_loose_end() -> None:
    """No file names a folder of one machine or leaves a note of something still to be done."""
    loose = re.compile(r"(?<![\w.$])/(?:work|root|home/\w+)/|\b(?:TODO|FIXME|XXX)\b")
    found = []
    for path in tracked_files():
        if path.suffix in TEXT and path != Path(__file__):
            for number, line in enumerate(path.read_text("utf-8", "replace").splitlines(), 1):
                if loose.search(line):
                    found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()[:80]}")
    assert found == []


@pytest.mark.parametrize("suffix", [".py", ".md", ".txt", ".toml"])
def test_text_is_clean(suffix: str) -> None:
    """Text ends with one newline and has no trailing blanks, tabs or carriage returns."""
    found = []
    for path in tracked_files():
        if path.suffix != suffix:
            continue
        text = path.read_text(encoding="utf-8")
        if text and (not text.endswith("\n") or text.endswith("\n\n")):
            found.append(f"{path.relative_to(ROOT)}: end of file")
        if re.search(r"[ \t]+$|\t|\r", text, flags=re.MULTILINE):
            found.append(f"{path.relative_to(ROOT)}: blanks")
    assert found == []


def test_test_files_have_names_of_their_own() -> None:
    """No two test files have the same name, whatever their room."""
    names = [path.name for path in tracked_files() if path.name.startswith("test_")]
    assert sorted(names) == sorted(set(names))


SHARED = {
    "acts": "ordinary acts of a controller, in the model and in proofs",
    "compare": "two of a kind held side by side, models and rules",
    "conftest": "fixtures of the folder",
    "controllers": "who is controller, in the model and in proofs",
    "copies": "the copies of a partition",
    "drop": "the drop rule, in the model and in the controller",
    "errors": "the errors of a room",
    "explore": "the verb, and what carries it out",
    "insync": "who is in sync, in the model and in proofs",
    "judge": "the judge, and how fast it is",
    "leading": "what a leader does in its term, by the broker and for the judge",
    "lag": "how far a follower is behind, in the model and in proofs",
    "leader": "what a leader concludes of its followers, in the model and in proofs",
    "partition": "one partition: its records, and what brokers observed of it",
    "mutants": "what is planted, and the verb about it",
    "observations": "what brokers were seen to hold: its format, and how fast it is judged",
    "lifecycle": "the lives of what protocols are about, as tables and as pictures",
    "messages": "what brokers are told, by the controller and for the judge",
    "replication": "logs across elections, in the model and in proofs",
    "report": "the verb, and how fast its page opens",
    "selectors": "the leader selectors, in the model and in proofs",
    "situations": "what has to come up, of controllers and of brokers with logs",
    "sweep": "every reading settled otherwise, in exploration and in proofs",
    "tables": "the world `tables`, of the model and live",
    "znodes": "znodes, and the world about them",
}
"""What files of one name have in common, where it is neither a protocol nor a part of each."""
PARTS = {
    "__init__",
    "__main__",
    "guarantees",
    "invariants",
    "live",
    "machine",
    "monitor",
    "narration",
    "properties",
    "rules",
    "scopes",
    "stages",
    "tales",
    "world",
    "writes",
}
"""What every protocol, or every room, may have."""


def find_names_twice(paths: Iterable[Path]) -> Iterator[str]:
    """Yield the names of several files that nothing says to be about the same."""
    found: dict[str, list[Path]] = {}
    for path in paths:
        found.setdefault(path.stem, []).append(path)
    protocols = {path.name for path in (ROOT / "model/reassure_model/protocols").iterdir()}
    for name, places in found.items():
        if len(places) > 1 and name not in protocols | PARTS | set(SHARED):
            yield name


def test_no_file_name_has_two_meanings() -> None:
    """Files of one name are about the same: a protocol, a part of each, or what is said of them."""
    paths = [path for path in tracked_files() if path.suffix == ".py"]
    assert list(find_names_twice(paths)) == []
    stems = [path.stem for path in paths]
    assert [name for name in SHARED if stems.count(name) < 2] == []
    assert list(find_names_twice([*paths, Path("elsewhere/evidence.py")])) == ["evidence"]


TESTS = """
import pytest

@pytest.mark.slow
def test_slow():
    pass

@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", range(7))
def test_case(case):
    assert case % 3 == 0
"""


def test_slow_tests_that_are_left_out_are_counted(tmp_path: Path) -> None:
    """A run without the slow tests says how many it left out, and CI leaves none out."""
    shutil.copy(ROOT / "tests" / "conftest.py", tmp_path)
    (tmp_path / "test_two.py").write_text(TESTS, encoding="utf-8")
    quick = ("-q", "-n", "1", "-m", "not slow", "-p", "no:cacheprovider")
    told = subprocess.run(
        [sys.executable, "-m", "pytest", "-c", str(ROOT / "pyproject.toml"), *quick, str(tmp_path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert "3 passed" in told.stdout
    assert "5 slow tests were left out; `make test-all` runs them too" in told.stdout
    assert "make test-all\n" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
