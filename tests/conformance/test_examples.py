"""Controllers written from the page of the protocol: each is found as its README says."""

import shutil
import subprocess
from pathlib import Path

import pytest

from reassure_conformance.answers.stories import tell_document
from reassure_conformance.gate.running import Result, Settings, run

DROP_OWED = """world cluster brokers=1,2,3,4,5

create orders with 3
broker 3 dies
request orders-0 to 5
request orders-0 to 2,5,1
depose controller
"""
EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def go_controller(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program of the controller in Go, built."""
    if shutil.which("go") is None:
        pytest.skip("there is no go here, which the example in Go needs")
    folder = EXAMPLES / "go-controller"
    fetched = subprocess.run(
        ["go", "mod", "download"], cwd=folder, capture_output=True, text=True, timeout=300
    )
    if fetched.returncode:
        pytest.skip(f"the library of the example in Go cannot be had: {fetched.stderr.strip()}")
    program = tmp_path_factory.mktemp("go") / "go-controller"
    subprocess.run(["go", "build", "-o", str(program), "."], cwd=folder, check=True, timeout=600)
    return program


@pytest.mark.slow
def test_controller_in_go_is_sound(go_controller: Path, tmp_path: Path) -> None:
    """It holds in every story and in generated examples, and meets every clause that it can."""
    settings = Settings(1, connectable=f"exec:{go_controller}", examples=30, steps_min=0)
    result = run(settings, tmp_path)
    assert isinstance(result, Result)
    assert result.died == ""
    assert result.failure is None, result.failure.lines()
    assert result.verdict() == "holds", result.missing()
    assert result.capabilities == {"isr", "brokers", "kill"}
    wanting = {need for needs in result.not_asked().values() for need in needs}
    assert wanting == {"deletion", "messages", "preferred", "shutdown"}


def test_controller_in_go_finds_a_drop_that_its_predecessor_owed(
    go_controller: Path, tmp_path: Path
) -> None:
    """A change that waits with its drop goes on to wait after a failover, though nobody leads."""
    story = tmp_path / "story.txt"
    story.write_text(DROP_OWED, encoding="utf-8")
    settings = Settings(0, connectable=f"exec:{go_controller}", hang_s=60.0)
    document = tell_document(settings, str(story), tmp_path)
    assert (document.verdict, document.body["violations"]) == ("holds", [])
    assert "drop.carried-out" in document.body["told"][-1]["exercised"]
