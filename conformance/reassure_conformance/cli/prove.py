"""The verb `prove`: theorems about the model's own functions."""

from collections.abc import Mapping
from typing import Any

import click

from reassure_conformance.cli.options import Progress, emit, format_option
from reassure_conformance.report.document import HOLDS, UNKNOWN, VIOLATED, Document
from reassure_spec.errors import Unavailable


def _explain_theorems(
    names: tuple[str, ...], replication_factor: int, timeout_s: float, form: str
) -> int:
    """Print the named theorems in words."""
    from reassure_proofs.wording import explain

    if not names:
        raise click.UsageError("--explain needs the name of a theorem; see `reassure prove --list`")
    told = {name: explain(name, replication_factor, timeout_s) for name in names}
    document = Document("prove", HOLDS, None, {"theorems": len(told)}, body={"explained": told})
    return emit(document, form, lambda: "\n\n".join(told.values()))


def _sweep_or_replay(
    names: tuple[str, ...], thorough: bool, timeout_s: float, form: str, *, swept: bool
) -> int:
    """Sweep the readings, or replay the counterexamples of left-out hypotheses."""
    from reassure_conformance.answers import proving

    with Progress() as progress:
        if swept:
            document, text = proving.sweep_document(names, timeout_s, progress, thorough=thorough)
        else:
            document, text = proving.replay_document(names, timeout_s, progress, form)
    return emit(document, form, lambda: f"{text}\n{document.verdict.upper()}")


def _ask_again(
    names: tuple[str, ...], replication_factor: int, timeout_s: float, progress: Progress
) -> dict[str, Any]:
    """Return what another solver says to every question."""
    from reassure_proofs.opinion import SOLVER, ask_all, has_second_solver, to_json
    from reassure_proofs.smt import make_scripts

    if not has_second_solver():
        raise Unavailable(f"{SOLVER} is not installed: no second opinion. Install the extra dev.")
    scripts = make_scripts(list(names) or None, replication_factor, timeout_s)
    return to_json(ask_all(scripts, timeout_s, lambda done: progress("second opinion", done, 0)))


def _join_opinions(verdict: str, opinions: Mapping[str, Any]) -> str:
    """Return the verdict where another solver was asked as well, who may differ or not know."""
    if verdict != HOLDS or not opinions:
        return verdict
    told = opinions["second_opinion"]
    return VIOLATED if told["differs"] else UNKNOWN if told["unknown"] else HOLDS


@click.command()
@click.argument("names", nargs=-1, metavar="[THEOREM]...")
@click.option(
    "--replication-factor",
    type=click.IntRange(1, 7),
    default=4,
    show_default=True,
    help="The longest list of replicas that is tried.",
)
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(0, min_open=True),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="Processor time for one theorem.",
)
@click.option("--thorough", is_flag=True, help="Go as far as is bearable; takes minutes.")
@click.option("--list", "listed", is_flag=True, help="List the theorems; prove nothing.")
@click.option("--explain", "explained", is_flag=True, help="Say in words what a theorem needs.")
@click.option("--code", metavar="MODULE:FUNCTION", help="Hold your own rule against the theorems.")
@click.option(
    "--profile", default="kip-236", show_default=True, help="With --code: whose theorems."
)
@click.option("--second-opinion", is_flag=True, help="Ask cvc5 the same questions again.")
@click.option("--sweep", "swept", is_flag=True, help="Ask again under each other reading.")
@click.option(
    "--replay", "replayed", is_flag=True, help="Replay what each hypothesis is needed for."
)
@format_option
def prove(
    names: tuple[str, ...],
    replication_factor: int,
    timeout_s: float,
    thorough: bool,
    listed: bool,
    explained: bool,
    code: str | None,
    profile: str,
    second_opinion: bool,
    swept: bool,
    replayed: bool,
    form: str,
) -> int:
    """Prove the theorems about the model's own functions, or about a rule of your own."""
    import time

    from reassure_conformance.answers import proving
    from reassure_proofs.candidate import prove_candidate
    from reassure_proofs.runner import prove_all, to_json
    from reassure_proofs.statement import THOROUGH

    if listed:
        listing, lines = proving.list_document()
        return emit(listing, form, lambda: lines)
    factor = THOROUGH if thorough else replication_factor
    timeout_s = max(timeout_s, 600.0) if thorough else timeout_s
    if explained:
        return _explain_theorems(names, factor, timeout_s, form)
    if swept or replayed:
        return _sweep_or_replay(names, thorough, timeout_s, form, swept=swept)
    start = time.monotonic()
    opinions: dict[str, Any] = {}
    with Progress() as progress:
        if code is not None:
            results = prove_candidate(code, min(factor, 3), profile, timeout_s)
        else:
            results = prove_all(
                list(names) or None,
                factor,
                lambda done, total: progress("proofs", done, total),
                timeout_s,
                tier="full",
            )
        if second_opinion:
            opinions = _ask_again(names, factor, timeout_s, progress)
    body = {**to_json(results), **opinions}
    profiles = sorted({theorem["profile"] for theorem in body["theorems"]})
    document = Document(
        "prove",
        _join_opinions(body.pop("verdict"), opinions),
        time.monotonic() - start,
        body.pop("counts"),
        profile=profiles[0] if len(profiles) == 1 else None,
        body=body,
    )

    def render() -> str:
        lines = proving.render_theorems(body["theorems"], form)
        if opinions:
            told = opinions["second_opinion"]
            numbers = ", ".join(f"{told[name]} {name}" for name in ("agrees", "differs", "unknown"))
            lines.append(f"{told['solver']} on {told['scripts']} questions: {numbers}")
        return "\n".join([*lines, f"{document.verdict.upper()} in {document.seconds:.1f} s"])

    return emit(document, form, render)
