"""What clients of a driven cluster are shown, and what its brokers act upon: no line says it.

Whoever drives the brokers hands it over. The end is reached when the cluster is healed: then what
was promised must be there, and every broker must act upon what is stored.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from reassure_judge.verdicts import Tally, Violation
from reassure_spec.clauses import clause
from reassure_spec.znodes import PartitionKey


@dataclass(slots=True)
class Client:
    """What one client was shown of a partition."""

    promised: dict[int, bytes] = field(default_factory=dict)
    """By offset: records of which all in-sync replicas were said to have a copy."""
    read: dict[int, bytes] = field(default_factory=dict)
    """By offset: records that were handed out."""
    mark: int = 0
    """The largest high watermark."""


class Witness:
    """Judges what is shown of one cluster, whose partitions have a client each."""

    def __init__(self, chroot: str) -> None:
        self._chroot = chroot
        self.clients: defaultdict[PartitionKey, Client] = defaultdict(Client)
        self.violations: list[Violation] = []
        """In the order in which they were found."""
        self._kept = Counter[str]()

    def promise(self, key: PartitionKey, records: Mapping[int, bytes]) -> None:
        """Take what all in-sync replicas were said to have a copy of."""
        self.clients[key].promised |= records

    @clause("log.committed-kept")
    def read(self, key: PartitionKey, records: Mapping[int, bytes], mark: int) -> None:
        """Take what was handed out with a high watermark, and must be as it was before."""
        client = self.clients[key]
        client.mark = max(client.mark, mark)
        for offset, value in records.items():
            before = client.read.setdefault(offset, value)
            if before != value:
                reason = f"offset {offset}: {before!r}, now {value!r}"
                self._violate(key, "log.committed-kept", reason)

    @clause("hw.consumer.monotone")
    def read_whole(self, key: PartitionKey, log: Mapping[int, bytes], mark: int) -> None:
        """Take the whole log at the end, in which all must be that was shown before."""
        client = self.clients[key]
        if mark < client.mark:
            reason = f"{mark} shown to the client, and {client.mark} before"
            self._violate(key, "hw.consumer.monotone", reason)
        self.read(key, log, mark)
        for offset, value in (*client.promised.items(), *client.read.items()):
            if log.get(offset) != value:
                reason = f"offset {offset}: {value!r} was promised, {log.get(offset)!r} is there"
                self._violate(key, "log.committed-kept", reason)

    @clause("replica.order-obeyed")
    def judge_obedience(
        self, key: PartitionKey, broker: int, wanted: int | None, found: int | None
    ) -> None:
        """Hold the leader epoch that a broker acts upon against the one that it was told of.

        None: it acts upon nothing, or is to act upon nothing.
        """
        if found == wanted:
            self._kept["replica.order-obeyed"] += 1
            return
        reason = f"{broker} acts upon {_name(found)}, and was told of {_name(wanted)}"
        self._violate(key, "replica.order-obeyed", reason)

    def count(self, tally: Tally) -> None:
        """Add what was put to the test, and kept."""
        for clause_id, times in self._kept.items():
            tally.count((clause_id,), times)

    def _violate(self, key: PartitionKey, clause_id: str, reason: str) -> None:
        found = Violation(
            0,
            self._chroot,
            *key,
            clause_id,
            "",
            0,
            "",
            "",
            reason,
            "what it was told",
            "the client",
        )
        self.violations.append(found)


def _name(epoch: int | None) -> str:
    return "nothing" if epoch is None else f"leader epoch {epoch}"
