"""The reports of the proofs, and their counterexamples replayed on the real controller.

A counterexample to a hypothesis that was left out is a state of a partition. It is written into a
ZooKeeper of its own before a controller takes office; once that rests, ZooKeeper holds what it made
of it. That has to be what the model's controller makes of it, and has to break the theorem's claim.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kazoo.client import KazooClient

from reassure_conformance import display
from reassure_conformance.bundled import Bundled
from reassure_conformance.report import HOLDS, UNKNOWN, VACUOUS, VIOLATED, Document
from reassure_proofs.necessity import SHAPE, NecessityResult, examine_hypotheses
from reassure_proofs.replays import (
    End,
    NotShown,
    Planting,
    Replay,
    can_be_shown,
    prepare,
    violates,
)
from reassure_proofs.sweep import render as render_sweep
from reassure_proofs.sweep import sweep
from reassure_proofs.sweep import to_json as sweep_to_json
from reassure_proofs.theorems import get_theorems
from reassure_spec.znodes import (
    PERSISTENT_ROOTS,
    REASSIGNMENT_REQUESTS,
    REASSIGNMENTS,
    REQUEST_PREFIX,
    ReassignmentZnode,
    RequestZnode,
    StateZnode,
    decode_reassignment,
    decode_state,
    decode_topic,
    encode_config,
    encode_reassignment,
    encode_request,
    encode_state,
    encode_topic,
    reassignment_path,
    state_path,
    topic_config_path,
    topic_path,
)
from reassure_zookeeper.server import Server

COLUMNS: Final = ("theorem", "clause", "bound", "hypotheses", "verdict", "expected", "seconds")
TOPIC: Final = "orders"
SETTLE_S: Final = 10.0
SAME: Final = "shows the same"
NOT_POSSIBLE: Final = "not possible"
FACTOR: Final = 2
"""Replication factor in which each hypothesis shows that it is needed."""


def render_theorems(theorems: Sequence[Mapping[str, Any]], form: str) -> list[str]:
    """Return one line or row for each theorem, then what is to be said of some.

    That is the counterexample where one was found, and why a verdict is unknown.
    """
    rows = [
        {**each, "theorem": each["name"], "hypotheses": ", ".join(_names(each))}
        for each in theorems
    ]
    if form == "pretty":
        lines = [_line(row) for row in rows]
    else:
        cells = [[row[name] for name in COLUMNS] for row in rows]
        lines = [display.render_table("Theorems", list(COLUMNS), cells, form)]
    for each in theorems:
        if each["counterexample"]:
            lines.append(f"{each['name']}: {each['counterexample']['sentence']}")
        elif each["reason"]:
            lines.append(f"{each['name']} is unknown: {each['reason']}")
    return lines


def _names(theorem: Mapping[str, Any]) -> list[str]:
    return [item["name"] for item in theorem["hypotheses"]]


def _line(row: Mapping[str, Any]) -> str:
    verdict = row["verdict"]
    if verdict != row["expected"]:
        verdict = f"{verdict} (expected {row['expected']})"
    elif row["finding"]:
        verdict = f"{verdict} (finding {row['finding']})"
    parts = [f"{verdict}  {row['theorem']} ({row['clause']}): {row['bound']}"]
    parts += [f"assumes {row['hypotheses']}"] if row["hypotheses"] else []
    return "; ".join([*parts, f"{row['seconds']:.1f} s"])


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


class LiveReplayer:
    """A ZooKeeper in which states are written and controllers take office. A context manager.

    `faults` are planted in the controllers, to see that a difference is told.
    """

    def __init__(self, faults: tuple[str, ...] = ()) -> None:
        """Start the server. Raises ServerError, JavaError, JarsError where that is not possible."""
        self._faults: Final = faults
        self._server = Server.start()
        self._client = KazooClient(hosts=self._server.hosts, timeout=30.0)
        self._client.start(timeout=15)
        self._adapters: dict[str, Bundled] = {}
        self._count = 0

    def __enter__(self) -> "LiveReplayer":
        return self

    def __exit__(self, *_: object) -> None:
        for adapter in self._adapters.values():
            adapter.close()
        self._client.stop()
        self._client.close()
        self._server.stop()

    def run(self, planting: Planting) -> End:
        """Return where the real controller comes to rest. Raises NotShown where it does not."""
        self._count += 1
        chroot = f"/replay-{self._count:03d}"
        self._plant(chroot, planting)
        adapter = self._adapters.get(planting.profile)
        if adapter is None:
            adapter = Bundled(profile=planting.profile, faults=self._faults)
            self._adapters[planting.profile] = adapter
        adapter.start(self._server.hosts, chroot, planting.brokers)
        try:
            self._settle(adapter)
            if planting.requested:
                asked = encode_request(RequestZnode({(TOPIC, 0): planting.requested}, False))
                path = f"{chroot}{REASSIGNMENT_REQUESTS}/{REQUEST_PREFIX}"
                self._client.create(path, asked, sequence=True)
                self._settle(adapter)
            return self._read(chroot)
        finally:
            adapter.stop()

    def _settle(self, adapter: Bundled) -> None:
        if not adapter.settle(SETTLE_S):
            raise NotShown(f"the controller does not come to rest in {SETTLE_S:g} s")

    def _plant(self, chroot: str, planting: Planting) -> None:
        minimum = {"min.insync.replicas": str(planting.minimum)}
        state = StateZnode(planting.leader, 0, 0, planting.isr)
        flight = ReassignmentZnode(planting.top, planting.target, False)
        contents = {
            topic_path(TOPIC): encode_topic({0: planting.assigned}),
            topic_config_path(TOPIC): encode_config(minimum),
            state_path(TOPIC, 0): encode_state(state),
            reassignment_path(TOPIC, 0): encode_reassignment(flight),
        }
        for root in PERSISTENT_ROOTS:
            self._client.ensure_path(f"{chroot}{root}")
        for path, content in contents.items():
            self._client.create(f"{chroot}{path}", content, makepath=True)

    def _read(self, chroot: str) -> End:
        def get(path: str) -> bytes:
            data: bytes = self._client.get(f"{chroot}{path}")[0]
            return data

        assigned = decode_topic(topic_path(TOPIC), get(topic_path(TOPIC)))[0]
        state = decode_state(state_path(TOPIC, 0), get(state_path(TOPIC, 0)))
        path = reassignment_path(TOPIC, 0)
        target = None
        if self._client.exists(f"{chroot}{REASSIGNMENTS}/{TOPIC}/0") is not None:
            target = decode_reassignment(path, get(path)).target
        return End(assigned, state.leader, state.isr, target)


def replay_counterexamples(
    found: Sequence[NecessityResult],
    progress: Callable[[int, int], None] | None = None,
    faults: tuple[str, ...] = (),
) -> list[ReplayRow]:
    """Return one row for each counterexample to a hypothesis that is needed.

    The server is started only where a counterexample can be shown; errors are those of
    `LiveReplayer`.
    """
    needed = [item for item in found if item.hypothesis != SHAPE and item.counterexample]
    replays = [prepare(item.theorem, item.hypothesis, item.counterexample or {}) for item in needed]
    if not any(replay.planting for replay in replays):
        return [ReplayRow(replay, SAME, NOT_POSSIBLE) for replay in replays]
    rows = []
    with LiveReplayer(faults) as live:
        for item, replay in zip(needed, replays, strict=True):
            rows.append(ReplayRow(replay, SAME, _compare(live, item, replay)))
            if progress is not None:
                progress(len(rows), len(needed))
    return rows


def _compare(live: LiveReplayer, item: NecessityResult, replay: Replay) -> str:
    if replay.planting is None:
        return NOT_POSSIBLE
    try:
        end = live.run(replay.planting)
    except NotShown as reason:
        return str(reason)
    if end != replay.expected:
        return f"comes to {end}, the model to {replay.expected}"
    (theorem,) = get_theorems([item.theorem.name])
    arguments = (item.counterexample or {})["arguments"]
    broken = violates(theorem, arguments, replay.planting, end)
    return SAME if broken else f"comes to {end}, which keeps the claim"


Say = Callable[[str, int, int], None]
"""Told what is being done, how much of it is done and how much there is."""


def replay_document(
    names: Sequence[str], timeout_s: float, progress: Say, form: str
) -> tuple[Document, str]:
    """Leave each hypothesis out, replay what follows, and return report and table.

    Without names that is every theorem about the drop rule and the controller's plan; those of
    others cannot be shown on a controller, and are looked at where they are named. Raises
    UnknownTheoremError, and what `LiveReplayer` raises.
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
    return document, render_replays(rows, form)


def sweep_document(
    names: Sequence[str], timeout_s: float, progress: Say, *, thorough: bool
) -> tuple[Document, str]:
    """Sweep the readings and return report and text. Raises UnknownTheoremError.

    The verdict is violated where something is refuted that no finding speaks of.
    """
    start = time.monotonic()
    results = sweep(
        list(names) or None,
        FACTOR,
        lambda *done: progress("sweep", *done),
        timeout_s,
        protocol_factor=FACTOR if thorough else 1,
    )
    body = sweep_to_json(results)
    counts = body.pop("counts")
    missed = UNKNOWN if counts["unknown"] else HOLDS if results else VACUOUS
    verdict = VIOLATED if counts["news"] else missed
    document = Document("prove", verdict, time.monotonic() - start, counts, body=body)
    return document, render_sweep(results)


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
