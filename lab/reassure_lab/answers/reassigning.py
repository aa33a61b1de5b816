"""What the verb `reassign` answers: documents for scripts, and Kafka's own words for people."""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kazoo.client import KazooClient

from reassure_conformance.report.document import HOLDS, UNKNOWN, VIOLATED, Document, worst
from reassure_controller.session import gather, stop
from reassure_lab.admin import PLACES, REQUESTS, kafka_output
from reassure_lab.admin.move_files import PartitionMove, list_moves, read_moves, read_topics
from reassure_lab.admin.submitting import Targets
from reassure_lab.admin.survey import Route, open_cluster
from reassure_lab.admin.verbs import (
    Cleared,
    Verification,
    cancel,
    execute,
    generate,
    list_active,
    verify,
    withdraw,
)
from reassure_spec.clauses import clause
from reassure_spec.znodes import PartitionKey, ReplicaList

Progress = Callable[[str, int, int], None]

LOOK_S: Final = 0.5
"""How often one who waits looks how far it is."""
CONNECT_S: Final = 10.0
"""How long ZooKeeper may take to answer at first."""
_VERDICTS: Final = {"complete": HOLDS, "in progress": UNKNOWN, "other replicas": VIOLATED}


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """What a verb has to say, either way."""

    document: Document
    text: str

    def render(self, form: str) -> str:
        """Return the text, as a block that is not set otherwise where it goes into a document."""
        return f"```\n{self.text}\n```" if form == "markdown" else self.text


@dataclass(frozen=True, slots=True)
class Waiting:
    """How long somebody waits for moves to end, and what is done meanwhile."""

    progress: Progress
    seconds: float
    """0 to look once, infinite to wait for as long as it takes."""
    clear: bool
    """Whether throttles are taken away when nothing moves."""


