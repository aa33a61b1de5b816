"""What should have held, whatever went wrong, and how often it was put to the test."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

SHOWN: Final = 10
"""How many breaches of one guarantee are spelt out."""


@dataclass(frozen=True, slots=True)
class Breach:
    """A guarantee that was broken."""

    guarantee: str
    what: str


@dataclass(frozen=True, slots=True)
class SoakGuarantee:
    """One sentence, and what has to have happened before it counts as kept."""

    sentence: str
    needs: tuple[str, ...]


GUARANTEES: Final[Mapping[str, SoakGuarantee]] = {
    "acknowledged-kept": SoakGuarantee(
        "What was acknowledged by all replicas in sync is there at the end, at the offset told.",
        ("acknowledged by acks=all", "leader changes", "kills of a leader"),
    ),
    "sent-once": SoakGuarantee(
        "No record is there more often than it was sent.", ("records", "leader changes")
    ),
    "idempotent-once": SoakGuarantee(
        "No record of an idempotent producer is there twice, however often its library sent it.",
        ("records", "leader changes"),
    ),
    "in-order": SoakGuarantee(
        "What one producer sent to one partition stands in the order of sending.",
        ("pairs", "leader changes"),
    ),
    "unaltered": SoakGuarantee("What is read is what was sent, as it was.", ("read",)),
    "seen-stays": SoakGuarantee(
        "What a consumer was shown at an offset is there at the end.",
        ("shown", "leader changes", "records cut off that nobody was shown"),
    ),
    "shown-when-committed": SoakGuarantee(
        "Nobody is shown a record long before it is acknowledged by all replicas in sync.",
        ("acknowledged late",),
    ),
    "minimum-kept": SoakGuarantee(
        "acks=all is refused while fewer than min.insync.replicas are in sync.",
        ("times below it", "refused then"),
    ),
    "replicas-equal": SoakGuarantee(
        "All replicas of a partition have the same bytes, up to the mark.", ("replicas", "bytes")
    ),
    "reassignments-end": SoakGuarantee(
        "Every reassignment ends, as it was asked for last.",
        ("move 1", "move 30", "move 300", "cancel", "change", "grow", "delete", "throttle",
         "factor"),
    ),
    "failures-healed": SoakGuarantee(
        "A broker that stays away is replaced, and whatever was begun for that ends.",
        ("brokers missed", "tasks"),
    ),
    "in-sync-again": SoakGuarantee(
        "Every assigned replica is in sync again, under a leader.", ("partitions", "kills")
    ),
    "nothing-left": SoakGuarantee("No znode, process or file stays that nobody needs.", ("kill",)),
    "memory-flat": SoakGuarantee("A process that lives on does not grow.", ("processes",)),
    "log-judged": SoakGuarantee(
        "What controllers wrote to ZooKeeper is what the profile allows.", ("transactions",)
    ),
    "observations-judged": SoakGuarantee(
        "What the brokers observed is what KAFKA-4485 allows.", ("lines",)
    ),
    "ended-as-asked": SoakGuarantee("No process ends but by a fault of the plan.", ("kill",)),
    "faults-happened": SoakGuarantee(
        "Each kind of fault was there.",
        ("kill", "pause", "cut", "half-open", "slow", "all brokers", "all zookeepers"),
    ),
    "full-disk-survived": SoakGuarantee(
        "A broker whose disk is full goes on when there is room.", ("full disk",)
    ),
}  # fmt: skip


@dataclass(slots=True)
class SoakFindings:
    """What came of looking."""

    breaches: list[Breach] = field(default_factory=list)
    tests: dict[str, Counter[str]] = field(
        default_factory=lambda: {name: Counter() for name in GUARANTEES}
    )
    """By guarantee: how often each thing happened that put it to the test."""
    unknown: list[str] = field(default_factory=list)
    """Why something could not be judged."""
    skipped: dict[str, str] = field(default_factory=dict)
    """By guarantee that was not asked for: why."""

    def break_it(self, guarantee: str, what: str) -> None:
        """Note a breach."""
        self.breaches.append(Breach(guarantee, what))

    def count(self, guarantee: str, **tests: int) -> None:
        """Count what put a guarantee to the test; `_` in a name stands for a blank."""
        self.tests[guarantee].update({name.replace("_", " "): n for name, n in tests.items()})

    def find_untested(self, guarantee: str) -> list[str]:
        """Return what never happened that has to before the guarantee counts as kept."""
        if guarantee in self.skipped:
            return []
        return [one for one in GUARANTEES[guarantee].needs if not self.tests[guarantee][one]]

    def describe(self, guarantee: str) -> str:
        """Return how often a guarantee was put to the test, in words."""
        if guarantee in self.skipped:
            return self.skipped[guarantee]
        needs, tests = GUARANTEES[guarantee].needs, self.tests[guarantee]
        names = dict.fromkeys((*needs, *sorted(tests)))
        return ", ".join(f"{tests[name]:,} {name}" for name in names)

    def judge(self, guarantee: str) -> str:
        """Return `violated`, `kept`, `not put to the test` or `not asked`."""
        if any(one.guarantee == guarantee for one in self.breaches):
            return "violated"
        if guarantee in self.skipped:
            return "not asked"
        return "not put to the test" if self.find_untested(guarantee) else "kept"


def shorten(breaches: Iterable[Breach]) -> list[Breach]:
    """Return the first breaches of each guarantee; what was left out is counted in one more."""
    found: dict[str, list[Breach]] = {name: [] for name in GUARANTEES}
    for breach in breaches:
        found[breach.guarantee].append(breach)
    kept: list[Breach] = []
    for name, of_it in found.items():
        kept += of_it[:SHOWN]
        if len(of_it) > SHOWN:
            kept.append(Breach(name, f"and {len(of_it) - SHOWN} more"))
    return kept
