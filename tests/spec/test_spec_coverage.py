"""The map from the documents to the clauses: its own order, and the documents where at hand."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reassure_conformance.scenarios.scenario import find_scenario
from reassure_spec.clauses import load_clauses
from reassure_spec.coverage import (
    SEEDS_VARIABLE,
    WORDS_MOST,
    BadCoverage,
    Entry,
    check_coverage,
    find_citations,
    find_seeds,
    load_entries,
    split_sentences,
)
from reassure_spec.findings import get_finding
from reassure_spec.readings import READINGS, Reading

TEXT = "A heading\n\n1. The leader stays. Really\nit does.\n2. Others may go.\n"
CLAUSES_MOST = 4
"""More clauses than this for one sentence say that nobody has read it."""
SENTENCES_MOST = 8
"""A clause that accounts for more sentences than this accounts for unlike ones."""


def make_entries() -> tuple[Entry, ...]:
    """The map of `TEXT`."""
    told = (
        ((), "heading"),
        (("drop.leader-kept",), "who"),
        ((), "again"),
        (("drop.keep-top",), "x"),
    )
    return tuple(
        Entry("paper", "rule", s.line, s.column, s.begins, s.hash, clauses, why)
        for s, (clauses, why) in zip(split_sentences(TEXT), told, strict=True)
    )


@pytest.fixture
def seeds(tmp_path: Path) -> Path:
    """A folder with one document."""
    (tmp_path / "paper.txt").write_text(TEXT)
    (tmp_path / "another.txt").write_text("Nothing like it.")
    return tmp_path


def kinds(entries: tuple[Entry, ...], seeds: Path | None) -> list[str]:
    """The kinds of the problems that a check finds."""
    return [problem.kind for problem in check_coverage(seeds, entries).problems]


def test_map_is_complete_in_itself() -> None:
    """Every entry has a reason, its clauses exist, and entries stand in the order of the text."""
    assert check_coverage().problems == ()


def test_every_sentence_of_the_documents_is_accounted_for() -> None:
    """Where the documents are at hand, the map has all of their sentences where they stand."""
    seeds = find_seeds()
    if seeds is None:
        pytest.skip(f"the documents are not here; set {SEEDS_VARIABLE} to their folder")
    coverage = check_coverage(seeds)
    assert [problem.reason for problem in coverage.problems] == []
    assert coverage.documents_checked == 5
    counts = coverage.count()
    assert counts["accounted"] == counts["sentences"] == len(load_entries()) > 300


def test_map_holds_first_words_only() -> None:
    """The map knows sentences by a few words and hashes of twelve digits."""
    assert all(len(entry.begins.split()) <= WORDS_MOST for entry in load_entries())
    assert all(len(e.hash) == 12 and int(e.hash, 16) >= 0 for e in load_entries())


def test_no_clause_accounts_for_a_page() -> None:
    """A sentence has few clauses and a clause few sentences, those of the two drafts once."""
    assert [e.place for e in load_entries() if len(e.clauses) > CLAUSES_MOST] == []
    told = Counter(
        c for clauses, _ in {(e.clauses, e.hash) for e in load_entries()} for c in clauses
    )
    assert [clause for clause, times in told.items() if times > SENTENCES_MOST] == []


def test_like_reasons_are_of_like_sentences() -> None:
    """Each sentence that clauses account for has a reason of its own, rows of a table apart."""
    told = Counter(why for why, _ in {(e.why, e.hash) for e in load_entries() if e.clauses})
    assert [why for why, times in told.items() if times > 1] == ["a row of the table"]


def find_gaps(clause_id: str, source: str) -> list[str]:
    """Return what a clause cites that is not there, or where no sentence is one of its own.

    What a source says that a document is silent about is looked for and not demanded.
    """
    gaps = []
    for cited in find_citations(source, load_entries()):
        own = [e for e in load_entries() if cited.covers(e) and clause_id in e.clauses]
        silent = f"silent in {cited.document}, " in source
        if not cited.section or not (own or silent or cited.text.endswith("(silent)")):
            gaps.append(f"{cited.document}, {cited.text}")
    return gaps


@pytest.mark.parametrize("clause_id", load_clauses())
def test_clause_and_its_source_name_each_other(clause_id: str) -> None:
    """What a clause cites is in the documents, and has a sentence that names the clause."""
    assert find_gaps(clause_id, load_clauses()[clause_id].source) == []


@pytest.mark.parametrize("reading", READINGS, ids=lambda reading: reading.name)
def test_section_that_reading_cites_exists(reading: Reading) -> None:
    """Every section and step that a reading gives for its source is one of the documents."""
    assert [c.text for c in find_citations(reading.source, load_entries()) if not c.section] == []


@pytest.mark.parametrize(
    "source",
    [
        "KIP-46, generating tasks",
        "KIP-236, drop rule, note 1",
        "KIP-236, drop rule, step 7",
        "KAFKA-42, section 2, steps 6 to 8",
        "KAFKA-42, section 22",
        "silent in KAFKA-42, failure case 6",
        "KAFKA-42, section 6",
    ],
)
def test_source_that_is_none_is_noticed(source: str) -> None:
    """A section or part that no document has is found, and one that says something else."""
    assert len(find_gaps("move.step.write-assigned", source)) == 1


NAMED = re.compile(
    r"(finding|reading|scenario)s? ([a-z][a-z0-9-]*[a-z0-9./-]*)(?: (?:to|and) ([\w.-]+))?"
)


def find_named(why: str) -> Iterator[tuple[str, str]]:
    """Yield the findings, readings and scenarios that a reason names."""
    for kind, first, second in NAMED.findall(why):
        yield kind, first
        if kind == "finding" and second:
            yield kind, second


def test_reasons_name_what_there_is() -> None:
    """The findings, readings and scenarios that reasons name exist."""
    readings = {reading.name for reading in READINGS}
    named = {pair for entry in load_entries() for pair in find_named(entry.why)}
    assert {kind for kind, _ in named} == {"finding", "reading", "scenario"}
    for kind, name in named:
        if kind == "finding":
            assert get_finding(name)
        elif kind == "reading":
            assert name in readings, name
        else:
            assert find_scenario(name).is_file(), name


def test_good_map_has_no_problems(seeds: Path) -> None:
    """Map and document that agree leave nothing to say."""
    coverage = check_coverage(find_seeds(seeds), make_entries())
    assert coverage.problems == ()
    assert (coverage.documents_checked, coverage.count()["accounted"]) == (1, 4)


def test_sentence_without_an_entry_is_missing(seeds: Path) -> None:
    """A sentence that the map does not have is reported with its place."""
    first, second, _, last = make_entries()
    (problem,) = check_coverage(seeds, (first, second, last)).problems
    assert (problem.kind, problem.reason.split(" (")[0]) == (
        "missing",
        "3:22 'Really it does.' is not in the map",
    )
    counts = check_coverage(seeds, (first, second, last)).count()
    assert counts["accounted"] < counts["sentences"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (TEXT.replace("Others", "Some"), ["missing", "stale"]),
        (TEXT.replace("2.", "\n2."), ["moved"]),
        (None, ["no-document"]),
    ],
)
def test_document_that_changed_is_noticed(
    seeds: Path, text: str | None, expected: list[str]
) -> None:
    """One changed word, a line more before a sentence, and an absent document are reported."""
    (seeds / "paper.txt").unlink()
    if text is not None:
        (seeds / "paper.txt").write_text(text)
    assert kinds(make_entries(), seeds) == expected


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"begins": "Others may go or stay here"}, ["words"]),
        ({"why": ""}, ["unaccounted"]),
        ({"why": "", "clauses": ()}, ["unaccounted"]),
        ({"clauses": ("drop.nothing",)}, ["unknown-clause"]),
        ({"line": 1}, ["order"]),
        ({"hash": make_entries()[0].hash}, ["order"]),
    ],
)
def test_entry_that_is_wrong_is_reported(change: dict[str, Any], expected: list[str]) -> None:
    """An entry has few words, a reason, clauses that exist, and its place in the text, once."""
    *others, last = make_entries()
    assert kinds((*others, replace(last, **change)), None) == expected


def test_other_first_words_are_noticed(seeds: Path) -> None:
    """The first words in the map are those of the sentence."""
    *others, last = make_entries()
    assert kinds((*others, replace(last, begins="Others go")), seeds) == ["words"]


ENTRY = {"at": "1:1", "section": "s", "begins": "A", "hash": "0", "clauses": [], "why": "x"}


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("{", "expected an object with `documents`"),
        ({"documents": {"paper": [{"at": "1:1"}]}}, "an entry of paper lacks 'section'"),
        ({"documents": {"paper": [ENTRY | {"at": "above"}]}}, "expected `at` as LINE:COLUMN"),
    ],
)
def test_map_that_cannot_be_read_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: Any, complaint: str
) -> None:
    """A map that is no JSON, or has an entry without its parts, is refused with what is wrong."""
    text = content if isinstance(content, str) else json.dumps(content)
    (tmp_path / "coverage.json").write_text(text)
    monkeypatch.setattr("reassure_spec.coverage.files", lambda _: tmp_path)
    with pytest.raises(BadCoverage, match=complaint):
        load_entries()


def test_wrapping_and_quoting_do_not_matter() -> None:
    """A text that is wrapped or quoted otherwise has the same sentences."""
    quoted = (
        "> A heading\n>\n>    1. The leader\n> stays. Really it does.\n>\xa02. Others may go.\n"
    )
    assert [s.text for s in split_sentences(quoted)] == [s.text for s in split_sentences(TEXT)]


def test_items_labels_and_rules_end_a_sentence() -> None:
    """List marks, one-word labels and lines without a letter separate sentences."""
    text = "One\n- two\n3) three\n2a. four\n• five\nGuarantee:\nsix\n----\nseven\n- two\n"
    found = ["One", "two", "three", "four", "five", "Guarantee:", "six", "seven"]
    assert [sentence.text for sentence in split_sentences(text)] == found


def test_abbreviations_end_no_sentence() -> None:
    """Neither abbreviations nor list marks end a sentence; each begins at its own column."""
    found = list(split_sentences("1. It waits, e.g. for ZK. Then? It goes on"))
    assert [(s.column, s.begins) for s in found] == [
        (4, "It waits, e.g. for ZK."),
        (27, "Then?"),
        (33, "It goes on"),
    ]


def test_named_folder_must_exist(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A folder that was named and is not there is an error, not a silent skip."""
    monkeypatch.setenv(SEEDS_VARIABLE, str(tmp_path / "nowhere"))
    with pytest.raises(BadCoverage, match="no such folder"):
        find_seeds()
