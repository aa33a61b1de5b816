"""Mutants of the accepting rules: what kills them, and that the table and the README say so."""

import random
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from reassure_conformance.scenarios.asking import record_questions
from reassure_model.outcome import Accepted, Rejected
from reassure_model.partition import Environment, LeaderAndIsr, Partition
from reassure_model.writes import WriteState
from reassure_mutation import accepting_table
from reassure_mutation.accepting import (
    COUNTS,
    SAME,
    UNASKED,
    WORDS,
    Accepting,
    Kill,
    Known,
    Question,
    compare,
    disturb,
    make_strange,
)
from reassure_mutation.accepting_table import (
    RECORDED,
    AcceptingTable,
    Unit,
    count,
    find_units,
    list_own,
    load_accepting,
    load_judged,
    make_digest,
)
from reassure_mutation.kills import ALLOWED
from reassure_mutation.linked import Mutant, spell
from reassure_mutation.table import find_worlds, load_table
from reassure_spec.clauses import load_clauses
from reassure_spec.readings import PROFILES, get_profile

ROOT = Path(__file__).parents[2]
PROFILE = "kip-236"
MADE = {unit.protocol: unit for unit in find_units() if load_accepting(unit)}
REMADE = "it is made anew by python -m reassure_conformance.scenarios.asking"


def rules() -> Accepting:
    """The accepting rules of KIP-236."""
    return MADE[PROFILE].rules


@cache
def recorded(profile: str = PROFILE) -> dict[Question, str]:
    """What the scenarios ask of the rules of a profile."""
    return record_questions(MADE[profile].rules)


def get_table(profile: str = PROFILE) -> AcceptingTable:
    """The table of a profile, which there is."""
    table = load_accepting(MADE[profile])
    assert table is not None
    return table


@cache
def mutants(profile: str = PROFILE) -> dict[str, Mutant]:
    """Every mutant of them, by its name."""
    return {each.name: each for each in list_own(MADE[profile])}


def look(names: list[str], asked: list[Known], profile: str = PROFILE) -> dict[str, Kill | str]:
    """What becomes of some mutants that are asked this."""
    rules, known = MADE[profile].rules, mutants(profile)
    return rules.find_kills([known[name] for name in names], asked, rules.prepare(asked))


# -- one mutant


AROUND = Environment(frozenset({1, 2}), frozenset({1, 2, 3}))
STATE = LeaderAndIsr(1, 0, 1, (1, 2))
PARTITION = Partition((1, 2, 3), STATE)


def ask(state: LeaderAndIsr, *, worded: bool = False) -> Known:
    """A write of leader and in-sync set, put to the rules."""
    function = rules().begin[0]
    arguments = (PARTITION, WriteState(state), AROUND, get_profile(PROFILE))
    return Known(Question(function, arguments), RECORDED, "here", worded)


EMPTY = ask(replace(STATE, leader_epoch=1, isr=()))
RAISED = (
    "kip_236.rules.check_leader_epoch: arithmetic: old.leader_epoch + 1 -> old.leader_epoch - 1"
)
SKIPPED = "kip_236.rules.check_state: statement: yield check_not_empty(new.isr) -> pass"


def test_a_check_that_is_skipped_is_killed_by_what_it_forbids() -> None:
    """A judge without the check names another clause, or none, and the question says which."""
    assert look([SKIPPED], [EMPTY])[SKIPPED] == Kill(
        RECORDED, "here", "names leader.in-isr for isr.never-empty"
    )


def test_a_judge_that_is_too_strict_is_killed_by_what_is_right() -> None:
    """Whoever dies leaves the in-sync set, which the mutant does not allow."""
    around = replace(AROUND, live=frozenset({1}))
    right = ask(replace(STATE, leader_epoch=1, isr=(1,)))
    arguments = (*right.question.arguments[:2], around, right.question.arguments[3])
    known = replace(right, question=replace(right.question, arguments=arguments))
    assert look([RAISED], [known])[RAISED] == Kill(
        RECORDED, "here", "refuses what is right by leader-epoch.raised-by-one"
    )


def test_a_mutant_survives_what_does_not_come_to_it() -> None:
    """No question, one that is answered before, and one that gets the same answer."""
    name = "acts.is_unclean: condition: is_leader_live(old, around) -> False"
    assert look([SKIPPED, name], [])[SKIPPED] == UNASKED
    assert look([SKIPPED], [ask(STATE)])[SKIPPED] == UNASKED
    assert look([name], [EMPTY])[name] == SAME


