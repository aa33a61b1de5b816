"""What was proved before, kept by a digest of the code that it was proved of.

A proof depends on the text of the theorem's module and of every module of this project that it
imports, directly or not, on the engine, on the solver and on Python. A digest of all of that names
the file in which the records of a task are kept.

Only what was settled is kept; what the time was too short for is asked again.
"""

import ast
import functools
import hashlib
import json
import os
import platform
import re
import sys
import time
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from reassure_proofs.engine.register import find_modules, get_theorems
from reassure_proofs.engine.statement import Theorem, choose_readings
from reassure_proofs.engine.tasks import ProofTask

Record = dict[str, Any]

_OURS: Final = re.compile(r"reassure_\w+(\.\w+)*")
_ENGINE: Final = ("reassure_proofs.engine.tasks", "reassure_proofs.engine.prover")
"""Whatever is proved, these and what they import do it."""
_DAYS: Final = 30
"""What was not looked at for so long is removed."""


def find_folder() -> Path:
    """Return the folder of the user's in which proofs are kept."""
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "reassure" / "proofs"


class Cache:
    """Records of tasks in a folder, a file each; it may be deleted at any time.

    The code that counts is that of when the cache is first asked.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._digests: dict[str, str] = {}

    def get(self, task: ProofTask) -> list[Record] | None:
        """Return the records of a task, each with `cached`, None where none are kept."""
        path = self._path(task)
        try:
            records: list[Record] = json.loads(path.read_text(encoding="utf-8"))
            os.utime(path)
        except (OSError, ValueError):
            # What cannot be read is proved anew.
            return None
        return [{**record, "cached": True} for record in records]

    def put(self, task: ProofTask, records: Sequence[Record]) -> None:
        """Keep the records of a task, if nothing in them is unknown.

        A folder that cannot be written to keeps nothing.
        """
        if any(record.get("reason") for record in records):
            return
        path = self._path(task)
        part = path.with_suffix(f".{os.getpid()}")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            part.write_text(json.dumps(list(records)), encoding="utf-8")
            part.replace(path)
        except OSError:
            return

    def forget_old(self) -> None:
        """Remove what nobody asked for lately."""
        oldest = time.time() - _DAYS * 24 * 3600
        for path in self.folder.glob("*.json"):
            if path.stat().st_mtime < oldest:
                path.unlink(missing_ok=True)

    def _path(self, task: ProofTask) -> Path:
        asked = {name: value for name, value in task.to_json().items() if name != "seconds"}
        given = [self._digest(theorem) for theorem in get_theorems(task.theorems)]
        key = hashlib.sha256(json.dumps([asked, given]).encode()).hexdigest()
        return self.folder / f"{key[:40]}.json"

    def _digest(self, theorem: Theorem) -> tuple[str, ...]:
        home = _find_homes()[theorem.name]
        if home not in self._digests:
            self._digests[home] = digest_module(home)
        readings = choose_readings(theorem.profile, theorem.subject.changes).as_dict()
        return theorem.name, self._digests[home], repr(sorted(readings.items()))


def digest_module(home: str) -> str:
    """Return a digest of all that the proofs of a module's theorems depend on, as it is now."""
    found = hashlib.sha256(repr(_digest_tools()).encode())
    for name in sorted(_find_reached((*_ENGINE, home))):
        found.update(name.encode() + _read(name)[0])
    return found.hexdigest()


@functools.cache
def _digest_tools() -> tuple[str, ...]:
    return version("z3-solver"), platform.python_version(), platform.python_implementation()


@functools.cache
def _find_homes() -> dict[str, str]:
    """Return the module that states each theorem, by the theorem's name: the lowest there is."""
    roots = tuple(module.__name__ for module in find_modules())
    stated = [
        (theorem.name, name)
        for name, module in sys.modules.items()
        if name.startswith(roots)
        for theorem in (*_list(module, "THEOREMS"), *_list(module, "WITHOUT"))
    ]
    return dict(sorted(stated, key=lambda each: each[1].count(".")))


def _list(module: ModuleType, name: str) -> Sequence[Any]:
    found: Sequence[Any] = getattr(module, name, ())
    return found


@functools.cache
def _find_reached(names: tuple[str, ...]) -> frozenset[str]:
    """Return the modules of this project that these import, directly or not, and these."""
    reached: set[str] = set()
    queue = list(names)
    while queue:
        name = queue.pop()
        if name not in reached:
            reached.add(name)
            queue.extend(_read(name)[1])
    return frozenset(reached)


@functools.cache
def _read(name: str) -> tuple[bytes, tuple[str, ...]]:
    """Return a digest of a module's text, and the modules of this project that it names."""
    spec = find_spec(name)
    assert spec is not None and spec.origin is not None
    text = Path(spec.origin).read_bytes()
    named = {each for each in _name_modules(ast.parse(text)) if _OURS.fullmatch(each)}
    return hashlib.sha256(text).digest(), tuple(sorted(filter(_is_module, named)))


def _name_modules(tree: ast.Module) -> Iterator[str]:
    """Yield what may be a module: what is imported, anywhere, and any text that looks like it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
            yield from (f"{node.module}.{each.name}" for each in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


@functools.cache
def _is_module(name: str) -> bool:
    try:
        spec = find_spec(name)
    except ModuleNotFoundError:
        return False
    return spec is not None and spec.origin is not None
