"""The map from the documents to the clauses.

`coverage.json` lists every paragraph of the five documents: document, section, number of the
paragraph in its section, a short hash of its text, how many sentences it has, and then either the
clauses that say what it says or the reason why it is not normative. The text itself is not in the
map. Where the documents are at hand (`find_documents`) the map is held against them: a paragraph
that the map does not have, and an entry that no paragraph has, are both reported.

What a paragraph is. Lines are stripped of no-break and zero-width spaces and of the `>` marks of a
quoting mail. A blank line ends a paragraph, and so does the mark of a list item at the beginning of
a line (`1.`, `2a.`, `1.2`, `3)`, `-`, `•`), which belongs to the paragraph that it begins. Inside a
paragraph all white space counts as one space, so that a text wrapped otherwise is the same text.
A line that is one word and a colon is a paragraph of its own, and a line without letter or digit
only ends one. A text that stands twice in a document is one
paragraph, at its first place.
"""

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from reassure_spec.clauses import load_clauses

HASH_LENGTH: Final = 12
"""Hexadecimal digits of the hash that are kept."""
LEAST_SHARED: Final = 0.2
"""Part of all paragraphs that a file and a document must share to be taken for the same."""
SEEDS_VARIABLE: Final = "REASSURE_SEEDS"
"""Environment variable that names the folder of the documents."""

_ITEM: Final = re.compile(r"^(?:\d+[a-z]?[.)]|\d+\.\d+|[-•])\s+")
_QUOTE: Final = re.compile(r"^(?:>\s?)+")
_LABEL: Final = re.compile(r"^\w+:$")
_SENTENCE_END: Final = re.compile(r"(?<!\bi\.e)(?<!\be\.g)(?<!\bie)(?<!\betc)[.!?](?=\s|$)")


class BadCoverage(ValueError):
    """A map that does not keep its format, or documents that are not where they should be."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One paragraph of a document."""

    document: str
    section: str
    paragraph: int
    """Number in its section, from 1."""
    hash: str
    """The first `HASH_LENGTH` digits of the SHA-256 of the text."""
    sentences: int
    clauses: tuple[str, ...] = ()
    not_normative: str = ""
    """Why no clause says this, "" where clauses do."""

    @property
    def is_accounted(self) -> bool:
        """Whether the paragraph has clauses or a reason to have none."""
        return bool(self.clauses) or bool(self.not_normative)


@dataclass(frozen=True, slots=True)
class Problem:
    """One way in which map, clauses and documents disagree."""

    kind: str
    """`missing`, `stale`, `unaccounted`, `contradictory`, `unknown-clause`, `numbering`,
    `sentences` or `no-document`."""
    document: str
    where: str
    reason: str


@dataclass(frozen=True, slots=True)
class Coverage:
    """What the map says, and what is wrong with it."""

    entries: tuple[Entry, ...]
    problems: tuple[Problem, ...]
    documents_checked: int
    """How many documents the map was held against."""

    def count(self) -> dict[str, int]:
        """Return the counts of a report: sentences, accounted, clauses, scenarios."""
        bad = {(p.document, p.where) for p in self.problems if p.kind != "stale"}
        good = [e for e in self.entries if e.is_accounted and (e.document, e.hash) not in bad]
        missing = sum(1 for p in self.problems if p.kind == "missing")
        return {
            "sentences": sum(e.sentences for e in self.entries) + missing,
            "accounted": sum(e.sentences for e in good),
            "clauses": len({c for e in self.entries for c in e.clauses}),
            "scenarios": count_scenarios(),
        }


def _clean(line: str) -> str:
    line = line.replace("\xa0", " ").replace("\u200b", "").replace("\ufeff", "")
    return _QUOTE.sub("", line).strip()


def split_paragraphs(text: str) -> Iterator[str]:
    r"""Yield the paragraphs of a document, each on one line, repeated ones at their first place.

    >>> list(split_paragraphs("One\nparagraph.\n1. An item\n\n> 1. An\n> item"))
    ['One paragraph.', '1. An item']
    """
    seen: set[str] = set()
    lines: list[str] = []
    after_label = False
    for line in [*map(_clean, text.splitlines()), ""]:
        is_text = any(character.isalnum() for character in line)
        is_label = _LABEL.match(line) is not None
        if lines and (not is_text or is_label or after_label or _ITEM.match(line)):
            paragraph = " ".join(" ".join(lines).split())
            lines = []
            if paragraph not in seen:
                seen.add(paragraph)
                yield paragraph
        if is_text:
            lines.append(line)
        after_label = is_label


def hash_paragraph(paragraph: str) -> str:
    """Return the short hash by which the map knows a paragraph."""
    return hashlib.sha256(paragraph.encode()).hexdigest()[:HASH_LENGTH]


def count_sentences(paragraph: str) -> int:
    """Return how many sentences a paragraph has; a heading or a fragment is one.

    >>> count_sentences("1. It waits (i.e. it does nothing). Then it goes on")
    2
    """
    text = _ITEM.sub("", paragraph)
    ends = [m.end() for m in _SENTENCE_END.finditer(text)]
    unfinished = not ends or any(c.isalnum() for c in text[ends[-1] :])
    return len(ends) + (1 if unfinished else 0)


def count_scenarios() -> int:
    """Return how many scenario files the spec has."""
    folder = files("reassure_spec") / "scenarios"
    areas = [area for area in folder.iterdir() if area.is_dir()]
    return sum(1 for area in areas for file in area.iterdir() if file.name.endswith(".txt"))


