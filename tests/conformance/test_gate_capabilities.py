"""An adapter that declares little: what it cannot be asked is named, and nothing is missed."""

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import pytest

from reassure_conformance.adapter import Adapter
from reassure_conformance.adapter.world import VIRTUAL_WORLD
from reassure_conformance.gate.controllers import ControllersResult
from reassure_conformance.gate.harness import Harness
from reassure_conformance.gate.requirements import ALL_ABILITIES, list_needing, load_needs
from reassure_conformance.gate.run_settings import REPLICATION, Settings
from reassure_conformance.gate.running import run
from reassure_conformance.gate.story import shipped_stories
from reassure_conformance.report.qualified import read_report
from reassure_controller.rules import load_planners
from reassure_judge.protocols import find_protocols
from reassure_spec.clauses import load_clauses


def carried_out(profile: str) -> bool:
    """Whether the bundled controller carries a profile out."""
    return any(planner.reassigns for planner in load_planners(profile))


DRIVEN: Final = tuple(
    profile
    for profile, rules in find_protocols().items()
    if profile in rules.driven and profile != REPLICATION and carried_out(profile)
)
SETTINGS: Final = Settings(1, examples=0, steps_min=0, world=VIRTUAL_WORLD)


@pytest.fixture(autouse=True)
def lesser_can_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    """The adapter that declares little is that of the script whose table this is about."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))


def drive(declared: str, profile: str, directory: Path, **more: Any) -> ControllersResult:
    """Tell the shipped test cases to the bundled controller, as one that declares no more."""
    connectable = f"direct:scores:Lesser?declared={declared}"
    result = run(replace(SETTINGS, profile=profile, connectable=connectable, **more), directory)
    assert isinstance(result, ControllersResult)
    return result


@pytest.mark.parametrize(
    "declared", ["isr", pytest.param("isr brokers kill", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("profile", DRIVEN)
def test_little_is_enough_to_hold(profile: str, declared: str, tmp_path: Path) -> None:
    """What it could be asked, it is; what it could not, the first line counts and a note names."""
    result = drive(declared, profile, tmp_path)
    assert (result.verdict(), result.missing()) == ("holds", ())
    report = read_report(result.as_document().as_dict())
    assert f"HOLDS for {', '.join(sorted(declared.split()))}" in report.headline
    undeclared = ALL_ABILITIES - result.capabilities
    lacking = {clause for clauses in result.lacking().values() for clause in clauses}
    assert lacking & {clause for each in undeclared for clause in list_needing(each)}


def test_little_is_enough_to_be_violated(tmp_path: Path) -> None:
    """A mistake that takes no other capability is found with one alone."""
    result = drive("isr", "kafka-42", tmp_path, faults=("missing-entry-kept",))
    assert result.verdict() == "violated"


def test_leader_that_goes_by_an_earlier_order_is_not_blamed_unheard(
    make_harness: Callable[[Adapter], Harness],
) -> None:
    """Where nobody hears messages a leader may know what a controller before has told it."""
    name = "unseen-completion-lost-with-its-controller"
    story = next(story for story in shipped_stories() if story.name == name)
    lesser = import_module("scores").Lesser(declared="isr kill hold expire", profile="kafka-42")
    assert make_harness(lesser).tell(story).violations == []


def test_needs_are_of_clauses_and_of_what_is_declared() -> None:
    """No table names a clause or a capability that there is not."""
    for needs in load_needs().values():
        named = {*needs.clauses, *needs.told, *needs.not_claimed, *needs.unseen}
        assert named <= load_clauses().keys()
    found = {each for ability in ALL_ABILITIES for each in list_needing(ability)}
    assert found == {clause for needs in load_needs().values() for clause in needs.clauses}
