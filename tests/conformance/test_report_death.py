"""A death is told like a violation: story, step, last words, and the command that repeats it."""

import json
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from reassure_conformance.adapter import ProgramFault
from reassure_conformance.adapter.program import Program

MODULE = """
import os

from reassure_conformance.adapter.bundled import Bundled


class Dying(Bundled):
    def stop_broker(self, broker):
        raise RuntimeError("out of cheese")


class Gone(Bundled):
    def stop_broker(self, broker):
        os._exit(7)
"""
STORY = [
    "It died in the last of these 5 steps:",
    "  1. create orders with 1,2,3",
    "  2. hold after 2",
    "  3. request orders-0 to 1,2,4",
    "  4. 3 leaves orders-0",
    "  5. broker 2 dies",
]


@pytest.fixture
def call(
    start_process: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """What runs a command line where the module can be imported."""
    (tmp_path / "dying.py").write_text(MODULE, encoding="utf-8")
    return partial(start_process, path=tmp_path)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Dying", "ADAPTER-DIED the adapter died in broker 2 dies: RuntimeError: out of cheese"),
        ("Gone", "the process ended by itself with exit code 7 in broker 2 dies"),
    ],
)
def test_death_is_told_with_its_story_and_is_repeated(
    name: str,
    words: str,
    call: Callable[..., subprocess.CompletedProcess[str]],
    tmp_path: Path,
) -> None:
    """Whether it raises or takes the process with it, its steps are there, and can be repeated."""
    run = tmp_path / "run"
    done = call("test", "-i", f"direct:dying:{name}", "--seed", "3", "--out", run)
    lines = (done.stdout + done.stderr).splitlines()
    assert done.returncode == 69
    assert any(words in line for line in lines)
    begin = lines.index(STORY[0])
    assert lines[begin : begin + len(STORY)] == STORY
    assert f"Repeat it with: reassure test --replay {run}" in lines
    assert not any("Coverage goal missed" in line or "vacuous" in line for line in lines)
    again = call("test", "--replay", run)
    assert again.returncode == 69
    assert "in broker 2 dies" in again.stdout + again.stderr
    if name == "Dying":
        at = lines.index("Its last output:")
        assert lines[at + 1 : at + 5] == [
            "  Traceback of the implementation:",
            f'    File "{tmp_path / "dying.py"}", line 9, in stop_broker',
            '      raise RuntimeError("out of cheese")',
            "  RuntimeError: out of cheese",
        ]
        report = call("report", run, "--format", "markdown").stdout
        assert "out of cheese" in report
        assert "5. broker 2 dies" in report
        assert json.loads((run / "result.json").read_text("utf-8"))["died_after"][-1] == (
            "broker 2 dies"
        )
    else:
        healthy = call("test", "--case", run / "died.txt")
        assert healthy.returncode == 0


def test_last_words_of_a_program_are_whole(tmp_path: Path) -> None:
    """A program that says much before it ends is quoted from its first line to its last."""
    source = tmp_path / "talker.py"
    source.write_text(
        "import sys\nfor n in range(200): print('line', n, file=sys.stderr)\n", encoding="utf-8"
    )
    program = Program(f"{sys.executable} {source}", profile="kip-236", readings={})
    with pytest.raises(ProgramFault, match="its last line was: line 199") as caught:
        program.describe()
    assert caught.value.said.splitlines() == [f"line {number}" for number in range(200)]
    program.end()
