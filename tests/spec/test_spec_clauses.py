"""The clause format, the clauses themselves and the register of who carries them out."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from reassure_spec.blocks import BadBlock
from reassure_spec.clauses import (
    LEVELS,
    checks,
    clause,
    clauses_of_profile,
    get_places,
    list_carried,
    list_clauses,
    load_clauses,
    parse_clauses,
)
from reassure_spec.matrix import make_matrix
from reassure_spec.protocols import Folder
from reassure_spec.readings import PROFILES, READINGS

GOOD = """# Things

## First things

Some introduction that is no clause.

r[thing.first.rule]
A thing MUST be
first.
Level: MUST
Source: nowhere, section 1
Profiles: kip-236, kip-236-amended
Why: it would be
second otherwise.
"""


def test_clause_is_read_field_by_field() -> None:
    """A block gives id, sentence, level, source, profiles, reason and chapter, lines joined."""
    (found,) = parse_clauses(GOOD, "things.md")
    assert found.id == "thing.first.rule"
    assert found.sentence == "A thing MUST be first."
    assert found.level == "MUST"
    assert found.source == "nowhere, section 1"
    assert found.profiles == ("kip-236", "kip-236-amended")
    assert found.why == "it would be second otherwise."
    assert found.chapter == "First things"


def test_reason_for_no_scenario_is_optional() -> None:
    """A clause may say why no scenario tells it, after its other fields."""
    (plain,) = parse_clauses(GOOD, "things.md")
    (untold,) = parse_clauses(GOOD + "Untold: nothing shows\nit.\n", "things.md")
    assert (plain.untold, untold.untold) == ("", "nothing shows it.")


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("r[thing.first.rule]", "r[Thing]", "not a clause id"),
        ("r[thing.first.rule]", "r[thing..rule]", "not a clause id"),
        ("Level: MUST", "Level: OUGHT", "level 'OUGHT'"),
        ("Level: MUST\n", "", "lacks Level"),
        ("Level: MUST", "Level: UNTESTABLE", "`Unseen` goes with"),
        ("second otherwise.", "second otherwise.\nUnseen: dark.", "`Unseen` goes with"),
        ("Source: nowhere, section 1\n", "", "lacks Source"),
        ("Profiles: kip-236, kip-236-amended\n", "", "lacks Profiles"),
        ("Why: it would be\nsecond otherwise.\n", "", "lacks Why"),
        ("A thing MUST be\nfirst.\n", "", "lacks a sentence"),
    ],
)
def test_bad_block_names_file_and_fault(old: str, new: str, complaint: str) -> None:
    """A block that does not keep the format is refused with the file and what is wrong."""
    with pytest.raises(BadBlock, match=r"things\.md") as caught:
        parse_clauses(GOOD.replace(old, new), "things.md")
    assert complaint in str(caught.value)


def test_id_that_stands_twice_refused() -> None:
    """Two clauses with one id are refused by that id."""
    with pytest.raises(BadBlock, match=r"things.md.*thing\.first\.rule"):
        parse_clauses(GOOD + "\n" + GOOD, "things.md")


def test_id_that_stands_in_two_files_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clause of one file may not stand in another one."""
    twice = SimpleNamespace(list_texts=lambda _: [("a/one.md", GOOD), ("a/two.md", GOOD)])
    monkeypatch.setattr("reassure_spec.clauses.list_folders", lambda: (twice,))
    with pytest.raises(BadBlock, match=r"two.md.*already stands in another file"):
        load_clauses.__wrapped__()


def test_folder_without_clauses_has_none(tmp_path: Path) -> None:
    """A protocol need have no file of a kind."""
    assert list(Folder("none", tmp_path, {}).list_texts("clauses")) == []


