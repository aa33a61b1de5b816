"""How often the audit is wrong about Apache Kafka: false alarms, and planted writes it misses.

Every log is audited as users do, by what it shows of itself. An incident in it that has the shape
of no published bug is a false alarm. Then each write of a state or of an assignment in it is
replaced, one at a time, by one whose shape no Kafka may write; it is *named* where a violation
stands at its transaction.

`python benchmarks/corpus.py [LOG...] > docs/corpus.md` makes the page; without logs it takes those
of the tests that are sound, and all that `benchmarks/corpus_logs.py` made. `--places N` says
at how many writes of each log something is planted.
"""

import argparse
import gzip
import json
import pickle
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from reassure_judge.incidents import gather_incidents
from reassure_judge.judge import Judge
from reassure_judge.recognise import Recognised
from reassure_pipeline.audit.recogniser import recognise_clusters
from reassure_spec.readings import get_profile, override_readings
from reassure_zookeeper.transactions import Create, SetData, Transaction
from reassure_zookeeper.txnlog import log_files, read_logs

LOGS: Final = Path(__file__).parents[1] / "tests" / "judge" / "kafka_logs"
SOUND: Final = ("golf", "papa", "runA", "romeo", "old_01022", "alpha", "bravo", "charlie_s")
SOUND_TOO: Final = ("sierra", "n102", "v241", "v282")
MADE: Final = LOGS.with_name("kafka_corpus")
"""What `corpus_logs.py` made, by the release and the seed."""
ABOUT: Final = """# How often the audit is wrong

Logs that Apache Kafka left while it was driven through moves, deaths of brokers and controllers,
controlled shutdowns, deletions, growth, disks that fail, sessions that expire and unclean
elections. Those with a release as their name were made by
`benchmarks/corpus_logs.py RELEASE --seed N`, where chance says what happens.
Each is audited by what it shows of itself. A *false alarm* is a log with an incident that has the
shape of no known bug. Then at {places} or more writes of a partition's state or of a topic's
assignment, spread over the log, one at a time, what was written is replaced by what no Kafka may
write there; it is *named* where a violation stands at that transaction.
Made by `python benchmarks/corpus.py > docs/corpus.md`.
"""
STRANGER: Final = 99
_STATE: Final = re.compile(r".*/brokers/topics/[^/]+/partitions/[0-9]+/state")
_TOPIC: Final = re.compile(r".*/brokers/topics/[^/]+")
Planted = tuple[str, bytes]
"""What is wrong, in words, and the content."""


def read(path: Path, scratch: Path) -> list[Transaction]:
    """Return the transactions of a log file, of a packed one, or of a data directory."""
    if path.is_dir():
        return list(read_logs(log_files(path)))
    if path.suffix == ".gz":
        log = scratch / "log.1"
        log.write_bytes(gzip.decompress(path.read_bytes()))
        path = log
    return list(read_logs([path]))


def recognise(log: Path, scratch: Path) -> Recognised:
    """Return what a log is of. Raises ValueError for one that does not tell."""
    place = log
    if log.suffix == ".gz":
        place = scratch / "log.1"
        place.write_bytes(gzip.decompress(log.read_bytes()))
    told = [found for found, _ in recognise_clusters([place]) if found is not None]
    if len(told) != 1:
        raise ValueError(f"{log}: expected one protocol, found {len(told)}: give other logs")
    return told[0]


def judge(found: Recognised, log: list[Transaction], held: Judge | None = None) -> Judge:
    """Judge a log, or what follows on what is `held` of one, by what it was found to be of."""
    readings = override_readings(get_profile(found.profile), found.readings)
    held = held or Judge(found.profile, readings)
    for transaction in log:
        held.feed(transaction)
    return held


