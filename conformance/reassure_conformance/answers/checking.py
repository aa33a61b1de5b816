"""The gate: proofs, exploration and conformance together, one verdict and one table by clause.

Controllers are driven here, brokers with logs in a process beside: what ZooKeeper's log cannot
show, they observe. Proofs and exploration have processes of their own as well; the processors are
shared, so none waits for another.
"""

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from reassure_conformance.adapter.world import REAL_WORLD, VIRTUAL_WORLD
from reassure_conformance.answers.workers import add_seconds
from reassure_conformance.gate.controllers import ControllersResult
from reassure_conformance.gate.run_outcome import RunOutcome
from reassure_conformance.gate.run_settings import REPLICATION, Progress, Settings
from reassure_conformance.gate.running import run
from reassure_conformance.report.document import VACUOUS, Document, worst
from reassure_conformance.report.qualified import MUTANTS
from reassure_judge.verdicts import HOLDS, NOT_DISCRIMINATED, ClauseVerdict, merge_verdicts
from reassure_spec.readings import get_profile

QUICK: Final[Mapping[str, int]] = {"examples": 60, "steps_min": 500}
"""What `--quick` asks of a run."""
BROKERS: Final = "brokers"
"""What drives the brokers is called so: its directory below that of the run, and below the folder
of saved failures."""
IN_LIFE: Final = "in-life"
"""Of a run in the virtual world, the directory below it of the test cases that are told in life."""
TRIALS_OF_EXAMPLES: Final = 0.6
"""How many trials of brokers there are for each example of controllers."""
NO_CHANGES: Final[Mapping[str, str]] = MappingProxyType({})
SCOPE: Final = "small"
"""What is explored: every state of this scope, under the profile as it stands."""


@dataclass(slots=True)
class Proofs:
    """What came of the proofs."""

    theorems: list[dict[str, Any]] = field(default_factory=list)
    counts: Mapping[str, int] = field(default_factory=dict)
    verdict: str = VACUOUS

    def by_clause(self, profile: str, changes: Mapping[str, str] = NO_CHANGES) -> dict[str, str]:
        """Return what the proofs that were run under a profile, with changes, say of each clause.

        The worst word where there are several. A refutation that was expected proves nothing: the
        clause then stands beside the finding that it cures.
        """
        said: dict[str, dict[str, list[str]]] = {}
        given = {**get_profile(profile).as_dict(), **changes}
        for theorem in self.theorems:
            if not theorem["clause"]:
                continue  # a lemma about the model itself
            finding = theorem["outcome"] == "finding"
            same = profile in theorem["profiles"] and theorem["readings"].items() <= given.items()
            if same or (finding and theorem["profile"] == profile):
                words = said.setdefault(theorem["clause"], {})
                found = theorem["verdict"] if theorem["outcome"] == "holds" else theorem["outcome"]
                words.setdefault(found, []).append(theorem["finding"])
        return {clause: _worst_word(words) for clause, words in said.items()}


def _worst_word(said: Mapping[str, list[str]]) -> str:
    """Return the worst of several words; findings by their numbers.

    >>> _worst_word({"finding": ["drop-2", "drop-1"]}), _worst_word({"finding": [], "proved": []})
    ('refuted without it (drop-1, drop-2)', 'proved')
    """
    order = ("violated", "unknown", "stale", "proved")
    word = next((each for each in order if each in said), "")
    return word or f"refuted without it ({', '.join(sorted(set(said['finding'])))})"


def prove(replication_factor: int) -> Proofs:
    """Prove everything; the workers that do so are processes of their own."""
    from reassure_proofs.engine.cache import Cache, find_folder
    from reassure_proofs.engine.runner import prove_all, to_json

    results = prove_all(replication_factor=replication_factor, cache=Cache(find_folder()))
    body = to_json(results)
    return Proofs(list(body["theorems"]), dict(body["counts"]), str(body["verdict"]))


def explore_gate_scope(profile: str) -> dict[str, Any]:
    """Explore the gate's scope; answer the verb's document, and what it says in words as `text`."""
    from reassure_conformance.answers.exploring import make_document
    from reassure_explorer.scopes.catalogue import explore_scope

    exploration = explore_scope(SCOPE, profile)
    return {**make_document(exploration).as_dict(), "text": exploration.render()}


def settle_brokers(settings: Settings) -> Settings:
    """Return the settings of the brokers' run beside that of controllers.

    They go by the readings that brokers ship with: those of the profile are about controllers.
    """
    saved = Path(settings.failures, BROKERS) if settings.failures else None
    if saved is not None:
        saved.mkdir(exist_ok=True)
    return replace(
        settings,
        profile=REPLICATION,
        readings={},
        examples=round(settings.examples * TRIALS_OF_EXAMPLES),
        failures="" if saved is None else str(saved),
    )


def drive_brokers(settings: Settings, directory: Path) -> RunOutcome:
    """Carry out the run of brokers and write its directory."""
    result = run(settings, directory)
    result.as_document().write(directory)
    return result


def tell_in_life(settings: Settings, directory: Path) -> RunOutcome:
    """Tell the shipped test cases to a controller on a real ZooKeeper, and generate nothing."""
    real = replace(settings, world=REAL_WORLD, examples=0, steps_min=0, failures="")
    result = run(real, directory)
    result.as_document().write(directory)
    return result


