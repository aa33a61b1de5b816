"""What the verb `diff` answers: how two results differ, or two rules, models or implementations.

A result is a file, or the directory of a run. Else each of the two is a rule (`module:function`,
or the model's own under a profile), a profile with readings that differ from it
(`PROFILE,READING=VALUE`), or an implementation: a connectable, or the directory of a run,
which stands for what was driven in it. The smallest instance comes first.
"""

import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from reassure_conformance.report.display import fence, paint, render_table
from reassure_conformance.report.document import HOLDS, UNKNOWN, VACUOUS, VIOLATED, Document
from reassure_spec.errors import BadUsage
from reassure_spec.profiles import DEFAULT_PROFILE, PROTOCOLS

SHOWN: Final = 10
"""How many differences are shown to people."""
KEPT: Final = 100
"""How many a document has."""


_CONNECTABLES: Final = ("direct:", "exec:", "zk:")


class NothingToCompare(BadUsage):
    """Two things of which nothing says what they have in common."""


@dataclass(frozen=True, slots=True)
class Disagreement:
    """An instance on which the two go apart."""

    instance: Sequence[str]
    """What it is, as lines: arguments, or the steps of a story."""
    old: Sequence[str]
    new: Sequence[str]

    def as_dict(self) -> dict[str, list[str]]:
        """Return the record that the document prints."""
        return {"instance": [*self.instance], "old": [*self.old], "new": [*self.new]}


@dataclass(slots=True)
class Found:
    """What came of comparing."""

    kind: str
    """`rules`, `models` or `implementations`."""
    bound: str
    """What was looked at, in words."""
    looked: int
    """How many instances that was."""
    differences: list[Disagreement] = field(default_factory=list)
    open: str = ""
    """Why not everything was looked at, "" where it was."""

    def get_verdict(self) -> str:
        """Return `violated` where they differ."""
        if self.differences:
            return VIOLATED
        return UNKNOWN if self.open else HOLDS if self.looked else VACUOUS


@dataclass(frozen=True, slots=True)
class DiffOptions:
    """How far to look."""

    factor: int
    """Rules: the longest list of replicas."""
    scope: str | None
    """Models: the scope whose states are looked at; None for one of the first's protocol."""
    states: int
    """Models: how many of them, at most."""
    stories: Sequence[str]
    """Implementations: which stories are told; none for all."""


def diff_document(old: str, new: str, asked: DiffOptions, directory: Path) -> Document:
    """Compare two things of one kind; `directory` is for servers.

    Raises NothingToCompare, and what is wrong with a rule, a reading or a connectable.
    """
    start = time.monotonic()
    compare = {"rule": _diff_rules, "profile": _diff_models, "implementation": _diff_driven}
    kinds = {_recognise(each) for each in (old, new)}
    if kinds == {"rule", "profile"}:
        kinds = {"rule"}
    if len(kinds) != 1:
        raise NothingToCompare(
            f"{old!r} and {new!r} cannot be compared: they are {' and '.join(sorted(kinds))}"
        )
    found = compare[kinds.pop()](old, new, asked, directory)
    counts = {"looked": found.looked, "differences": len(found.differences)}
    body = {
        "kind": found.kind,
        "old": old,
        "new": new,
        "bound": found.bound,
        "open": found.open,
        "differences": [each.as_dict() for each in found.differences[:KEPT]],
    }
    return Document("diff", found.get_verdict(), time.monotonic() - start, counts, body=body)


def _recognise(what: str) -> str:
    """Return the kind of a thing. Raises NothingToCompare for what is nothing of the sort."""
    if what.partition(",")[0] in PROTOCOLS:
        return "profile"
    if what.startswith(_CONNECTABLES) or (Path(what) / "run.json").is_file():
        return "implementation"
    if re.fullmatch(r"[\w.]+:\w+", what):
        return "rule"
    raise NothingToCompare(
        f"{what!r} is nothing that can be compared; name a rule (module:function), a profile with "
        "readings (PROFILE,READING=VALUE), an implementation (direct:..., exec:..., zk:...), the "
        "directory of a run, or a file with a result"
    )


def _diff_rules(old: str, new: str, asked: DiffOptions, _: Path) -> Found:
    from reassure_proofs.engine.compare import compare_rules, spell

    found = compare_rules(old, new, asked.factor)
    differences = [
        Disagreement(
            [f"{name} {spell(value)}" for name, value in each.arguments.items()],
            [each.old],
            [each.new],
        )
        for each in found.differences
    ]
    bound = f"{found.rule.name} rules, replication factor 1 to {asked.factor}"
    left = "" if found.whole else f"stopped after {found.asked:,} inputs"
    return Found("rules", bound, found.asked, differences, left)


