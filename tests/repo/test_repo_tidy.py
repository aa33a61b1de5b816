"""House rules that no other tool checks."""

import ast
import re
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
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


@cache
def parse(path: Path) -> ast.Module:
    """Return the tree of a Python file, which several rules look at."""
    return ast.parse(path.read_text(encoding="utf-8"))


def list_paths(*folders: str) -> list[Path]:
    """Return the Python files below these folders."""
    paths = (path for path in tracked_files() if path.suffix == ".py")
    return [path for path in paths if path.relative_to(ROOT).parts[0] in folders]


def python_files(*folders: str) -> Iterator[tuple[Path, ast.Module]]:
    """Yield the Python files below these folders, parsed."""
    yield from ((path, parse(path)) for path in list_paths(*folders))


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


def compare_with_list(found: Iterable[str], name: str) -> None:
    """See that what still breaks a rule is what a list has, which may only become shorter."""
    found, path = set(found), Path(__file__).parent / name
    listed = path.read_text(encoding="utf-8").splitlines()
    assert sorted(found - set(listed)) == [], "this is new"
    assert sorted(set(listed) - found) == [], f"take this off {name}"
    assert sorted(set(listed)) == listed


MOST_LINES_OF_A_MODULE = 500


def test_no_module_is_too_long() -> None:
    """No production module has more than 500 lines."""
    long = [
        path.relative_to(ROOT).as_posix()
        for path in list_paths(*ROOMS)
        if len(path.read_text(encoding="utf-8").splitlines()) > MOST_LINES_OF_A_MODULE
    ]
    assert long == []


APART = ("controller/", "lab/reassure_lab/wire/")
"""What says independently what model and judge say, and may not see these."""


def find_classes_twice(modules: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield the names of classes that are defined twice on one side of what may not see another."""
    found = Counter(
        (name, path.startswith(APART))
        for path, text in modules
        for name in re.findall(r"^ *class (\w+)[(:]", text, re.MULTILINE)
    )
    yield from (name for (name, _), times in found.items() if times > 1)


def test_no_class_name_is_defined_twice() -> None:
    """A name is one class, or one of the controller and one of the model: but for a list."""
    modules = [
        (str(path.relative_to(ROOT)), path.read_text("utf-8")) for path in list_paths(*ROOMS)
    ]
    compare_with_list(find_classes_twice(modules), "classes_allowed.txt")
    one = "class Move: ..."
    assert list(find_classes_twice([("controller/a.py", one), ("model/a.py", one)])) == []
    assert list(find_classes_twice([("judge/a.py", one), ("model/a.py", one)])) == ["Move"]


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


PARTS = {
    "__init__",
    "__main__",
    "counterexamples",
    "coverage_goals",
    "guarantees",
    "invariants",
    "machine",
    "monitor",
    "narration",
    "properties",
    "router",
    "requirements",
    "rules",
    "scopes",
    "stages",
    "tracker",
    "world",
    "writes",
}
"""What every protocol, or every room, may have."""


def find_names_twice(paths: Iterable[Path]) -> Iterator[str]:
    """Yield the names of several files, but for what every protocol or every room may have."""
    protocols = {path.name for path in (ROOT / "model/reassure_model/protocols").iterdir()}
    found = Counter(path.stem for path in paths)
    yield from (n for n, times in found.items() if times > 1 and n not in protocols | PARTS)


def test_no_file_name_has_two_meanings() -> None:
    """A file has a name of its own; `file_names_allowed.txt` lists those about the same thing."""
    paths = [path for path in tracked_files() if path.suffix == ".py"]
    compare_with_list(find_names_twice(paths), "file_names_allowed.txt")
    assert "evidence" in find_names_twice([*paths, Path("elsewhere/evidence.py")])


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
