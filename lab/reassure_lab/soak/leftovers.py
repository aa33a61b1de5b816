"""What a cluster at rest consists of, and what else is there: znodes, processes, files, memory."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from reassure_lab.soak.guarantees import Breach
from reassure_spec.znodes import PartitionKey, ReplicaList, state_path

_LOG: Final = re.compile(r"(.+)-(\d+)")
MIB: Final = 1 << 20
WARM_S: Final = 60.0
"""A process that is younger is still filling its caches, and growing with the load."""
OLD_S: Final = 2 * WARM_S
"""How long it must have lived to be judged: who was cut off or paused at first fills them later."""
JAVA_MIB: Final = 400
"""Heap of at most 256 MiB (-Xmx256m), and what a Java of this size has beside its heap."""
GROWTH_MIB: Final = 12
"""What the allocator and caches of full size may still take after `WARM_S`."""
GROWTH_MIB_PER_MINUTE: Final = 1.5
"""Indexes of segments are 16 bytes a batch, and epochs 16 bytes each; buffers follow the load."""


def list_tree(client: KazooClient, path: str = "/") -> Iterator[str]:
    """Yield the paths of all znodes but ZooKeeper's own."""
    for child in list_children(client, path):
        below = f"{path.rstrip('/')}/{child}"
        if below != "/zookeeper":
            yield below
            yield from list_tree(client, below)


def list_children(client: KazooClient, path: str) -> list[str]:
    """Return the names below a znode; none of one that is not there."""
    try:
        return list(client.get_children(path))
    except NoNodeError:
        return []


def expect_znodes(keys: Iterable[PartitionKey]) -> set[str]:
    """Return the znodes of these partitions, and those above them."""
    parts = [state_path(*key).split("/") for key in keys]
    return {"/".join(one[:length]) for one in parts for length in range(2, len(one) + 1)}


def check_znodes(found: Iterable[str], expected: set[str]) -> Iterator[Breach]:
    """Yield znodes that nobody needs any more, and those that are missing."""
    there = set(found)
    for path in sorted(there - expected):
        yield Breach("nothing-left", f"znode {path} has stayed")
    for path in sorted(expected - there):
        yield Breach("nothing-left", f"znode {path} is missing")


def check_files(
    directories: Mapping[int, Path], assigned: Mapping[PartitionKey, ReplicaList]
) -> Iterator[Breach]:
    """Yield logs on disk of partitions that are not assigned to their broker."""
    for broker, directory in directories.items():
        for found in sorted(directory.iterdir()):
            match = _LOG.fullmatch(found.name)
            if not found.is_dir() or match is None:
                continue
            key = (match[1], int(match[2]))
            if broker not in assigned.get(key, ()):
                yield Breach("nothing-left", f"{found} has stayed: {broker} has no such replica")


def find_processes(words: Sequence[str]) -> dict[int, str]:
    """Return the processes with one of these words on their command line."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace").strip()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if any(word in line for word in words):
            found[int(path.parent.name)] = line
    return found


@dataclass(frozen=True, slots=True)
class Sample:
    """What one process had in memory at one time."""

    at_s: float
    rss_bytes: int


@dataclass(slots=True)
class MemorySamples:
    """The resident memory of processes, by member and process id."""

    samples: dict[tuple[str, int], list[Sample]] = field(default_factory=dict)

    def take(self, member: str, pid: int, at_s: float) -> None:
        """Take a sample; a process that has gone gives none."""
        rss = read_rss(pid)
        if rss:
            self.samples.setdefault((member, pid), []).append(Sample(at_s, rss))

    @property
    def judged(self) -> int:
        """How many processes lived for long enough to be seen growing."""
        return sum(map(_is_old, self.samples.values()))

    def tell(self) -> dict[str, int]:
        """Return the most that a process of each role has had, in MiB, and about brokers more.

        That is: for how long the one has lived that lived for longest; and of all that lived for
        longer than `WARM_S` the most that one had then, and at the end.
        """
        told: dict[str, int] = {}
        for (member, _), samples in self.samples.items():
            role, lived_s = member.partition("-")[0], samples[-1].at_s - samples[0].at_s
            had = {f"rss_max_mib_{role}": max(sample.rss_bytes for sample in samples) // MIB}
            if role == "broker" and lived_s > WARM_S:
                had["broker_longest_s"] = int(lived_s)
                had["broker_mib_warm"] = _find_warm(samples).rss_bytes // MIB
                had["broker_mib_end"] = samples[-1].rss_bytes // MIB
            told |= {name: max(value, told.get(name, 0)) for name, value in had.items()}
        return told

    def check(self) -> Iterator[Breach]:
        """Yield processes that have grown beyond the bound."""
        for (member, pid), samples in self.samples.items():
            last, first = samples[-1], _find_warm(samples)
            if member.startswith("zookeeper"):
                if last.rss_bytes > JAVA_MIB * MIB:
                    yield Breach("memory-flat", f"{member} ({pid}) has {last.rss_bytes // MIB} MiB")
                continue
            if not _is_old(samples):
                continue
            minutes = (last.at_s - first.at_s) / 60
            allowed = GROWTH_MIB + GROWTH_MIB_PER_MINUTE * minutes
            grown = (last.rss_bytes - first.rss_bytes) / MIB
            if grown > allowed:
                yield Breach(
                    "memory-flat",
                    f"{member} ({pid}) has grown by {grown:.1f} MiB in {minutes:.1f} minutes, "
                    f"{allowed:.1f} are allowed",
                )


def _is_old(samples: Sequence[Sample]) -> bool:
    return samples[-1].at_s > samples[0].at_s + OLD_S


def _find_warm(samples: Sequence[Sample]) -> Sample:
    """Return the first sample of a process that has had time to fill its caches, else the last."""
    return next((one for one in samples if one.at_s >= samples[0].at_s + WARM_S), samples[-1])


def read_rss(pid: int) -> int:
    """Return the resident memory of a process in bytes, 0 of one that has ended."""
    try:
        text = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return 0
    found = re.search(r"^VmRSS:\s+(\d+) kB", text, re.MULTILINE)
    return int(found[1]) * 1024 if found else 0
