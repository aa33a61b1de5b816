"""Pieces of proof work that can be done anywhere, and what comes back from them.

Theorems about the same subject are proved together: the code is explored under the hypotheses that
they share, and each is judged at the end of every path under what it assumes beyond. A *task* is
such a group with some of its shapes. Tasks and their answers are plain JSON values, so that they
can cross to another process.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from reassure_proofs.engine.register import get_theorems
from reassure_proofs.engine.results import ProofGoal
from reassure_proofs.engine.statement import (
    Function,
    Hypothesis,
    Theorem,
    Values,
    choose_readings,
    describe,
    describe_values,
)
from reassure_spec.readings import READINGS, Readings, field_name


@dataclass(frozen=True, slots=True)
class ProofTask:
    """Theorems about one subject, and the shapes in which they are to be judged."""

    theorems: tuple[str, ...]
    """Names; all are about the same subject."""
    shapes: tuple[int, ...]
    """Places in the subject's list of shapes, smallest first. The task ends early once a
    counterexample to each of its theorems is known."""
    replication_factor: int
    """Largest replication factor, which fixes the list of shapes."""
    seconds: float
    """Processor time for all of it."""
    without: tuple[str, ...] = ()
    """Names of hypotheses to leave out, to see whether they are needed."""
    readings: tuple[str, ...] = ()
    """Readings to change beside those that the subject changes, as `name=value`."""

    def to_json(self) -> dict[str, Any]:
        """Return the task as plain JSON values."""
        return {name: getattr(self, name) for name in self.__slots__}

    @staticmethod
    def from_json(data: dict[str, Any]) -> "ProofTask":
        """Return the task that `to_json` wrote."""
        names = [name for name in data if isinstance(data[name], list)]
        return ProofTask(**{**data, **{name: tuple(data[name]) for name in names}})


def group_theorems(theorems: Sequence[Theorem]) -> list[list[Theorem]]:
    """Return the theorems in groups that share explorations.

    Those expected to be refuted stand apart: their search ends with the first counterexample,
    while the others' cannot.
    """
    groups: dict[tuple[str, str, int | None, str], list[Theorem]] = {}
    for theorem in theorems:
        key = (theorem.subject.name, theorem.expected, theorem.largest, theorem.tier)
        groups.setdefault(key, []).append(theorem)
    return list(groups.values())


def make_goals(
    theorems: Sequence[Theorem], without: Sequence[str] = ()
) -> tuple[tuple[Hypothesis, ...], list[ProofGoal]]:
    """Return the hypotheses that all theorems share, and a goal for each with those beyond."""
    own = [
        [each for each in theorem.assumptions if each.name not in without] for theorem in theorems
    ]
    shared = tuple(each for each in own[0] if all(each in some for some in own))
    return shared, [
        ProofGoal(theorem.name, theorem.claim, tuple(each for each in some if each not in shared))
        for theorem, some in zip(theorems, own, strict=True)
    ]


def make_function(theorem: Theorem, changes: Sequence[str]) -> tuple[Function, set[str]]:
    """Return the code under the profile's readings with changes, and the set of those it reads.

    The set fills while the code runs. Raises ValueError where there are changes for a subject that
    takes no readings, and UnknownReading.
    """
    subject, read = theorem.subject, set[str]()
    if subject.under is None:
        if changes:
            raise ValueError(f"{subject.words} takes no readings")
        return subject.function, read
    chosen = choose_readings(theorem.profile, (*subject.changes, *changes))
    return subject.under(watch_readings(chosen, read)), read


def watch_readings(readings: Readings, read: set[str]) -> Readings:
    """Return the same readings; whoever looks at one is noted in `read`, by dotted name."""
    dotted = {field_name(reading.name): reading.name for reading in READINGS}

    class NotedReadings(Readings):
        def __getattribute__(self, name: str) -> Any:
            if name in dotted:
                read.add(dotted[name])
            return super().__getattribute__(name)

    return NotedReadings(**{name: getattr(readings, name) for name in dotted})


def run_again(theorem: Theorem, function: Function, arguments: Values) -> str:
    """Run a counterexample once more on the plain code; return what that raised, "" for nothing.

    Raises ProofFaultError where the code returns what the theorem claims.
    """
    from reassure_proofs.engine.prover import ProofFaultError

    try:
        result = function(arguments)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    if theorem.claim(arguments, result):
        told = f"{describe_values(arguments)} -> {describe(result)}"
        raise ProofFaultError(f"{theorem.name}: {told} is no counterexample when it is run again")
    return ""


def run_cured(theorem: Theorem, arguments: Values) -> str:
    """Return what the cured code makes of a counterexample, "" if that keeps the promise.

    A refutation that is expected is due to a reading. Where the code breaks the promise without
    that reading as well, the model is at fault.
    """
    subject = theorem.subject
    cure = theorem.cure or (theorem.profile if len(subject.changes) == 1 else "")
    if subject.under is None or theorem.expected != "refuted" or not cure:
        return ""
    try:
        result = subject.under(choose_readings(cure))(arguments)
    except Exception as error:
        return f"under {cure} the code raises {type(error).__name__}: {error}"
    kept = theorem.claim(arguments, result)
    return "" if kept else f"under {cure} the code breaks it too: {describe(result)}"


def run_task(task: ProofTask) -> list[dict[str, Any]]:
    """Do the task in this process; return one plain JSON record for each shape it looked at.

    Raises ProofFaultError when the executor is at fault.
    """
    from reassure_proofs.engine.prover import explore_shape
    from reassure_proofs.engine.symex import PathLimits

    theorems = get_theorems(task.theorems)
    if task.without:
        theorems = tuple(theorem.within_bounds() for theorem in theorems)
    shared, open_goals = make_goals(theorems, task.without)
    shapes = theorems[0].shapes(task.replication_factor)
    function, read = make_function(theorems[0], task.readings)
    records: list[dict[str, Any]] = []
    deadline = time.process_time() + task.seconds
    for place in task.shapes:
        explored = explore_shape(
            function,
            shapes[place],
            shared,
            open_goals,
            PathLimits(seconds=deadline - time.process_time()),
            theorems[0].subject.hashable,
        )
        raised, uncured = dict[str, str](), dict[str, str]()
        for item in theorems:
            if item.name in explored.counterexamples:
                arguments = explored.counterexamples[item.name].arguments
                raised[item.name] = run_again(item, function, arguments)
                uncured[item.name] = "" if task.without else run_cured(item, arguments)
        told = {"place": place, "read": sorted(read), "raised": raised, "uncured": uncured}
        records.append({**explored.to_json(), **told})
        open_goals = [goal for goal in open_goals if goal.name not in explored.counterexamples]
        if not open_goals or explored.reason:
            break
    return records
