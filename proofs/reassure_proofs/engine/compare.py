"""Two rules of one kind, asked the same, and where they answer otherwise.

A rule is a reviewer's own, as `module:function`, or the model's own under a profile. Nothing is
proved here: every input up to a bound is asked, smallest first, so that the first difference is the
smallest there is.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from inspect import signature
from itertools import islice, permutations, product
from typing import Any, Final

from reassure_proofs.engine.candidate import (
    Candidate,
    CandidateError,
    bind,
    load_candidate,
    recognise,
)
from reassure_proofs.engine.register import get_theorems
from reassure_proofs.engine.statement import Function, Parameter, Rule, Shape, Values
from reassure_spec.profiles import PROTOCOLS
from reassure_spec.znodes import NO_LEADER

MOST: Final = 200_000
"""So many inputs are asked, at most."""


@dataclass(frozen=True, slots=True)
class Otherwise:
    """An input that two rules answer otherwise."""

    arguments: Mapping[str, Any]
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class RuleComparison:
    """What came of asking two rules."""

    rule: Rule
    asked: int
    differences: tuple[Otherwise, ...]
    whole: bool
    """Whether every input up to the bound was asked."""


def compare_rules(old: str, new: str, factor: int) -> RuleComparison:
    """Ask two rules on every input up to a replication factor, smallest first.

    Lists have no repetitions, who is in sync is assigned, the leader is assigned or nobody, and
    `top` is at least 1; inputs in which the leader is in sync come first.
    Raises CandidateError for what is no rule, and for rules of different kinds.
    """
    candidates = [None if name in PROTOCOLS else load_candidate(name) for name in (old, new)]
    rules = [recognise(candidate) for candidate in candidates if candidate is not None]
    if not rules or len(set(map(id, rules))) > 1:
        kinds = " and ".join(rule.name for rule in rules) or "two profiles"
        raise CandidateError(f"two rules of one kind are compared, not {kinds}")
    rule = rules[0]
    ask = [
        _find_model(rule, name) if candidate is None else bind(candidate, candidate)
        for name, candidate in zip((old, new), candidates, strict=True)
    ]
    more = rule.more if any(_takes(rule, each) for each in candidates) else ""
    inputs = list(islice(_iterate_inputs(rule, more, factor), MOST + 1))
    found = []
    for arguments in sorted(inputs[:MOST], key=_is_odd):
        answers = [_ask(each, arguments) for each in ask]
        if answers[0] != answers[1]:
            found.append(Otherwise(arguments, *answers))
    return RuleComparison(rule, len(inputs[:MOST]), tuple(found), len(inputs) <= MOST)


def _is_odd(arguments: Values) -> bool:
    """Whether the leader is not in sync, which is worth less of a look than what is usual."""
    return "leader" in arguments and arguments["leader"] not in arguments["isr"]


def _takes(rule: Rule, candidate: Candidate | None) -> bool:
    """Whether a rule takes what some of its kind do not; the model's own always does."""
    return bool(rule.more) and (candidate is None or rule.more in signature(candidate).parameters)


def _find_model(rule: Rule, profile: str) -> Function:
    """Return the model's own rule under a profile. Raises CandidateError where it has none."""
    held = rule.held.get(profile, rule.held.get(""))
    for theorem in get_theorems():
        if theorem.subject.name == held:
            return theorem.subject.function
    raise CandidateError(f"profile {profile!r} has no {rule.name} rule")


def _ask(function: Callable[[Values], Any], arguments: Values) -> str:
    """Return an answer as text; what is raised is an answer as well."""
    try:
        answer = function(arguments)
    except Exception as error:
        return f"raises {type(error).__name__}: {error}"
    return spell(answer)


def spell(value: Any) -> str:
    """Return a value as text, a collection of replicas as a list.

    >>> spell((1, (2, 3))), spell(None)
    ('[1, [2, 3]]', 'none')
    """
    if isinstance(value, tuple | list | frozenset | set):
        members = sorted(value) if isinstance(value, frozenset | set) else value
        return f"[{', '.join(map(spell, members))}]"
    return "none" if value is None else str(value)


def _iterate_inputs(rule: Rule, more: str, factor: int) -> Iterator[dict[str, Any]]:
    """Yield inputs of every shape, those with the fewest and smallest numbers first."""
    names = {*rule.parameters, more}
    subject = next(t.subject for t in get_theorems() if t.subject.name in rule.held.values())
    shapes = rule.shapes_with_more if more and rule.shapes_with_more else subject.shapes
    seen: set[tuple[Any, ...]] = set()
    for shape in sorted(shapes(factor), key=_measure):
        # What only hypotheses speak of is no argument, unless the rule is a part of something.
        asked = {n: p for n, p in shape.items() if rule.evaluate or n in names}
        for arguments in _fill(asked, {}, factor):
            key = tuple(sorted(arguments.items()))
            if key not in seen:
                seen.add(key)
                yield arguments


def _measure(shape: Shape) -> int:
    return sum(parameter.length or 0 for parameter in shape.values())


def _fill(shape: Shape, drawn: dict[str, Any], factor: int) -> Iterator[dict[str, Any]]:
    """Yield every choice of the arguments that are not drawn yet, in the order of the shape."""
    name = next((each for each in shape if each not in drawn), None)
    if name is None:
        yield dict(drawn)
        return
    for value in _list_values(name, shape[name], drawn, factor):
        yield from _fill(shape, {**drawn, name: value}, factor)


def _list_values(name: str, parameter: Parameter, drawn: Values, factor: int) -> Iterator[Any]:
    lists = [value for value in drawn.values() if isinstance(value, tuple)]
    known = sorted({broker for each in lists for broker in each})
    if parameter.kind == "word":
        yield parameter.word
    elif parameter.kind == "truth":
        truths = product((False, True), repeat=parameter.length or 1)
        yield from (each if parameter.length is not None else each[0] for each in truths)
    elif parameter.kind == "set":
        for chosen in product((False, True), repeat=len(known)):
            yield frozenset(b for b, taken in zip(known, chosen, strict=True) if taken)
    elif not parameter.floor:
        numbers = product(range(name == "top", factor + 2), repeat=parameter.length or 1)
        yield from (each if parameter.length is not None else each[0] for each in numbers)
    elif parameter.length is None:
        yield from (*known, NO_LEADER) if name == "leader" else range(1, factor + 2)
    else:
        inside = "isr" in name and known
        strangers = range(len(known) + 1, len(known) + 1 + (0 if inside else parameter.length))
        for chosen in permutations((*known, *strangers), parameter.length):
            fresh = [broker for broker in chosen if broker in strangers]
            if fresh == list(strangers)[: len(fresh)]:  # one of those alike by other names
                yield chosen
