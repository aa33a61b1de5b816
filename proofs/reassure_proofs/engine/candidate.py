"""A reviewer's own rule, held against the theorems in place of the model's.

A candidate is a plain Python function, named as `module:function`. What it is shows in the names of
its parameters, which are those of the model's function: of a rule that a protocol's theorems name
(`engine.statement.Rule`).

Its twin (see `engine.dialect`) is run on symbolic values; what the executor does not
follow is refused by name, file and line. What is proved is proved of every input up to the bound,
and then tried on plain inputs, which the rule itself answers; where it fails a counterexample says
how. A rule that is refused is still tried, so that it may be refuted, though not proved.
"""

import importlib
import inspect
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any, Final

from reassure_proofs.engine.containers import RuleSet
from reassure_proofs.engine.dialect import make_twin, run_twin
from reassure_proofs.engine.prover import explore_shape, try_shape
from reassure_proofs.engine.register import find_rules, get_theorems
from reassure_proofs.engine.runner import TheoremResult, summarise_records
from reassure_proofs.engine.shape_exploration import UnsteadyError, is_in_code_under_test
from reassure_proofs.engine.statement import Function, Hypothesis, Rule, Subject, Theorem
from reassure_proofs.engine.symex import PathLimits, TimeIsUp
from reassure_proofs.engine.tasks import group_theorems, make_goals
from reassure_spec.errors import BadUsage

Candidate = Callable[..., Any]

ALL: Final = "all"
"""Names every precondition of a rule."""
_AGAIN_SECONDS: Final = 0.2
"""Code that catches what ends it is ended again after so long."""


class CandidateError(BadUsage):
    """A candidate that cannot be found, or whose parameters say nothing of what it is."""


def load_candidate(name: str) -> Candidate:
    """Return the function that `module:function` names, looked for from the working directory too.

    Raises CandidateError where there is none.
    """
    module_name, _, function_name = name.partition(":")
    if not module_name or not function_name:
        raise CandidateError(f"{name!r} names no function; write it as module:function")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        module = importlib.import_module(module_name)
    except Exception as error:
        # Whatever goes wrong in a reviewer's module is told as that.
        reason = f"{type(error).__name__}: {error}"
        raise CandidateError(
            f"module {module_name!r} cannot be imported ({reason}); it is looked for in {here} and "
            "on the Python path"
        ) from error
    candidate = getattr(module, function_name, None)
    if not callable(candidate):
        known = ", ".join(name for name, value in vars(module).items() if inspect.isfunction(value))
        raise CandidateError(
            f"module {module_name!r} has no function {function_name!r}; it has: {known or 'none'}"
        )
    found: Candidate = candidate
    return found


def recognise(candidate: Candidate) -> Rule:
    """Return what a candidate is by its parameters.

    Raises CandidateError where they fit nothing.
    """
    names, rules = tuple(inspect.signature(candidate).parameters), tuple(find_rules())
    for rule in rules:
        if names == rule.parameters or (rule.more and names == (*rule.parameters, rule.more)):
            return rule
    expected = "; ".join(
        ", ".join((*rule.parameters, *([f"[{rule.more}]"] if rule.more else []))) for rule in rules
    )
    raise CandidateError(
        f"the parameters {', '.join(names)} are those of no rule; expected one of: {expected}"
    )


def bind(candidate: Candidate, call: Callable[..., Any]) -> Function:
    """Return what the theorems are about, with a candidate or its twin as `call`."""
    rule, names = recognise(candidate), tuple(inspect.signature(candidate).parameters)
    evaluate = rule.evaluate
    ask = (lambda *given: _in_order(call(*given))) if rule.answers_list else call
    if evaluate is not None:
        return lambda values: evaluate(values, ask)
    return lambda values: ask(*(values[name] for name in names))


def _in_order(members: Any) -> tuple[Any, ...]:
    """Return what a rule answers as a tuple; the members of a set in ascending order."""
    if isinstance(members, set | frozenset):
        return tuple(sorted(members))
    if isinstance(members, RuleSet):
        return tuple(sorted(members.members))
    return tuple(members)


def find_accepted(rule: Rule, assume: Sequence[str]) -> tuple[Hypothesis, ...]:
    """Return the preconditions of a rule by name; `ALL` names all of them.

    Raises CandidateError for a name that is none of them.
    """
    names = [*(item.name for item in rule.preconditions), *([ALL] if rule.preconditions else [])]
    unknown = [name for name in assume if name not in names and name != ALL]
    if unknown:
        raise CandidateError(
            f"{unknown[0]!r} is no precondition of a {rule.name} rule; expected one of: "
            f"{', '.join(names) or 'none'}"
        )
    return tuple(item for item in rule.preconditions if item.name in assume or ALL in assume)


