"""The verb `soak`: a plan, a run, and what came of it in the common document."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from reassure_conformance.gate.running import make_directory
from reassure_conformance.mutants import check_faults, load_mutants
from reassure_conformance.report import display
from reassure_conformance.report.document import Document
from reassure_lab.soak.checker import PROMISES
from reassure_lab.soak.members import Shape
from reassure_lab.soak.one_soak import Progress, Soak, SoakOutcome, SoakSettings
from reassure_lab.soak.schedule import default_kills


def run_soak(
    seed: int,
    seconds: float,
    kills: int | None,
    counts: tuple[int, int, int],
    faults: Sequence[str],
    out: Path | None,
    progress: Progress,
) -> tuple[Document, Callable[[str], str]]:
    """Carry out a soak; return its document, and what renders it in a form for people.

    `counts` are brokers, controllers and ZooKeeper servers. Raises UnknownFault, NoRoom, and where
    the cluster does not start what `Soak.run` raises.
    """
    check_faults(faults)
    logging.getLogger("kazoo").setLevel(logging.ERROR)  # lost connections are what this is about
    shape = Shape(
        *counts,
        broker_faults=tuple(one for one in faults if load_mutants()[one].of_brokers),
        controller_faults=tuple(one for one in faults if not load_mutants()[one].of_brokers),
    )
    kills = default_kills(seconds) if kills is None else kills
    directory = make_directory(out, seed)
    soak = Soak(SoakSettings(seed, seconds, kills, shape), directory, progress)
    outcome = soak.run()
    document = Document(
        "soak",
        outcome.verdict,
        outcome.seconds,
        outcome.counts,
        seed,
        shape.profile,
        body={
            "directory": str(directory),
            "repeat": _command(outcome, faults),
            "breaches": [asdict(breach) for breach in outcome.breaches],
            "unknown": outcome.unknown,
            "left_open": outcome.left_open,
            "plan": soak.schedule.as_dict(),
        },
    )
    document.write(directory)
    return document, lambda form: _render(document, outcome, form)


def _command(outcome: SoakOutcome, faults: Sequence[str]) -> str:
    settings = outcome.settings
    words = ["reassure lab soak", f"--seconds {settings.seconds:g}", f"--seed {settings.seed}"]
    words += [f"--kills {settings.kills}", *(f"--fault {one}" for one in faults)]
    shape, usual = settings.shape, Shape()
    for name in ("brokers", "controllers", "zookeepers"):
        if getattr(shape, name) != getattr(usual, name):
            words.append(f"--{name} {getattr(shape, name)}")
    return " ".join(words)


def _render(document: Document, outcome: SoakOutcome, form: str) -> str:
    report = document.as_dict()
    lines = [display.paint(f"{outcome.verdict.upper()}: {report['repeat']}"), ""]
    lines += [f"VIOLATED {breach.promise}: {breach.what}" for breach in outcome.breaches]
    lines += [f"UNKNOWN {what}" for what in outcome.unknown]
    lines += [f"NOT CHECKED {what}" for what in outcome.left_open]
    broken = {breach.promise for breach in outcome.breaches}
    rows = [(name, "violated" if name in broken else "kept", PROMISES[name]) for name in PROMISES]
    lines += ["", display.render_table("Promises", ["promise", "", "what"], rows, form)]
    counts = [(name, str(count)) for name, count in outcome.counts.items()]
    lines += ["", display.render_table("Counts", ["what", "count"], counts, form)]
    lines.append(
        f"The plan, the clients' records and the members' files are in {report['directory']}."
    )
    return "\n".join(lines)
