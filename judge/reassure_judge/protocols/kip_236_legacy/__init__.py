"""KIP-236 with the old znode in front of it: `/admin/reassign_partitions`, entry by entry.

Partitions are judged as under KIP-236. Beside them a tracker follows the znode: who wrote which
entry, what the acting controller has made of it, and whether it went when it should
(`reassure_model.protocols.kip_236_legacy.entries`).
"""

from dataclasses import replace
from typing import Any, Final, NamedTuple

from reassure_judge.cross_partition import NO_KEY, CrossPartitionTracker, Earlier, QueueWritten
from reassure_judge.doubt import GRACE_MS
from reassure_judge.history import Event
from reassure_judge.moments import ACTS, DISTURBED, Kept
from reassure_judge.protocols.kip_236 import RequestRules
from reassure_judge.protocols.kip_236.copying import CopyingRouter
from reassure_judge.protocols.kip_236.router import ReassignmentWritten, RequestHistory
from reassure_judge.rules import Possible, Sign, Signs
from reassure_judge.transaction_reader import ZnodePath
from reassure_judge.verdicts import Tally
from reassure_model.outcome import Rejected
from reassure_model.partition import (
    Environment,
    LeaderAndIsr,
    Partition,
    is_done,
    is_target_in_sync,
)
from reassure_model.protocols.kip_236_legacy.entries import (
    MAYBE,
    NO,
    YES,
    Entry,
    find_broken_translation,
    find_entry_debt,
    is_carried_by,
    is_entry_left,
    judge_entry_change,
    judge_entry_removal,
    judge_translation,
)
from reassure_model.protocols.kip_236_legacy.translating import Translating
from reassure_spec import znodes
from reassure_spec.clauses import clause
from reassure_spec.readings import Readings
from reassure_spec.znodes import BadZnode, LegacyEntry, PartitionKey, ReplicaList

_PATH: Final = znodes.REASSIGN_PARTITIONS


class OldZnodeWritten(NamedTuple):
    """The old znode was written, or deleted (None)."""

    entries: tuple[LegacyEntry, ...] | None
    created: bool
    bad: str
    """Why the content is not of the format, "" where it is; then there are no entries."""
    noticed_ms: float
    """What was changed up to this time has been noticed by whoever writes now."""


class RecordGone(NamedTuple):
    """The record of a reassignment went in a transaction that has ended."""

    key: PartitionKey
    noticed_ms: float


class LegacyRouter(CopyingRouter):
    """Reads the old znode as well."""

    kinds = (*CopyingRouter.kinds, r"(?P<old_znode>/admin/reassign_partitions)")

    def __init__(self, readings: Readings, grace_ms: int = GRACE_MS, **more: Any) -> None:
        super().__init__(readings, grace_ms, **more)
        self._handlers["old_znode"] = self._on_old_znode
        self._gone: list[tuple[str, PartitionKey]] = []
        """Chroot and partition of the records that went in this transaction."""

    def _emit(
        self, cluster: RequestHistory, topic: str, partition: int, path: str, event: Event
    ) -> None:
        super()._emit(cluster, topic, partition, path, event)
        if isinstance(event, ReassignmentWritten) and event.reassignment is None:
            self._gone.append((cluster.chroot, (topic, partition)))
            self._unfinished = True

    def _end_transaction(self) -> None:
        super()._end_transaction()
        for chroot, key in self._gone:
            cluster = self.get_cluster(chroot)
            event = RecordGone(key, self.get_noticed(cluster))
            self._emit(cluster, "", -1, znodes.reassignment_path(*key), event)
        self._gone.clear()

    def _on_old_znode(self, cluster: RequestHistory, at: ZnodePath, data: bytes | None) -> None:
        created = self.is_created(data)
        entries: tuple[LegacyEntry, ...] | None = None
        bad = ""
        if data is not None:
            try:
                entries = znodes.decode_reassign_partitions(at.path, data)
            except BadZnode as error:
                entries, bad = (), error.reason
        event = OldZnodeWritten(entries, created, bad, self.get_noticed(cluster))
        self._emit(cluster, "", -1, at.path, event)


