"""The tables of what can be killed are of the rules as they stand."""

from types import ModuleType
from typing import Final

import pytest

from reassure_mutation.kills import SURVIVES
from reassure_mutation.table import (
    Table,
    find_worlds,
    load_table,
    make_digest,
    make_reference,
    make_table,
)
from reassure_spec.readings import PROFILES

MADE: Final = [(module, profile) for profile in PROFILES for module in find_worlds(profile)]
each_table = pytest.mark.parametrize(
    ("module", "profile"), MADE, ids=[f"{p} {m.__name__.split('.')[-2]}" for m, p in MADE]
)
AGAIN: Final = "make it anew: python -m reassure_mutation"


def load(module: ModuleType, profile: str) -> Table:
    """Return a table that has to be there."""
    table = load_table(module, profile)
    assert table is not None, f"{AGAIN} {profile}"
    return table


@each_table
def test_table_is_of_the_rules_as_they_stand(module: ModuleType, profile: str) -> None:
    """Whoever changes a rule that a reference controller reaches makes its tables anew."""
    assert load(module, profile).digest == make_digest(module, profile), f"{AGAIN} {profile}"


@each_table
def test_table_says_of_every_mutant_what_becomes_of_it(module: ModuleType, profile: str) -> None:
    """Every mutant there is, and no other, is killed by a clause or survives for a reason."""
    table = load(module, profile)
    names = sorted(each.name for each in make_reference(module, profile).list_mutants())
    assert names == sorted([*table.killable, *table.survivors]), f"{AGAIN} {profile}"
    assert set(table.survivors.values()) <= set(SURVIVES)
    assert all(each.clause and each.steps for each in table.killable.values())


def test_table_changes_with_what_it_is_made_from(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another world, or another reading, is another table."""
    module, profile = find_worlds("kip-236")[0], "kip-236"
    digests = {make_digest(module, each) for each in (profile, "kip-236-amended", profile)}
    monkeypatch.setattr(module, "WORLDS", module.WORLDS[:-1])
    assert len({*digests, make_digest(module, profile)}) == 3


def test_table_is_made_of_what_the_worlds_kill(monkeypatch: pytest.MonkeyPatch) -> None:
    """A world in which little happens kills few, each with its test case."""
    module, profile = find_worlds("kip-236")[0], "kip-236"
    tiny = [world for world in module.WORLDS if world.name == "of nothing"]
    monkeypatch.setattr(module, "WORLDS", tiny)
    said, table = make_table(module, profile, processes=1)
    assert isinstance(table, Table)
    assert said == f"{profile} of nothing calm: {len(table.killable)} killed"
    assert table.digest == make_digest(module, profile)
    assert {each.clause for each in table.killable.values()} == {"request.refuse.unknown-partition"}
    asked, taken_over = "request orders-0 to 2,3", ("kill controller", "elect")
    assert {each.steps for each in table.killable.values()} <= {
        (asked,),
        ("hold after 0", asked, *taken_over),
    }
    assert len(table.survivors) > len(table.killable)
