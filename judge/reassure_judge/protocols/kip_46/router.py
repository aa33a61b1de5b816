"""From transactions to the records of failed brokers, and to tasks."""

from typing import Any, NamedTuple

from reassure_judge.doubt import GRACE_MS
from reassure_judge.protocols.kip_236.copying import CopyingRouter
from reassure_judge.protocols.kip_236.router import RequestHistory
from reassure_judge.transaction_reader import ZnodePath
from reassure_model.protocols.kip_46 import Task
from reassure_spec import znodes
from reassure_spec.clauses import clause
from reassure_spec.readings import Readings
from reassure_spec.znodes import BadZnode


class RackSeen(NamedTuple):
    """A broker registered, with its rack where it says so."""

    broker: int
    rack: str | None


class MinimumSeen(NamedTuple):
    """What a topic's settings, or the default ("" for the topic), say of the least in sync."""

    topic: str
    least: int | None


class FailureWritten(NamedTuple):
    """The record of a broker's failure was written, or deleted (None)."""

    broker: int
    since: int | None
    noticed_ms: float
    """What was changed up to this time has been noticed by whoever writes now."""


class TaskWritten(NamedTuple):
    """A task was written, or deleted (None)."""

    number: int
    task: Task | None
    noticed_ms: float


class Misshapen(NamedTuple):
    """What stands among records or tasks is none, by its name or by its content."""

    clause: str
    reason: str


class MisshapenGone(NamedTuple):
    """What a `Misshapen` with this path named is gone, or mended."""


class HealingRouter(CopyingRouter):
    """Reads records of failures and tasks as well."""

    kinds = (
        *CopyingRouter.kinds,
        r"(?P<shelf>/admin/failed_brokers|/admin/reassignment_tasks)",
        r"/admin/failed_brokers/(?P<failed>[^/]+)",
        r"/admin/reassignment_tasks/(?P<task>[^/]+)",
    )

    def __init__(self, readings: Readings, grace_ms: int = GRACE_MS, **more: Any) -> None:
        super().__init__(readings, grace_ms, **more)
        self._handlers |= {"shelf": self._on_root, "failed": self._on_failed, "task": self._on_task}
        self._misshapen: set[tuple[str, str]] = set()
        """Chroot and path of what stands there and is none of ours."""

    def _on_broker(self, cluster: RequestHistory, at: ZnodePath, data: bytes | None) -> None:
        super()._on_broker(cluster, at, data)
        if data is not None:
            rack = _read_rack(at.path, data)
            self._emit(cluster, "", -1, at.path, RackSeen(int(at.first), rack))

    def _on_topic_config(self, cluster: RequestHistory, at: ZnodePath, data: bytes | None) -> None:
        super()._on_topic_config(cluster, at, data)
        self._emit(cluster, "", -1, at.path, MinimumSeen(at.first, cluster.min_isr.get(at.first)))

    def _on_default_config(
        self, cluster: RequestHistory, at: ZnodePath, data: bytes | None
    ) -> None:
        super()._on_default_config(cluster, at, data)
        self._emit(cluster, "", -1, at.path, MinimumSeen("", cluster.min_isr_default))

    @clause("heal.record.format")
    def _on_failed(self, cluster: RequestHistory, at: ZnodePath, data: bytes | None) -> None:
        self._mend(cluster, at.path)
        broker = znodes.parse_number(at.first)
        if broker is None:
            reason = "it is not named like a broker"
            self._misshape(cluster, at.path, data, "heal.record.format", reason)
            return
        try:
            since = None if data is None else znodes.decode_failed_broker(at.path, data)
        except BadZnode as error:
            self._misshape(cluster, at.path, data, "heal.record.format", error.reason)
            return
        event = FailureWritten(broker, since, self.get_noticed(cluster))
        self._emit(cluster, "", -1, at.path, event)

    @clause("heal.generate.persisted")
    def _on_task(self, cluster: RequestHistory, at: ZnodePath, data: bytes | None) -> None:
        self._mend(cluster, at.path)
        number = znodes.parse_task_name(at.first)
        if number is None:
            reason = "it is not named like a task"
            self._misshape(cluster, at.path, data, "heal.generate.persisted", reason)
            return
        try:
            task = None if data is None else _read_task(at.path, number, data)
        except BadZnode as error:
            self._misshape(cluster, at.path, data, "heal.generate.persisted", error.reason)
            return
        event = TaskWritten(number, task, self.get_noticed(cluster))
        self._emit(cluster, "", -1, at.path, event)

    def _misshape(
        self, cluster: RequestHistory, path: str, data: bytes | None, clause_id: str, reason: str
    ) -> None:
        if data is not None:
            self._misshapen.add((cluster.chroot, path))
            self._emit(cluster, "", -1, path, Misshapen(clause_id, reason))

    def _mend(self, cluster: RequestHistory, path: str) -> None:
        if (cluster.chroot, path) in self._misshapen:
            self._misshapen.discard((cluster.chroot, path))
            self._emit(cluster, "", -1, path, MisshapenGone())


def _read_rack(path: str, data: bytes) -> str | None:
    try:
        return znodes.decode_rack(path, data)
    except BadZnode:
        return None  # a broker's own business; without a rack nobody is preferred by it


def _read_task(path: str, number: int, data: bytes) -> Task:
    found = znodes.decode_task(path, data)
    return Task(number, tuple(sorted(found.assignments.items())), found.automatic)
