"""The gate: proofs, exploration and conformance together, one verdict and one table by clause.

Proofs and exploration run in processes of their own while the implementation is driven; the
processors are shared, so none waits for another.
"""

import threading
import time
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from reassure_conformance.gate.running import PROOF_ONLY, Progress, Result, Settings, run
from reassure_conformance.report.document import HOLDS, VACUOUS, Document, worst
from reassure_judge.verdicts import HOLDS as CLAUSE_HOLDS
from reassure_judge.verdicts import ClauseVerdict
from reassure_spec.readings import get_profile

QUICK: Final[Mapping[str, int]] = {"examples": 60, "steps_min": 500}
"""What `--quick` asks of a run."""
NO_CHANGES: Final[Mapping[str, str]] = MappingProxyType({})
SCOPE: Final = "small"
"""What is explored: every state of this scope, under the profile as it stands."""


@dataclass(slots=True)
class Proofs:
    """What came of the proofs."""

    theorems: list[dict[str, Any]] = field(default_factory=list)
    counts: Mapping[str, int] = field(default_factory=dict)
    verdict: str = VACUOUS
    error: BaseException | None = None
    seconds: float = 0.0

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


class ProofThread(threading.Thread):
    """Runs the proofs in the background; their workers are processes of their own."""

    def __init__(self, replication_factor: int) -> None:
        super().__init__(daemon=True)
        self.proofs = Proofs()
        self._replication_factor = replication_factor

    def run(self) -> None:
        """Prove everything; an error is kept for whoever joins."""
        from reassure_proofs.engine.runner import prove_all, to_json

        start = time.monotonic()
        try:
            results = prove_all(replication_factor=self._replication_factor)
            body = to_json(results)
            self.proofs.theorems = list(body["theorems"])
            self.proofs.counts = dict(body["counts"])
            self.proofs.verdict = str(body["verdict"])
        except Exception as error:
            self.proofs.error = error
        self.proofs.seconds = time.monotonic() - start


def explore_gate_scope(profile: str) -> dict[str, Any]:
    """Explore the gate's scope; answer the verb's document, and what it says in words as `text`."""
    from reassure_conformance.answers.exploring import make_document
    from reassure_explorer.scopes.catalogue import explore_scope

    exploration = explore_scope(SCOPE, profile)
    return {**make_document(exploration).as_dict(), "text": exploration.render()}


@dataclass(slots=True)
class CheckResult:
    """What came of the gate."""

    run: Result
    proofs: Proofs
    exploration: Mapping[str, Any]
    """What `explore_gate_scope` answered."""
    seconds: float

    def verdict(self) -> str:
        """Return the verdict on the whole."""
        unproved = VACUOUS if self.unproved() else HOLDS
        explored = self.exploration["verdict"]
        return worst((self.run.verdict(), self.proofs.verdict, explored, unproved))

    def unproved(self) -> tuple[str, ...]:
        """Return the required clauses that only a proof can settle and that no theorem states."""
        proofs = self._said()
        return tuple(c.id for c in self._proof_only() if proofs.get(c.id) != "proved")

    def _said(self) -> dict[str, str]:
        settings = self.run.settings
        return self.proofs.by_clause(settings.profile, settings.readings)

    def _proof_only(self) -> tuple[ClauseVerdict, ...]:
        return tuple(c for c in self.run.clauses if c.id in PROOF_ONLY and c.level == "MUST")

    def counts(self) -> dict[str, int]:
        """Return the numbers of the run, of the proofs and of the exploration."""
        counts = self.run.counts()
        extra = len(self._proof_only())
        counts["clauses_required"] += extra
        counts["clauses_exercised"] += extra - len(self.unproved())
        return {**counts, **self.proofs.counts, **self.exploration["counts"]}

    def as_document(self) -> Document:
        """Return the document: that of the run, with the proofs beside it."""
        document = self.run.as_document()
        document.verb = "check"
        document.verdict = self.verdict()
        document.counts = self.counts()
        document.seconds = self.seconds
        document.body = self.as_body()
        return document

    def _with_proof(self, clause: dict[str, Any], proofs: Mapping[str, str]) -> dict[str, Any]:
        """Return the row of a clause; a theorem is the exercise of what no write can show."""
        proof = proofs.get(clause["id"])
        row = {**clause, "proof": proof}
        if proof == "proved" and clause["id"] in PROOF_ONLY:
            row["verdict"] = CLAUSE_HOLDS
            row["exercised"] = sum(
                t["clause"] == clause["id"] and t["verdict"] == "proved"
                for t in self.proofs.theorems
            )
        return row

    def as_body(self) -> dict[str, Any]:
        """Return what the report says beyond the common head."""
        proofs = self._said()
        body = self.run.as_body()
        body["clauses"] = [self._with_proof(c, proofs) for c in body["clauses"]]
        body["not_exercised"] += self.unproved()
        body["theorems"] = self.proofs.theorems
        body["exploration"] = self.exploration
        return body


def check(
    settings: Settings,
    directory: Path,
    progress: Progress,
    *,
    replication_factor: int = 4,
) -> CheckResult:
    """Run the gate. Raises what `run` raises, and the proofs' own error where they failed."""
    start = time.monotonic()
    thread = ProofThread(replication_factor)
    thread.start()
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as beside:
        exploring = beside.submit(explore_gate_scope, settings.profile)
        result = run(settings, directory, progress)
        assert isinstance(result, Result), "the gate drives controllers"
        progress("exploration", 0, 0)
        exploration = exploring.result()
    progress("proofs", 0, 0)
    thread.join()
    if thread.proofs.error is not None:
        raise thread.proofs.error
    return CheckResult(result, thread.proofs, exploration, time.monotonic() - start)


def make_quick(settings: Settings) -> Settings:
    """Return the settings with the smaller budget of `--quick`."""
    return replace(settings, examples=QUICK["examples"], steps_min=QUICK["steps_min"])
