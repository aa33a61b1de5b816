"""Every scenario of the spec, told to the model."""

from pathlib import Path

import pytest

from reassure_conformance.scenarios.scenario import (
    compare,
    find_scenarios,
    read_scenario,
    rewrite,
    run_scenario,
)


@pytest.mark.parametrize(
    "path", find_scenarios(), ids=lambda path: f"{path.parent.name}/{path.stem}"
)
def test_scenario_runs_as_expected(path: Path, request: pytest.FixtureRequest) -> None:
    """The model answers each command of the scenario with the lines that the file expects."""
    if request.config.getoption("--rewrite-scenarios"):
        rewrite(path)
    scenario = read_scenario(path)
    difference = compare(scenario, run_scenario(scenario))
    assert not difference, f"run pytest with --rewrite-scenarios to accept this:\n{difference}"