def find_theorems(
    candidate: Candidate, profile: str = "", assume: Sequence[str] = ()
) -> tuple[Theorem, ...]:
    """Return the theorems of a profile that a candidate has to satisfy, about the candidate.

    Without a profile it is the first under which there are such rules. What the documents' own
    rule needs of its arguments is assumed only so far as `assume` names it; what a theorem
    says of some arguments only stays a part of it. Raises CandidateError.
    """
    rule, function = recognise(candidate), bind(candidate, candidate)
    taken = (*rule.surroundings, *find_accepted(rule, assume))
    own = {item.name for item in (*rule.preconditions, *rule.surroundings)}
    held = rule.held.get(profile or next(iter(rule.held)), rule.held.get(""))
    takes_more = rule.more in inspect.signature(candidate).parameters
    found: list[Theorem] = []
    for theorem in get_theorems():
        about = theorem.subject
        if about.name != held or theorem.expected != "proved":
            continue
        shapes = rule.shapes_with_more if takes_more and rule.shapes_with_more else about.shapes
        subject = Subject("candidate", function, "the candidate", shapes, about.bounded)
        needed = (*taken, *(item for item in theorem.hypotheses if item.name not in own))
        found.append(
            replace(theorem, subject=subject, layer="candidate", hypotheses=needed, shape=())
        )
    if not found:
        raise CandidateError(f"profile {profile!r} has no theorem about a {rule.name} rule")
    return tuple(found)


def list_assumed(name: str | Candidate, assume: Sequence[str]) -> list[dict[str, Any]]:
    """Return every precondition of the rule that a candidate is, as plain JSON values.

    `assumed` is `accepted` for those that `assume` names, `given` for those of the code around the
    rule, and empty for those that are not assumed.
    """
    rule = recognise(load_candidate(name) if isinstance(name, str) else name)
    assumed = dict.fromkeys(rule.surroundings, "given")
    assumed |= dict.fromkeys(rule.preconditions, "")
    assumed |= dict.fromkeys(find_accepted(rule, assume), "accepted")
    return [
        {"name": item.name, "sentence": item.sentence, "assumed": why}
        for item, why in assumed.items()
    ]


def prove_candidate(
    name: str | Candidate,
    replication_factor: int = 3,
    profile: str = "",
    timeout_s: float = 60.0,
    theorems: Sequence[Theorem] | None = None,
    assume: Sequence[str] = (),
) -> list[TheoremResult]:
    """Return what comes of a candidate's theorems, in this process.

    `name` is `module:function`, or the function itself; `theorems` are those that `find_theorems`
    gives for it, or some of them; `assume` names preconditions, see there. A candidate that does
    not come to an end is unknown after the time of one shape. Raises CandidateError, also where the
    candidate depends on more than its arguments.
    """
    candidate = load_candidate(name) if isinstance(name, str) else name
    theorems = find_theorems(candidate, profile, assume) if theorems is None else theorems
    twin = make_twin(candidate)
    symbolic = bind(candidate, lambda *given: run_twin(twin, *given))
    records: dict[str, list[dict[str, Any]]] = {theorem.name: [] for theorem in theorems}
    for group in group_theorems(theorems):
        for record in _explore_group(group, symbolic, replication_factor, timeout_s):
            for theorem in group:
                records[theorem.name].append(record)
    return [summarise_records(item, records[item.name], replication_factor) for item in theorems]


def _explore_group(
    group: Sequence[Theorem], symbolic: Function, replication_factor: int, timeout_s: float
) -> Iterator[dict[str, Any]]:
    """Yield a record for each shape, up to the one in which nothing is left to ask.

    Once a shape was refused, this one and those that follow are tried on plain inputs only.
    """
    shared, goals = make_goals(group)
    plain, limits = group[0].subject.function, PathLimits(seconds=timeout_s)
    reason = ""
    for place, shape in enumerate(group[0].shapes(replication_factor)):
        try:
            with _time_limit(timeout_s):
                if reason:
                    explored = try_shape(plain, shape, shared, goals)
                else:
                    explored = explore_shape(symbolic, shape, shared, goals, limits, plain=plain)
        except UnsteadyError as error:
            raise CandidateError(
                "the candidate does not answer alike when it is asked again; it has to depend on "
                f"nothing but its arguments: no chance, no clock, no memory ({error})"
            ) from error
        yield {**explored.to_json(), "place": place}
        goals = [goal for goal in goals if goal.name not in explored.counterexamples]
        reason = reason or explored.reason
        if not goals or explored.late:
            return


def _is_in_finaliser(frame: FrameType | None) -> bool:
    """Return whether a frame runs as an object is removed, where what is raised is lost."""
    while frame is not None:
        if frame.f_code.co_name == "__del__":
            return True
        frame = frame.f_back
    return False


@contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    """End what runs inside, whatever it does, once the time is over.

    The executor looks at the time between questions; a loop that asks none is interrupted here.
    Only the main thread can be interrupted.
    """
    ended = False

    def give_up(_: int, frame: FrameType | None) -> None:
        nonlocal ended
        if _is_in_finaliser(frame):
            return  # raised there it would be told to nobody; it is tried again soon
        if not ended or is_in_code_under_test(frame):
            ended = True
            raise TimeIsUp(f"the candidate does not come to an end in {seconds:g} s; does it loop?")

    if threading.current_thread() is not threading.main_thread() or seconds <= 0:
        yield
        return
    before = signal.signal(signal.SIGALRM, give_up)
    # Again and again, as code that catches everything goes on.
    signal.setitimer(signal.ITIMER_REAL, seconds, _AGAIN_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
