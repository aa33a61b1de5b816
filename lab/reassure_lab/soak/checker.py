"""What the clients' history says of the guarantees: a pure function of its events.

Nothing that a broker says of itself is asked. Per partition there is what was sent, acknowledged
and shown, and what was read at last when all was healed; who led when, and how many were in sync,
is what stood in ZooKeeper (`state`).
"""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from reassure_lab.soak.guarantees import SoakFindings
from reassure_lab.soak.seen_events import READER, Event
from reassure_spec.znodes import PartitionKey

Id = tuple[str, int]
"""A record of a partition: who sent it, and its number."""
LATE_MS: Final = 1_000
"""A record that is acknowledged so long after somebody was shown it was shown too early."""
LEARN_MS: Final = 3_000
"""How long a leader may take to learn who is in sync, where a controller wrote it."""
REFUSALS: Final = ("NotEnoughReplicasError", "NotEnoughReplicasAfterAppendError")


def waits_for_all(who: str) -> bool:
    """Whether a producer sends with acks=all."""
    return who.startswith(("all-", "lone-", "once-"))


def check_history(events: Sequence[Event], min_insync: int) -> SoakFindings:
    """Return what is broken, and how often each guarantee was put to the test."""
    findings = SoakFindings()
    of_partition: dict[PartitionKey, list[Event]] = defaultdict(list)
    for event in events:
        if event.topic:
            of_partition[event.key].append(event)
    stopped = (one for one in events if one.did in ("pause", "resume"))
    pauses = [(one.at_ms, one.did, one.who) for one in stopped if one.who.startswith("broker-")]
    kills = [one for one in events if one.did == "kill"]
    begins: dict[str, list[int]] = defaultdict(list)
    for one in events:
        if one.did == "began":
            begins[one.who].append(one.at_ms)
    struck: set[int] = set()
    for key, found in sorted(of_partition.items()):
        if any(event.did == "end" for event in found):
            partition = _PartitionCheck(key, findings, _find_stops(pauses), min_insync, begins)
            partition.take(found)
            struck |= partition.check(kills)
    findings.count("acknowledged-kept", kills_of_a_leader=len(struck))
    for event in events:
        if event.did == "broke":
            findings.unknown.append(f"{event.who} ended by itself: {event.what.strip()}")
        elif event.did == "skipped":
            findings.skipped["idempotent-once"] = event.what
    return findings


def _find_stops(marks: Iterable[tuple[int, str, str]]) -> list[tuple[int, int]]:
    """Return when somebody stood still: begin and end."""
    begun: dict[str, int] = {}
    found = []
    for at_ms, did, who in marks:
        if did == "pause":
            begun[who] = at_ms
        else:
            found.append((begun.pop(who, at_ms), at_ms))
    return [*found, *((at_ms, 2**62) for at_ms in begun.values())]


