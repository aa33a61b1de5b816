"""What `reassure explore` does: run the explorer, and keep what it found in a directory."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from reassure_conformance import display
from reassure_conformance.report import Document
from reassure_explorer.explore import Exploration, explore
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
        liveness=options["liveness"],
        threads=options["threads"],
        progress=tell,
    )


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