def test_every_clause_keeps_house_rules() -> None:
    """Each clause has a known level and profile, a capital, a full stop, and its keyword in it."""
    for found in load_clauses().values():
        assert found.level in LEVELS, found.id
        assert set(found.profiles) <= set(PROFILES), found.id
        assert found.sentence[0].isupper(), found.id
        assert found.sentence.endswith("."), found.id
        assert found.why.endswith((".", ".)")), found.id
        assert found.chapter, found.id


def find_words(sentence: str) -> set[str]:
    """Return the normative words of a sentence."""
    return set(re.findall(r"\b(MUST|SHOULD|MAY|SHALL|REQUIRED|RECOMMENDED)\b", sentence))


@pytest.mark.parametrize("clause_id", load_clauses())
def test_wording_of_clause_is_its_level(clause_id: str) -> None:
    """A clause says the word of its level and no other; UNTESTABLE says MUST and why unseen."""
    found = load_clauses()[clause_id]
    word = "MUST" if found.level == "UNTESTABLE" else found.level
    assert find_words(found.sentence) == {word}
    assert bool(found.unseen) == (found.level == "UNTESTABLE")


def test_other_wording_is_noticed() -> None:
    """Two words, another word and none are all told from the one of the level."""
    assert find_words("It MAY wait and MUST then go on.") == {"MAY", "MUST"}
    assert find_words("It SHALL NOT wait.") == {"SHALL"}
    assert find_words("It must wait, MUSTARD.") == set()


def test_readings_and_findings_in_clauses_exist() -> None:
    """A reading or finding that a clause refers to is one of the registers."""
    from reassure_spec.findings import FINDINGS

    readings = {reading.name for reading in READINGS}
    findings = {finding.id for finding in FINDINGS}
    for found in load_clauses().values():
        name = r"([a-z-]+\.[a-z.-]*[a-z])"
        named = re.search(rf"readings? {name}(?: and {name})?", found.source)
        if named is not None:
            assert {group for group in named.groups() if group} <= readings, found.id
        assert set(re.findall(r"finding ([a-z]+-\d+)", found.why)) <= findings, found.id


def test_each_profile_has_clauses_in_order_of_text() -> None:
    """The clauses of a profile are those that list it, in the order of the files."""
    for profile in PROFILES:
        found = clauses_of_profile(profile)
        order = list(load_clauses())
        assert [order.index(c.id) for c in found] == sorted(order.index(c.id) for c in found)
    assert len(clauses_of_profile("kip-236-amended")) > len(clauses_of_profile("kip-236")) > 0
    assert clauses_of_profile("nonsense") == ()


def test_registering_leaves_function_as_it_is() -> None:
    """The decorator records the place and gives back the very function."""

    def carry_out() -> None:
        """Do nothing."""

    assert clause("drop.leader-kept")(carry_out) is carry_out
    places = get_places()["drop.leader-kept"]
    assert any(place.endswith("carry_out") for place in places)


@checks
def check_first(state: object) -> tuple[str, ...]:
    """Name two clauses."""
    return () if state else ("drop.leader-kept", "drop.keep-top")


@clause("drop.slice.inclusive")
def check_all(state: object) -> tuple[str, ...]:
    """Name one, and use another check."""
    return (*check_first(state), "drop.keep-top", "no clause")


def test_clauses_are_read_off_the_text_of_a_check() -> None:
    """A function carries out what its text names, what its checks do, and what it registers."""
    named = ("drop.leader-kept", "drop.keep-top")
    assert list_clauses(check_all) == named
    assert list_carried(check_all) == (*named, "drop.slice.inclusive")
    assert all("test_spec_clauses" in str(get_places()[each]) for each in named)


def test_matrix_has_a_cell_for_each_source() -> None:
    """A row of the matrix says in which places each source names its clause."""
    some = parse_clauses(GOOD, "things.md")
    (row,) = make_matrix(some, {"test": {"thing.first.rule": ["test.py:3"]}, "proof": {}})
    assert row.places == {"test": ("test.py:3",), "proof": ()}
