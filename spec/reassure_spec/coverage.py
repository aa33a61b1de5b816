"""The map from the documents to the clauses, sentence by sentence.

`coverage.json` lists every sentence of the five documents: document, section, the line and column
at which it begins, its first words, a short hash of its text, the clauses that say what it says,
and why: why these clauses account for it, or, where there are none, why it asks for nothing. No
more of the text is in the map than the first words. Where the documents are at hand
(`find_documents`) the map is held against them: a sentence that the map does not have, one that has
changed or moved, and an entry that no sentence has are reported.

What a sentence is. Lines are stripped of no-break and zero-width spaces and of the `>` marks of a
quoting mail. A blank line ends a paragraph, and so does the mark of a list item at the beginning of
a line (`1.`, `2a.`, `1.2`, `3)`, `-`, `•`), which is no part of the sentence behind it. Inside a
paragraph a full stop, question or exclamation mark before a space ends a sentence, except behind
`i.e.`, `e.g.` and the like; a heading or a fragment is a sentence. All white space counts as one
space, so that a text wrapped otherwise has the same sentences. A line that is one word and a colon
stands for itself, and a line without letter or digit only ends a paragraph. A text that stands
twice in a document is one sentence, at its first place.

The sections of the map are what clauses and readings may cite (`find_citations`).
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
from reassure_spec.errors import BadData
from reassure_spec.protocols import list_folders

HASH_LENGTH: Final = 12
"""Hexadecimal digits of the hash that are kept."""
WORDS_MOST: Final = 5
"""Words of a sentence that are kept."""
LEAST_SHARED: Final = 0.2
"""Part of all sentences that a file and a document must share to be taken for the same."""
SEEDS_VARIABLE: Final = "REASSURE_SEEDS"
"""Environment variable that names the folder of the documents."""

_ITEM: Final = re.compile(r"^(?:\d+[a-z]?[.)]|\d+\.\d+|[-•])\s+")
_QUOTE: Final = re.compile(r"^(?:>\s?)+")
_LABEL: Final = re.compile(r"^\w+:$")
_SENTENCE_END: Final = re.compile(r"(?<!\bi\.e)(?<!\be\.g)(?<!\bie)(?<!\betc)[.!?](?=\s|$)")
_ODD_SPACES: Final = str.maketrans("\xa0\u200b\ufeff", "   ")


class BadCoverage(BadData):
    """A map that does not keep its format, or documents that are not where they should be."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence of a document."""

    line: int
    """Line at which it begins, from 1."""
    column: int
    """Column at which it begins, from 1."""
    text: str
    """The whole of it, its white space as single spaces."""

    @property
    def hash(self) -> str:
        """The first `HASH_LENGTH` digits of the SHA-256 of the text."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:HASH_LENGTH]

    @property
    def begins(self) -> str:
        """The first words."""
        return " ".join(self.text.split()[:WORDS_MOST])


@dataclass(frozen=True, slots=True)
class Entry:
    """What the map says of one sentence."""

    document: str
    section: str
    line: int
    column: int
    begins: str
    """Its first words, `WORDS_MOST` at most."""
    hash: str
    clauses: tuple[str, ...]
    """The clauses that say what it says, none where it asks for nothing."""
    why: str
    """Why these clauses account for it, or why none has to."""

    @property
    def place(self) -> str:
        """Where the sentence is and how it begins, for people."""
        return f"{self.line}:{self.column} {self.begins!r}"


@dataclass(frozen=True, slots=True)
class Problem:
    """One way in which map, clauses and documents disagree."""

    kind: str
    """`missing`, `stale`, `moved`, `words`, `unaccounted`, `unknown-clause`, `order` or
    `no-document`."""
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
        good = [e for e in self.entries if e.why and (e.document, e.hash) not in bad]
        missing = sum(1 for p in self.problems if p.kind == "missing")
        return {
            "sentences": len(self.entries) + missing,
            "accounted": len(good),
            "clauses": len({c for e in self.entries for c in e.clauses}),
            "scenarios": count_scenarios(),
        }


_Character = tuple[str, int, int]
"""A character of a paragraph, and the line and column where it stands."""


def _split_paragraphs(text: str) -> Iterator[list[_Character]]:
    """Yield the paragraphs, lines joined by a space, each character with its place."""
    paragraph: list[_Character] = []
    after_label = False
    for number, raw in enumerate([*text.split("\n"), ""], start=1):
        line = raw.translate(_ODD_SPACES)
        quote = _QUOTE.match(line)
        begin = quote.end() if quote is not None else 0
        begin += len(line[begin:]) - len(line[begin:].lstrip())
        line = line[begin:].rstrip()
        is_text = any(character.isalnum() for character in line)
        is_label = _LABEL.match(line) is not None
        item = _ITEM.match(line)
        if paragraph and (not is_text or is_label or after_label or item):
            yield paragraph
            paragraph = []
        if is_text:
            if not paragraph and item is not None:
                begin, line = begin + item.end(), line[item.end() :]
            space = [(" ", number, begin)] if paragraph else []
            letters = ((c, number, begin + i) for i, c in enumerate(line, start=1))
            paragraph = [*paragraph, *space, *letters]
        after_label = is_label


def split_sentences(text: str) -> Iterator[Sentence]:
    r"""Yield the sentences of a document, repeated ones at their first place.

    >>> [(s.line, s.column, s.text) for s in split_sentences("One\nline. Two.\n 1. Three\n> Two.")]
    [(1, 1, 'One line.'), (2, 7, 'Two.'), (3, 5, 'Three Two.')]
    """
    seen: set[str] = set()
    for paragraph in _split_paragraphs(text):
        whole = "".join(character for character, _, _ in paragraph)
        ends = [match.end() for match in _SENTENCE_END.finditer(whole)]
        begin = 0
        for end in (*ends, len(whole)):
            part = whole[begin:end]
            first = paragraph[begin + len(part) - len(part.lstrip())] if part.strip() else None
            sentence = " ".join(part.split())
            if first and sentence not in seen and any(map(str.isalnum, sentence)):
                seen.add(sentence)
                yield Sentence(*first[1:], sentence)
            begin = end


def count_scenarios() -> int:
    """Return how many scenario files the spec has."""
    every = (folder.place / "scenarios" for folder in list_folders())
    areas = [area for place in every if place.is_dir() for area in place.iterdir()]
    return sum(1 for area in areas for file in area.iterdir() if file.name.endswith(".txt"))


def _parse_entry(document: str, record: Mapping[str, Any]) -> Entry:
    try:
        line, _, column = record["at"].partition(":")
        return Entry(
            document=document,
            section=record["section"],
            line=int(line),
            column=int(column),
            begins=record["begins"],
            hash=record["hash"],
            clauses=tuple(record["clauses"]),
            why=record["why"],
        )
    except KeyError as error:
        raise BadCoverage(f"coverage.json: an entry of {document} lacks {error}") from None
    except ValueError:
        reason = f"expected `at` as LINE:COLUMN, found {record['at']!r}"
        raise BadCoverage(f"coverage.json: an entry of {document}: {reason}") from None


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


def find_documents(folder: Path, entries: Sequence[Entry]) -> dict[str, tuple[Sentence, ...]]:
    """Return the sentences of each document of the map, found among the folder's text files.

    Files and documents are paired by how many sentences they share, best pairs first; what shares
    less than `LEAST_SHARED` of its sentences is no pair. A document without a file is left out.
    Raises OSError, UnicodeDecodeError.
    """
    files_found = {
        path: tuple(split_sentences(path.read_text(encoding="utf-8")))
        for path in sorted(folder.glob("*.txt"))
    }
    pairs: list[tuple[float, str, Path]] = []
    for path, sentences in files_found.items():
        hashes = {sentence.hash for sentence in sentences}
        for name in _names(entries):
            known = {entry.hash for entry in entries if entry.document == name}
            pairs.append((len(known & hashes) / len(known | hashes), name, path))
    found: dict[str, tuple[Sentence, ...]] = {}
    for share, name, path in sorted(pairs, key=lambda pair: -pair[0]):
        if share >= LEAST_SHARED and name not in found and path in files_found:
            found[name] = files_found.pop(path)
    return found


def _names(entries: Sequence[Entry]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(entry.document for entry in entries))


def _check_entries(entries: Sequence[Entry]) -> Iterator[Problem]:
    clauses = load_clauses()
    last: dict[str, tuple[int, int]] = {}
    for entry in entries:
        if not entry.why:
            reason = f"{entry.place}: no reason, with clauses or without"
            yield Problem("unaccounted", entry.document, entry.hash, reason)
        for clause in entry.clauses:
            if clause not in clauses:
                reason = f"{entry.place}: there is no clause {clause}"
                yield Problem("unknown-clause", entry.document, entry.hash, reason)
        if len(entry.begins.split()) > WORDS_MOST:
            reason = f"{entry.place}: more than {WORDS_MOST} words"
            yield Problem("words", entry.document, entry.hash, reason)
        if (entry.line, entry.column) <= last.get(entry.document, (0, 0)):
            reason = f"{entry.place}: stands behind {last[entry.document]}"
            yield Problem("order", entry.document, entry.hash, reason)
        last[entry.document] = (entry.line, entry.column)
    for (document, short), times in Counter((e.document, e.hash) for e in entries).items():
        if times > 1:
            yield Problem("order", document, short, f"{short} stands {times} times")


def _check_document(
    name: str, sentences: Sequence[Sentence], entries: Sequence[Entry]
) -> Iterator[Problem]:
    known = {entry.hash: entry for entry in entries if entry.document == name}
    for sentence in sentences:
        entry = known.get(sentence.hash)
        place = f"{sentence.line}:{sentence.column}"
        if entry is None:
            reason = f"{place} {sentence.begins!r} is not in the map (hash {sentence.hash})"
            yield Problem("missing", name, sentence.hash, reason)
        elif (entry.line, entry.column) != (sentence.line, sentence.column):
            yield Problem("moved", name, sentence.hash, f"{entry.place} stands at {place}")
        elif entry.begins != sentence.begins:
            reason = f"{entry.place} begins with {sentence.begins!r}"
            yield Problem("words", name, sentence.hash, reason)
    hashes = {sentence.hash for sentence in sentences}
    for short, entry in known.items():
        if short not in hashes:
            yield Problem("stale", name, short, f"{entry.place}: no sentence has this hash")


def check_coverage(seeds: Path | None = None, entries: Sequence[Entry] | None = None) -> Coverage:
    """Hold the map against the clauses, and against the documents in `seeds` where given.

    Raises BadCoverage, OSError.
    """
    listed = load_entries() if entries is None else tuple(entries)
    problems = list(_check_entries(listed))
    documents = find_documents(seeds, listed) if seeds is not None else {}
    for name, sentences in documents.items():
        problems.extend(_check_document(name, sentences, listed))
    if seeds is not None:
        problems.extend(
            Problem("no-document", name, name, f"{seeds}: no file holds this document")
            for name in _names(listed)
            if name not in documents
        )
    return Coverage(listed, tuple(problems), len(documents))


_PARTS: Final = "(step|item|note|option|case|selector|state|condition|guarantee)"
_PART: Final = re.compile(rf", {_PARTS} ")
_SEVERAL: Final = re.compile(rf"\b{_PARTS}s ((?:\d\w*(?:\.\d+)*(?:, | and | to )?)+)")


def _name_each(cited: str) -> Iterator[str]:
    """Yield one citation for each of the numbered parts that are cited together."""
    several = _SEVERAL.search(cited)
    if several is None:
        yield cited
        return
    for number in re.findall(r"\d\w*(?:\.\d+)*", several[2]):
        yield f"{cited[: several.start()]}{several[1]} {number}"


@dataclass(frozen=True, slots=True)
class Citation:
    """A section, or a numbered part of one, that a source names."""

    document: str
    text: str
    """What it says behind the document."""
    section: str
    """The section of the map that it names, "" where there is none."""

    def covers(self, entry: Entry) -> bool:
        """Whether an entry stands in what is cited."""
        inside = re.match(rf"{re.escape(self.section)}(?:[.,]|$)", entry.section)
        return entry.document == self.document and inside is not None


def find_citations(source: str, entries: Sequence[Entry]) -> Iterator[Citation]:
    """Yield what a source cites of the documents of the map.

    A source cites a section as `DOCUMENT, SECTION`, its numbered parts as `DOCUMENT, SECTION, step
    2` or `steps 2 and 3`; what comes behind is for people.

    >>> found = find_citations("KIP-236, drop rule, steps 1 and 9; KIP-46, paint", load_entries())
    >>> [(each.text, each.section) for each in found]
    [('drop rule, step 1', 'drop rule, step 1'), ('drop rule, step 9', ''), ('paint', '')]
    """
    names = sorted(_names(entries), key=len, reverse=True)
    for cited in source.split("; "):
        name = next((each for each in names if f"{each}, " in cited), None)
        if name is None:
            continue
        sections = {entry.section for entry in entries if entry.document == name}
        sections |= {section.rpartition(", ")[0] for section in sections} - {""}
        for rest in _name_each(cited.split(f"{name}, ", 1)[1]):
            found = [each for each in sections if re.match(rf"{re.escape(each)}(?![\w.])", rest)]
            section = max(found, key=len, default="")
            yield Citation(name, rest, "" if _PART.match(rest[len(section) :]) else section)