def alter_state(old: dict[str, Any], new: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield states that nobody may write, whatever else is the case."""
    epoch, isr = old["leader_epoch"], new["isr"]
    yield "an epoch that leaps", {**new, "leader_epoch": epoch + 3}
    yield "an epoch that falls", {**new, "leader_epoch": epoch - 1}
    yield "a controller epoch to come", {**new, "controller_epoch": new["controller_epoch"] + 1}
    yield "a stranger leads", {**new, "leader": STRANGER, "isr": [STRANGER]}
    yield "a stranger in sync", {**new, "isr": [*isr, STRANGER]}
    if isr:
        yield "a replica twice in sync", {**new, "isr": [*isr, isr[0]]}
    if new["leader"] >= 0 and len(isr) > 1:
        others = [replica for replica in isr if replica != new["leader"]]
        yield "the leader out of sync", {**new, "isr": others}


def alter_topic(old: dict[str, Any], new: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield assignments that nobody may write."""
    held, was = new["partitions"], old["partitions"]
    changed = [p for p in held if p in was and held[p] != was[p]]
    still = [p for p in held if held[p] == was.get(p) and len(held[p]) > 1]
    for number in changed[:1]:
        twice = [*held[number], held[number][0]]
        yield "a replica twice", {**new, "partitions": {**held, number: twice}}
        strange = [*held[number], STRANGER]
        yield "a stranger assigned", {**new, "partitions": {**held, number: strange}}
    for number in still[:1] if changed else ():
        turned = {**held, number: held[number][::-1]}
        yield "another partition reordered", {**new, "partitions": turned}
    if changed and len(held) > 1:
        lost = {number: held[number] for number in held if number != changed[0]}
        yield "a partition lost", {**new, "partitions": lost}


def plant(log: list[Transaction], each: int) -> Iterator[tuple[int, str, Transaction]]:
    """Yield the place of every `each`-th write, what is wrong, and the transaction with it."""
    before: dict[str, dict[str, Any]] = {}
    writes = 0
    for number, transaction in enumerate(log):
        if transaction.error is not None:
            continue
        for at, op in enumerate(transaction.ops):
            if not isinstance(op, Create | SetData):
                continue
            is_state, is_topic = _STATE.fullmatch(op.path), _TOPIC.fullmatch(op.path)
            if not (is_state or is_topic):
                continue
            new, old = json.loads(op.data), before.get(op.path)
            before[op.path] = new
            if old is None or not isinstance(op, SetData):
                continue
            writes += 1
            if writes % each:
                continue
            for words, said in (alter_state if is_state else alter_topic)(old, new):
                ops = list(transaction.ops)
                ops[at] = replace(op, data=json.dumps(said).encode())
                yield number, words, replace(transaction, ops=tuple(ops))


def try_planted(found: Recognised, log: list[Transaction], each: int) -> Iterator[tuple[str, bool]]:
    """Yield what was planted, and whether it is named."""
    held, done, kept = judge(found, []), 0, b""
    for number, words, wrong in plant(log, each):
        if number != done or not kept:
            judge(found, log[done:number], held)
            done, kept = number, pickle.dumps(held)
        fooled: Judge = judge(found, [wrong], pickle.loads(kept))
        yield words, any(v.zxid == wrong.zxid for v in fooled.violations)


def sum_up(found: Recognised, log: list[Transaction]) -> tuple[str, bool]:
    """Return the verdict on a log, with bugs that are named, and whether it is a false alarm."""
    held = judge(found, log)
    wrong = [each for each in held.violations if each.binds()]
    if not wrong:
        return "unknown" if held.undecided else "holds", False
    incidents = gather_incidents(wrong, found.profile)
    bugs = sorted({bug.id for each in incidents for bug in each.bugs})
    return f"violated: {', '.join(bugs) or '-'}", not all(each.bugs for each in incidents)


def main() -> None:
    """Audit, plant, and print the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("logs", nargs="*", type=Path, help="sound logs")
    parser.add_argument("--places", type=int, default=15, help="plant at N writes of a log (15)")
    asked = parser.parse_args()
    logs = asked.logs or [LOGS / f"{name}.log.gz" for name in (*SOUND, *SOUND_TOO)]
    logs += [] if asked.logs else sorted(MADE.glob("*.log.gz"))
    rows, named, planted = [], Counter[str](), Counter[str]()
    alarms = 0
    with tempfile.TemporaryDirectory() as folder:
        for path in logs:
            found = recognise(path, Path(folder))
            log = read(path, Path(folder))
            verdict, alarm = sum_up(found, log)
            alarms += alarm
            writes = len({number for number, _, _ in plant(log, 1)})
            tried = list(try_planted(found, log, max(1, writes // asked.places)))
            planted.update(words for words, _ in tried)
            named.update(words for words, hit in tried if hit)
            version = next(iter(found.versions.values()), "")
            told = f"{sum(hit for _, hit in tried)} of {len(tried)}"
            name = path.name.removesuffix(".log.gz")
            print(name, verdict, told, file=sys.stderr, flush=True)
            rows.append(f"| {name} | {version} | {len(log)} | {verdict} | {told} |")
    hits, all_of = named.total(), planted.total()
    share = 100 * hits / all_of if all_of else 0.0
    made = {path.name.partition("-")[0] for path in logs if path.parent == MADE}
    print(ABOUT.format(places=asked.places))
    print(
        f"False alarms: **{alarms} in {len(logs)}** logs, {len(made)} releases among those that",
        end=" ",
    )
    print("were made.", f"Planted writes named: **{hits:,} of {all_of:,}** ({share:.1f} %).\n")
    print("| log | writes as | transactions | verdict | planted writes named |")
    print("|---|---|---|---|---|")
    print("\n".join(rows))
    print("\n| what was planted | named |\n|---|---|")
    print("\n".join(f"| {words} | {named[words]} of {planted[words]} |" for words in planted))


if __name__ == "__main__":
    main()