class Listener:
    """Wakes who waits for the znode by which moves are asked for, until the session ends."""

    def __init__(self, client: KazooClient, protocol: Route) -> None:
        self._client = client
        self._path = PLACES[protocol]
        self._news = threading.Event()

    def arm(self) -> None:
        """Listen for what happens after the call. Raises Indefinite."""
        self._news.clear()
        gather([self._client.exists_async(self._path, watch=self._wake)])

    def _wake(self, _event: object) -> None:
        self._news.set()

    def wait(self) -> None:
        """Wait for news, or until it is time to look all the same."""
        self._news.wait(LOOK_S)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """Where the cluster is, and what all verbs need."""

    zookeeper: str
    protocol: Route = REQUESTS

    def ask(self, verb: Callable[[KazooClient], ToolAnswer]) -> ToolAnswer:
        """Return what a verb answers, given a client. Raises NoCluster, and what the verb does."""
        begun_s = time.monotonic()
        # Whatever is lost, the verb says so itself, in one line.
        logging.getLogger("kazoo").setLevel(logging.CRITICAL)
        client = open_cluster(self.zookeeper, CONNECT_S)
        try:
            answer = verb(client)
        finally:
            stop(client)
        answer.document.seconds = time.monotonic() - begun_s
        return answer

    def generate(
        self, file: Path, brokers: Sequence[int], seed: int, *, with_racks: bool
    ) -> ToolAnswer:
        """Propose another assignment of the topics that a file names."""
        topics = read_topics(file)

        def run(client: KazooClient) -> ToolAnswer:
            found = generate(client, topics, brokers, seed, with_racks=with_racks)
            counts = {"topics": len(topics), "partitions": len(found.proposed)}
            body = {"current": list_moves(found.current), "proposed": list_moves(found.proposed)}
            document = self._document("generate", HOLDS, counts, body, seed)
            return ToolAnswer(document, kafka_output.say_proposal(found))

        return self.ask(run)

    @clause("move.tool.creates-path")
    def execute(
        self,
        file: Path,
        bytes_per_s: int | None,
        *,
        additional: bool,
        waiting: Waiting | None = None,
    ) -> ToolAnswer:
        """Start the moves of a file; with `waiting`, say what came of them like `verify`."""
        moves = read_moves(file)

        def run(client: KazooClient) -> ToolAnswer:
            listener = Listener(client, self.protocol)
            if waiting is not None:
                listener.arm()
            done = execute(
                client, moves, self.protocol, bytes_per_s=bytes_per_s, additional=additional
            )
            if waiting is not None:
                found, advice = self._wait(client, moves, listener, waiting)
                said = kafka_output.say_started(done)
                return self._answer_verification(found, f"{said}\n", advice)
            body = {
                "protocol": self.protocol,
                "throttle": bytes_per_s,
                "current": list_moves(done.current),
                "started": _list_targets(done.targets),
                "doubt": done.doubt,
            }
            counts = {"partitions": len(done.targets), "asked": done.asked}
            return ToolAnswer(
                self._document("execute", HOLDS, counts, body), kafka_output.say_started(done)
            )

        return self.ask(run)

    def verify(self, file: Path, waiting: Waiting) -> ToolAnswer:
        """Say how far the moves of a file are, as soon as none of them moves or time is over."""
        moves = read_moves(file)

        def run(client: KazooClient) -> ToolAnswer:
            listener = Listener(client, self.protocol)
            return self._answer_verification(*self._wait(client, moves, listener, waiting))

        return self.ask(run)

    @clause("move.tool.reports", "move.tool.interrupt")
    def _wait(
        self,
        client: KazooClient,
        moves: Sequence[PartitionMove],
        listener: Listener,
        waiting: Waiting,
    ) -> tuple[Verification, str]:
        """Return how far moves are when none moves any more, and what to do if interrupted.

        Who interrupts is told how things stand. What a controller of KAFKA-42 has not done is taken
        out of the old znode, as its command has to: there it could not be asked for again. Others
        go on with it, and have it cancelled by the action that is there for that.
        """
        deadline_s = time.monotonic() + waiting.seconds
        try:
            while True:
                listener.arm()
                found = verify(client, moves, clear=waiting.clear)
                if not _tell_progress(found, waiting.progress) or time.monotonic() >= deadline_s:
                    return found, ""
                listener.wait()
        except KeyboardInterrupt:
            advice = kafka_output.say_interrupted(withdraw(client, moves))
            return verify(client, moves, clear=False), advice

    def _answer_verification(
        self, found: Verification, before: str = "", advice: str = ""
    ) -> ToolAnswer:
        counts = {"partitions": len(found.partitions)}
        for status in _VERDICTS:
            number = sum(one.status == status for one in found.partitions)
            counts[status.replace(" ", "_")] = number
        partitions = [
            {
                **_name(one.key),
                "status": one.status,
                "replicas": list(one.assigned),
                "target": list(one.target),
                "in_sync": one.in_sync,
            }
            for one in found.partitions
        ]
        verdict = worst(_VERDICTS[one.status] for one in found.partitions)
        body = {
            "partitions": partitions,
            "cleared": _list_cleared(found.cleared),
            "interrupted": advice,
        }
        document = self._document("verify", verdict, counts, body)
        text = f"{before}{kafka_output.say_verification(found)}"
        return ToolAnswer(document, f"{text}\n{advice}" if advice else text)

    def list_active(self) -> ToolAnswer:
        """List what is being reassigned."""

        def run(client: KazooClient) -> ToolAnswer:
            active = list_active(client)
            reassignments = [
                {
                    **_name(one.key),
                    "replicas": list(one.assigned),
                    "adding": list(one.adding),
                    "removing": list(one.removing),
                    "target": list(one.target),
                    "route": one.route,
                }
                for one in active
            ]
            body = {"reassignments": reassignments}
            document = self._document("list", HOLDS, {"reassignments": len(active)}, body)
            return ToolAnswer(document, kafka_output.say_list(active))

        return self.ask(run)

    def cancel(self, file: Path, *, clear: bool) -> ToolAnswer:
        """Cancel the moves of a file that are active."""
        moves = read_moves(file)

        def run(client: KazooClient) -> ToolAnswer:
            done = cancel(client, moves, self.protocol, clear=clear)
            body = {
                "protocol": self.protocol,
                "cancelled": _list_targets(done.cancelled),
                "cleared": _list_cleared(done.cleared),
            }
            counts = {"partitions": len(moves), "cancelled": len(done.cancelled)}
            document = self._document("cancel", HOLDS, counts, body)
            return ToolAnswer(document, kafka_output.say_cancellation(done))

        return self.ask(run)

    def _document(
        self,
        action: str,
        verdict: str,
        counts: Mapping[str, int],
        body: Mapping[str, Any],
        seed: int | None = None,
    ) -> Document:
        return Document("reassign", verdict, None, counts, seed, body={"action": action, **body})


def _tell_progress(found: Verification, progress: Progress) -> bool:
    """Say how far it is, and return whether anything that was asked about still moves."""
    partitions = found.partitions
    moving = sum(one.status == "in progress" for one in partitions)
    done = f"{len(partitions) - moving} of {len(partitions)} partitions are done, replicas in sync"
    in_sync, total = (
        sum(one.in_sync for one in partitions),
        _count(one.target for one in partitions),
    )
    progress(done, in_sync, total)
    return moving > 0


def _count(lists: Iterable[ReplicaList]) -> int:
    return sum(len(replicas) for replicas in lists)


def _name(key: PartitionKey) -> dict[str, Any]:
    return {"topic": key[0], "partition": key[1]}


def _list_targets(targets: Targets) -> list[dict[str, Any]]:
    return [{**_name(key), "replicas": list(targets[key])} for key in sorted(targets)]


def _list_cleared(cleared: Cleared | None) -> dict[str, Any] | None:
    if cleared is None:
        return None
    return {"brokers": list(cleared.brokers), "topics": list(cleared.topics)}