def test_where_only_the_reason_differs_the_words_have_to_be_pinned() -> None:
    """A test case shows the reason of a rejection; a way through a world does not."""
    words = "kip_236.rules.check_removals: condition: flight is None -> False (2)"
    gone = replace(STATE, leader_epoch=1, isr=(1,))
    found = {worded: look([words], [ask(gone, worded=worded)])[words] for worded in (False, True)}
    assert found == {False: WORDS, True: Kill(RECORDED, "here", WORDS)}


ACCEPTED = Accepted("state", ("a.b", "a.c"))
REJECTED = Rejected("a.b", "because")


@pytest.mark.parametrize(
    ("right", "said", "how"),
    [
        (ACCEPTED, ACCEPTED, ""),
        (ACCEPTED, Accepted("state", ("a.c", "a.b")), ""),
        (ACCEPTED, Accepted("state", ("a.b",)), COUNTS),
        (ACCEPTED, Accepted("other", ("a.b", "a.c")), "leads elsewhere"),
        (ACCEPTED, REJECTED, "refuses what is right by a.b"),
        (ACCEPTED, None, "refuses what is right"),
        (REJECTED, REJECTED, ""),
        (REJECTED, Rejected("a.b", "why"), WORDS),
        (REJECTED, Rejected("a.c", "because"), "names a.c for a.b"),
        (REJECTED, ACCEPTED, "allows what a.b forbids"),
        (None, "broken", "answers otherwise"),
        (None, None, ""),
    ],
)
def test_an_answer_differs_in_one_of_a_few_ways(right: Any, said: Any, how: str) -> None:
    """Too lenient, too strict, another clause, another state, other counts, other words."""
    assert compare(right, said) == how


# -- questions


def test_the_questions_of_scenarios_are_those_that_they_put() -> None:
    """A write that a scenario puts to the rules is recorded with its name."""
    names = set(recorded().values())
    assert {"drop/dropped-and-expanded-at-once", "leaders/unclean-where-allowed"} <= names
    assert "leaders/shutdown-hands-over" in names
    assert not any(name.startswith("kafka-4485/") for name in names)


def test_strange_questions_are_others_that_the_rules_answer() -> None:
    """None of them is one that is put, each differs in something, and they are drawn by a seed."""
    asked = [EMPTY.question, ask(STATE).question]
    strange = list(make_strange(asked, {"drop_slice": ("inclusive", "exclusive")}, 300))
    assert len(strange) > 100
    assert not set(strange) & set(asked)
    assert strange == list(make_strange(asked, {"drop_slice": ("inclusive", "exclusive")}, 300))
    readings = {each.arguments[-1].drop_slice for each in strange}
    assert readings == {"inclusive", "exclusive"}
    assert not list(make_strange([], {}, 300))


@pytest.mark.parametrize("value", [True, 3, frozenset({1}), (1, 2), STATE, Question])
def test_what_is_disturbed_differs(value: Any) -> None:
    """But for what cannot: a name, or a list that is the same backwards."""
    draw = random.Random(1)
    found = {repr(disturb(value, draw)) for _ in range(20)}
    assert (found == {repr(value)}) == (value is Question)


# -- the table


@pytest.mark.parametrize("profile", MADE)
def test_the_table_is_of_the_rules_as_they_stand(profile: str) -> None:
    """Every mutant is in it once."""
    table = get_table(profile)
    assert table.digest == make_digest(MADE[profile]), f"the rules have changed: {REMADE} {profile}"
    assert mutants(profile).keys() == table.killed.keys() | table.survivors.keys()
    assert not table.killed.keys() & table.survivors.keys()


@pytest.mark.parametrize("profile", MADE)
def test_what_scenarios_put_to_the_test_is_what_was_counted(profile: str) -> None:
    """A judge that counts a clause too often, or not, is killed by this."""
    assert count(recorded(profile)) == get_table(profile).counted, f"{REMADE} {profile}"


