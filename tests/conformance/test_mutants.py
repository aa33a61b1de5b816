"""Mutants of the controller: each fits its text, is there for a while and leaves nothing behind."""

import ast
import subprocess
import sys
from operator import attrgetter
from pathlib import Path
from types import CodeType

import pytest

import reassure_controller
from reassure_conformance.mutants import (
    UnknownFault,
    check_faults,
    load_mutants,
    planted,
    plants,
    start_with,
)
from reassure_conformance.mutants.exchange import (
    AlreadyPlanted,
    Patch,
    PatchesOverlap,
    StalePatch,
    exchanged,
    prepare,
)
from reassure_controller import engine, plan
from reassure_controller.engine import PlanEngine
from reassure_controller.plan import Plan, shrink
from reassure_controller.protocols import kip_46

CONTROLLER = Path(reassure_controller.__path__[0])


def test_every_patch_fits() -> None:
    """Each text that a mutant changes stands there once, and what comes of it compiles."""
    for name, mutant in load_mutants().items():
        assert mutant.patches, name
        assert all(each.old != each.new for each in mutant.patches), name
        assert prepare(mutant.patches), name


def test_controller_knows_no_fault() -> None:
    """No file of the controller has a variable, an attribute or a parameter about faults."""
    found = set()
    for path in sorted(CONTROLLER.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = {getattr(node, field, None) for field in ("id", "attr", "arg", "name")}
            found |= {(path.name, name) for name in names if "fault" in str(name).split("_")}
            found |= {(path.name, name) for name in names if "faults" in str(name).split("_")}
    assert found == set()


def test_planted_mutant_is_there_for_a_while() -> None:
    """The function that others hold has other code meanwhile, and its own again afterwards."""
    before = shrink.__code__
    with planted(["removal-takes-all"]):
        assert shrink.__code__ is not before
        assert plan.shrink is shrink
    assert shrink.__code__ is before


def test_what_a_mutant_brings_goes_with_it() -> None:
    """Functions, methods and imports in addition are there as long as the mutant is."""
    with planted(["writes-as-a-broker", "conflict-forced-at-drop"]):
        assert hasattr(PlanEngine, "_writer")
        assert hasattr(engine, "encode_broker")
        assert hasattr(engine, "_without_condition")
    assert not hasattr(PlanEngine, "_writer")
    assert not hasattr(engine, "encode_broker")
    assert not hasattr(engine, "_without_condition")


def test_mutants_go_when_something_is_raised() -> None:
    """An error inside leaves nothing planted."""
    before = Plan.send.__code__
    with pytest.raises(ZeroDivisionError), planted(["start-not-sent"]):
        _ = 1 // 0
    assert Plan.send.__code__ is before
    with planted(["start-not-sent"]):
        assert Plan.send.__code__ is not before


def test_two_mutants_of_one_function_are_there_together() -> None:
    """Patches of different places of a function add up."""
    names = ("replacement-dead", "replacement-not-spread")
    with planted(names):
        constants = kip_46._choose_replacement.__code__.co_names
    assert {"failed"} <= set(constants)
    with pytest.raises(PatchesOverlap, match="plant one alone"):
        prepare([Patch("plan", "def shrink(", "def a("), Patch("plan", "shrink(plan: Plan", "b(")])


def test_planting_inside_of_planting_is_refused() -> None:
    """Who plants while something is planted is told so, and the first stays."""
    with planted(["start-not-sent"]):
        during = Plan.send.__code__
        with pytest.raises(AlreadyPlanted, match="end that first"), planted(["stop-not-sent"]):
            pass
        assert Plan.send.__code__ is during


@plants(attrgetter("names"))
class _Looking:
    """Looks at a function, with mutants of its own."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def look(self) -> CodeType:
        """Return what the function does for this object."""
        return Plan.send.__code__

    def look_twice(self) -> tuple[CodeType, CodeType]:
        """Return it as another method of this object finds it."""
        return self.look(), Plan.send.__code__


def test_objects_with_and_without_mutants_stand_side_by_side() -> None:
    """Each object has its own mutants while it is called, whichever is called before."""
    plain, mute, other = _Looking(), _Looking("start-not-sent"), _Looking("returned-not-told")
    own = Plan.send.__code__
    assert len({plain.look(), mute.look(), other.look()}) == 3
    assert plain.look_twice() == (own, own)
    first, second = mute.look_twice()
    assert first is second is mute.look() is not own
    assert Plan.send.__code__ is own


def test_text_that_is_not_there_is_refused() -> None:
    """A patch of a text that is not there, or twice, is an error that names module and text."""
    for old in ("no such text", "return"):
        words = rf"reassure_controller\.plan has \d+ times and not once: '{old}'"
        with pytest.raises(StalePatch, match=words), exchanged([Patch("plan", old, "")]):
            pass


def test_unknown_fault_is_refused_by_name() -> None:
    """A fault that does not exist is an error that names those that are nearly so called."""
    with pytest.raises(UnknownFault, match=r"fault: drop-skiped; did you mean drop-skipped.*\?"):
        check_faults(["drop-skiped"])
    with pytest.raises(UnknownFault, match=r"no such fault: epoch; did .*no-epoch-check"):
        check_faults(["epoch"])
    with pytest.raises(UnknownFault, match=r"no such fault: typo; there are: .*drop-skipped"):
        check_faults(["typo"])
    assert check_faults(load_mutants()) == set(load_mutants())


def _start(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "reassure_conformance.mutants", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_process_has_mutants_from_its_beginning(tmp_path: Path) -> None:
    """A module is run with the mutants planted, and with its own arguments."""
    (tmp_path / "shown.py").write_text(
        "import sys\n"
        "from reassure_controller.engine import PlanEngine\n"
        "print(sys.argv[1:], hasattr(PlanEngine, '_writer'))\n"
    )
    command = start_with(["writes-as-a-client"], [sys.executable, "-m", "shown", "--x", "1"])
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "['--x', '1'] True\n")
    assert start_with((), command) == tuple(command)


def test_process_is_refused_what_makes_no_sense() -> None:
    """Without a module, and with a name that there is not, a process ends with 64."""
    for words, said in (
        (["drop-skipped"], "usage: "),
        (["typo", "--", "x"], "no such fault: typo"),
    ):
        done = _start(*words)
        assert (done.returncode, done.stdout) == (64, "")
        assert said in done.stderr