class LegacyTracker(CrossPartitionTracker):
    """Follows the old znode of one cluster."""

    def __init__(self, readings: Readings, tally: Tally) -> None:
        super().__init__(readings, tally)
        self.there = False
        self.bad = ""
        self.entries: dict[PartitionKey, Entry] = {}
        self._earlier: Earlier[PartitionKey, ReplicaList] = Earlier()
        """Targets that clients have taken back."""
        self._written_ms: dict[PartitionKey, int] = {}
        """When a client wrote an entry that stands."""
        self._removed: set[PartitionKey] = set()
        """Partitions in flight of which the entry was removed as done."""
        self._translated_before: set[PartitionKey] = set()
        """Entries that an earlier controller made a request of."""
        self._flight_epoch: dict[PartitionKey, int | None] = {}
        """The term in which the record in flight was written."""
        self._deleted: set[PartitionKey] = set()
        """Partitions in flight of which a client took the entry away."""
        self._inherited: set[int] = set()
        """Requests that the acting controller found when it took office."""
        self._pending: dict[int, int | None] = {}
        """Requests that wait, with the term of the controller that made them, None for a client."""
        self._succeeded = False
        """Whether a controller took office over something since the last rest."""
        self._left: set[PartitionKey] = set()
        """Partitions of which the record went and the entry is still there."""
        self._completing: set[PartitionKey] = set()
        """Partitions of which the acting controller saw the target in sync as it raised the epoch:
        it may go on whoever falls behind."""

    def list_states(self) -> tuple[Possible, ...]:
        """Return by what a controller decides about the old znode, where it is known."""
        entries = self.entries if self.there else None
        if entries and any(entry.translated == MAYBE for entry in entries.values()):
            return ()
        partitions = {
            key: _bare(self.get(key))
            for key, each in self.partitions.items()
            if each.reassignment is not None or (entries and key in entries)
        }
        held = None if entries is None else tuple(entries.items())
        return (Possible(Translating(Kept(partitions), held)),)

    def _note(self) -> None:
        """Tell the witness of a write to the old znode or to the queue, before it is taken over."""
        acts = not (self.seen.given or self.seen.author.is_client)
        self.note(ACTS if acts else DISTURBED, self.seen.chroot, self.seen.around)

    def get(self, key: PartitionKey) -> Partition:
        """Return what ZooKeeper holds of a partition, and whether it is being completed."""
        return replace(super().get(key), completing=key in self._completing)

    # What happens ---------------------------------------------------------------------------------

    def begin_term(self) -> None:
        """Note that another controller acts, who has made nothing of the entries."""
        self._completing.clear()
        for key, entry in self.entries.items():
            if entry.translated != NO:
                self._translated_before.add(key)
            taken = MAYBE if _is_asked(self.get(key), entry.target) else NO
            self.entries[key] = replace(entry, translated=taken, created=True)
        self._inherited = set(self._pending)
        flights = any(p.reassignment is not None for p in self.partitions.values())
        self._succeeded = bool(self._inherited or self.entries or flights)

    def judge(self, event: Event) -> None:
        """Judge a write to the znode or to the queue."""
        match event:
            case OldZnodeWritten():
                self._note()
                self._on_znode(event)
            case QueueWritten(sequence, None):
                self._on_request_gone(sequence)
            case QueueWritten():
                self._note()
                self._on_request(event)
            case RecordGone() if event.key in self._left:
                self._judge_left(event)

    @clause("legacy.failover.sources-in-order", "legacy.conflict.both-ways")
    @clause("legacy.failover.same-flag")
    def _on_request_gone(self, sequence: int) -> None:
        term = self._pending.pop(sequence, None)
        before = self._inherited - {sequence}
        if (
            sequence not in self._inherited
            and term == self.epoch
            and not self.seen.author.is_client
        ):
            if before & self._pending.keys():
                why = f"requests {sorted(before)} were found, and request {sequence} came first"
                broken = Rejected("legacy.failover.sources-in-order", why)
                self.violate(NO_KEY, broken)
            elif self._inherited:
                self.count(("legacy.failover.sources-in-order",))
        if self.seen.author.is_client:
            return
        for key in self.requests.get(sequence, ()):
            partition = self.get(key)
            flight = partition.reassignment
            for request in partition.requests:
                other = flight is not None and request.legacy != flight.legacy
                if other and request.sequence == sequence:
                    self._count_conflict(key)

    def _count_conflict(self, key: PartitionKey) -> None:
        self.count(("legacy.conflict.both-ways",))
        if self._flight_epoch.get(key) != self.epoch:
            self.count(("legacy.failover.same-flag",))

    @clause("client.request.unmarked", "legacy.translate.request", "legacy.translate.flag")
    @clause("legacy.failover.translated-again", "legacy.rewrite.taken-up")
    @clause("legacy.original.rollback")
    def _on_request(self, event: QueueWritten) -> None:
        request = event.request
        assert request is not None
        if self.seen.given or self.seen.author.is_client:
            self._pending[event.sequence] = None
            if not self.seen.given:
                broken = Rejected("client.request.unmarked", "a client's request says legacy")
                verdict = broken if request.legacy else ("client.request.unmarked",)
                self.settle(NO_KEY, (verdict,))
            return
        self._pending[event.sequence] = self.epoch
        self.shown = ("", str(request.assignments))
        self.blame(NO_KEY)
        now = {key: [entry.target] for key, entry in self.entries.items()}
        until = {
            key: [*now.get(key, ()), *self._earlier.get(key, event.noticed_ms)]
            for key in request.assignments
        }
        asked, marked = request.assignments, request.legacy
        views = [find_broken_translation(asked, each, marked=marked) for each in (now, until)]
        kept = ("legacy.translate.request", "legacy.translate.flag")
        self.settle(NO_KEY, [kept if v is None else v for v in views])
        for key, target in asked.items():
            entry = self.entries.get(key)
            if entry is None or entry.target != target:
                continue
            if key in self._translated_before:
                self.count(("legacy.failover.translated-again",))
            if not entry.created:
                self.count(("legacy.rewrite.taken-up",))
            if entry.original == target:
                self.count(("legacy.original.rollback",))
            self.settle(key, (judge_translation(entry),))
            # What was asked for may be what a client has taken back, and written anew, meanwhile.
            before = target in self._earlier.get(key, event.noticed_ms)
            self.entries[key] = replace(entry, translated=MAYBE if before else YES)

    # The znode ------------------------------------------------------------------------------------

    def _on_znode(self, event: OldZnodeWritten) -> None:
        written = {entry.key: entry for entry in event.entries or ()}
        if self.seen.given or self.seen.author.is_client:
            self._take_from_client(event, written)
        else:
            self._judge_rewrite(event, written)
        self.there, self.bad = event.entries is not None, event.bad

    def _take_from_client(
        self, event: OldZnodeWritten, written: dict[PartitionKey, LegacyEntry]
    ) -> None:
        before, self.entries = self.entries, {}
        for key, old in before.items():
            if key not in written or written[key].target != old.target:
                self._earlier.note(key, old.target, self.seen.time_ms)
                if event.entries is None and is_carried_by(old, self.get(key)):
                    self._deleted.add(key)
        for key, new in written.items():
            entry, partition = before.get(key), self.get(key)
            if entry is not None and entry.target == new.target and not event.created:
                self.entries[key] = replace(entry, original=new.original)
                continue
            taken = MAYBE if self.seen.given else NO
            made = Entry(new.target, new.original, taken, event.created or self.seen.given)
            self.entries[key] = replace(made, begun=is_carried_by(made, partition))
            self._translated_before.discard(key)
            self._written_ms[key] = self.seen.time_ms

    @clause("legacy.znode.deleted-with-last", "legacy.znode.malformed")
    def _judge_rewrite(
        self, event: OldZnodeWritten, written: dict[PartitionKey, LegacyEntry]
    ) -> None:
        self.shown = (self._show(), _show_entries(event.entries))
        self.blame(NO_KEY)
        for key, entry in list(self.entries.items()):
            if key not in written:
                self._judge_removal(key, entry)
                del self.entries[key]
        for key, new in written.items():
            before, partition = self.entries.get(key), self.get(key)
            verdict = judge_entry_change(before, new, partition)
            self.settle(key, (verdict,))
            made = Entry(new.target) if before is None else before
            self.entries[key] = replace(made, target=new.target, original=new.original)
        if event.entries == ():
            broken = Rejected("legacy.znode.deleted-with-last", "it is left without an entry")
            self.violate(NO_KEY, broken)
        elif event.entries is None:
            kept = "legacy.znode.malformed" if self.bad else "legacy.znode.deleted-with-last"
            self.count((kept,))

    def _judge_removal(self, key: PartitionKey, entry: Entry) -> None:
        partition = self.get(key)
        verdict = judge_entry_removal(entry, partition, self.seen.around, self.readings)
        if self.settle(key, (verdict,)) and is_carried_by(entry, partition):
            self._removed.add(key)

    # Partitions -----------------------------------------------------------------------------------

    @clause("legacy.conflict.both-ways", "legacy.failover.same-flag", "legacy.translate.flag")
    @clause("legacy.failover.top-from-child", "legacy.entry.before-child")
    @clause("legacy.znode.delete-does-not-cancel")
    def follow(self, key: PartitionKey, before: Partition, after: Partition) -> None:
        """Look at what becomes of a reassignment in flight."""
        if _is_told_by_leader(before.state, after.state):
            self.note(DISTURBED, self.seen.chroot, self.seen.around)
        elif before.state != after.state and _is_led_in_target(after):
            self._completing.add(key)
        old, new = before.reassignment, after.reassignment
        if old == new:
            return
        self._completing.discard(key)
        if new is None:
            self._on_record_gone(key, before)
            return
        self.shown = ("", f"to {list(new.target)}, top {new.top}, legacy {new.legacy}")
        if old is not None and not self.seen.given:
            again = self._flight_epoch.get(key) != self.epoch
            if old.legacy != new.legacy:
                name = "legacy.failover.same-flag" if again else "legacy.conflict.both-ways"
                why = f"legacy {new.legacy}, the one in flight says {old.legacy}"
                self.violate(key, Rejected(name, why))
            if again:
                why = f"top {new.top}, the record says {old.top}"
                broken = Rejected("legacy.failover.top-from-child", why)
                verdict = broken if old.top != new.top else ("legacy.failover.top-from-child",)
                self.settle(key, (verdict,))
        heads = [r for r in before.requests if r.target == new.target][:1]
        if any(request.legacy for request in heads):
            broken = Rejected("legacy.translate.flag", "the request says legacy, the record not")
            verdict = ("legacy.translate.flag",) if new.legacy else broken
            self.settle(key, (verdict,))
        self._flight_epoch[key] = self.epoch
        entry = self.entries.get(key)
        if entry is not None and is_carried_by(entry, after):
            self.entries[key] = replace(entry, begun=True)

    def _on_record_gone(self, key: PartitionKey, before: Partition) -> None:
        flight = before.reassignment
        assert flight is not None
        self._flight_epoch.pop(key, None)
        entry = self.entries.get(key)
        if is_entry_left(entry, before):
            self._left.add(key)
        elif flight.legacy and key in self._removed:
            self.count(("legacy.entry.before-child",))
            self._removed.discard(key)
        if key in self._deleted:
            broken = Rejected("legacy.znode.delete-does-not-cancel", "the move was given up")
            done = ("legacy.znode.delete-does-not-cancel",)
            verdict = done if is_done(before) else broken
            self.settle(key, (verdict,))
        self._deleted.discard(key)

    def _judge_left(self, event: RecordGone) -> None:
        """Judge the removal of a record, now that all is known that the transaction did."""
        key = event.key
        removed = key in self._removed
        self._removed.discard(key)
        self._left.discard(key)
        if key not in self.entries or removed:
            # It went in the same transaction, or went before and a client wrote it anew.
            self.count(("legacy.entry.before-child",))
            return
        broken = Rejected("legacy.entry.before-child", "its entry is in the old znode still")
        written_ms = self._written_ms.get(key)
        fresh = written_ms is not None and written_ms >= event.noticed_ms
        self.shown = (self._show(), "")
        self.settle(key, (broken, ()) if fresh else (broken,))

    # At rest --------------------------------------------------------------------------------------

    @clause("legacy.failover.half-done", "legacy.znode.deleted-with-last", "legacy.znode.malformed")
    def find_debts(self, around: Environment) -> list[tuple[PartitionKey, str, Rejected]]:
        """Return what is owed to entries, and to the znode."""
        debts = []
        for key, entry in self.entries.items():
            owed = find_entry_debt(entry, self.get(key), self.readings)
            if owed is not None:
                debts.append((key, _PATH, owed))
        if self.bad:
            owed = Rejected("legacy.znode.malformed", f"it is still there: {self.bad}")
            debts.append((NO_KEY, _PATH, owed))
        elif self.there and not self.entries:
            owed = Rejected("legacy.znode.deleted-with-last", "it is there without an entry")
            debts.append((NO_KEY, _PATH, owed))
        if self._succeeded and not debts:
            self.count(("legacy.failover.half-done",))
        self._succeeded = False
        self._earlier.settle()
        self._written_ms.clear()
        return debts

    def _show(self) -> str:
        if not self.there:
            return ""
        entries = [LegacyEntry(key, e.target, e.original) for key, e in self.entries.items()]
        return self.bad or _show_entries(tuple(entries))


