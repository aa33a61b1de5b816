"""The counterexamples of the proofs, replayed on the real controller.

A counterexample to a hypothesis that was left out is a state of a partition. It is written into a
ZooKeeper of its own before a controller takes office; once that rests, ZooKeeper holds what it made
of it. That has to be what the model's controller makes of it, and has to break the theorem's claim.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Final

from reassure_conformance.answers.proving import FACTOR, Say
from reassure_conformance.mutants import planted
from reassure_conformance.report import display
from reassure_conformance.report.document import HOLDS, VACUOUS, VIOLATED, Document
from reassure_conformance.scenarios.live.live_server import LiveServer
from reassure_proofs.engine.necessity import SHAPE, NecessityResult, examine_hypotheses
from reassure_proofs.engine.register import get_theorems
from reassure_proofs.engine.replays import NotShown, Replay, can_be_shown, prepare
from reassure_spec.protocols import import_parts

SAME: Final = "shows the same"
NOT_POSSIBLE: Final = "not possible"


@dataclass(frozen=True, slots=True)
class ReplayRow:
    """What became of one counterexample."""

    replay: Replay
    model: str
    """Always that it shows the same: a counterexample that does not is a fault of the prover."""
    controller: str
    """`shows the same`, `not possible`, or what it came to instead."""

    def to_json(self) -> dict[str, Any]:
        """Return the row as plain JSON values."""
        replay = self.replay
        return {
            "theorem": replay.theorem,
            "hypothesis": replay.hypothesis,
            "counterexample": replay.sentence,
            "model": self.model,
            "controller": self.controller,
            "end": None if replay.expected is None else str(replay.expected),
            "reason": replay.reason,
        }


def _find_part(planting: object) -> ModuleType:
    """Return what writes such a state and judges where it ends: its protocol's own."""
    parts = import_parts("reassure_conformance", "replayed").values()
    return next(part for part in parts if isinstance(planting, part.Planting))


def replay_counterexamples(
    found: Sequence[NecessityResult],
    progress: Callable[[int, int], None] | None = None,
    faults: tuple[str, ...] = (),
) -> list[ReplayRow]:
    """Return one row for each counterexample to a hypothesis that is needed.

    The server is started only where a counterexample can be shown; errors are those of
    `LiveServer.start`.
    """
    needed = [item for item in found if item.hypothesis != SHAPE and item.counterexample]
    replays = [prepare(item.theorem, item.hypothesis, item.counterexample or {}) for item in needed]
    if not any(replay.planting for replay in replays):
        return [ReplayRow(replay, SAME, NOT_POSSIBLE) for replay in replays]
    rows = []
    with LiveServer.start(faults) as live:
        for item, replay in zip(needed, replays, strict=True):
            with planted(faults):
                rows.append(ReplayRow(replay, SAME, _compare(live, item, replay)))
            if progress is not None:
                progress(len(rows), len(needed))
    return rows


def _compare(live: LiveServer, item: NecessityResult, replay: Replay) -> str:
    if replay.planting is None:
        return NOT_POSSIBLE
    part = _find_part(replay.planting)
    try:
        end = part.replay_live(live, replay.planting)
    except NotShown as reason:
        return str(reason)
    if end != replay.expected:
        return f"comes to {end}, the model to {replay.expected}"
    (theorem,) = get_theorems([item.theorem.name])
    arguments = (item.counterexample or {})["arguments"]
    broken = part.violates(theorem, arguments, replay.planting, end)
    return SAME if broken else f"comes to {end}, which keeps the claim"


def replay_document(
    names: Sequence[str], timeout_s: float, progress: Say, form: str
) -> tuple[Document, str]:
    """Leave each hypothesis out, replay what follows, and return report and table.

    Without names that is every theorem about the drop rule and the controller's plan; those of
    others cannot be shown on a controller, and are looked at where they are named. Raises
    UnknownTheoremError, and what `LiveServer` raises.
    """
    start = time.monotonic()
    chosen = list(names) or [item.name for item in get_theorems() if can_be_shown(item)]
    found = examine_hypotheses(
        chosen, FACTOR, lambda *done: progress("hypotheses", *done), timeout_s
    )
    rows = replay_counterexamples(found, lambda *done: progress("replays", *done))
    answers = [row.controller for row in rows]
    counts = {
        "counterexamples": len(rows),
        "on_model": sum(row.model == SAME for row in rows),
        "on_controller": answers.count(SAME),
        "not_possible": answers.count(NOT_POSSIBLE),
    }
    counts["differ"] = len(rows) - counts["on_controller"] - counts["not_possible"]
    verdict = VIOLATED if counts["differ"] else HOLDS if rows else VACUOUS
    body = {"replays": [row.to_json() for row in rows]}
    document = Document("prove", verdict, time.monotonic() - start, counts, body=body)
    said = display.paint(f"{verdict.upper()}: {display.say_counts(counts)}")
    return document, f"{said}\n\n{render_replays(rows, form)}"


def render_replays(rows: Sequence[ReplayRow], form: str) -> str:
    """Return the table theorem by hypothesis."""
    columns = ["theorem", "without", "on the model", "on the controller", "because, or what it is"]
    table = [
        [
            row.replay.theorem,
            row.replay.hypothesis,
            row.model,
            row.controller,
            row.replay.reason or str(row.replay.expected),
        ]
        for row in rows
    ]
    return display.render_table("Counterexamples to what is left out", columns, table, form)