@dataclass(slots=True)
class _PartitionCheck:
    """One partition."""

    key: PartitionKey
    findings: SoakFindings
    stops: list[tuple[int, int]]
    min_insync: int
    begins: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """By producer: when it began, and began anew with another client and another id."""
    sends: Counter[Id] = field(default_factory=Counter)
    sent_ms: dict[Id, int] = field(default_factory=dict)
    """When each was sent last."""
    acked: dict[Id, tuple[int, int]] = field(default_factory=dict)
    """The offset, and when."""
    failed: dict[Id, Event] = field(default_factory=dict)
    shown: list[tuple[str, int, Id]] = field(default_factory=list)
    """To whom, at which offset, which."""
    shown_ms: dict[Id, int] = field(default_factory=dict)
    """When each was shown first."""
    final: dict[int, Id] = field(default_factory=dict)
    """What there is at the end, by offset."""
    states: list[Event] = field(default_factory=list)
    end: int = 0

    def take(self, events: Iterable[Event]) -> None:
        """Take the events of this partition, in order."""
        for event in events:
            for step in range(event.count if event.did in ("sent", "acked", "failed") else 0):
                one = event.who, event.n + step
                if event.did == "sent":
                    self.sends[one] += 1
                    self.sent_ms[one] = event.at_ms
                elif event.did == "acked":
                    self.acked[one] = event.offset + step, event.at_ms
                else:
                    self.failed[one] = event
            if event.did == "read":
                self._take_read(event)
            elif event.did == "altered":
                self._break("unaltered", f"offset {event.offset}: {event.who} got {event.what}")
            elif event.did == "state":
                self.states.append(event)
            elif event.did == "end":
                self.end = event.offset
                if event.what:
                    self._break("acknowledged-kept", event.what)

    def _take_read(self, event: Event) -> None:
        for step in range(event.count):
            one, offset = (event.of, event.n + step), event.offset + step
            if event.who == READER:
                self.final[offset] = one
            else:
                self.shown.append((event.who, offset, one))
                self.shown_ms.setdefault(one, event.at_ms)

    def check(self, kills: Iterable[Event]) -> set[int]:
        """Judge it; return at which times its leader was killed while there were producers."""
        changes, struck = self._find_changes(kills)
        for name in ("acknowledged-kept", "sent-once", "idempotent-once", "in-order", "seen-stays"):
            self.findings.count(name, leader_changes=changes)
        self._check_acknowledged()
        self._check_copies()
        self._check_order()
        self._check_shown()
        self._check_early()
        self._check_minimum()
        return struck

    def _break(self, guarantee: str, what: str) -> None:
        self.findings.break_it(guarantee, f"{self.key[0]}-{self.key[1]}: {what}")

    def _find_changes(self, kills: Iterable[Event]) -> tuple[int, set[int]]:
        """Return how often its leader changed while it was used, and when its leader was killed."""
        if not self.sent_ms:
            return 0, set()
        first, last = min(self.sent_ms.values()), max(self.sent_ms.values())
        changes = sum(
            before.of != after.of and first <= after.at_ms <= last
            for before, after in pairwise(self.states)
        )
        struck = set()
        for kill in kills:
            place = bisect_right(self.states, kill.at_ms, key=lambda one: one.at_ms)
            led = place > 0 and kill.who == f"broker-{self.states[place - 1].of}"
            if led and first <= kill.at_ms <= last:
                struck.add(kill.at_ms)
        return changes, struck

    def _check_acknowledged(self) -> None:
        where = {one: offset for offset, one in self.final.items()}
        for one, (offset, _) in self.acked.items():
            if not waits_for_all(one[0]):
                kind = "lost_of_acks=1" if one not in where and offset >= 0 else "acks=0_or_1"
                self.findings.count("acknowledged-kept", **{kind: 1})
                continue
            told_nowhere = offset < 0 and one in where  # as of a batch that was sent again
            if self.final.get(offset) != one and not told_nowhere:
                found = f"it is at {where[one]}" if one in where else "it is nowhere"
                what = f"{_spell(one)} was acknowledged at offset {offset}; {found}"
                self._break("acknowledged-kept", f"{what} (the log ends at {self.end})")
            self.findings.count("acknowledged-kept", **{"acknowledged_by_acks=all": 1})

    def _check_copies(self) -> None:
        copies = Counter(self.final.values())
        for one, count in copies.items():
            name = "idempotent-once" if one[0].startswith("once-") else "sent-once"
            if not self.sends[one]:
                self._break("unaltered", f"nobody has sent {_spell(one)}")
            elif count > self.sends[one]:
                at = [offset for offset, other in self.final.items() if other == one]
                sent = self.sends[one]
                self._break(name, f"{_spell(one)} was sent {sent} times and is at {at}")
            twice = {"twice_after_an_error": 1} if 1 < count <= self.sends[one] else {}
            self.findings.count(name, records=1, **twice)

    def _check_order(self) -> None:
        """Hold numbers against offsets; what failed may come late, if it was on its way still.

        So may all that a client had on its way which was given up for a new one.
        """
        last: dict[tuple[str, int], int] = {}
        for offset, (who, n) in sorted(self.final.items()):
            one = who, n
            if self.sends[one] > 1 or one in self.failed or who.startswith("none-"):
                continue
            life = who, bisect_right(self.begins.get(who, ()), self.sent_ms.get(one, 0))
            if n < last.get(life, -1):
                what = f"{_spell(one)} is at offset {offset}, behind {_spell((who, last[life]))}"
                self._break("in-order", what)
            self.findings.count("in-order", pairs=life in last)
            last[life] = max(n, last.get(life, -1))

    def _check_shown(self) -> None:
        self.findings.count("unaltered", read=len(self.shown) + len(self.final))
        self.findings.count("seen-stays", shown=len(self.shown))
        for who, offset, one in self.shown:
            if self.final.get(offset) != one:
                found = self.final.get(offset)
                there = "nothing" if found is None else _spell(found)
                what = f"offset {offset}: {who} was shown {_spell(one)}, at the end there is"
                self._break("seen-stays", f"{what} {there}")
        kept = set(self.final.values())
        for one in self.acked.keys() - kept:
            if not waits_for_all(one[0]) and self.acked[one][0] >= 0 and one not in self.shown_ms:
                self.findings.count("seen-stays", records_cut_off_that_nobody_was_shown=1)

    def _check_early(self) -> None:
        """Hold when records were shown against when they were acknowledged.

        The mark lets both happen at once, where nobody stands still. A request is answered as a
        whole, so only who sends to one partition is told as soon as it is so.
        """
        for one, (offset, at_ms) in self.acked.items():
            if not one[0].startswith("lone-") or self.sends[one] > 1 or one not in self.shown_ms:
                continue
            self.findings.count(
                "shown-when-committed", acknowledged_late=at_ms - self.sent_ms[one] > LATE_MS
            )
            shown_ms = self.shown_ms[one]
            still = any(begin <= at_ms and shown_ms <= end for begin, end in self.stops)
            if at_ms - shown_ms > LATE_MS and not still:
                what = f"offset {offset}: {_spell(one)} was shown {at_ms - shown_ms} ms before"
                self._break("shown-when-committed", f"{what} it was acknowledged by all")

    def _check_minimum(self) -> None:
        """Look at what was sent while ZooKeeper had fewer in sync, once a leader had learnt it."""
        closing = Event(2**62, "", "state", count=self.min_insync)
        for state, after in pairwise([*self.states, closing]):
            if not 0 < state.count < self.min_insync:
                continue
            begin, end = state.at_ms + LEARN_MS, after.at_ms
            sent = [one for one, at_ms in self.sent_ms.items() if begin <= at_ms < end]
            sent = [one for one in sent if waits_for_all(one[0])]
            self.findings.count("minimum-kept", times_below_it=bool(sent))
            for one in sent:
                offset, at_ms = self.acked.get(one, (-1, end))
                if at_ms < end:
                    what = f"{_spell(one)} was acknowledged at offset {offset} while {state.count}"
                    self._break("minimum-kept", f"{what} of {self.min_insync} were in sync")
            refused = sum(
                state.at_ms <= event.at_ms <= end and event.what in REFUSALS
                for event in self.failed.values()
            )
            self.findings.count("minimum-kept", refused_then=refused)


def _spell(one: Id) -> str:
    return f"{one[0]}/{one[1]}"
