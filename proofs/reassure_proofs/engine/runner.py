"""Proves the theorems, in worker processes where that pays, and reports.

Verdicts on a theorem: `proved`, `refuted`, `unknown`. What they mean depends on what is expected: a
refutation that is expected is a *finding* about a document; one that is not is a violation; an
expected refutation that does not come is stale, because what the register says is no longer so.
Only a value refutes: where the code raises on the counterexample it is broken, whatever was
expected.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, Final

from reassure_proofs.engine.cache import Cache
from reassure_proofs.engine.numbers import find_looks
from reassure_proofs.engine.register import get_theorems
from reassure_proofs.engine.statement import (
    Hypothesis,
    Parameter,
    Theorem,
    choose_readings,
    describe,
)
from reassure_proofs.engine.tasks import ProofTask, group_theorems, run_task
from reassure_proofs.engine.worker import Worker, WorkerSilentError
from reassure_spec.clauses import load_clauses
from reassure_spec.readings import PROFILES, get_profile

Progress = Callable[[int, int], None]
"""Called with (tasks done, tasks in all) whenever a task ends."""
Record = dict[str, Any]

_GRACE_SECONDS: Final = 10.0
_PATIENCE: Final = 10.0
"""A worker gives up by itself at the limit, which is processor time. One that has not done so after
so many times as long, and the grace, hangs and is ended."""
_ANY_LENGTH: Final = 4
"""A list of any length costs as much as one of this length."""
_WORKERS_PAY_FROM: Final = 4
"""Replication factor below which a worker would take longer to start than to prove."""


@dataclass(frozen=True, slots=True)
class TheoremResult:
    """What came of one theorem."""

    theorem: Theorem
    verdict: str
    """`proved`, `refuted` or `unknown`."""
    bound: str
    """Up to where it was looked at, in words."""
    seconds: float
    """Processor time of the explorations; theorems about one subject share them."""
    paths: int
    """Paths explored, shared likewise."""
    queries: int
    """Questions to the solver, shared likewise."""
    counterexample: Mapping[str, Any] | None = None
    """`arguments`, `outcome`, the `sentence` that shows both, and the same in `words`."""
    certificate: tuple[Mapping[str, Any], ...] = ()
    """For each shape: its lengths, paths, witnesses replayed, and the answer on the gap."""
    reason: str = ""
    """Why the verdict is unknown, or what the code raised on the counterexample."""
    cached: bool = False
    """Whether all of it was proved before, and kept (`engine.cache`)."""
    uncured: str = ""
    """What the code does on the counterexample under the reading that should cure it, "" where it
    keeps the promise."""
    raised: bool = False
    """Whether the code raises on the counterexample."""
    read: tuple[str, ...] = ()
    """The readings that the code looked at, by dotted name."""

    @property
    def outcome(self) -> str:
        """Return `holds`, `finding`, `violated`, `stale` or `unknown`."""
        if self.verdict == "unknown":
            return "unknown"
        if self.verdict == "refuted":
            expected = self.theorem.expected == "refuted" and not (self.raised or self.uncured)
            return "finding" if expected else "violated"
        return "holds" if self.verdict == self.theorem.expected else "stale"

    @property
    def readings(self) -> dict[str, str]:
        """Return the readings that the code looked at, with the values that it was given."""
        subject = self.theorem.subject
        given = choose_readings(self.theorem.profile, subject.changes).as_dict()
        changed = {change.split("=", 1)[0] for change in subject.changes}
        return {name: given[name] for name in given if name in self.read or name in changed}

    @property
    def profiles(self) -> tuple[str, ...]:
        """Return every profile under which this was looked at.

        That is the theorem's own, if it changes none of its readings, and each other that has the
        clause and gives the code the same values; only code that is watched can show that.
        """
        subject, own, readings = self.theorem.subject, self.theorem.profile, self.readings.items()
        unwatched = bool(subject.profile) and subject.under is None
        clause = load_clauses().get(self.theorem.clause)
        homes = () if unwatched or clause is None else clause.profiles
        return tuple(
            name
            for name in PROFILES
            if (name == own or name in homes) and readings <= get_profile(name).as_dict().items()
        )

    def to_json(self) -> Record:
        """Return the result as plain JSON values."""
        theorem = self.theorem
        return {
            "name": theorem.name,
            "clause": theorem.clause,
            "statement": theorem.statement,
            "about": theorem.subject.words,
            "subject": theorem.subject.name,
            "profile": theorem.profile,
            "profiles": list(self.profiles),
            "readings": self.readings,
            "changes": list(theorem.subject.changes),
            "layer": theorem.layer,
            "bound": self.bound,
            "hypotheses": _named(theorem.hypotheses),
            "shape": _named(theorem.shape),
            "finding": theorem.finding,
            "tier": theorem.tier,
            "expected": theorem.expected,
            "verdict": self.verdict,
            "outcome": self.outcome,
            "seconds": round(self.seconds, 3),
            "cached": self.cached,
            "paths": self.paths,
            "queries": self.queries,
            "counterexample": self.counterexample,
            "certificate": list(self.certificate),
            "reason": self.reason,
        }


def _named(hypotheses: Sequence[Hypothesis]) -> list[Record]:
    return [{"name": item.name, "sentence": item.sentence} for item in hypotheses]


def prove_all(
    names: Sequence[str] | None = None,
    replication_factor: int = 4,
    progress: Progress | None = None,
    timeout_s: float = 60.0,
    processes: int | None = None,
    tier: str = "gate",
    cache: Cache | None = None,
) -> list[TheoremResult]:
    """Prove the named theorems (without names all of the tier), in the register's order.

    Tier `gate` is what every check proves in a few seconds, `full` is everything.
    `replication_factor` of 5 is thorough: theorems that stop short of it go as far as they can.
    `timeout_s` is the processor time of each task, which is one shape, or all of them where a
    refutation is expected; a theorem that needs more is unknown.
    `processes` is at most two by default; 1 keeps the work in this process. What `cache` has is not
    proved again. Raises
    UnknownTheoremError for a name there is not, ProofFaultError or WorkerFailedError when the
    proof machinery itself is at fault.
    """
    theorems = get_theorems(None if names is None else list(names), tier)
    if processes is None:
        pays = replication_factor >= _WORKERS_PAY_FROM
        processes = min(2, os.cpu_count() or 1) if pays else 1
    tasks = [
        task
        for group in group_theorems(theorems)
        for task in make_tasks(group, replication_factor, timeout_s)
    ]
    tasks.sort(key=estimate_cost, reverse=True)
    records = run_tasks(tasks, processes, progress, cache)
    own: dict[str, list[Record]] = {theorem.name: [] for theorem in theorems}
    for task, some in zip(tasks, records, strict=True):
        for name in task.theorems:
            own[name] += some
    looks = {
        each.subject.name: "; ".join(find_looks(each.subject.function))
        for each in theorems
        if each.subject.numbered
    }
    return [
        summarise_records(
            each, own[each.name], replication_factor, looks.get(each.subject.name, "")
        )
        for each in theorems
    ]


def make_tasks(
    group: Sequence[Theorem], replication_factor: int, seconds: float, without: Sequence[str] = ()
) -> list[ProofTask]:
    """Return the tasks of one group of theorems.

    One task for each shape, the costly ones first. Where refutations are expected it is a single
    task, as it ends with the first of them.
    """
    names = tuple(theorem.name for theorem in group)
    places = range(len(group[0].shapes(replication_factor)))
    if without or group[0].expected == "refuted":
        return [ProofTask(names, tuple(places), replication_factor, seconds, tuple(without))]
    return [ProofTask(names, (place,), replication_factor, seconds) for place in reversed(places)]


def estimate_cost(task: ProofTask) -> int:
    """Return how costly a task is beside others; what is begun last should be short.

    The longest shape of it counts, by the lengths of its lists and the weight of its subject.
    """
    (theorem,) = get_theorems(task.theorems[:1])
    shapes = theorem.shapes(task.replication_factor)
    lengths = (sum(map(_weigh, shapes[place].values())) for place in task.shapes)
    return theorem.subject.weight * max(lengths, default=0)


def _weigh(parameter: Parameter) -> int:
    return _ANY_LENGTH if parameter.kind == "list" else parameter.length or 0


def run_tasks(
    tasks: Sequence[ProofTask],
    processes: int,
    progress: Progress | None = None,
    cache: Cache | None = None,
) -> list[list[Record]]:
    """Return the records of every task, in the order of the tasks."""
    kept = [None if cache is None else cache.get(task) for task in tasks]
    answers: list[list[Record]] = [records or [] for records in kept]
    left = [place for place, records in enumerate(kept) if records is None]
    asked = _answers([tasks[place] for place in left], processes) if left else iter(())
    for done, (place, records) in enumerate(asked, start=len(tasks) - len(left) + 1):
        answers[left[place]] = records
        if cache is not None:
            cache.put(tasks[left[place]], records)
        if progress is not None:
            progress(done, len(tasks))
    if cache is not None:
        cache.forget_old()
    return answers


def _answers(tasks: Sequence[ProofTask], processes: int) -> Iterator[tuple[int, list[Record]]]:
    if processes <= 1:
        for place, task in enumerate(tasks):
            yield place, run_task(task)
        return
    workers = [Worker() for _ in range(processes)]
    idle: SimpleQueue[Worker] = SimpleQueue()
    for worker in workers:
        idle.put(worker)
    try:
        with ThreadPoolExecutor(processes) as pool:
            futures = {pool.submit(_ask, idle, task): place for place, task in enumerate(tasks)}
            try:
                for future in as_completed(futures):
                    yield futures[future], future.result()
            except BaseException:
                # After a failure or an interrupt nobody waits for the rest.
                pool.shutdown(wait=False, cancel_futures=True)
                for worker in workers:
                    worker.kill()
                raise
    finally:
        for worker in workers:
            worker.close()


def _ask(idle: "SimpleQueue[Worker]", task: ProofTask) -> list[Record]:
    worker = idle.get()
    try:
        return worker.ask(task, _PATIENCE * task.seconds + _GRACE_SECONDS)
    except WorkerSilentError as silent:
        return [{"place": task.shapes[0], "reason": str(silent)}]
    finally:
        idle.put(worker)


def summarise_records(
    theorem: Theorem, records: Sequence[Record], replication_factor: int, looks: str = ""
) -> TheoremResult:
    """Return the result of one theorem from the records of its shapes, in any order.

    Nothing is proved of code that `looks` at a broker's number which is a plain one.
    """
    ordered = sorted(records, key=lambda record: int(record["place"]))
    certificates = tuple(item["certificate"] for item in ordered if item.get("certificate"))
    counterexample = _first_of(ordered, "counterexamples", theorem)
    paths = sum(certificate["paths"] for certificate in certificates)
    reason = next((item["reason"] for item in ordered if item.get("reason")), looks)
    places = [record["place"] for record in ordered if _is_certified(record)]
    certified = places == list(range(len(theorem.shapes(replication_factor))))
    verdict, reason = summarise_verdict(counterexample is not None, reason, paths, certified)
    uncured = _first_of(ordered, "uncured", theorem) or ""
    raised = _first_of(ordered, "raised", theorem)
    return TheoremResult(
        theorem=theorem,
        verdict=verdict,
        bound=theorem.bound(replication_factor),
        seconds=sum(item.get("seconds", 0.0) for item in ordered),
        paths=paths,
        queries=sum(item.get("queries", 0) for item in ordered),
        counterexample=None if counterexample is None else _in_words(theorem, counterexample),
        certificate=certificates,
        reason=f"the code raises {raised}; only a value refutes" if raised else uncured or reason,
        uncured=uncured,
        cached=bool(ordered) and all(item.get("cached", False) for item in ordered),
        raised=bool(raised),
        read=tuple(sorted({name for item in ordered for name in item.get("read", ())})),
    )


def _first_of(records: Sequence[Record], name: str, theorem: Theorem) -> Any:
    """Return the first that records have for a theorem under a name, None where none has."""
    found = (record.get(name, {}).get(theorem.name) for record in records)
    return next((each for each in found if each), None)


def summarise_verdict(refuted: bool, reason: str, paths: int, certified: bool) -> tuple[str, str]:
    """Return the verdict (`proved`, `refuted` or `unknown`), and why it is unknown.

    `reason` says what went wrong in the explorations, if anything; `paths` is how many they found;
    `certified` whether there is a certificate without a gap for every shape.
    """
    if refuted:
        return "refuted", ""
    if reason:
        return "unknown", reason
    if not certified:
        return "unknown", "a shape has no certificate that every input takes an explored path"
    if paths == 0:
        # The certificate holds for the empty set as well; a proof about nothing is none.
        return "unknown", "no input satisfies the hypotheses"
    return "proved", ""


def _in_words(theorem: Theorem, counterexample: Record) -> Record:
    arguments = ", ".join(
        f"{name} = {describe(value)}" for name, value in counterexample["arguments"].items()
    )
    outcome = counterexample["outcome"]
    result = outcome if outcome.startswith("raises") else f"gives {outcome}"
    words = f"Not so: with {arguments}, {theorem.subject.words} {result}."
    return {**counterexample, "words": words}


def _is_certified(record: Record) -> bool:
    certificate = record.get("certificate")
    return (
        certificate is not None
        and certificate["gap"] == "unsat"
        and certificate["replayed"] == certificate["paths"]
        and (certificate["tried"] > 0 or certificate["paths"] == 0)
    )


def summarise_outcomes(results: Sequence[TheoremResult]) -> str:
    """Return one verdict on all results: `holds`, `violated`, `unknown` or `vacuous`.

    `vacuous` stands for nothing proved at all and for expected refutations that did not come.
    """
    outcomes = {result.outcome for result in results}
    worst = next((each for each in ("violated", "unknown") if each in outcomes), "")
    return worst or ("holds" if outcomes and "stale" not in outcomes else "vacuous")


def to_json(results: Sequence[TheoremResult]) -> Record:
    """Return the body of the report: `verdict`, `counts` and `theorems`.

    In the counts, `proved`, `refuted` and `unknown` add up to `theorems`; `findings`
    are the refutations that were expected.
    """
    verdicts = [result.verdict for result in results]
    counts = {
        "theorems": len(results),
        "proved": verdicts.count("proved"),
        "refuted": verdicts.count("refuted"),
        "unknown": verdicts.count("unknown"),
        "findings": sum(result.outcome == "finding" for result in results),
    }
    return {
        "verdict": summarise_outcomes(results),
        "counts": counts,
        "theorems": [result.to_json() for result in results],
    }