def _parse_entry(document: str, record: Mapping[str, Any]) -> Entry:
    try:
        return Entry(
            document=document,
            section=record["section"],
            paragraph=record["paragraph"],
            hash=record["hash"],
            sentences=record["sentences"],
            clauses=tuple(record.get("clauses", ())),
            not_normative=record.get("not_normative", ""),
        )
    except KeyError as error:
        raise BadCoverage(f"coverage.json: an entry of {document} lacks {error}") from None


def load_entries() -> tuple[Entry, ...]:
    """Return every entry of the map, by document and in the order of the text.

    Raises BadCoverage when the file is not of its format.
    """
    text = (files("reassure_spec") / "coverage.json").read_text(encoding="utf-8")
    try:
        documents = json.loads(text)["documents"]
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise BadCoverage(f"coverage.json: expected an object with `documents`: {error}") from None
    return tuple(_parse_entry(name, r) for name, records in documents.items() for r in records)


def find_seeds(folder: Path | None = None) -> Path | None:
    """Return the folder of the documents, None where there is none.

    `folder` if given, else what `REASSURE_SEEDS` names, else `../shared/seeds` beside the
    repository. Raises BadCoverage when a folder was named and is not there.
    """
    named = folder or (Path(os.environ[SEEDS_VARIABLE]) if SEEDS_VARIABLE in os.environ else None)
    if named is not None:
        if not named.is_dir():
            raise BadCoverage(f"{named}: no such folder; it should hold the documents as *.txt")
        return named
    beside = Path(__file__).resolve().parents[3] / "shared" / "seeds"
    return beside if beside.is_dir() else None


def find_documents(folder: Path, entries: Sequence[Entry]) -> dict[str, tuple[str, ...]]:
    """Return the paragraphs of each document of the map, found among the folder's text files.

    Files and documents are paired by how many paragraphs they share, best pairs first; what shares
    less than `LEAST_SHARED` of its paragraphs is no pair. A document without a file is left out.
    Raises OSError, UnicodeDecodeError.
    """
    files_found = {
        path: tuple(split_paragraphs(path.read_text(encoding="utf-8")))
        for path in sorted(folder.glob("*.txt"))
    }
    pairs: list[tuple[float, str, Path]] = []
    for path, paragraphs in files_found.items():
        hashes = {hash_paragraph(p) for p in paragraphs}
        for name in _names(entries):
            known = {entry.hash for entry in entries if entry.document == name}
            pairs.append((len(known & hashes) / len(known | hashes), name, path))
    found: dict[str, tuple[str, ...]] = {}
    for share, name, path in sorted(pairs, key=lambda pair: -pair[0]):
        if share >= LEAST_SHARED and name not in found and path in files_found:
            found[name] = files_found.pop(path)
    return found


def _names(entries: Sequence[Entry]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(entry.document for entry in entries))


def _check_entries(entries: Sequence[Entry]) -> Iterator[Problem]:
    clauses = load_clauses()
    last: dict[tuple[str, str], int] = {}
    for entry in entries:
        place = (entry.document, entry.section)
        where = f"{entry.section}, paragraph {entry.paragraph}"
        if not entry.is_accounted:
            reason = f"{where}: neither clause nor reason"
            yield Problem("unaccounted", entry.document, entry.hash, reason)
        if entry.clauses and entry.not_normative:
            reason = f"{where}: has clauses and is said to be not normative"
            yield Problem("contradictory", entry.document, entry.hash, reason)
        for clause in entry.clauses:
            if clause not in clauses:
                reason = f"{where}: there is no clause {clause}"
                yield Problem("unknown-clause", entry.document, entry.hash, reason)
        if entry.paragraph != last.get(place, 0) + 1:
            reason = f"{where}: expected number {last.get(place, 0) + 1}"
            yield Problem("numbering", entry.document, entry.hash, reason)
        last[place] = entry.paragraph
    for (document, short), times in Counter((e.document, e.hash) for e in entries).items():
        if times > 1:
            yield Problem("numbering", document, short, f"{short} stands {times} times")


def _check_document(
    name: str, paragraphs: Sequence[str], entries: Sequence[Entry]
) -> Iterator[Problem]:
    known = {entry.hash: entry for entry in entries if entry.document == name}
    hashes = [hash_paragraph(paragraph) for paragraph in paragraphs]
    before = "the beginning"
    for short, paragraph in zip(hashes, paragraphs, strict=True):
        entry = known.get(short)
        if entry is None:
            reason = f"the paragraph after {before} is not in the map (hash {short})"
            yield Problem("missing", name, short, reason)
            continue
        before = f"{entry.section}, paragraph {entry.paragraph}"
        sentences = count_sentences(paragraph)
        if sentences != entry.sentences:
            reason = f"{before}: {sentences} sentences, the map says {entry.sentences}"
            yield Problem("sentences", name, short, reason)
    for short, entry in known.items():
        if short not in hashes:
            reason = f"{entry.section}, paragraph {entry.paragraph}: no paragraph has this hash"
            yield Problem("stale", name, short, reason)


def check_coverage(seeds: Path | None = None, entries: Sequence[Entry] | None = None) -> Coverage:
    """Hold the map against the clauses, and against the documents in `seeds` where given.

    Raises BadCoverage, OSError.
    """
    listed = load_entries() if entries is None else tuple(entries)
    problems = list(_check_entries(listed))
    documents = find_documents(seeds, listed) if seeds is not None else {}
    for name, paragraphs in documents.items():
        problems.extend(_check_document(name, paragraphs, listed))
    if seeds is not None:
        problems.extend(
            Problem("no-document", name, name, f"{seeds}: no file holds this document")
            for name in _names(listed)
            if name not in documents
        )
    return Coverage(listed, tuple(problems), len(documents))
