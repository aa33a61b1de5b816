"""What `reassure explore` does: run the explorer, and keep what it found in a directory."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from reassure_conformance import display
from reassure_conformance.report import Document
from reassure_explorer.explore import Exploration, describe_violation, explore
from reassure_explorer.result import Budget
from reassure_explorer.scopes import SCOPES
from reassure_explorer.story import draw_story, make_itf, tell_story

Progress = Callable[[str, int, int], None]


def render_scopes(form: str) -> str:
    """Return a table of the standard scopes."""
    rows = [[scope.name, scope.summary] for scope in SCOPES.values()]
    return display.render_table("Scopes", ["scope", "what it holds"], rows, form)


def run_explore(options: Mapping[str, Any], progress: Progress) -> Exploration:
    """Explore as the options of the command line say."""

    def tell(at: Any) -> None:
        rate = at.generated / max(at.seconds, 1e-9)
        words = (
            f"depth {at.depth}, {at.distinct:,} states, {at.frontier:,} new, {rate:,.0f} steps/s"
        )
        progress(words, 0, 0)

    budget = Budget(options["states"], options["seconds"], options["memory_mib"])
    return explore(
        options["scope"],
        engine=options["engine"],
        profile=options["profile"],
        readings=options["readings"],
        budget=budget,
        keep_going=options["keep_going"],
        minimise=options["minimise_faults"],
        liveness=options["liveness"],
        threads=options["threads"],
        directory=options["directory"],
        progress=tell,
        symmetry=options["symmetry"],
    )


def run_walks(options: Mapping[str, Any], seed: int) -> tuple[Document, str]:
    """Take random walks through a scope; answer the document and the result in words."""
    from reassure_explorer.explore import get_model
    from reassure_explorer.simulate import simulate

    readings, model = get_model(options["scope"], options["profile"], options["readings"])
    result = simulate(model, seed, walks=options["walks"], seconds=options["seconds"])
    counts = {
        "distinct": result.distinct,
        "generated": result.steps,
        "invariants": len(model.invariants),
        "goals_reached": sum(result.goals.values()),
        "goals": len(result.goals),
        "walks": result.walks,
    }
    body = {
        "scope": options["scope"],
        "engine": "walks",
        "coverage": {"actions": dict(result.actions), "clauses": dict(result.notes)},
        "violations": [describe_violation(violation) for violation in result.violations],
    }
    document = Document(
        "explore",
        result.verdict.value,
        result.seconds,
        counts,
        seed=seed,
        profile=options["profile"],
        readings=readings.as_dict(),
        body=body,
    )
    stories = [f"\n{v.invariant}: {v.reason}\n{tell_story(v.story)}" for v in result.violations]
    return document, "\n".join([result.render(), *stories])


def write_pictures(options: Mapping[str, Any], exploration: Exploration) -> None:
    """Write the page to step through, and the picture of the state graph, where asked for."""
    from reassure_explorer.explore import get_model
    from reassure_explorer.graph import draw_graph
    from reassure_explorer.stepper import make_page

    _, model = get_model(options["scope"], options["profile"], options["readings"])
    if options["page"] is not None:
        violations = exploration.result.violations
        story = violations[0].story if violations else None
        options["page"].write_text(make_page(model, story), encoding="utf-8")
    if options["graph"] is not None:
        fields = [name for name in options["fields"].split(",") if name]
        options["graph"].write_text(draw_graph(model, fields), encoding="utf-8")


def make_document(exploration: Exploration) -> Document:
    """Return the document of an exploration."""
    result = exploration.result
    return Document(
        "explore",
        exploration.verdict.value,
        result.seconds + result.seconds_compiling,
        exploration.counts,
        profile=exploration.profile,
        readings=exploration.readings.as_dict(),
        body=exploration.make_body(),
    )


def write_stories(exploration: Exploration, directory: Path) -> None:
    """Write report.json, and each story as text, as ITF trace and as picture."""
    directory.mkdir(parents=True, exist_ok=True)
    make_document(exploration).write(directory)
    for violation in exploration.result.violations:
        title = f"{violation.invariant}: {violation.reason}"
        place = directory / violation.invariant
        place.with_name(place.name + ".txt").write_text(
            f"{title}\n{tell_story(violation.story)}\n", encoding="utf-8"
        )
        place.with_name(place.name + ".itf.json").write_text(
            make_itf(violation.story, exploration.scope) + "\n", encoding="utf-8"
        )
        place.with_name(place.name + ".svg").write_text(
            draw_story(violation.story, title), encoding="utf-8"
        )
