"""What a run keeps of deletions, preferred elections and shutdowns kills mutants afterwards."""

from collections.abc import Callable
from typing import Final

import pytest

from reassure_conformance.adapter.bundled import Bundled
from reassure_conformance.gate.harness import Harness
from reassure_conformance.gate.story import parse_story
from reassure_mutation.kills import Situation, find_kills
from reassure_mutation.table import find_worlds, load_table, make_reference

PROFILE: Final = "kip-236"
WORLDS: Final = find_worlds(PROFILE)[-1]
TABLE: Final = load_table(WORLDS, PROFILE)
REFERENCE: Final = make_reference(WORLDS, PROFILE)
MUTANTS: Final = {each.name: each for each in REFERENCE.list_mutants()}


def tell(make_harness: Callable[..., Harness], steps: tuple[str, ...]) -> list[Situation]:
    """Tell the bundled controller a test case; return what was asked of it by then."""
    harness = make_harness(Bundled(profile=PROFILE))
    text = "\n".join(("world cluster brokers=1,2,3,4", *steps, ""))
    example = harness.tell(parse_story(text, "told.txt"))
    assert example.violations == []
    kind = type(REFERENCE.judgement.begin)
    seen = harness.recorder.take_situations()
    return [each for each in seen if type(each.states[0].partition) is kind]


def list_cases() -> dict[tuple[str, ...], list[str]]:
    """Return by test case of the table the mutants that it is to kill."""
    assert TABLE is not None
    found: dict[tuple[str, ...], list[str]] = {}
    for name, each in TABLE.killable.items():
        found.setdefault(each.steps, []).append(name)
    return found


CASES: Final = list_cases()


@pytest.mark.parametrize("steps", CASES, ids="; ".join)
def test_test_case_kills_in_a_run_what_it_kills_in_the_world(
    steps: tuple[str, ...], make_harness: Callable[..., Harness]
) -> None:
    """Whoever tells a survivor apart by its test case has it killed.

    Where it holds a controller its number says where to begin to look.
    """
    left = dict.fromkeys(CASES[steps], "")
    hold = next((each for each in steps if each.startswith("hold after")), "")
    for more in range(8) if hold else (0,):
        later = f"hold after {int(hold.split()[-1]) + more}" if hold else ""
        told = tell(make_harness, tuple(later if each == hold else each for each in steps))
        answers = find_kills(REFERENCE, [MUTANTS[name] for name in left], told)
        left = {name: said for name, (said, number) in answers.items() if number is None}
        if not left:
            break
    assert left == {}
