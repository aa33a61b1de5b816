"""What is offered to somebody else's CI: run here as it would be run there."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import pytest
import yaml
from packaging.requirements import Requirement

from reassure_conformance.cli import run_command

ROOT = Path(__file__).parents[2]
REORDERS = """
from reassure_conformance.adapter.bundled import Bundled


class Adapter(Bundled):
    def __init__(self, **options):
        super().__init__(**options, faults=("requests-unsorted",))
"""
"""An implementation that takes requests in another order than they were made."""
IMPLEMENTATION = "direct:reorders:Adapter"
GIVEN = {"implementation": IMPLEMENTATION, "arguments": "--examples 0 --seed 3"}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory with the implementation, and a `pip` that notes what it is asked to install."""
    (tmp_path / "reorders.py").write_text(REORDERS, encoding="utf-8")
    pip = tmp_path / "bin" / "pip"
    pip.parent.mkdir()
    pip.write_text('#!/bin/sh\necho "$@" >> "$PIP_ASKED"\n', encoding="utf-8")
    pip.chmod(0o755)
    return tmp_path


def run_in(place: Path, command: Sequence[str], **more: str) -> subprocess.CompletedProcess[str]:
    """Run a command there with what is installed here."""
    environment = {
        **os.environ,
        "PATH": f"{place / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(["", *filter(None, sys.path)]),
        "PIP_ASKED": str(place / "asked.txt"),
        **more,
    }
    return subprocess.run(
        command, cwd=place, env=environment, capture_output=True, text=True, timeout=300
    )


def fill(text: str, values: Mapping[str, str]) -> str:
    """Put values in the place of `${{ name }}` and `$[[ name ]]`, each of which is known."""
    return re.sub(r"\$(?:\{\{|\[\[) ([\w.]+) (?:\}\}|\]\])", lambda m: values[m[1]], text)


def test_action_runs_reports_and_fails(place: Path) -> None:
    """The action's steps install, run, report in each form, and end with the verdict's code."""
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    defaults = {name: str(each.get("default", "")) for name, each in action["inputs"].items()}
    values = {f"inputs.{name}": text for name, text in {**defaults, **GIVEN}.items()}
    values |= {"github.action_path": str(ROOT), "runner.temp": str(place / "temp")}
    summary = place / "summary.md"
    codes = []
    for step in action["runs"]["steps"]:
        if "run" not in step:
            assert re.fullmatch(r"[\w-]+/[\w/-]+@v\d+", step["uses"])
            continue
        noted = place / f"output-{len(codes)}"
        noted.touch()
        done = run_in(
            place,
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            GITHUB_OUTPUT=str(noted),
            GITHUB_STEP_SUMMARY=str(summary),
            **{name: fill(text, values) for name, text in step.get("env", {}).items()},
        )
        codes.append(done.returncode)
        for line in noted.read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition("=")
            values[f"steps.{step['id']}.outputs.{name}"] = value
    assert codes == [0, 0, 0, 1]
    assert fill(action["outputs"]["verdict"]["value"], values) == "violated"
    asked = (place / "asked.txt").read_text(encoding="utf-8")
    assert asked == f"install {ROOT}/jars {ROOT}[gate]\n"
    assert "reassure test: VIOLATED in " in summary.read_text(encoding="utf-8")
    out = place / "temp" / "reassure"
    result = json.loads((out / "result.json").read_text(encoding="utf-8"))
    sarif = json.loads((out / "reassure.sarif").read_text(encoding="utf-8"))
    found = {each["ruleId"] for each in sarif["runs"][0]["results"]}
    assert result["clause"] in found
    assert Xml.parse(out / "junit.xml").getroot().get("failures") == str(
        len({violation["clause"] for violation in result["violations"]})
    )
    assert (out / "report.html").is_file()


@pytest.mark.slow
def test_gitlab_template_runs_reports_and_fails(place: Path) -> None:
    """The template's script installs, runs, reports where its artifacts are, and ends with 1."""
    text = (ROOT / "templates" / "reassure.yml").read_text(encoding="utf-8")
    spec, jobs = yaml.safe_load_all(text)
    inputs = {name: str(each.get("default", "")) for name, each in spec["spec"]["inputs"].items()}
    assert "default" not in spec["spec"]["inputs"]["package"], "there is no index that has it"
    named = re.search(r"package: (reassure.*)", (ROOT / "docs" / "ci.md").read_text("utf-8"))
    assert named is not None
    package = named[1]
    assert Requirement(package.replace("$CI_SERVER_FQDN", "host")).extras == {"gate", "spark"}
    given = {**inputs, **GIVEN, "package": package}
    values = {f"inputs.{name}": text for name, text in given.items()}
    (job,) = jobs.values()
    done = run_in(
        place,
        ["bash", "-eo", "pipefail", "-c", "\n".join(job["script"])],
        **{name: fill(text, values) for name, text in job["variables"].items()},
    )
    assert done.returncode == 1, done.stderr
    assert (place / "asked.txt").read_text(encoding="utf-8") == f"install {package}\n"
    junit = place / job["artifacts"]["reports"]["junit"]
    assert int(Xml.parse(junit).getroot().get("failures", "0")) > 0
    assert all((place / path).is_dir() for path in job["artifacts"]["paths"])


