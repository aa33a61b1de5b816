"""Theorems in words: what is claimed, what it needs, and what happens without.

`explain` is for one theorem. `render_page` is the table of all hypotheses; running this module
prints it. `format_sums` is a line for each theorem, so that a change in what is said of one is seen
where the page itself is not kept.
"""

import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from reassure_proofs.engine.necessity import SHAPE, NecessityResult, examine_hypotheses
from reassure_proofs.engine.register import get_theorems
from reassure_proofs.engine.replays import prepare
from reassure_proofs.engine.runner import TheoremResult, prove_all
from reassure_proofs.engine.statement import Theorem, describe

_LAYERS: Final = {
    "code": "the model's own code on symbolic values",
    "candidate": "a candidate's code on symbolic values",
}
_PAGE_FACTOR: Final = 2


def explain(name: str, replication_factor: int = 4, timeout_s: float = 60.0) -> str:
    """Return a theorem in words, with the counterexample to each hypothesis that is left out.

    The theorem is proved up to where the whole set is; smaller lists show what is needed. Raises
    UnknownTheoremError for a name there is not.
    """
    (theorem,) = get_theorems([name])
    (result,) = prove_all([name], replication_factor, timeout_s=timeout_s)
    found: list[NecessityResult] = []
    if theorem.expected == "proved" and theorem.hypotheses:
        factor = max(theorem.shown_in, min(replication_factor, _PAGE_FACTOR))
        found = examine_hypotheses([name], factor, timeout_s=timeout_s, processes=1)
    return "\n".join(_explanation(theorem, result, found))


def _explanation(
    theorem: Theorem, result: TheoremResult, found: Sequence[NecessityResult]
) -> Iterator[str]:
    yield f"{theorem.name}: {theorem.statement}"
    yield ""
    facts = {
        "clause": theorem.clause or "none; a lemma about the model itself",
        "profile": ", ".join((theorem.profile, *theorem.subject.changes)),
        "readings": ", ".join(f"{name}={value}" for name, value in result.readings.items()),
        "about": f"{theorem.subject.words} ({_LAYERS[theorem.layer]})",
        "bound": result.bound,
        "verdict": f"{result.verdict}, expected {theorem.expected}",
        "finding": theorem.finding,
        "paths": f"{result.paths}, certified to be all of them" if result.certificate else "",
        "unknown because": result.reason,
    }
    width = max(len(key) for key in facts)
    yield from (f"  {key:<{width}}  {value}" for key, value in facts.items() if value)
    if result.counterexample is not None:
        yield ""
        yield "It fails for:"
        yield from _table(result.counterexample)
    for item in theorem.hypotheses:
        yield ""
        yield f"Assumed: {item.sentence} ({item.name})."
        for told in found:
            if told.hypothesis == item.name:
                yield from _without(told)
    if theorem.shape:
        yield ""
        yield "Assumed only to bound the number of paths:"
        yield from (f"  {item.sentence} ({item.name})" for item in theorem.shape)


def _without(told: NecessityResult) -> Iterator[str]:
    if told.counterexample is None:
        yield f"  Without it: {told.verdict}. {told.reason}".rstrip()
        return
    yield "  Without it the claim fails:"
    yield from _table(told.counterexample)


def _table(counterexample: Mapping[str, Any]) -> Iterator[str]:
    """Yield a counterexample as a table of two columns."""
    rows = {name: describe(value) for name, value in counterexample["arguments"].items()}
    rows["result"] = counterexample["outcome"]
    width = max(len(name) for name in rows)
    yield from (f"    {name:<{width}}  {value}" for name, value in rows.items())


def examine_page(tier: str) -> list[NecessityResult]:
    """Return what the page says of a tier, within the bounds of the page."""
    theorems = [item for item in get_theorems(None, tier) if item.tier == tier]
    found: list[NecessityResult] = []
    # What is looked at as most are comes first, what takes single replicas last.
    for factor in sorted(
        {each.shown_in for each in theorems}, key=lambda n: (n != _PAGE_FACTOR, -n)
    ):
        some = [each.name for each in theorems if each.shown_in == factor]
        found += examine_hypotheses(some, factor, timeout_s=300.0, processes=1)
    return found


def render_section(found: Sequence[NecessityResult]) -> str:
    """Return the tables of one tier as Markdown."""
    lines: list[str] = []
    theorem = ""
    for told in found:
        if told.theorem.name != theorem:
            theorem = told.theorem.name
            lines += ["", f"### {theorem}", "", told.theorem.statement, ""]
            lines += ["| without | verdict | smallest counterexample | on a controller |"]
            lines += ["|---|---|---|---|"]
        sentence = told.counterexample["sentence"] if told.counterexample else ""
        name = "all that bounds paths" if told.hypothesis == SHAPE else told.hypothesis
        verdict = told.verdict if told.as_expected else f"{told.verdict} (unexpected)"
        shown = _on_controller(told)
        cells = [f"{name}: {told.sentence}", verdict, f"`{sentence}`" if sentence else "", shown]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines).strip() + "\n"


def _on_controller(told: NecessityResult) -> str:
    """Return where a controller comes to rest that is put in the counterexample, or why none is."""
    if told.counterexample is None:
        return ""
    replay = prepare(told.theorem, told.hypothesis, told.counterexample)
    return replay.reason or f"the same: `{replay.expected}`"


_TITLES: Final = {"gate": "What every check proves", "full": "The protocol by induction"}


def render_page() -> str:
    """Return the page of all hypotheses as Markdown."""
    head = [
        "# Hypotheses",
        "",
        "<!-- Written by `make docs`. Do not edit. -->",
        "",
        "Each theorem that is proved, once more without each of its hypotheses. Where the claim",
        "fails the hypothesis is needed; the smallest counterexample was replayed on the model.",
        "What is assumed only to bound the number of paths is left out all at once.",
        "",
        "The last column: the counterexample as a state that a controller finds when it takes",
        "office, and where the model's comes to rest; or why no controller comes to it.",
    ]
    sections = [
        f"\n## {title}\n\n{render_section(examine_page(tier))}" for tier, title in _TITLES.items()
    ]
    return "\n".join(head) + "\n" + "".join(sections)


def format_sums(page: str) -> str:
    """Return each theorem on a page, with the checksum of what is said of it."""
    parts = re.split(r"^### (.*)\n", page, flags=re.MULTILINE)[1:]
    told = (re.sub(r"^#.*", "", text, flags=re.DOTALL | re.MULTILINE) for text in parts[1::2])
    sums = (zlib.crc32(text.strip().encode()) for text in told)
    return "".join(f"{name} {code:08x}\n" for name, code in zip(parts[::2], sums, strict=True))


if __name__ == "__main__":
    import sys

    sys.stdout.write(render_page())
