"""The map from the documents to the clauses: its own order, and the documents where at hand."""

from dataclasses import replace
from pathlib import Path

import pytest

from reassure_spec.coverage import (
    SEEDS_VARIABLE,
    BadCoverage,
    Entry,
    check_coverage,
    count_sentences,
    find_seeds,
    hash_paragraph,
    load_entries,
    split_paragraphs,
)

TEXT = "A heading\n\n1. The leader stays.\nReally.\n2. Others may go.\n"


def make_entries() -> tuple[Entry, ...]:
    """The map of `TEXT`."""
    heading, first, second = split_paragraphs(TEXT)
    return (
        Entry("paper", "rule", 1, hash_paragraph(heading), 1, (), "heading"),
        Entry("paper", "rule", 2, hash_paragraph(first), 2, ("drop.leader-kept",)),
        Entry("paper", "rule", 3, hash_paragraph(second), 1, ("drop.keep-top",)),
    )


@pytest.fixture
def seeds(tmp_path: Path) -> Path:
    """A folder with one document."""
    (tmp_path / "paper.txt").write_text(TEXT)
    return tmp_path


def kinds(entries: tuple[Entry, ...], seeds: Path | None) -> list[str]:
    """The kinds of the problems that a check finds."""
    return [problem.kind for problem in check_coverage(seeds, entries).problems]


def test_map_is_complete_in_itself() -> None:
    """Every entry has clauses that exist or a reason, and paragraphs are numbered in order."""
    assert check_coverage().problems == ()


def test_every_paragraph_of_the_documents_is_accounted_for() -> None:
    """Where the documents are at hand, the map has all of their paragraphs and no other."""
    folder = find_seeds()
    if folder is None:
        pytest.skip(f"the documents are not here; set {SEEDS_VARIABLE} to their folder")
    coverage = check_coverage(folder)
    assert [problem.reason for problem in coverage.problems] == []
    assert coverage.documents_checked == 5
    counts = coverage.count()
    assert counts["accounted"] == counts["sentences"] > 250


def test_map_never_holds_text() -> None:
    """The map knows paragraphs by hashes of twelve digits, each once in a document."""
    places = [(entry.document, entry.hash) for entry in load_entries()]
    assert len(set(places)) == len(places)
    assert all(len(short) == 12 and int(short, 16) >= 0 for _, short in places)


def test_good_map_has_no_problems(seeds: Path) -> None:
    """Map and document that agree leave nothing to say."""
    coverage = check_coverage(seeds, make_entries())
    assert coverage.problems == ()
    assert (coverage.documents_checked, coverage.count()["accounted"]) == (1, 4)


def test_paragraph_without_an_entry_is_missing(seeds: Path) -> None:
    """A paragraph that the map does not have is reported."""
    entries = make_entries()[:2]
    assert kinds(entries, seeds) == ["missing"]
    counts = check_coverage(seeds, entries).count()
    assert counts["accounted"] < counts["sentences"]


def test_changed_paragraph_is_missing_and_stale(seeds: Path) -> None:
    """One changed word makes the entry stale and the paragraph unaccounted for."""
    (seeds / "paper.txt").write_text(TEXT.replace("Others", "Some"))
    assert kinds(make_entries(), seeds) == ["missing", "stale"]


def test_absent_document_is_reported(tmp_path: Path) -> None:
    """A document of the map that no file holds is reported."""
    assert kinds(make_entries(), tmp_path) == ["no-document"]


def test_entry_without_clause_or_reason_is_unaccounted() -> None:
    """An entry has to say something."""
    heading, *others = make_entries()
    assert kinds((replace(heading, not_normative=""), *others), None) == ["unaccounted"]


def test_entry_with_clause_and_reason_contradicts_itself() -> None:
    """What has clauses is normative."""
    *others, last = make_entries()
    assert kinds((*others, replace(last, not_normative="no")), None) == ["contradictory"]


def test_unknown_clause_is_reported() -> None:
    """A clause that the spec does not have is reported."""
    *others, last = make_entries()
    assert kinds((*others, replace(last, clauses=("drop.nothing",))), None) == ["unknown-clause"]


def test_gap_in_the_numbers_is_reported() -> None:
    """Paragraphs are numbered one by one in each section."""
    heading, _, last = make_entries()
    assert kinds((heading, last), None) == ["numbering"]


def test_wrong_number_of_sentences_is_reported(seeds: Path) -> None:
    """The map's count of sentences is that of the text."""
    heading, first, last = make_entries()
    assert kinds((heading, replace(first, sentences=3), last), seeds) == ["sentences"]


def test_wrapping_and_quoting_do_not_matter() -> None:
    """A text that is wrapped or quoted otherwise has the same paragraphs."""
    quoted = "> A heading\n>\n>    1. The leader\n> stays. Really.\n>\xa02. Others may go.\n"
    assert list(split_paragraphs(quoted)) == list(split_paragraphs(TEXT))


def test_items_labels_and_rules_end_a_paragraph() -> None:
    """List marks, one-word labels and lines without a letter separate paragraphs."""
    text = "One.\n- two\n3) three\n2a. four\n• five\nGuarantee:\nsix\n----\nseven\n- two\n"
    assert list(split_paragraphs(text)) == [
        "One.",
        "- two",
        "3) three",
        "2a. four",
        "• five",
        "Guarantee:",
        "six",
        "seven",
    ]


def test_sentences_are_counted_by_their_ends() -> None:
    """Abbreviations and list marks end no sentence; a fragment counts as one."""
    assert count_sentences("1. It waits, e.g. for ZK. Then? It goes on") == 3
    assert count_sentences("A heading") == 1


def test_named_folder_must_exist(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A folder that was named and is not there is an error, not a silent skip."""
    monkeypatch.setenv(SEEDS_VARIABLE, str(tmp_path / "nowhere"))
    with pytest.raises(BadCoverage, match="no such folder"):
        find_seeds()