def _diff_models(old: str, new: str, asked: DiffOptions, _: Path) -> Found:
    from reassure_explorer.engine.compare import compare_models
    from reassure_explorer.scopes.catalogue import get_model

    rules = [_read_profile(each) for each in (old, new)]
    scope = asked.scope or _choose_scope(rules[0][0])
    models = [get_model(scope, *each)[1] for each in rules]
    found = compare_models(models[0], models[1], asked.states)
    differences = [
        Disagreement([*each.story, f"then {each.action}"], each.old, each.new)
        for each in found.partings
    ]
    left = "" if found.whole else f"stopped after {found.states:,} states"
    return Found("models", f"scope {scope}", found.states, differences, left)


def _choose_scope(profile: str) -> str:
    """Return a scope in which what a profile has readings about comes up soon."""
    from reassure_explorer.scopes.catalogue import SCOPES

    own = (scope.name for scope in SCOPES.values() if scope.profile == profile)
    return next(own, CHANGING) if profile != DEFAULT_PROFILE else CHANGING


CHANGING: Final = "promises-one"
"""The scope in which a target is changed in flight soonest."""


def _read_profile(text: str) -> tuple[str, dict[str, str]]:
    """Return a profile with the readings that differ from it. Raises NothingToCompare."""
    profile, *readings = text.split(",")
    pairs = [reading.partition("=") for reading in readings]
    if not all(equals for _, equals, _ in pairs):
        raise NothingToCompare(f"{text!r}: write readings as NAME=VALUE after the profile")
    return profile, {name: value for name, _, value in pairs}


def _diff_driven(old: str, new: str, asked: DiffOptions, directory: Path) -> Found:
    from reassure_conformance.adapter import AdapterDied
    from reassure_conformance.adapter.driver import ServerGone
    from reassure_conformance.answers.case_run import CaseRun, Passage, list_possible, open_bench
    from reassure_conformance.gate.story import Story

    sides: list[dict[str, tuple[Story, list[Passage]]]] = []
    died = ""
    for name, what in (("old", old), ("new", new)):
        told: dict[str, tuple[Story, list[Passage]]] = {}
        sides.append(told)
        try:
            with open_bench(_settle(what), directory / name) as harness:
                for story in list_possible(harness):
                    if not asked.stories or story.name in asked.stories:
                        telling = CaseRun(harness, story)
                        told[story.name] = (story, telling.passages)
                        telling.tell()
        except (AdapterDied, ServerGone) as error:
            died = died or f"{what}: {error}"
    both = [name for name in sides[0] if name in sides[1]]
    parted = [_part(sides[0][name][0], *(side[name][1] for side in sides)) for name in both]
    found = sorted(filter(None, parted), key=lambda each: len(each.instance))
    only = sum(len(side) for side in sides) - 2 * len(both)
    bound = f"{len(both)} test cases" + (f"; {only} that only one of them can run" if only else "")
    return Found("implementations", bound, len(both), found, died)


def _settle(what: str) -> Any:
    """Return the settings of an implementation, or of what was driven in a run."""
    from reassure_conformance.answers.replaying import read_settings
    from reassure_conformance.gate.run_settings import Settings

    if what.startswith(_CONNECTABLES):
        return Settings(seed=0, connectable=what)
    return read_settings(Path(what))


def _part(story: Any, old: Sequence[Any], new: Sequence[Any]) -> Disagreement | None:
    """Return the first step of a story at which two did otherwise, None where there is none."""
    for number, (one, other) in enumerate(zip(old, new, strict=False)):
        left, right = Counter(_list_acts(one)), Counter(_list_acts(other))
        if left != right:
            steps = [f"test case {story.name}", *(each.step for each in old[: number + 1])]
            return Disagreement(
                steps, sorted((left - right).elements()), sorted((right - left).elements())
            )
    return None


def _list_acts(passage: Any) -> Iterator[str]:
    """Yield what came of a step, however it was cut into transactions and whoever has which id."""
    if passage.result != "ok":
        yield passage.result
    for write in passage.writes:
        who, _, gist = write.partition(" ")[2].partition(": ")
        who = re.sub(r"^controller \d+$", "controller", who)
        for act in gist.split("; "):
            yield f"{who}: {act}"