@pytest.fixture(scope="module")
def hook() -> Mapping[str, Any]:
    """The one hook for pre-commit."""
    text = (ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8")
    (only,) = yaml.safe_load(text)
    assert isinstance(only, dict)
    return only


def shipped_files() -> Iterator[Path]:
    """Yield every scenario and story that is shipped."""
    yield from (ROOT / "spec" / "reassure_spec" / "protocols").rglob("*.txt")
    yield from (ROOT / "conformance" / "reassure_conformance" / "gate" / "stories").glob("*.txt")


def test_hook_takes_every_shipped_file(hook: Mapping[str, Any]) -> None:
    """The hook looks at every scenario and test case that is shipped; they are well formed."""
    files = [str(path) for path in shipped_files()]
    assert len(files) > 100
    assert all(re.search(hook["files"], path) for path in files)
    program, *words = hook["entry"].split()
    assert program == "reassure"
    assert run_command([*words, *files]) == 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("create orders with 1,2\n", "bad.txt:1: the first command must be `world NAME`"),
        ("world cluster brokers=1,1\n\ncreate orders with 1\n", "bad.txt:1: name each broker once"),
        ("world cluster\n\nbrew coffee\n", "bad.txt:3: "),
        (
            "# clauses: no.such\nworld reassignment brokers=1\n\nshow\n----\nx\n",
            "bad.txt:1: the head lacks",
        ),
    ],
)
def test_hook_says_what_is_wrong(
    hook: Mapping[str, Any],
    tmp_path: Path,
    text: str,
    said: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A file that does not keep the form is refused with its place, and the next one is read."""
    bad, worse = tmp_path / "bad.txt", tmp_path / "worse.txt"
    bad.write_text(text, encoding="utf-8")
    worse.touch()
    assert run_command([*hook["entry"].split()[1:], str(bad), str(worse)]) == 65
    err = capsys.readouterr().err
    assert said in err
    assert "worse.txt:1: " in err


def run_pytest(place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run pytest there with the plugin, whether or not it is installed as one here."""
    command = [sys.executable, "-m", "pytest", "-p", "reassure_conformance.plugin", "-rs"]
    return run_in(place, [*command, *arguments], PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")


def test_plugin_tells_stories_and_looks_up_clauses(place: Path) -> None:
    """A story that fails says its report, a clause the run's; what was not reached is skipped."""
    (place / "pytest.ini").write_text(
        f"[pytest]\nreassure_implementation = {IMPLEMENTATION}\nreassure_examples = 0\n",
        encoding="utf-8",
    )
    asked = "requests-in-order or bad-targets or request.order or unknown-removed"
    done = run_pytest(place, "--reassure", "-v", "-k", f"({asked}) and not malformed")
    assert done.returncode == 1, done.stdout
    assert "story[bad-targets] PASSED" in done.stdout
    assert "story[requests-in-order] FAILED" in done.stdout
    assert "VIOLATED request.order" in done.stdout
    assert re.search(r"clause\[request\.order[\w.-]*\] FAILED", done.stdout)
    assert re.search(r"SKIPPED.*not reached before the run ended", done.stdout)


def test_plugin_is_an_entry_point_and_silent_unasked(place: Path) -> None:
    """Without `--reassure` a session of pytest is as it was, and imports nothing of the gate."""
    (place / "test_own.py").write_text(
        "import sys\n\n\ndef test_own():\n"
        "    ours = {name for name in sys.modules if name.startswith('reassure_')}\n"
        "    assert ours == {'reassure_conformance', 'reassure_conformance.plugin'}\n",
        encoding="utf-8",
    )
    done = run_pytest(place)
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout


def test_plugin_refuses_what_there_is_not(place: Path) -> None:
    """A profile that there is not is a usage error that names those there are."""
    done = run_pytest(place, "--reassure", "--reassure-profile", "kip-0")
    assert done.returncode == 4
    assert "kip-0" in done.stderr
    assert "kip-236" in done.stderr
