"""The package of ZooKeeper's jars: what it is pinned to, how it is built, and the image with it."""

import hashlib
import importlib.util
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
import xml.etree.ElementTree as Xml
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from reassure_zookeeper.jars import FOLDER, SERVER_JARS

ROOT = Path(__file__).parents[2]
JARS = ROOT / "jars"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
NAME = tomllib.loads((JARS / "pyproject.toml").read_text(encoding="utf-8"))["project"]["name"]
SUMS = dict(
    reversed(line.split("  "))
    for line in (JARS / "SHA256SUMS").read_text(encoding="ascii").splitlines()
)
"""The pinned sum of each jar, by its file's name."""

OUT_OF_REACH = re.compile(r"Could not transfer|No plugin found|Maven did not end")
"""What Maven says where it does not reach Maven Central; a name it does not know is our mistake."""


def build(out: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Build the wheel into a folder, with these variables instead of ours."""
    ours = {name: text for name, text in os.environ.items() if name != FOLDER}
    return subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--wheel", "-o", str(out), str(JARS)],
        env={**ours, **env},
        capture_output=True,
        text=True,
        timeout=900,
    )


def check_wheel(out: Path) -> None:
    """Check that the one wheel of a folder holds exactly the jars with their sums, and licences."""
    (built,) = out.iterdir()
    with zipfile.ZipFile(built) as wheel:
        files = {name: wheel.read(name) for name in wheel.namelist()}
    package = NAME.replace("-", "_")
    sums = {
        name.removeprefix(f"{package}/"): hashlib.sha256(content).hexdigest()
        for name, content in files.items()
        if name.startswith(f"{package}/")
    }
    assert sums.pop("__init__.py")
    assert sums == SUMS
    licences = {path.name for path in (JARS / "licenses").iterdir()}
    assert licences == {Path(name).name for name in files if "/licenses/" in name}


@pytest.fixture(scope="module")
def spark_jars() -> Path:
    """The folder of PySpark's jars, where these are of the pinned versions."""
    spec = importlib.util.find_spec("pyspark")
    assert spec is not None and spec.origin is not None
    folder = Path(spec.origin).parent / "jars"
    if not all((folder / name).is_file() for name in SUMS):
        pytest.skip(f"{folder} has other versions than {', '.join(SUMS)}")
    return folder


def test_sums_are_of_what_a_server_needs() -> None:
    """There is one well-formed sum for each jar that a server needs, and none besides."""
    assert [re.sub(r"-\d[\d.]*\.jar$", "", name) for name in SUMS] == list(SERVER_JARS)
    assert all(re.fullmatch(r"[0-9a-f]{64}", each) for each in SUMS.values())
    assert len(set(SUMS.values())) == len(SUMS)


def test_maven_is_asked_for_what_has_a_sum() -> None:
    """The items of `pom.xml` are the files of `SHA256SUMS`."""
    pom = Xml.parse(JARS / "pom.xml")
    items = pom.iterfind(".//{*}artifactItem")
    named = [f"{e.findtext('{*}artifactId')}-{e.findtext('{*}version')}.jar" for e in items]
    assert named == list(SUMS)


def test_each_jar_has_a_licence() -> None:
    """The notice says of every jar what it is licensed under, and names no missing file."""
    notice = (JARS / "licenses" / "NOTICE.txt").read_text(encoding="utf-8")
    heads = [line for line in notice.splitlines() if re.match(r"[a-z0-9-]+[,:]", line)]
    for artifact in SERVER_JARS:
        assert any(artifact in re.split(r"[,:] ?", line) for line in heads), artifact
    for name in re.findall(r"LICENSE-[\w.-]+\.txt", notice):
        assert (JARS / "licenses" / name).is_file(), name
    own = (JARS / "licenses" / "LICENSE-Apache-2.0.txt").read_bytes()
    assert own == (ROOT / "LICENSE").read_bytes()


def test_no_jar_is_in_the_repository() -> None:
    """Jars are fetched, never committed."""
    if not (ROOT / ".git").exists():
        pytest.skip("needs a checkout")
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "*.jar"], check=True, capture_output=True, text=True
    )
    assert listed.stdout == ""


def test_wheel_is_built_from_a_folder(spark_jars: Path, tmp_path: Path) -> None:
    """Without Maven the jars come from the folder that is named, and none is left in the tree."""
    done = build(tmp_path, PATH="", **{FOLDER: str(spark_jars)})
    assert done.returncode == 0, done.stderr
    check_wheel(tmp_path)
    assert [*JARS.rglob("*.jar")] == []