_OLD: Final = "/admin/reassign_partitions"


class LegacyRules(RequestRules):
    """KIP-236 with the old znode."""

    profiles = driven = ("kip-236-legacy",)
    router = LegacyRouter

    @classmethod
    def find_sign(cls, signs: Signs) -> Sign | None:
        """Return that the old znode was written beside the requests of KIP-236."""
        there = _OLD in signs.trees and super().find_sign(signs) is not None
        return Sign(3, f"there is {_OLD} beside the requests of KIP-236", {}) if there else None

    def make_tracker(self, tally: Tally) -> LegacyTracker:
        """Return a tracker of the old znode."""
        return LegacyTracker(self.readings, tally)


RULES: Final = LegacyRules


def _is_told_by_leader(before: LeaderAndIsr | None, after: LeaderAndIsr | None) -> bool:
    """Whether a leader wrote who is in sync, which no controller expects."""
    if before is None or after is None:
        return False
    return before != after and before.leader_epoch == after.leader_epoch


def _is_led_in_target(partition: Partition) -> bool:
    """Whether the target is in sync and one of it leads."""
    flight, state = partition.reassignment, partition.state
    led = flight is not None and state is not None and state.leader in flight.target
    return led and is_target_in_sync(partition)


def _bare(partition: Partition) -> Partition:
    """Return a partition without what nothing is decided by: epochs, and numbers of requests."""
    old, requests = partition.state, enumerate(partition.requests)
    state = old and replace(old, leader_epoch=0, controller_epoch=0)
    numbered = tuple(replace(each, sequence=at) for at, each in requests)
    return replace(partition, state=state, requests=numbered)


def _is_asked(partition: Partition, target: ReplicaList) -> bool:
    """Whether a request by the old route that asks for it is waiting."""
    return any(request.legacy and request.target == target for request in partition.requests)


def _show_entries(entries: tuple[LegacyEntry, ...] | None) -> str:
    return "" if entries is None else znodes.encode_reassign_partitions(entries).decode()
