"""What `reassure explore` does: run the explorer, and keep what it found in a directory."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from reassure_conformance.report.document import Document, write_text
from reassure_conformance.scenarios.scenario import Scenario
from reassure_conformance.scenarios.telling import get_text, tell
from reassure_conformance.script import SUFFIX
from reassure_explorer.engine.explore import Exploration, describe_violation, explore
from reassure_explorer.engine.renderings import make_itf, tell_story
from reassure_explorer.engine.result import Budget, Violation
from reassure_explorer.scopes.catalogue import SCOPES, get_model, get_scope
from reassure_explorer.scopes.counts import COUNTS
from reassure_explorer.scopes.pictures import draw_scope_story
from reassure_spec.errors import BadUsage
from reassure_spec.readings import Readings

if TYPE_CHECKING:
    from reassure_conformance.scenarios.live import LiveOutcome

Progress = Callable[[str, int, int], None]


Listed = tuple[str, str, list[str], list[list[str]]]
"""A list: its name among records, its title, its columns and its rows."""


def list_scopes() -> Listed:
    """Return the standard scopes: what each holds, its own profile, and its counts."""
    columns = ["scope", "what it holds", "profile", "states", "steps", "depth"]
    rows = [
        [scope.name, scope.summary, scope.profile, *format_counts(scope.name, scope.profile)]
        for scope in SCOPES.values()
    ]
    return "scopes", "Scopes", columns, rows


def format_counts(scope: str, profile: str) -> list[str]:
    """Return distinct states, steps and depth as they are known, `-` where they are not."""
    known = COUNTS.get((scope, profile))
    return ["-"] * 3 if known is None else [f"{number:,}" for number in known]


def choose_profile(scope: str) -> str:
    """Return the profile that a scope is about. Raises UnknownScope."""
    return get_scope(scope).profile


class BadRequest(BadUsage):
    """Options that make no sense together, or a place where nothing can be written."""


WALKS_WITHOUT: Final = (
    "liveness",
    "minimise_faults",
    "symmetry",
    "directory",
    "page",
    "graph",
    "states",
    "memory_mib",
)
"""Options that mean nothing where random walks are taken."""


def check_options(
    options: Mapping[str, Any], places: Iterable[Path | None], *, controller: bool = False
) -> None:
    """Refuse, before anything is explored, what cannot be done afterwards.

    `places` are the files that are to be written. Raises BadRequest, UnknownScope.
    """
    if options["walks"] is not None:
        idle = [name for name in WALKS_WITHOUT if options[name]]
        idle += ["controller"] if controller else []
        if idle:
            flag = f"--{idle[0].replace('_', '-')}"
            raise BadRequest(f"random walks have no use for {flag}; leave it or --walks away")
    for place in places:
        if place is not None and not place.absolute().parent.is_dir():
            raise BadRequest(f"{place}: there is no directory {place.parent}; make it first")
    if options["liveness"]:
        source = get_scope(options["scope"]).make_source(Readings())
        if source.make_model(options["scope"]).settled is None:
            raise BadRequest(
                f"scope {options['scope']} says nothing of fair runs, so --liveness has nothing "
                "to check; scope restless is made for it"
            )


def run_explore(options: Mapping[str, Any], progress: Progress) -> Exploration:
    """Explore as the options of the command line say."""

    def tell(at: Any) -> None:
        rate = at.generated / max(at.seconds, 1e-9)
        words = (
            f"depth {at.depth}, {at.distinct:,} states, {at.frontier:,} new, {rate:,.0f} steps/s"
        )
        progress(words, 0, 0)

    budget = Budget(options["states"], options["seconds"], options["memory_mib"])
    readings, model = get_model(options["scope"], options["profile"], options["readings"])
    return explore(
        model,
        engine=options["engine"],
        profile=options["profile"],
        readings=readings.as_dict(),
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
    from reassure_explorer.engine.simulate import simulate

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
    """Write the page to step through, and the picture of the state graph, where asked for.

    Raises ModelError for a graph that is too large to draw.
    """
    from reassure_explorer.engine.graph import draw_graph
    from reassure_explorer.engine.stepper import make_page

    _, model = get_model(options["scope"], options["profile"], options["readings"])
    if options["page"] is not None:
        violations = exploration.result.violations
        story = violations[0].story if violations else None
        write_text(options["page"], make_page(model, story))
    if options["graph"] is not None:
        fields = [name for name in options["fields"].split(",") if name]
        write_text(options["graph"], draw_graph(model, fields))


def run_sweep(options: Mapping[str, Any]) -> Listed:
    """Settle every reading otherwise, one at a time; answer what that changes."""
    from reassure_explorer.scopes.sweep import sweep

    rows = [
        [
            f"{found.reading}={found.value}",
            ", ".join(f"{name} ({steps} steps)" for name, steps in found.broken.items()) or "-",
            ", ".join(found.mended) or "-",
        ]
        for found in sweep(options["scope"], options["profile"])
    ]
    title = f"Readings that change what holds in {options['scope']} ({options['profile']})"
    return "readings_swept", title, ["reading", "breaks", "mends"], rows


def make_scenarios(exploration: Exploration) -> dict[str, Scenario]:
    """Return each story as a scenario, by the invariant that it breaks; all are replayed here."""
    return {
        violation.invariant: _tell(exploration, violation)
        for violation in exploration.result.violations
    }


def _tell(exploration: Exploration, violation: Violation) -> Scenario:
    scope, profile = exploration.scope, exploration.profile or choose_profile(exploration.scope)
    readings, _ = get_model(scope, profile, exploration.readings)
    return tell(scope, profile, readings, violation)


def run_on_controller(
    scenarios: Mapping[str, Scenario], progress: Progress
) -> "dict[str, LiveOutcome]":
    """Tell each scenario to the bundled controller on an embedded ZooKeeper.

    Raises ServerError, ServerGone, AdapterDied.
    """
    from reassure_conformance.scenarios.live import (
        LiveOutcome,
        LiveServer,
        find_reason_to_skip,
        run_live,
    )

    reasons = {name: find_reason_to_skip(scenario) for name, scenario in scenarios.items()}
    outcomes = {
        name: LiveOutcome(scenarios[name], skipped=reason)
        for name, reason in reasons.items()
        if reason
    }
    told = [name for name, reason in reasons.items() if not reason]
    if told:
        with LiveServer.start() as server:
            for number, name in enumerate(told):
                progress(f"on the controller: {name}", number, len(told))
                outcomes[name] = run_live(scenarios[name], server)
    return {name: outcomes[name] for name in scenarios}


def describe_outcome(outcome: "LiveOutcome") -> dict[str, Any]:
    """Return as data what the controller made of a story."""
    return {
        "skipped": outcome.skipped,
        "same": not outcome.skipped and not outcome.difference,
        "difference": outcome.difference,
        "violations": [violation.clause for violation in outcome.violations],
        "transactions": outcome.transactions,
    }


def render_outcomes(outcomes: "Mapping[str, LiveOutcome]") -> str:
    """Return in words what the controller made of each story."""
    if not outcomes:
        return "\nNothing was found, so that there is nothing to tell the controller."
    lines = ["\nOn the real controller:"]
    for name, outcome in outcomes.items():
        if outcome.skipped:
            lines.append(f"  {name}: not told, {outcome.skipped}")
            continue
        judged = ", ".join(sorted({v.clause for v in outcome.violations})) or "nothing"
        same = "does otherwise" if outcome.difference else "does the same, line by line"
        lines.append(f"  {name}: {same}; the judge finds broken: {judged}")
        lines += [f"    {line}" for line in outcome.difference.splitlines()]
    return "\n".join(lines)


def make_document(
    exploration: Exploration, outcomes: "Mapping[str, LiveOutcome] | None" = None
) -> Document:
    """Return the document of an exploration, and of what the controller made of its stories."""
    result = exploration.result
    body = exploration.make_body()
    if outcomes is not None:
        body["controller"] = {name: describe_outcome(o) for name, o in outcomes.items()}
    return Document(
        "explore",
        exploration.verdict.value,
        result.seconds + result.seconds_compiling,
        exploration.counts,
        profile=exploration.profile,
        readings=exploration.readings,
        body=body,
    )


def write_stories(exploration: Exploration, directory: Path) -> None:
    """Write report.json, and each story as text, scenario, ITF trace and picture."""
    directory.mkdir(parents=True, exist_ok=True)
    make_document(exploration).write(directory)
    for name, scenario in make_scenarios(exploration).items():
        place = directory / "counterexamples" / f"{name}{SUFFIX}"
        place.parent.mkdir(exist_ok=True)
        write_text(place, get_text(scenario))
    for violation in exploration.result.violations:
        title = f"{violation.invariant}: {violation.reason}"
        texts = {
            ".txt": f"{title}\n{tell_story(violation.story)}\n",
            ".itf.json": make_itf(violation.story, exploration.scope) + "\n",
            ".svg": draw_scope_story(violation.story, title),
        }
        for suffix, text in texts.items():
            write_text(directory / f"{violation.invariant}{suffix}", text)
