"""Find the jars of a ZooKeeper server.

Three places are asked, in this order: the package `reassure_zookeeper_jars`, PySpark's
installation, and the folder that `REASSURE_ZOOKEEPER_JARS` names.  The first that is there is used
or complained about.  Packages are located without being imported: importing PySpark costs far more
than the server's whole start.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from reassure_zookeeper.errors import JarsError

SERVER_JARS: Final = ("zookeeper", "zookeeper-jute", "slf4j-api", "metrics-core", "snappy-java")
"""What a server needs, by artifact name."""

FOLDER: Final = "REASSURE_ZOOKEEPER_JARS"
"""The environment variable that names a folder with the jars."""

_PACKAGES: Final = {"reassure_zookeeper_jars": "", "pyspark": "jars"}
"""By package, its folder of jars."""


def server_jars(env: Mapping[str, str] | None = None) -> tuple[Path, ...]:
    """Return the jars of a ZooKeeper server.

    `env` stands in for the process environment.  Raises `JarsError` when no place has jars, or when
    a jar is missing or there twice in the first place that is there.
    """
    folder, remedy = _find_folder(os.environ if env is None else env)
    return tuple(_find_jar(folder, artifact, remedy) for artifact in SERVER_JARS)


def class_path(jars: tuple[Path, ...]) -> str:
    """Join jars into the value of Java's `-cp`."""
    return ":".join(map(str, jars))


def _find_folder(env: Mapping[str, str]) -> tuple[Path, str]:
    """Return the folder to look in, and what to do where it lacks a jar."""
    for package, folder in _PACKAGES.items():
        spec = importlib.util.find_spec(package)
        if spec is not None and spec.origin is not None:
            name = package.replace("_", "-")
            return Path(spec.origin).parent / folder, f"reinstall the package {name}"
    if named := env.get(FOLDER):
        return Path(named), f"put it there, or name another folder in {FOLDER}"
    raise JarsError(
        "no jars of ZooKeeper are installed: install the package reassure-zookeeper-jars, which "
        "the folder jars of a checkout of reassure builds (pip install ./jars), or PySpark, which "
        f"has them too (pip install 'reassure[spark]'), or name a folder with them in {FOLDER}"
    )


def _find_jar(folder: Path, artifact: str, remedy: str) -> Path:
    # The digit keeps "zookeeper" from matching "zookeeper-jute".
    found = sorted(folder.glob(f"{artifact}-[0-9]*.jar"))
    if len(found) == 1:
        return found[0]
    problem = "no" if not found else f"{len(found)} files named"
    raise JarsError(
        f"{folder} has {problem} {artifact}-VERSION.jar where exactly one is expected; {remedy}"
    )
