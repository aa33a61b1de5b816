"""One run: saved failures, then the shipped stories, then generated examples, all judged.

A run has a directory, made before anything is judged:

    run.json            what was asked for: seed, implementation, profile, readings, settings
    result.json         what came of it, its schema is `reassure spec schema result`
    zookeeper/          the server's own files, its transaction log among them, for `audit`
    rests.jsonl       when the clusters were quiescent, for `audit` (`gate.rests`)
    survivors/N.txt   for each mutant of the rules that survives the test case that kills it
    failure.txt       the shortest story of the violation
    failure.json        its evidence: violations, steps and what became of them, quiet points
    transactions.jsonl  the transactions of that story, one a line, for people
    implementation.log  what the implementation and its ZooKeeper client warned of
    died.txt          the story in which the implementation died, its last step included
    unsettled-N.txt   what had been done when the cluster did not come to rest in time
    missing.json      with `until` COVERED, what is not put to the test yet, while it goes on
    log/log.N           the same as a valid transaction log, for `replay` and `audit`
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from reassure_conformance.gate.base_runner import Runner
from reassure_conformance.gate.controllers import ControllersRunner
from reassure_conformance.gate.run_outcome import RunOutcome
from reassure_conformance.gate.run_settings import REPLICATION, Progress, Settings
from reassure_conformance.supervise import note_limit
from reassure_zookeeper.server import Server


def make_directory(out: Path | None, seed: int) -> Path:
    """Return the directory of this run, made. Raises OSError, FileExistsError when it is taken."""
    if out is None:
        stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
        out = Path("runs") / f"{stamp}-{seed}"
    out.mkdir(parents=True, exist_ok=True)
    if (out / "run.json").exists():
        raise FileExistsError(f"{out} holds a run already; choose another directory with --out")
    return out


@contextmanager
def _logging_to(path: Path) -> Iterator[None]:
    """Send the warnings of this process to a file; there are hundreds, and many are wanted."""
    handler = logging.FileHandler(path, encoding="utf-8", delay=True)
    handler.setLevel(logging.WARNING)
    handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(levelname)s %(message)s"))
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
        handler.close()


@contextmanager
def make_runner(
    settings: Settings,
    directory: Path,
    progress: Progress = lambda *_: None,
    server: Server | None = None,
) -> Iterator[Runner[Any]]:
    """Yield what carries out a run with these settings, in a directory.

    Under the profile of replication brokers with logs are driven, else controllers. Without a
    `server` the run has one of its own, whose files are in its directory.
    """
    note_limit(settings.hang_s)
    try:
        with _logging_to(directory / "implementation.log"):
            if settings.profile == REPLICATION:
                from reassure_conformance.gate.replication.brokers import BrokersRunner

                yield BrokersRunner(settings, directory, progress, server)
            else:
                yield ControllersRunner(settings, directory, progress, server)
    finally:
        note_limit(None)


def run(
    settings: Settings,
    directory: Path,
    progress: Progress = lambda *_: None,
    *,
    server: Server | None = None,
) -> RunOutcome:
    """Carry out one run and write its directory; see the module's text for what stands there."""
    with make_runner(settings, directory, progress, server) as runner:
        outcome = runner.run()
    if settings.stop_at and (outcome.failure is not None or outcome.died):
        Path(settings.stop_at).touch()
    return outcome