@pytest.mark.slow
def test_wheel_is_built_from_maven_central(tmp_path: Path) -> None:
    """Maven copies the same jars from Maven Central."""
    if shutil.which("mvn") is None:
        pytest.skip("needs Maven")
    done = build(tmp_path)
    if done.returncode and OUT_OF_REACH.search(done.stdout + done.stderr):
        pytest.skip(f"needs Maven Central: {(done.stdout + done.stderr).strip()[-300:]}")
    assert done.returncode == 0, done.stdout + done.stderr
    check_wheel(tmp_path)


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ("other", "snappy-java-1.1.10.8.jar has the SHA-256 sum .*, expected 50485d.* do not use"),
        ("missing", "has no snappy-java-1.1.10.8.jar, which SHA256SUMS lists; mend that, or name"),
        ("no maven", f"Maven .* is not on PATH; mend that, or name a folder in {FOLDER}"),
        ("no network", r"Maven could not copy .*\(\[ERROR\] no net\); mend that, or name a folder"),
    ],
)
def test_build_without_a_right_jar_ends_in_one_line(
    damage: str, said: str, spark_jars: Path, tmp_path: Path
) -> None:
    """A jar that is another one or missing, no Maven, or no network: a line, and no wheel."""
    folder, out = tmp_path / "folder", tmp_path / "out"
    folder.mkdir()
    for name in SUMS:
        shutil.copyfile(spark_jars / name, folder / name)
    jar = folder / "snappy-java-1.1.10.8.jar"
    env = {FOLDER: str(folder)}
    if damage == "other":
        jar.write_bytes(jar.read_bytes() + b"x")
    elif damage == "missing":
        jar.unlink()
    else:
        env = {"PATH": str(tmp_path / "bin")}
        (tmp_path / "bin").mkdir()
        if damage == "no network":
            maven = tmp_path / "bin" / "mvn"
            maven.write_text("#!/bin/sh\necho '[ERROR] no net'\necho '[ERROR] more'\nexit 1\n")
            maven.chmod(0o755)
    done = build(out, **env)
    assert done.returncode == 1
    found = [line for line in (done.stdout + done.stderr).splitlines() if re.search(said, line)]
    assert len(found) == 1, done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert not out.exists() or not [*out.iterdir()]


def read_image() -> list[tuple[str, str]]:
    """Return the instructions of the Dockerfile, each as its word and the rest of its line."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in lines)]


def fill(text: str, values: Mapping[str, str]) -> str:
    """Put the values of arguments in their places."""
    return re.sub(r"\$\{?(\w+)\}?", lambda found: values[found[1]], text)


def test_image_is_made_of_what_there_is() -> None:
    """The image has a Python that is promised, both packages, extras that exist and our command."""
    instructions = read_image()
    values = dict(rest.split("=") for word, rest in instructions if word == "ARG")
    promised = {each.rpartition(" ")[2] for each in PROJECT["project"]["classifiers"]}
    bases = [rest for word, rest in instructions if word == "FROM"]
    for base in bases:
        assert base.partition(":")[2].partition("-")[0] in promised, base
    runs = [shlex.split(fill(rest, values)) for word, rest in instructions if word == "RUN"]
    made, installed = (words for words in runs if "pip" in words)
    source = next(rest.split()[1] for word, rest in instructions if word == "COPY")
    assert made[-2] == f"{source}/{JARS.name}"
    wanted = [Requirement(each) for each in installed[-2:]]
    assert [each.name for each in wanted] == [NAME, PROJECT["project"]["name"]]
    assert made[-1] == f"{source}[{','.join(sorted(wanted[1].extras))}]"
    assert wanted[1].extras <= set(PROJECT["project"]["optional-dependencies"])
    assert "gate" in wanted[1].extras
    ((command,),) = (json.loads(rest) for word, rest in instructions if word == "ENTRYPOINT")
    assert command in PROJECT["project"]["scripts"]


def test_image_does_not_run_as_root() -> None:
    """The last user is one that was made for it, and the command is all that follows."""
    instructions = read_image()
    words = [word for word, _ in instructions]
    assert words[words.index("USER") :] == ["USER", "WORKDIR", "ENTRYPOINT"]
    user = dict(instructions)["USER"]
    assert ("RUN", f"useradd --create-home {user}") in instructions
    assert dict(instructions)["WORKDIR"] == f"/home/{user}"


def test_image_is_built_as_the_page_says() -> None:
    """The page builds and runs the image with extras that exist."""
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    (given,) = re.findall(r"--build-arg (\w+)=([\w,]+)", page)
    assert given[0] in {rest.partition("=")[0] for word, rest in read_image() if word == "ARG"}
    assert set(given[1].split(",")) <= set(PROJECT["project"]["optional-dependencies"])
    (tag,) = re.findall(r"^docker build --tag (\w+) \./reassure$", page, re.MULTILINE)
    assert re.search(rf"^docker run --rm {tag} \w+", page, re.MULTILINE)
