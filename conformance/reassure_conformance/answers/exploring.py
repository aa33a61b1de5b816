"""What `reassure explore` does: run the explorer, and keep what it found in a directory."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from reassure_conformance.report.document import Document, write_text
from reassure_conformance.report.itf import list_states, make_itf
from reassure_conformance.scenarios.scenario import Scenario
from reassure_conformance.scenarios.telling import TELLERS, get_text, tell
from reassure_conformance.script import SUFFIX
from reassure_explorer.engine.explore import (
    Exploration,
    describe_trace,
    describe_violation,
    explore,
)
from reassure_explorer.engine.interface import DEADLOCK, Model, ModelError
from reassure_explorer.engine.loading import BadModel, blame, load_model
from reassure_explorer.engine.packing import EngineError
from reassure_explorer.engine.renderings import draw_trace, tell_trace
from reassure_explorer.engine.result import Budget, Violation
from reassure_explorer.engine.validation import Validation, read_history, validate
from reassure_explorer.scopes.catalogue import (
    COUNTS,
    MEETINGS,
    SCOPES,
    get_model,
    get_scope,
    pin,
)
from reassure_explorer.scopes.pictures import draw_scope_trace
from reassure_spec.errors import BadUsage
from reassure_spec.profiles import DEFAULT_PROFILE
from reassure_spec.readings import get_profile

Progress = Callable[[str, int, int], None]


Listed = tuple[str, str, list[str], list[list[str]]]
"""A list: its name among records, its title, its columns and its rows."""


def list_scopes() -> Listed:
    """Return the standard scopes and the meetings: what each holds, its profile and its counts."""
    columns = ["scope", "what it holds", "profile", "states", "steps", "depth"]
    rows = [
        [scope.name, scope.summary, scope.profile, *format_counts(scope.name, scope.profile)]
        for scope in (*SCOPES.values(), *MEETINGS.values())
    ]
    return "scopes", "Scopes", columns, rows


def format_counts(scope: str, profile: str) -> list[str]:
    """Return distinct states, steps and depth as they are known, `-` where they are not."""
    known = COUNTS.get((scope, profile))
    return ["-"] * 3 if known is None else [f"{number:,}" for number in known]


@dataclass(frozen=True, slots=True)
class Explored:
    """What is explored: a standard scope under its rules, or a model from elsewhere."""

    model: Model
    profile: str | None = None
    readings: Mapping[str, str] = field(default_factory=dict)
    reference: str | None = None
    """What names the function that made a model from elsewhere."""

    @contextmanager
    def blamed(self) -> Iterator[None]:
        """Raise BadModel, with the place, for what goes wrong in a model from elsewhere."""
        try:
            yield
        except (ModelError, EngineError) as error:
            if self.reference is None:
                raise
            raise BadModel(f"{self.reference}: {error}") from error
        except Exception as error:
            found = self.reference and blame(self.reference, self.model, error)
            if not found:
                raise
            raise found from error


def choose_profile(scope: str) -> str:
    """Return the profile that a scope is about. Raises UnknownScope."""
    return get_scope(scope).profile


def choose_scope(scope: str, profile: str, readings: Mapping[str, str]) -> Explored:
    """Return a standard scope under a profile.

    Raises UnknownScope, UnknownReading, RefusedReading.
    """
    found, model = get_model(scope, profile, readings)
    return Explored(model, profile, found.as_dict())


class BadRequest(BadUsage):
    """Options that make no sense together, or a place where nothing can be written."""


OF_SCOPES: Final = ("scope", "profile", "readings", "sweep")
"""Options that say something of a standard scope only."""


def choose_model(reference: str, given: Iterable[str]) -> Explored:
    """Return a model from elsewhere; `given` are the options that somebody chose.

    Raises BadRequest, BadReference, NoModel, BadModel.
    """
    idle = [name for name in given if name in OF_SCOPES]
    if idle:
        flag = "--reading" if idle[0] == "readings" else f"--{idle[0]}"
        raise BadRequest(f"{flag} is for the scopes of reassure: leave out {flag} or --model")
    return Explored(load_model(reference), reference=reference)


def check_options(options: Mapping[str, Any], subject: Explored, out: Path | None) -> None:
    """Refuse, before anything is explored, what cannot be done afterwards.

    `out` is the directory that is to be written. Raises BadRequest.
    """
    if out is not None and not out.absolute().parent.is_dir():
        raise BadRequest(f"{out}: the directory {out.parent} does not exist; create it first")
    if options["liveness"] and not subject.model.temporal:
        advice = "define `temporal` in it" if subject.reference else "use --scope restless"
        raise BadRequest(
            f"{subject.model.name} does not say what must come about, which --liveness needs; "
            f"{advice}"
        )


def run_explore(options: Mapping[str, Any], subject: Explored, progress: Progress) -> Exploration:
    """Explore as the options of the command line say."""

    def tell(at: Any) -> None:
        rate = at.generated / max(at.seconds, 1e-9)
        words = (
            f"depth {at.depth}, {at.distinct:,} states, {at.frontier:,} new, {rate:,.0f} steps/s"
        )
        progress(words, 0, 0)

    budget = Budget(options["states"], options["seconds"], options["memory_mib"])
    with subject.blamed():
        found = explore(
            subject.model,
            engine=options["engine"],
            profile=subject.profile,
            readings=subject.readings,
            budget=budget,
            keep_going=options["keep_going"],
            minimise=options["minimise_faults"],
            liveness=options["liveness"],
            threads=options["threads"],
            progress=tell,
            symmetry=options["symmetry"],
            remember=not options["learn_anew"],
        )
        return found if subject.reference else pin(found)


OF_VALIDATION: Final = ("model", "trace", "unlogged", "states", "seconds", "form")
"""Options that have a sense where a history is held against a model."""


def run_validation(
    subject: Explored,
    path: Path | None,
    unlogged: Iterable[str],
    options: Mapping[str, Any],
    given: Iterable[str],
) -> Validation:
    """Hold a history against a model from elsewhere; `given` are the options that somebody chose.

    Raises BadRequest, BadHistory, UnknownAction, BadModel.
    """
    if path is None:
        raise BadRequest("--unlogged is for a history: name one with --trace")
    if subject.reference is None:
        raise BadRequest("--trace is for models of your own: name one with --model")
    idle = [name for name in given if name not in OF_VALIDATION]
    if idle:
        flag = f"--{idle[0].replace('_', '-')}"
        raise BadRequest(f"{flag} does not go with --trace: leave out one of them")
    budget = Budget(options["states"], options["seconds"])
    with subject.blamed():
        return validate(subject.model, read_history(path, subject.model), unlogged, budget)


def make_validation_document(found: Validation, path: Path) -> Document:
    """Return the document of a history that was held against a model."""
    refused = None
    if found.refused is not None:
        refused = {
            "line": found.refused.number,
            "text": found.refused.text,
            "reasons": list(found.reasons),
        }
    return Document(
        "explore",
        found.verdict.value,
        found.seconds,
        {"lines": found.lines, "fitted": found.fitted, "candidates": found.candidates},
        body={
            "scope": found.model,
            "trace": str(path),
            "unlogged": list(found.unlogged),
            "unfinished": found.unfinished,
            "refused": refused,
            "story": describe_trace(found.trace),
        },
    )


def run_sweep(subject: Explored) -> Listed:
    """Settle every reading otherwise, one at a time; answer what that changes."""
    from reassure_explorer.scopes.sweep import sweep

    rows = [
        [
            f"{found.reading}={found.value}",
            ", ".join(f"{name} ({steps} steps)" for name, steps in found.broken.items()) or "-",
            ", ".join(found.mended) or "-",
            ", ".join(found.findings) or ("none: this is new" if found.broken else "-"),
        ]
        for found in sweep(subject.model.name, subject.profile or "")
    ]
    title = f"Readings that change what holds in {subject.model.name} ({subject.profile})"
    return "readings_swept", title, ["reading", "breaks", "mends", "findings"], rows


def make_scenarios(exploration: Exploration) -> dict[str, Scenario]:
    """Return each story as a scenario, by the invariant that it breaks; all are replayed here.

    Scenarios tell of our own models only, one at a time, and of clauses: deadlock is the matter of
    none.
    """
    if exploration.profile is None or not _is_told(exploration):
        return {}
    return {
        violation.invariant: _tell(exploration, violation)
        for violation in exploration.result.violations
        if violation.invariant != DEADLOCK
    }


def _is_told(exploration: Exploration) -> bool:
    readings = get_profile(exploration.profile or DEFAULT_PROFILE)
    return type(get_scope(exploration.scope).make_source(readings)) in TELLERS


def _tell(exploration: Exploration, violation: Violation) -> Scenario:
    scope, profile = exploration.scope, exploration.profile or ""
    readings, _ = get_model(scope, profile, exploration.readings)
    return tell(scope, profile, readings, violation)


def make_document(exploration: Exploration) -> Document:
    """Return the document of an exploration."""
    result = exploration.result
    return Document(
        "explore",
        exploration.verdict.value,
        result.seconds + result.seconds_compiling,
        exploration.counts,
        profile=exploration.profile,
        readings=exploration.readings,
        body=exploration.make_body(),
    )


def write_stories(exploration: Exploration, directory: Path) -> None:
    """Write result.json, and each story as text, scenario, ITF trace and picture."""
    draw = draw_trace if exploration.profile is None else draw_scope_trace
    directory.mkdir(parents=True, exist_ok=True)
    make_document(exploration).write(directory)
    for name, scenario in make_scenarios(exploration).items():
        place = directory / "counterexamples" / f"{name}{SUFFIX}"
        place.parent.mkdir(exist_ok=True)
        write_text(place, get_text(scenario))
    for violation in exploration.result.violations:
        title, told = f"{violation.invariant}: {violation.reason}", describe_violation(violation)
        texts = {
            ".txt": f"{title}\n{tell_trace(violation.trace)}\n",
            ".itf.json": make_itf(list_states(told["story"]), exploration.scope),
            ".svg": draw(violation.trace, title),
        }
        for suffix, text in texts.items():
            write_text(directory / f"{violation.invariant}{suffix}", text)