def render_diff(document: Document, form: str) -> str:
    """Return the verdict, then the differences, the smallest first."""
    body, counts = document.body, document.counts
    count = counts["differences"]
    word = "DIFFERENT" if count else "ALIKE" if document.verdict == HOLDS else document.verdict
    looked = f"{body['bound']}; {counts['looked']:,} compared"
    lines = [f"{word.upper()} in {document.seconds:.1f} s: {looked}"]
    if body["open"]:
        lines.append(f"Not everything was compared: {body['open']}")
    shown: list[str] = []
    for number, each in enumerate(body["differences"][:SHOWN], start=1):
        shown += ["", f"{number}. {'; '.join(each['instance'])}"]
        shown += [f"   old  {line}" for line in each["old"] or ("nothing",)]
        shown += [f"   new  {line}" for line in each["new"] or ("nothing",)]
    lines += fence(shown, form)
    if count > SHOWN:
        lines += ["", f"and {count - SHOWN} more"]
    return "\n".join(lines)


# Two results ------------------------------------------------------------------------------------


def are_results(*given: str) -> bool:
    """Whether all that is given is there as a file or folder, and no profile is called so."""
    return all(Path(each).exists() and each not in PROTOCOLS for each in given)


def compare_document(before: Path, after: Path) -> Document:
    """Compare two results: what each says of what was asked, where that changed.

    The verdict is on the change: violated where something is broken that was not, unknown where
    it is no longer certain, vacuous where it is no longer put to the test. Raises BadResult.
    """
    from reassure_conformance.report.document import read_result

    old, new = read_result(before), read_result(after)
    sides = [_list_asked(each) for each in (old, new)]
    changed = [
        {
            "what": name,
            "before": list(sides[0].get(name, _NOT_THERE)),
            "after": list(sides[1].get(name, _NOT_THERE)),
        }
        for name in dict.fromkeys((*sides[0], *sides[1]))
        if sides[0].get(name) != sides[1].get(name)
    ]
    worse = [each["after"][0] for each in changed if _is_worse(each)]
    verdict = next((v for word, v in _WORST.items() if word in worse), HOLDS)
    if not sides[0] or not sides[1]:
        verdict = VACUOUS
    counts = {
        "asked": len({*sides[0], *sides[1]}),
        "changed": len(changed),
        "verdicts": sum(each["before"][0] != each["after"][0] for each in changed),
        "worse": len(worse),
    }
    changed.sort(key=lambda each: (not _is_worse(each), each["before"][0] == each["after"][0]))
    body = {"before": str(before), "after": str(after), "changed": changed}
    same = old["profile"] if old["profile"] == new["profile"] else None
    return Document("compare", verdict, None, counts, profile=same, body=body)


_NOT_THERE: Final = ("not there", "")
_ORDER: Final = ("holds", "warning", "skipped", "not there", "not settled", "violated")
"""What can be said of something, from good to bad."""
_WORST: Final[Mapping[str, str]] = {
    "violated": VIOLATED,
    "not settled": UNKNOWN,
    "skipped": VACUOUS,
    "not there": VACUOUS,
}


def _is_worse(change: Mapping[str, Any]) -> bool:
    before, after = (_ORDER.index(change[side][0]) for side in ("before", "after"))
    return after > before and (after > 3 or before == 0)


def _list_asked(result: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Return what was said of each thing that was asked, and how often it was put to the test."""
    from reassure_conformance.report.cases import WORDS, list_cases

    times = {each["id"]: str(each["exercised"]) for each in result.get("clauses", ())}
    return {
        f"{case.group} {case.name}": (
            WORDS[case.outcome],
            times.get(case.name, "") if case.group == "clauses" else "",
        )
        for case in list_cases(result)
    }


def render_comparison(document: Document, form: str) -> str:
    """Return the verdict, then what changed."""
    counts = document.counts
    said = "nothing got worse" if document.verdict == HOLDS else f"{counts['worse']} got worse"
    line = f"{document.verdict.upper()}: {said}; {counts['changed']} of {counts['asked']} changed"
    rows = [[each["what"], *each["before"], *each["after"]] for each in document.body["changed"]]
    columns = ["what", "before", "exercised", "after", "exercised now"]
    table = [render_table("What changed", columns, rows, form)] if rows else []
    return "\n".join([paint(line), *table])
