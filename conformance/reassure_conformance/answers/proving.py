"""The reports of the proofs."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any, Final

from reassure_conformance.report import display
from reassure_conformance.report.document import HOLDS, UNKNOWN, VACUOUS, VIOLATED, Document
from reassure_proofs.engine import opinion
from reassure_proofs.engine.cache import Cache, find_folder
from reassure_proofs.engine.candidate import list_assumed, prove_candidate
from reassure_proofs.engine.register import get_theorems
from reassure_proofs.engine.runner import prove_all, to_json
from reassure_proofs.engine.smt import make_scripts
from reassure_proofs.engine.sweep import render as render_sweep
from reassure_proofs.engine.sweep import sweep
from reassure_proofs.engine.sweep import to_json as sweep_to_json
from reassure_proofs.engine.wording import explain
from reassure_spec.profiles import DEFAULT_PROFILE

COLUMNS: Final = ("theorem", "clause", "profile", "bound", "hypotheses", "verdict", "expected")
WIDTH: Final = 100
A_LEMMA: Final = "a lemma"
_SHAPES_SHOWN: Final = 4
_OWN_FACTOR: Final = 3
"""Up to which replication factor a rule of somebody's own is held against theorems, at most."""
FACTOR: Final = 2
"""Replication factor in which each hypothesis shows that it is needed."""

Say = Callable[[str, int, int], None]
"""Told what is being done, how much of it is done and how much there is."""


def render_theorems(theorems: Sequence[Mapping[str, Any]], form: str) -> list[str]:
    """Return the theorems in groups that share one piece of code, or one table of them all.

    What came out otherwise than it should comes first, with its group. A group begins with what its
    theorems have in common: the code, profile and readings, up to where it was looked at, how long
    that took, and which shapes no input fits.
    """
    if form != "pretty":
        rows = [
            {**each, "theorem": each["name"], "hypotheses": ", ".join(_names(each["hypotheses"]))}
            for each in theorems
        ]
        cells = [[row[name] for name in COLUMNS] for row in rows]
        return [
            display.render_table("Theorems", list(COLUMNS), cells, form),
            *(f"{each['name']}: {line}" for each in theorems for line in _outcome_of(each)),
        ]
    groups: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for each in sorted(theorems, key=_came_out):
        told = (each["subject"], each["bound"], *_spell(each), each["expected"], each["tier"])
        groups.setdefault(told, []).append(each)
    return [line for group in groups.values() for line in (*_group_lines(group), "")]


def _came_out(theorem: Mapping[str, Any]) -> bool:
    """Whether a theorem came out as it should."""
    return theorem["outcome"] in ("holds", "finding")


