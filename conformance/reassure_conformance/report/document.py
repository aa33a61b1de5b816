"""What a verb says at its end: one JSON document with a common head, and an exit code.

Every verb's document begins alike: `verb`, `version`, `verdict`, `exit_code`, `seconds`, `seed`,
`profile`, `readings`, `counts`, `schema`; what is the verb's own comes after. `verb` names the kind
of result, as `report.spelling` has it, and `spell_verb` says how it is typed. The schema of all
documents is `report/result.schema.json` (`reassure spec schema result`).
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from reassure_spec.errors import BadData

HOLDS: Final = "holds"
VIOLATED: Final = "violated"
UNKNOWN: Final = "unknown"
VACUOUS: Final = "vacuous"
NOT_DISCRIMINATED: Final = "not discriminated"
"""Of a clause that was exercised, and only where right and wrong look alike."""

RESULT: Final = "result.json"
"""The file of a run directory in which its document stands."""
DIED: Final = "died.txt"
"""The file of a run directory with the story in which an implementation died."""
SCHEMA: Final = 1
"""The version of the schema of documents; a change that could break a reader raises it."""
INTERRUPTED: Final = 130
"""The exit code of a verb that was interrupted: neither a pass nor a violation."""
_IN_LINES: Final = ("watch",)
"""Verbs that print a line for each thing that they tell, and the document as the last."""
EXIT_CODES: Final[Mapping[str, int]] = {HOLDS: 0, VIOLATED: 1, UNKNOWN: 2, VACUOUS: 3}
"""The exit code that goes with each verdict."""


def get_version() -> str:
    """Return the version of the installed distribution."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("reassure")
    except PackageNotFoundError:
        return "0+unknown"


def result_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of every document."""
    return _load_schema("result")


def _load_schema(name: str) -> dict[str, Any]:
    from importlib.resources import files

    place = files("reassure_conformance.report") / f"{name}.schema.json"
    schema: dict[str, Any] = json.loads(place.read_text(encoding="utf-8"))
    return schema


def alert_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of what `audit --follow` tells, line by line."""
    return _load_schema("alert")


def write_text(path: Path, text: str) -> None:
    """Write a file; an OSError names it, also where writing failed rather than opening."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        error.filename = error.filename or str(path)
        raise


@dataclass(slots=True)
class Document:
    """One verb's result."""

    verb: str
    verdict: str
    seconds: float | None
    """None where the document must be the same whoever made it and however long it took."""
    counts: Mapping[str, int | float]
    seed: int | None = None
    profile: str | None = None
    readings: Mapping[str, str] = field(default_factory=dict)
    exit_code: int | None = None
    """None: the one that goes with the verdict."""
    body: Mapping[str, Any] = field(default_factory=dict)
    """What is the verb's own."""

    def get_exit_code(self) -> int:
        """Return the exit code of the process."""
        return EXIT_CODES[self.verdict] if self.exit_code is None else self.exit_code

    def as_dict(self) -> dict[str, Any]:
        """Return the document in the order in which it is printed."""
        return {
            "verb": self.verb,
            "version": get_version(),
            "verdict": self.verdict,
            "exit_code": self.get_exit_code(),
            "seconds": None if self.seconds is None else round(self.seconds, 3),
            "seed": self.seed,
            "profile": self.profile,
            "readings": dict(self.readings),
            "counts": dict(self.counts),
            "schema": SCHEMA,
            **self.body,
        }

    def write(self, directory: Path) -> None:
        """Write the document into the directory of a run, where reports are made from it."""
        write_text(directory / RESULT, self.as_json() + "\n")

    def as_json(self) -> str:
        """Return the document as JSON without a newline at its end: a line where it ends others."""
        return json.dumps(self.as_dict(), indent=None if self.verb in _IN_LINES else 2)


class BadResult(BadData):
    """A file that holds no result document that this version can read."""


def read_result(source: Path) -> dict[str, Any]:
    """Return the document in a file, or in the directory of a run. Raises BadResult."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import best_match

    path = source / RESULT if source.is_dir() else source
    if not path.is_file():
        raise BadResult(f"{path} is missing: a run writes it when it ends; repeat the run")
    try:
        result: Any = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise BadResult(f"{path} is not a JSON document: {error}") from error
    wrong = best_match(Draft202012Validator(result_schema()).iter_errors(result))
    if wrong is not None:
        raise BadResult(
            f"{path} is not a result of version {SCHEMA}: {wrong.json_path}: "
            f"{wrong.message[:300]}; "
            "see `reassure spec schema result`"
        )
    return dict(result)


def error_document(verb: str, code: int, error: Mapping[str, Any]) -> Document:
    """Return the document of a verb that came to no verdict: `error` has its class and message."""
    return Document(verb, UNKNOWN, None, {}, exit_code=code, body={"error": error})


def worst(verdicts: Iterable[str]) -> str:
    """Return the verdict on the whole: violated before unknown before vacuous before holds.

    >>> worst(["holds", "unknown", "vacuous"])
    'unknown'
    """
    found = set(verdicts)
    return next((v for v in (VIOLATED, UNKNOWN, VACUOUS) if v in found), HOLDS)