@dataclass(slots=True)
class CheckResult:
    """What came of the gate."""

    run: ControllersResult
    brokers: RunOutcome
    """What came of the brokers with logs."""
    proofs: Proofs
    exploration: Mapping[str, Any]
    """What `explore_gate_scope` answered."""
    seconds: float
    in_life: RunOutcome | None = None
    """What came of the test cases in life, where all else was driven in the virtual world."""

    @property
    def beside(self) -> tuple[RunOutcome, ...]:
        """What was driven beside the controllers of the run."""
        return (self.brokers,) if self.in_life is None else (self.brokers, self.in_life)

    def verdict(self) -> str:
        """Return the verdict on the whole; what test cases alone do not cover is no matter."""
        explored = self.exploration["verdict"]
        said = (self.run.verdict(), self.brokers.verdict(), self.proofs.verdict, explored)
        lived = VACUOUS if self.in_life is None else self.in_life.verdict()
        return worst(said if lived == VACUOUS else (*said, lived))

    def counts(self) -> dict[str, int]:
        """Return the numbers of the runs, of the proofs and of the exploration."""
        counts = self.run.counts()
        required = {c.id for c in (*self.run.required(), *self.brokers.required())}
        missing = {*self.run.missing(), *self.brokers.missing()}
        counts["clauses_required"] = len(required)
        counts["clauses_exercised"] = len(required - missing)
        besides = self.brokers.counts()
        for name in ("examples", "steps", "observations", "acknowledged"):
            counts[f"{BROKERS}_{name}"] = besides[name]
        for name in MUTANTS:
            counts[name] += besides[name]
        return {**counts, **self.proofs.counts, **self.exploration["counts"]}

    def as_document(self) -> Document:
        """Return the document: that of the run, with the proofs beside it.

        Where only what was driven beside has failed, the story is of there.
        """
        document = self.run.as_document()
        document.verb = "check"
        document.verdict = self.verdict()
        document.counts = self.counts()
        document.seconds = self.seconds
        document.body = self.as_body()
        for each in self.beside:
            if document.exit_code is None:
                document.exit_code = each.as_document().exit_code
        return document

    def as_body(self) -> dict[str, Any]:
        """Return what the report says beyond the common head."""
        body, besides = self.run.as_body(), self.brokers.as_body()
        for other in (each.as_body() for each in self.beside):
            if other["violations"] and not body["violations"]:
                body |= {name: other[name] for name in _OF_FAILURE}
            if other["died"] and not body["died"]:
                body |= {name: other[name] for name in _OF_DEATH}
        body["mutants"] = dict(Counter(body["mutants"]) + Counter(besides["mutants"]))
        for name in ("not_followed", "not_exercised", "stale", "unsettled", "survivors"):
            body[name] = body[name] + besides[name]
        body["clause_seconds"] = add_seconds((body["clause_seconds"], besides["clause_seconds"]))
        body["unjudged"] = besides["unjudged"]
        body["clauses"] = list(self._iterate_rows())
        body["theorems"] = self.proofs.theorems
        body["exploration"] = self.exploration
        return body

    def _iterate_rows(self) -> Iterator[dict[str, Any]]:
        """Yield a row for each clause: how often it was exercised, by whom, and the proof."""
        settings = self.run.settings
        proofs = self.proofs.by_clause(settings.profile, settings.readings)
        driven = {"controllers": self.run.clauses, BROKERS: self.brokers.clauses}
        found: dict[str, dict[str, ClauseVerdict]] = {}
        for who, clauses in driven.items():
            for clause in clauses:
                found.setdefault(clause.id, {})[who] = clause
        for name, verdicts in found.items():
            by = {who: each.exercised for who, each in verdicts.items() if each.exercised}
            row = merge_verdicts(verdicts.values())
            if row.verdict == HOLDS and name in self.run.score.not_discriminated():
                row = replace(row, verdict=NOT_DISCRIMINATED)  # brokers decide nothing of it
            yield {**row.as_dict(), "by": by, "proof": proofs.get(name)}


_OF_FAILURE: Final = (
    *("violations", "story", "repeats", "clause", "findings", "timeline", "directory"),
)
_OF_DEATH: Final = ("died", "died_after", "traceback")
"""What of a report is about a failure, and about an implementation that died."""


def check(
    settings: Settings,
    directory: Path,
    progress: Progress,
    *,
    replication_factor: int = 4,
) -> CheckResult:
    """Run the gate. Raises what `run` raises, and the proofs' own error where they failed."""
    start = time.monotonic()
    below, in_life = directory / BROKERS, directory / IN_LIFE
    if settings.connectable.startswith("direct:"):
        # What it refuses is said at once, and not once everything has been proved.
        here = replace(settings, world=REAL_WORLD)
        here.open(here.make_world(directory)).close()
    below.mkdir()
    with (
        ThreadPoolExecutor(1) as aside,
        ProcessPoolExecutor(2, mp_context=get_context("spawn")) as beside,
    ):
        proving = aside.submit(prove, replication_factor)
        driving = beside.submit(drive_brokers, settle_brokers(settings), below)
        exploring = beside.submit(explore_gate_scope, settings.profile)
        telling = None
        if settings.world == VIRTUAL_WORLD:
            in_life.mkdir()
            telling = beside.submit(tell_in_life, settings, in_life)
        result = run(settings, directory, progress)
        assert isinstance(result, ControllersResult), "the gate drives controllers"
        progress("exploration", 0, 0)
        exploration = exploring.result()
        progress(BROKERS, 0, 0)
        brokers = driving.result()
        lived = None if telling is None else telling.result()
        progress("proofs", 0, 0)
        proofs = proving.result()
    return CheckResult(result, brokers, proofs, exploration, time.monotonic() - start, lived)


def make_quick(settings: Settings) -> Settings:
    """Return the settings with the smaller budget of `--quick`."""
    return replace(settings, examples=QUICK["examples"], steps_min=QUICK["steps_min"])
