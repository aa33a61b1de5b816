"""The skeletons of adapters: each runs, answers as the schemas say, and says what it lacks."""

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from reassure_conformance.adapter import check_description
from reassure_conformance.adapter.program import open_program
from reassure_conformance.adapter.skeletons import LANGUAGES, write_skeleton
from reassure_conformance.answers.smoking import smoke_document
from reassure_conformance.cli import run_command
from reassure_conformance.gate.run_settings import Settings

TOOLS = {"python": "python3", "node": "node", "go": "go", "java": "javac"}
"""What each language is run or built with."""
READINGS = {"request.conflict": "whole-request"}
ANSWER_S = 60.0
"""How long a program may take to start on a machine that has much else to do."""


@pytest.fixture(params=LANGUAGES)
def command(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The command line of a skeleton that was written, and built where that is needed."""
    tool = TOOLS[request.param]
    if shutil.which(tool) is None:
        pytest.skip(f"there is no {tool} here, which the skeleton in {request.param} needs")
    write_skeleton(request.param, tmp_path)
    *builds, smoke = LANGUAGES[request.param]
    for build in builds:
        subprocess.run(build.format(folder=tmp_path), shell=True, check=True, timeout=600)
    connectable = shlex.split(smoke)[-1].format(folder=tmp_path)
    return connectable.removeprefix("exec:")


def test_skeleton_answers_and_says_what_it_lacks(command: str, tmp_path: Path) -> None:
    """Every call that it is asked is answered; smoke names what is next."""
    adapter = open_program(command, profile="kip-236", readings=READINGS, answer_s=ANSWER_S)
    about = adapter.describe()
    check_description(adapter, about)
    assert (about.profile, about.readings) == ("kip-236", READINGS)
    assert about.capabilities == frozenset()
    for chroot in ("/first", '/of "quotes" and \\ \u00e9'):
        adapter.start("127.0.0.1:1", chroot, (1, 2))
        assert adapter.settle(0.5) is False
        adapter.stop()
    adapter.close()
    settings = Settings(0, connectable=f"exec:{command}", hang_s=ANSWER_S)
    document = smoke_document(settings, tmp_path / "smoke")
    assert "there is no /example-00001/brokers/ids/1" in document.body["amiss"]
    assert document.get_exit_code() == 69


def test_skeleton_is_not_written_over_anything(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder that holds something is refused and left as it is."""
    (tmp_path / "mine").touch()
    assert run_command(["init", "python", str(tmp_path)]) == 78
    assert "is not empty: name a folder that is new" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_verb_says_what_is_next(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The verb names the files that it wrote and the commands that show what is missing."""
    folder = tmp_path / "new" / "adapter"
    assert run_command(["init", "go", str(folder)]) == 0
    said = capsys.readouterr().out
    assert f"wrote {folder}/adapter.go" in said
    assert f"reassure test --smoke -i 'exec:{folder}/adapter'" in said