@pytest.mark.parametrize("profile", MADE)
def test_what_is_said_to_be_killed_by_a_scenario_is(profile: str) -> None:
    """Of those drawn by a seed, the first scenario that kills it is the one that is named."""
    table = get_table(profile)
    killed = {name: kill for name, kill in table.killed.items() if kill.by == RECORDED}
    names = random.Random(3).sample(sorted(killed), min(60, len(killed)))
    asked = [Known(each, RECORDED, name, worded=True) for each, name in recorded(profile).items()]
    assert look(names, asked, profile) == {name: killed[name] for name in names}


# -- what is shared


def make_unit(profile: str) -> Unit:
    """The first that a profile has."""
    return next(each for each in find_units() if profile in each.profiles)


def test_profiles_whose_rules_are_the_same_functions_share_a_table() -> None:
    """The drafts of KIP-236 and healing's partitions do; only other readings are asked again."""
    unit = make_unit(PROFILE)
    assert unit.profiles == ("kip-236", "kip-236-amended", "kip-236-legacy", "kip-46")
    assert [under for _, under in unit.worlds] == ["kip-236", "kip-236-amended"]
    own = next(each for each in find_units() if each.profiles == ("kip-46",))
    assert own.rules.begin != unit.rules.begin


def test_a_function_of_two_tables_is_asked_about_in_the_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each mutant is in one table, and counts for every profile that has the function."""
    first, second = make_unit(PROFILE), make_unit("kafka-42")
    shared = set(first.rules.functions) & set(second.rules.functions)
    assert shared
    assert not shared & {each.function for each in list_own(second)}
    tables = {first: get_table(), second: AcceptingTable("", {}, {}, {"kafka_42.accept: x": "y"})}
    monkeypatch.setattr(accepting_table, "load_accepting", tables.get)
    judged = load_judged("kafka-42")
    assert judged is not None
    names = {name.partition(":")[0] for found in judged for name in found}
    assert names == {spell(each) for each in shared} | {"kafka_42.accept"}


def test_there_is_no_score_where_a_table_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Part of the mutants would be passed over in silence."""
    tables = {each: AcceptingTable("", {}, {}, {}) for each in find_units()}
    monkeypatch.setattr(accepting_table, "load_accepting", tables.get)
    assert load_judged("kip-46") == ({}, {})
    del tables[next(each for each in tables if each.profiles == ("kip-46",))]
    assert load_judged("kip-46") is None
    assert load_judged(PROFILE) == ({}, {})


def test_states_that_hold_a_mapping_are_told_apart() -> None:
    """What healing is asked of holds partitions by their keys, which has no hash by itself."""
    unit = next(each for each in find_units() if each.profiles == ("kip-46",))
    names = set(record_questions(unit.rules).values())
    assert "kip-46/spread-evenly" in names


# -- what the page and the README say


@cache
def load_scores() -> ModuleType:
    """The script that writes the page."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "docs")
        return import_module("mutation_scores")


def test_the_readme_has_the_scores_of_the_tables() -> None:
    """A table of mutants that was made anew changes the README."""
    scores = load_scores().format_scores()
    assert scores in (ROOT / "README.md").read_text(encoding="utf-8"), f"write there:\n{scores}"


def test_the_page_has_every_survivor_with_its_reason() -> None:
    """By profile, function and mutant."""
    page = load_scores().render_mutation().replace("\\|", "|")
    for profile, unit in MADE.items():
        assert f"## {unit.profiles[0]}\n" in page
        for name, why in load_scores().explain(get_table(profile).survivors).items():
            assert f"`` {name} `` | {why} |".replace("||", "|") in page


def test_every_reason_that_a_mutant_of_the_judge_survives_is_of_one_that_does() -> None:
    """A reason that nothing needs any more goes."""
    survivors = [name for profile in MADE for name in get_table(profile).survivors]
    for text in load_scores().load_reasons():
        assert any(text in name for name in survivors), text


def test_what_the_judge_allows_otherwise_is_allowed_by_a_clause() -> None:
    """Of each function with such survivors somebody has said why; no reason is left over."""
    said, needed = set(), set()
    for profile in PROFILES:
        reasons, survive = load_scores().load_allowed(profile), set()
        assert {clause for clause, _ in reasons.values()} <= set(load_clauses())
        for module in find_worlds(profile):
            table = load_table(module, profile)
            assert table is not None
            survive |= {n.partition(":")[0] for n, why in table.survivors.items() if why == ALLOWED}
        assert survive <= reasons.keys(), profile
        said |= reasons.keys()
        needed |= survive
    assert said == needed
