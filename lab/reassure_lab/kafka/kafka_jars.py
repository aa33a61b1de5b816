"""The jars of a version of Apache Kafka: a directory that somebody names, a cache, or Maven's work.

Maven follows the dependencies that a release names. Where a release cannot be run on today's Java
as it is, other dependencies take the place of some.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from reassure_conformance.adapter import BadConnectable
from reassure_conformance.supervise import note_alive
from reassure_spec.errors import Unavailable

Version = tuple[int, ...]
JARS: Final = "KAFKA_JARS"
HOME: Final = "KAFKA_HOME"
_PLUGIN: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
_LOOK_S: Final = 1.0
_FIRST: Final = (0, 8)
_LAST: Final = (3, 9)
"""The releases that have a controller in ZooKeeper."""
_SCALA: Final = (((2, 4), "2.13"), ((0, 10), "2.11"), ((0, 8), "2.10"))
"""From which release on which build is taken."""
_XML: Final = (1, 0)
"""Before this release Kafka takes from Java what Java 11 has no more."""
_ADDRESSES: Final[dict[Version, str]] = {(2, minor): "3.4.10" for minor in range(4)}
"""The client of ZooKeeper that finds its server on Java 14 and later, where the release's does not
(ZOOKEEPER-3779)."""


class NoJars(Unavailable):
    """The jars of a version cannot be had."""


def parse_version(text: str) -> Version:
    """Return a version as numbers. Raises BadConnectable for none that has ZooKeeper."""
    parts = text.split(".")
    if not re.fullmatch(r"\d+(\.\d+){2,3}", text):
        raise BadConnectable(f"{text!r} is no version of Kafka; write one such as kafka:3.9.1")
    version = tuple(map(int, parts))
    if not _FIRST <= version[:2] <= _LAST:
        raise BadConnectable(
            f"Kafka {text} has no controller in ZooKeeper; expected 0.8.0 to 3.9; name one of these"
        )
    return version


def find_jars(text: str, named: str = "") -> Path:
    """Return the directory with the jars of a version, having them fetched where there is none.

    `named` is the directory that somebody names for it. Raises BadConnectable for one that has
    another version, NoJars where none can be had.
    """
    version, passed = parse_version(text), []
    for where, folder in _list_places(named):
        if _holds(folder, text):
            return folder
        passed.append(f"{where} {folder}")
        if where == "directory":
            raise BadConnectable(
                f"{folder} has no kafka_SCALA-{text}.jar; expected the jars of Kafka {text}, or a "
                "directory with libs that has them; name the directory of that version"
            )
    cache = _find_cache() / text
    if not _holds(cache, text):
        _fetch(version, text, cache, passed)
    return cache


def _list_places(named: str) -> Iterator[tuple[str, Path]]:
    """Yield where jars may be: what stands in a home is below its libs."""
    for where, value in (
        ("directory", named),
        (JARS, os.environ.get(JARS, "")),
        (HOME, os.environ.get(HOME, "")),
    ):
        if value:
            folder = Path(value)
            yield where, folder / "libs" if (folder / "libs").is_dir() else folder


def _holds(folder: Path, text: str) -> bool:
    return any(folder.glob(f"kafka_*-{text}.jar"))


def _find_cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "reassure" / "kafka"


def _fetch(version: Version, text: str, cache: Path, passed: list[str]) -> None:
    """Have Maven copy the jars into the cache, all of them or none. Raises NoJars."""
    missing = f"there are no jars of Kafka {text}"
    looked = "".join(f"; not in {each}" for each in passed)
    hint = f"name a directory with them: kafka:{text}?home=DIRECTORY, {JARS} or {HOME}"
    maven = shutil.which("mvn")
    if maven is None:
        raise NoJars(f"{missing}{looked}, and no mvn to fetch them; install Maven, or {hint}")
    cache.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache.parent, prefix=f".{text}-") as folder:
        made = Path(folder)
        (made / "pom.xml").write_text(_make_pom(version, text), encoding="utf-8")
        command = (maven, "-q", "-B", _PLUGIN, "-DoutputDirectory=jars", "-DincludeScope=runtime")
        with (made / "said").open("w+", encoding="utf-8", errors="replace") as said:
            process = subprocess.Popen(command, cwd=made, stdout=said, stderr=said)
            try:
                while process.poll() is None:
                    note_alive()
                    _wait(process)
            finally:
                process.kill()
                process.wait()
            said.seek(0)
            lines = [line.strip() for line in said if "ERROR" in line][:3]
        if process.returncode or not _holds(made / "jars", text):
            why = "; ".join(lines) or f"it ended with {process.returncode}"
            raise NoJars(f"{missing}{looked}, and Maven could not fetch them: {why}; {hint}")
        if not _holds(cache, text):
            (made / "jars").replace(cache)


def _wait(process: "subprocess.Popen[bytes]") -> None:
    try:
        process.wait(_LOOK_S)
    except subprocess.TimeoutExpired:
        return


def _make_pom(version: Version, text: str) -> str:
    """Return what to depend on; all log by the one library that Kafka's own classes name."""
    scala = next(build for since, build in _SCALA if version >= since)
    others = [("log4j", "log4j"), ("org.slf4j", "slf4j-log4j12"), ("org.slf4j", "slf4j-simple")]
    needs = [("ch.qos.reload4j", "reload4j", "1.2.25"), ("org.slf4j", "slf4j-reload4j", "1.7.36")]
    if version < _XML:
        needs.append(("javax.xml.bind", "jaxb-api", "2.3.1"))
    client = _ADDRESSES.get(version[:2])
    if client is not None:
        others.append(("org.apache.zookeeper", "zookeeper"))
        needs.append(("org.apache.zookeeper", "zookeeper", client))
    left_out = "".join(f"<exclusion>{_name(*each)}</exclusion>" for each in others)
    excluded = f"<exclusions>{left_out}</exclusions>"
    kafka = f"{_name('org.apache.kafka', f'kafka_{scala}')}<version>{text}</version>{excluded}"
    more = (
        f"{_name(group, name)}<version>{release}</version>"
        + ("" if name != "zookeeper" else f"<exclusions>{''.join(_EXCLUDED)}</exclusions>")
        for group, name, release in needs
    )
    depends = "".join(f"<dependency>{each}</dependency>" for each in (kafka, *more))
    own = f"<modelVersion>4.0.0</modelVersion>{_name('reassure', 'kafka')}<version>1</version>"
    return f"<project>{own}<dependencies>{depends}</dependencies></project>"


def _name(group: str, artifact: str) -> str:
    return f"<groupId>{group}</groupId><artifactId>{artifact}</artifactId>"


_EXCLUDED: Final = tuple(
    f"<exclusion>{_name(*each)}</exclusion>"
    for each in (("log4j", "log4j"), ("org.slf4j", "slf4j-log4j12"))
)


if __name__ == "__main__":
    for each in sys.argv[1:]:
        sys.stdout.write(f"{find_jars(each)}\n")
