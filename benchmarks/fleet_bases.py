"""Histories that a fleet is made of: of every protocol that a log can tell, sound or with a fault.

There are seven kinds. Clusters of KIP-236 are drawn by the model at any length. Those of KIP-236
with the old znode and of KIP-46 are walks of their models. Those of KAFKA-42 and of Kafka's own
protocol in two generations are logs of real Kafka. What is short stands in an archive as often as
is needed, as clusters beside each other, each below a chroot of its own. (`kip-236-amended` writes
what `kip-236` does, and `kafka-4485` is judged by observations, so that no log tells of these.)
"""

import json
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from reassure_lab.protocols.kip_236.synthetic import Size, SyntheticHistory
from reassure_model.environment import Die, Failover, NotPossible, Return
from reassure_model.protocols.kip_46 import Tick
from reassure_model.protocols.kip_236_legacy import WriteLegacy
from reassure_spec.znodes import LegacyEntry
from reassure_zookeeper.transactions import CloseSession, Create, Op, SetData, Transaction
from reassure_zookeeper.txnlog import read_logs
from reassure_zookeeper.txnlog_writer import GrowingLog

TESTS: Final = Path(__file__).parents[1] / "tests" / "judge"
FILES: Final = 4
STRANGER: Final = 99
_SESSIONS: Final = 1 << 40
"""How far apart the sessions of two clusters are."""
_STATE: Final = re.compile(r".*/brokers/topics/[^/]+/partitions/[0-9]+/state")

History = list[Transaction]
KINDS: Final = {
    "kip-236": (),
    "kip-236-legacy": (),
    "kip-46": (),
    "kafka-42, 0.10.2 to 2.3": ("papa", "old_01022"),
    "kafka-42, 1.0 to 2.3": ("n102", "charlie_s"),
    "kafka-zk, 2.4 to 2.6": ("sierra",),
    "kafka-zk, 2.8 to 3.9": ("runA", "alpha", "bravo"),
}
"""By kind the logs of real Kafka in which nothing is wrong."""


class FleetBase(NamedTuple):
    """An archive that others are copies of."""

    kind: str
    files: tuple[Path, ...]
    rest: Path
    """The file that it grows by, about one part in a hundred."""
    transactions: int
    planted: tuple[int, ...]
    """The transactions in which something is wrong."""


def make_base(folder: Path, kind: str, size: int, seed: int, *, is_faulty: bool) -> FleetBase:
    """Write the logs of an archive of so many transactions, with a fault in it or without."""
    if kind == "kip-236":
        made = SyntheticHistory(Size(size, max(10, size // 100), int(is_faulty), seed))
        history = [each for some in made.steps() for each in some]
        planted = [fault.zxid for fault in made.planted]
    else:
        history = repeat([_MAKE[kind]()] if kind in _MAKE else _read(KINDS[kind]), size)
        planted = [spoil(history)] if is_faulty else []
    folder.mkdir()
    log, end = GrowingLog(folder, block=0), len(history) * 99 // 100
    step = -(-end // FILES)
    for start in (*range(0, end, step), end):
        log.append(*history[start : min(start + step, end) if start < end else None])
        log.rotate()
    *files, rest = sorted(folder.iterdir(), key=lambda file: int(file.suffix[1:], 16))
    return FleetBase(kind, tuple(files), rest, len(history), tuple(planted))


def repeat(histories: Sequence[History], size: int) -> History:
    """Return these one after another, again and again, each cluster below a chroot of its own."""
    made: History = []
    number = 0
    while len(made) < size:
        history = histories[number % len(histories)]
        chroot, time_ms = f"/cluster-{number:04d}", made[-1].time_ms + 1 if made else None
        later = 0 if time_ms is None else time_ms - history[0].time_ms
        first = history[0]
        below = Transaction(0x77, 0, 0, first.time_ms, Create.kind, (Create(chroot),))
        for each in (below, *history):
            made.append(
                replace(
                    each,
                    session_id=each.session_id + number * _SESSIONS,
                    zxid=len(made) + 1,
                    time_ms=each.time_ms + later,
                    ops=tuple(_move(op, chroot if each is not below else "") for op in each.ops),
                    attempted=tuple(_move(op, chroot) for op in each.attempted),
                    digest=b"",
                )
            )
        number += 1
    return made


def _move(op: Op, chroot: str) -> Op:
    there: Any = op
    if isinstance(op, CloseSession):
        paths = None if op.paths is None else tuple(chroot + path for path in op.paths)
        return replace(op, paths=paths)
    return replace(there, path=chroot + there.path) if hasattr(there, "path") else op


def spoil(history: History) -> int:
    """Let a stranger be in sync by the last write of a state; return its zxid."""
    for number in reversed(range(len(history) * 9 // 10)):
        for at, op in enumerate(history[number].ops):
            if isinstance(op, SetData) and _STATE.fullmatch(op.path):
                state = json.loads(op.data)
                data = json.dumps({**state, "isr": [*state["isr"], STRANGER]}).encode()
                ops = list(history[number].ops)
                ops[at] = replace(op, data=data)
                history[number] = replace(history[number], ops=tuple(ops))
                return history[number].zxid
    raise ValueError("no state is written in it: take another log")


def _read(names: Sequence[str]) -> list[History]:
    """Return logs of real Kafka."""
    return [list(read_logs([TESTS / "kafka_logs" / f"{name}.log.gz"])) for name in names]


def _walk_legacy() -> History:
    """Return moves by the old znode, with failovers and deaths among them."""
    from walks import LegacyWalk

    keys = [("orders", number) for number in range(6)]
    walk = LegacyWalk(dict.fromkeys(keys, (1, 2, 3)), 6)
    walk.settle()
    for turn in range(12):
        target = tuple((turn + k) % 6 + 1 for k in range(3))
        moved = keys[turn % 3 :: 3]
        walk.take(WriteLegacy(tuple(LegacyEntry(key, target) for key in moved)))
        for _ in range(turn):
            walk.control()
        if turn % 4 == 3:
            walk.take(Failover())
        walk.settle()
    return walk.transactions


def _walk_healing() -> History:
    """Return brokers that die for good or come back, and the tasks that are made of that."""
    from walks import HealingWalk

    keys = [("orders", number) for number in range(6)]
    walk = HealingWalk({key: (n % 5 + 1, (n + 1) % 5 + 1) for n, key in enumerate(keys)}, 5)
    walk.settle()
    for turn in range(8):
        broker = turn % 5 + 1
        for action in (Die(broker), Tick(1000), Return(broker)):
            try:
                walk.take(action)
            except NotPossible:
                continue
            walk.settle()
    return walk.transactions


_MAKE: Final[dict[str, Callable[[], History]]] = {
    "kip-236-legacy": _walk_legacy,
    "kip-46": _walk_healing,
}
sys.path.append(str(TESTS))
