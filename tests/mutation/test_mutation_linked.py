"""Mutants live in linked copies: whoever calls the copies meets them, and nobody else does."""

import sys
from types import FunctionType
from typing import Final, cast

import pytest

from reassure_judge.protocols import make_rules
from reassure_judge.protocols.kafka_4485 import lags, leading
from reassure_model import selectors
from reassure_model.protocols import kafka_42, kip_236
from reassure_mutation.linked import (
    InPlace,
    Linked,
    Mutant,
    find_called,
    list_defined,
    list_mutants,
    list_reached,
    spell,
)
from reassure_spec.readings import Readings, get_profile

DROP: Final = cast("FunctionType", kip_236.compute_drop)
EXISTING: Final = cast("FunctionType", kip_236.compute_existing)
ARGUMENTS: Final = ((1, 2, 3), 1, (3, 1), 1, (4,), Readings())


def find_mutant(function: FunctionType, name: str) -> Mutant:
    """Return the mutant of a function with the mutation of this name."""
    (mutant,) = (each for each in list_mutants([function]) if each.mutation.name == name)
    return mutant


def test_planted_mutant_changes_the_copy_until_it_is_taken_out() -> None:
    """A mutant of what is called further down shows in the copy, never in the original."""
    linked = Linked(DROP)
    copy, right = linked.get(DROP), kip_236.compute_drop(*ARGUMENTS)
    mutant = find_mutant(EXISTING, "element: without leader")
    assert (copy(*ARGUMENTS), right) == ((2, 3), (2, 3))
    with linked.planted(mutant):
        assert copy(*ARGUMENTS) == (1, 2)
        assert kip_236.compute_drop(*ARGUMENTS) == right
    assert copy(*ARGUMENTS) == right


def test_mutant_is_taken_out_where_it_fails() -> None:
    """What a mutant raises reaches the caller, and leaves the copy as it was."""
    linked = Linked(DROP)
    mutant = find_mutant(EXISTING, "statement: existing: ReplicaList = () -> pass")
    with pytest.raises(UnboundLocalError), linked.planted(mutant):
        linked.get(DROP)(*ARGUMENTS)
    assert linked.get(DROP)(*ARGUMENTS) == (2, 3)


def test_what_runs_is_named_by_its_file() -> None:
    """Of what calls a copy the functions below it are named."""
    copy = Linked(DROP).get(DROP)
    assert f"<{spell(EXISTING)}>" in find_called(lambda: copy(*ARGUMENTS))
    assert not any(name.startswith("<kip_236") for name in find_called(lambda: None))
    assert sys.getprofile() is None
    with pytest.raises(TypeError):
        find_called(copy)
    assert sys.getprofile() is None


def test_functions_of_a_table_are_reached_and_changed() -> None:
    """The steps of a move stand in a table, whose copy has the copies."""
    steps = cast("FunctionType", kafka_42.next_for_steps)
    last = cast("FunctionType", kafka_42.remove_path)
    move = kafka_42.make_move((1, 2), frozenset({1, 2}))
    linked = Linked(steps)
    assert last in linked.functions
    with linked.planted(find_mutant(last, "statement: RemovePath() -> None")):
        assert linked.get(steps)(move, 7, (1, 2), Readings()) is None
        assert kafka_42.next_for_steps(move, 7, (1, 2), Readings()) == kafka_42.RemovePath()


@pytest.mark.parametrize("profile", ["kip-236", "kafka-42"])
def test_reached_are_functions_of_model_and_judge_in_a_stable_order(profile: str) -> None:
    """Every function stands once; those of Python and of what the rooms rest upon are none."""
    owed = cast("FunctionType", make_rules(profile, get_profile(profile)).judgement.owed)
    reached = list_reached(owed)
    assert len(set(reached)) == len(reached) > 20
    assert {each.__module__.split(".")[0] for each in reached} <= {
        "reassure_model",
        "reassure_judge",
    }
    assert list_reached(owed) == reached


def test_name_says_the_module_without_room_and_folder() -> None:
    """A name in a table is short and stable."""
    assert spell(DROP) == "kip_236.compute_drop"
    assert spell(cast("FunctionType", selectors.select_new)) == "selectors.select_new"


def test_methods_and_properties_are_listed_and_nothing_that_is_generated() -> None:
    """What the text of a module has, each once; not what it imports."""
    names = [each.__qualname__ for each in list_defined(leading)]
    assert {"Leading.__init__", "Leading.end", "Leading._tells_all", "_show"} <= set(names)
    assert len(names) == len(set(names))
    assert not any(name.startswith(("Evidence", "Counter", "heappush")) for name in names)


def test_method_is_changed_in_place_until_it_is_taken_out() -> None:
    """All objects of the class have it, also where it fails; what runs is named like a copy."""
    methods = tuple(list_defined(lags))
    reaches = next(each for each in methods if each.__qualname__ == "Past.reaches")
    past, linked = lags.Past(5, 0, 10), InPlace(methods)
    mutant = find_mutant(reaches, "arithmetic: now_ms - self._limit -> now_ms + self._limit")
    assert not past.reaches(14)
    with linked.planted(mutant):
        assert past.reaches(14)
    with pytest.raises(ZeroDivisionError), linked.planted(mutant):
        raise ZeroDivisionError
    assert not past.reaches(14)
    assert "<kafka_4485.lags.Past.reaches>" in linked.find_called(lambda: past.reaches(14))
    assert reaches.__code__.co_filename == lags.__file__


def test_default_is_changed_in_place_as_well() -> None:
    """A default belongs to the function, not to its code."""
    function = next(e for e in list_defined(lags) if e.__qualname__ == "Past.end_a_limit_ago")
    kept = function.__kwdefaults__
    with InPlace([function]).planted(list_mutants([function])[0]):
        assert function.__kwdefaults__ == kept is not function.__kwdefaults__
    assert function.__kwdefaults__ is kept
