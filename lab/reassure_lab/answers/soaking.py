"""The verb `soak`: a plan, a run, and what came of it in the common document."""

import logging
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from reassure_conformance.gate.running import make_directory
from reassure_conformance.report import display
from reassure_conformance.report.document import Document
from reassure_lab.soak.guarantees import GUARANTEES
from reassure_lab.soak.members import Shape
from reassure_lab.soak.one_soak import Progress, Soak, SoakOutcome, SoakSettings
from reassure_lab.soak.own_mistakes import find_patches


def run_soak(
    settings: SoakSettings, out: Path | None, progress: Progress
) -> tuple[Document, Callable[[str], str]]:
    """Carry out a soak; return its document, and what renders it in a form for people.

    Raises UnknownFault, NoRoom, and where the cluster does not start what `Soak.run` raises.
    """
    shape = settings.shape
    find_patches(shape.faults)
    logging.getLogger("kazoo").setLevel(logging.ERROR)  # lost connections are what this is about
    directory = make_directory(out, settings.seed)
    soak = Soak(settings, directory, progress)
    outcome = soak.run()
    document = Document(
        "soak",
        outcome.verdict,
        outcome.seconds,
        outcome.counts,
        settings.seed,
        shape.profile,
        body={
            "directory": str(directory),
            "repeat": _command(settings),
            "breaches": [asdict(breach) for breach in outcome.findings.breaches],
            "tests": {name: dict(tests) for name, tests in outcome.findings.tests.items()},
            "untested": outcome.untested,
            "skipped": outcome.findings.skipped,
            "unknown": outcome.findings.unknown,
            "left_open": outcome.left_open,
            "plan": soak.schedule.as_dict(),
        },
    )
    document.write(directory)
    return document, lambda form: _render(document, outcome, form)


def _command(settings: SoakSettings) -> str:
    shape, usual = settings.shape, Shape()
    words = ["reassure lab soak", f"--seconds {settings.seconds:g}", f"--seed {settings.seed}"]
    words += [f"--kills {settings.kills}", *(f"--fault {one}" for one in shape.faults)]
    words += ["--full-disks"] if settings.full_disks else []
    for name in ("brokers", "controllers", "zookeepers", "wide", "profile"):
        if getattr(shape, name) != getattr(usual, name):
            words.append(f"--{name} {getattr(shape, name)}")
    return " ".join(words)


def _render(document: Document, outcome: SoakOutcome, form: str) -> str:
    report = document.as_dict()
    lines = [display.paint(f"{outcome.verdict.upper()}: {report['repeat']}"), ""]
    findings = outcome.findings
    lines += [f"VIOLATED {breach.guarantee}: {breach.what}" for breach in findings.breaches]
    lines += [f"UNKNOWN {what}" for what in findings.unknown]
    lines += [f"NOT CHECKED {what}" for what in outcome.left_open]
    lines += [
        f"NOT PUT TO THE TEST {name}: never: {', '.join(missing)}"
        for name, missing in outcome.untested.items()
    ]
    rows = [
        (name, findings.judge(name), f"{one.sentence} {findings.describe(name)}.")
        for name, one in GUARANTEES.items()
    ]
    heads = ["guarantee", "", "what, and how often it was put to the test"]
    lines += ["", display.render_table("Guarantees", heads, rows, form)]
    counts = [(name, str(count)) for name, count in outcome.counts.items()]
    lines += ["", display.render_table("Counts", ["what", "count"], counts, form)]
    lines.append(
        f"The plan, the clients' records and the members' files are in {report['directory']}."
    )
    return "\n".join(lines)
