"""Find ZooKeeper's own jars among those that PySpark ships.

Five of the few hundred jars in PySpark's installation make a complete ZooKeeper server.  They are
located, by name pattern, without importing PySpark, whose import costs far more than the server's
whole start.
"""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path

from reassure_zookeeper.errors import JarsError

SERVER_JARS = ("zookeeper", "zookeeper-jute", "slf4j-api", "metrics-core", "snappy-java")
"""What a server needs, by artifact name."""

TOOL_JARS = ("commons-cli",)
"""What ZooKeeper's own log and snapshot tools need besides."""


def server_jars(directory: Path | None = None) -> tuple[Path, ...]:
    """Return the jars of a ZooKeeper server, from `directory` or PySpark's installation.

    Raises `JarsError` when PySpark is not installed or a jar is missing or there twice.
    """
    return _find(SERVER_JARS, directory)


def tool_jars(directory: Path | None = None) -> tuple[Path, ...]:
    """Return the jars that run ZooKeeper's own command line tools; raises like `server_jars`."""
    return _find(SERVER_JARS + TOOL_JARS, directory)


def class_path(jars: tuple[Path, ...]) -> str:
    """Join jars into the value of Java's `-cp`."""
    return ":".join(map(str, jars))


def _find(artifacts: tuple[str, ...], directory: Path | None) -> tuple[Path, ...]:
    directory = _pyspark_jars() if directory is None else directory
    return tuple(_one_jar(directory, artifact) for artifact in artifacts)


@cache
def _pyspark_jars() -> Path:
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise JarsError(
            "PySpark, with which ZooKeeper's jars come, is not installed: "
            "pip install 'reassure[gate]'"
        )
    return Path(spec.origin).parent / "jars"


def _one_jar(directory: Path, artifact: str) -> Path:
    # The digit keeps "zookeeper" from matching "zookeeper-jute".
    found = sorted(directory.glob(f"{artifact}-[0-9]*.jar"))
    if len(found) == 1:
        return found[0]
    problem = "no" if not found else f"{len(found)} files named"
    raise JarsError(
        f"{directory} has {problem} {artifact}-VERSION.jar where exactly one is expected; "
        "reinstall the package pyspark"
    )