def _group_lines(group: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    first = group[0]
    profile, readings = _spell(first)
    yield from _wrap(f"{first['about']} ({first['subject']}), {profile}", "")
    tried = sum(each["tried"] for each in first["certificate"])
    cost = f"{first['paths']} paths, tried on {tried} plain inputs, {first['seconds']:.1f} s"
    if first["cached"]:
        cost = f"{cost} when it was proved (cached)"
    yield from _wrap(f"{first['bound']}; {cost}", "  ")
    if readings:
        yield from _wrap(f"readings: {readings}", "  ")
    idle = [each["shape"] for each in first["certificate"] if not each["paths"]]
    if idle:
        yield from _wrap(f"no input fits {_spell_shapes(idle, first['certificate'])}", "  ")
    for each in group:
        yield from _theorem_lines(each)


def _theorem_lines(theorem: Mapping[str, Any]) -> Iterator[str]:
    verdict = theorem["verdict"]
    if not _came_out(theorem):
        verdict = f"{verdict} (expected {theorem['expected']})"
    elif theorem["finding"]:
        verdict = f"{verdict} (finding {theorem['finding']})"
    yield f"  {verdict}  {theorem['name']} ({theorem['clause'] or A_LEMMA})"
    yield from _wrap(theorem["statement"], "    ")
    for title, items in (("assumes", "hypotheses"), ("bounds", "shape")):
        if theorem[items]:
            yield from _wrap(f"{title}: {', '.join(_names(theorem[items]))}", "    ")
    for line in _outcome_of(theorem):
        yield from _wrap(line, "    ")


def _outcome_of(theorem: Mapping[str, Any]) -> Iterator[str]:
    """Yield the counterexample where one was found, and why a verdict is not what it should be."""
    if theorem["counterexample"]:
        yield theorem["counterexample"]["words"]
    if theorem["reason"]:
        yield f"{theorem['verdict']}: {theorem['reason']}"


def _spell(theorem: Mapping[str, Any]) -> tuple[str, str]:
    """Return the profile with what is changed of it, and the readings that were looked at."""
    profile = f"profile {theorem['profile']}"
    if theorem["changes"]:
        profile = f"{profile} with {', '.join(theorem['changes'])}"
    looked = (f"{name}={value}" for name, value in theorem["readings"].items())
    return profile, ", ".join(each for each in looked if each not in theorem["changes"])


def _spell_shapes(idle: Sequence[Mapping[str, Any]], among: Sequence[Any]) -> str:
    shown = ["; ".join(_lengths(each)) for each in idle[:_SHAPES_SHOWN]]
    more = [f"and {len(idle) - len(shown)} more"] if len(idle) > len(shown) else []
    return f"{len(idle)} of {len(among)} shapes: {', '.join((*map('({})'.format, shown), *more))}"


def _lengths(shape: Mapping[str, Any]) -> Iterator[str]:
    return (f"{name} {size}" for name, size in shape.items() if size is not None)


def _wrap(text: str, indent: str) -> list[str]:
    more = f"{indent}  "
    return wrap(text, WIDTH, initial_indent=indent, subsequent_indent=more, break_on_hyphens=False)


def _names(hypotheses: Sequence[Mapping[str, Any]]) -> list[str]:
    return [item["name"] for item in hypotheses]


def list_document() -> tuple[Document, str]:
    """Return every theorem there is, and the same as lines: none of them is proved for that."""
    theorems = get_theorems()
    rows = [
        {
            "name": each.name,
            "clause": each.clause,
            "profile": each.profile,
            "changes": list(each.subject.changes),
            "expected": each.expected,
            "finding": each.finding,
            "tier": each.tier,
            "statement": each.statement,
        }
        for each in theorems
    ]
    lines = []
    for each in theorems:
        expected = f"{each.expected} ({each.finding})" if each.finding else each.expected
        lines.append(f"{each.name}: {expected}, {each.clause or A_LEMMA}, {each.profile}")
        lines += _wrap(each.statement, "    ")
    body = {"theorems": rows}
    return Document("prove", HOLDS, 0.0, {"theorems": len(rows)}, body=body), "\n".join(lines)


def explain_document(names: Sequence[str], factor: int, timeout_s: float) -> tuple[Document, str]:
    """Return the named theorems in words."""
    told = {name: explain(name, factor, timeout_s) for name in names}
    document = Document("prove", HOLDS, None, {"theorems": len(told)}, body={"explained": told})
    return document, "\n\n".join(told.values())


@dataclass(frozen=True, slots=True)
class Question:
    """What is to be proved, and how far."""

    names: Sequence[str]
    """Theorems; none stands for all."""
    factor: int
    """The longest list of replicas that is tried."""
    timeout_s: float
    code: str | None = None
    """A rule of somebody's own, as `module:function`, that is held against the theorems."""
    profile: str = DEFAULT_PROFILE
    """Whose theorems are asked of such a rule."""
    assume: Sequence[str] = ()
    """The preconditions that are accepted of such a rule."""
    fresh: bool = False
    """Whether what was proved before is proved anew."""
    second_opinion: bool = False
    """Whether another solver is asked as well."""


def prove_document(asked: Question, progress: Say, form: str) -> tuple[Document, str]:
    """Prove theorems and return report and text.

    Raises UnknownTheoremError, CandidateError, and NoSecondSolverError where there is none.
    """
    start = time.monotonic()
    preconditions: list[dict[str, Any]] = []
    if asked.code is not None:
        factor = min(asked.factor, _OWN_FACTOR)
        results = prove_candidate(
            asked.code, factor, asked.profile, asked.timeout_s, assume=asked.assume
        )
        preconditions = list_assumed(asked.code, asked.assume)
    else:
        results = prove_all(
            list(asked.names) or None,
            asked.factor,
            lambda *done: progress("proofs", *done),
            asked.timeout_s,
            tier="full",
            cache=None if asked.fresh else Cache(find_folder()),
        )
    body = to_json(results)
    verdict, counts = body.pop("verdict"), body.pop("counts")
    lines = render_theorems(body["theorems"], form)
    told_of = ""
    if asked.code is not None:
        body["preconditions"] = preconditions
        told_of, more = _say_preconditions(preconditions)
        lines = [*more, "", *lines]
    if asked.second_opinion:
        told = _ask_again(asked, progress)
        body |= {"second_opinion": told}
        if verdict == HOLDS:
            verdict = VIOLATED if told["differs"] else UNKNOWN if told["unknown"] else HOLDS
        numbers = ", ".join(f"{told[name]} {name}" for name in ("agrees", "differs", "unknown"))
        lines.append(f"{told['solver']} on {told['scripts']} questions: {numbers}")
    profiles = {theorem["profile"] for theorem in body["theorems"]}
    profile = profiles.pop() if len(profiles) == 1 else None
    seconds = time.monotonic() - start
    document = Document("prove", verdict, seconds, counts, profile=profile, body=body)
    said = f"{verdict.upper()} in {seconds:.1f} s{told_of}: {display.say_counts(counts)}"
    cached = sum(theorem["cached"] for theorem in body["theorems"])
    if cached:
        said = f"{said} ({cached} cached; --fresh proves them again)"
    return document, "\n".join([display.paint(said), "", *lines]).rstrip("\n")


def _say_preconditions(preconditions: Sequence[Mapping[str, Any]]) -> tuple[str, list[str]]:
    """Return what is assumed of every input, for the verdict, and in lines what it says."""
    taken = [each for each in preconditions if each["assumed"]]
    names = ", ".join(each["name"] for each in taken)
    told = f", assuming {names} of every input" if names else ", with no assumption on inputs"
    lines = []
    for each in preconditions:
        why = {"accepted": "assumed", "given": "given", "": "not assumed"}[each["assumed"]]
        lines += _wrap(f"{why}: {each['name']} ({each['sentence']})", "")
    left = [each["name"] for each in preconditions if not each["assumed"]]
    if left:
        lines += _wrap(
            "The rule of the documents needs what is not assumed. If your rule is never called "
            "without it, add --assume NAME, or --assume all.",
            "",
        )
    return told, lines


def _ask_again(asked: Question, progress: Say) -> dict[str, Any]:
    """Return what another solver says to every question."""
    scripts = make_scripts(list(asked.names) or None, asked.factor, asked.timeout_s)
    answers = opinion.ask_all(
        scripts, asked.timeout_s, lambda done: progress("second opinion", done, 0)
    )
    told: dict[str, Any] = opinion.to_json(answers)["second_opinion"]
    return told


def sweep_document(
    names: Sequence[str], timeout_s: float, progress: Say, *, thorough: bool
) -> tuple[Document, str]:
    """Sweep the readings and return report and text. Raises UnknownTheoremError.

    The verdict is violated where something is refuted that no finding speaks of.
    """
    start = time.monotonic()
    results = sweep(
        list(names) or None,
        FACTOR,
        lambda *done: progress("sweep", *done),
        timeout_s,
        protocol_factor=FACTOR if thorough else 1,
    )
    body = sweep_to_json(results)
    counts = body.pop("counts")
    missed = UNKNOWN if counts["unknown"] else HOLDS if results else VACUOUS
    verdict = VIOLATED if counts["news"] else missed
    document = Document("prove", verdict, time.monotonic() - start, counts, body=body)
    said = display.paint(f"{verdict.upper()}: {display.say_counts(counts)}")
    return document, f"{said}\n\n{render_sweep(results)}"
