"""Controllers written from the page of the protocol: each is found as its README says."""

import shutil
import subprocess
from pathlib import Path

import pytest

from reassure_conformance.gate.running import Result, Settings, run

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
