"""What is built: one wheel of our packages, the same from the tree and from the sdist."""

import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
ROOMS = tuple(PROJECT["tool"]["hatch"]["build"]["dev-mode-dirs"])
PACKAGES = tuple(f"reassure_{room}" for room in ROOMS)


def build(source: Path, out: Path, kind: str) -> Path:
    """Build a wheel or an sdist without a network and return it."""
    subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", f"--{kind}", "-o", str(out), str(source)],
        check=True,
        capture_output=True,
        timeout=120,
    )
    (built,) = out.iterdir()
    return built


def read_wheel(path: Path) -> Mapping[str, bytes]:
    """Return the files of a wheel by name, without the list of their checksums."""
    with zipfile.ZipFile(path) as wheel:
        return {n: wheel.read(n) for n in wheel.namelist() if not n.endswith("/RECORD")}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, bytes]:
    """The files of the wheel that the tree gives."""
    return read_wheel(build(ROOT, tmp_path_factory.mktemp("wheel"), "wheel"))


def test_wheel_holds_our_packages_only(wheel: Mapping[str, bytes]) -> None:
    """Nothing generic lands in site-packages: every top-level name is a package of ours."""
    top = {name.partition("/")[0] for name in wheel}
    assert {name for name in top if not name.endswith(".dist-info")} == set(PACKAGES)


def test_wheel_holds_types_and_data(wheel: Mapping[str, bytes]) -> None:
    """Each package is typed, and clauses, scenarios, schemas and stories are in the wheel."""
    for package in PACKAGES:
        assert f"{package}/py.typed" in wheel
    patterns = {
        "spec/reassure_spec/clauses": "*.md",
        "spec/reassure_spec/scenarios": "**/*.txt",
        "spec/reassure_spec/schemas": "*.json",
        "conformance/reassure_conformance/gate/stories": "*.txt",
        "conformance/reassure_conformance/adapter/skeletons": "*/*.template",
    }
    for folder, pattern in patterns.items():
        shipped = [path for path in (ROOT / folder).glob(pattern) if path.is_file()]
        assert shipped, folder
        for path in shipped:
            name = path.relative_to(ROOT / folder.partition("/")[0]).as_posix()
            assert name in wheel, name


def test_wheel_from_sdist_is_the_same(wheel: Mapping[str, bytes], tmp_path: Path) -> None:
    """The wheel that is built from the sdist holds the same files as the one from the tree."""
    (tmp_path / "sdist").mkdir()
    (tmp_path / "wheel").mkdir()
    sdist = build(ROOT, tmp_path / "sdist", "sdist")
    subprocess.run(["tar", "-xzf", str(sdist), "-C", str(tmp_path)], check=True)
    (unpacked,) = (p for p in tmp_path.iterdir() if p.name.startswith("reassure-"))
    assert read_wheel(build(unpacked, tmp_path / "wheel", "wheel")) == wheel


def test_each_root_folder_holds_one_package() -> None:
    """A root folder holds its package and no loose module, which would be importable by itself."""
    for room in ROOMS:
        assert list((ROOT / room).glob("*.py")) == []
        folders = [p.name for p in (ROOT / room).iterdir() if p.is_dir() and p.name[0] not in "._"]
        assert folders == [f"reassure_{room}"], room


def test_lock_holds_every_dependency() -> None:
    """Each dependency of the project, those of every extra among them, is pinned in the lock."""
    project = PROJECT["project"]
    extras = project["optional-dependencies"].values()
    wanted = [*project["dependencies"], *(requirement for each in extras for requirement in each)]
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    pinned = set(re.findall(r"^([a-z0-9-]+)==", lock, flags=re.MULTILINE))
    for requirement in wanted:
        name = re.split(r"[<>=!~\[; ]", requirement)[0].lower().replace("_", "-")
        assert name in pinned or name == project["name"], name
    assert lock.count("--hash=sha256:") > len(pinned)
