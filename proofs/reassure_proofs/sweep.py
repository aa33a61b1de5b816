"""What becomes of each theorem under each other reading, and of the systems when they meet.

Every theorem whose code takes readings is asked once more for each reading that the code looks at,
with each of its other values, one at a time; a reading that the code never looks at within the
bound changes nothing there. Then the systems that meet (requests with the old znode, healing with
an operator's tasks, deletion with reassignment) are gone through story by story, again under each
reading. What is refuted and not in the register of findings is news.

    python -m reassure_proofs.sweep [THEOREM...]
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from reassure_model import kafka_zk, kip_46, kip_236_legacy, topics
from reassure_model.copies import Append
from reassure_model.environment import Controller, Die, Failover, Join, Return
from reassure_model.kip_236 import batch, system
from reassure_model.kip_236.invariants import INVARIANTS, Invariant
from reassure_model.kip_236.obligations import next_write
from reassure_model.machine import Machine, find_machines
from reassure_model.outcome import Accepted
from reassure_model.state_machines import ReplicaState
from reassure_proofs.runner import Progress, make_tasks, run_tasks, summarise_records
from reassure_proofs.statement import Theorem
from reassure_proofs.tasks import Task, group_theorems
from reassure_proofs.theorems import get_theorems
from reassure_spec.findings import FINDINGS
from reassure_spec.readings import (
    READINGS,
    Readings,
    field_name,
    get_profile,
    override_readings,
)
from reassure_spec.znodes import LegacyEntry, PartitionKey, ReplicaList

HOLDS: Final = "holds"
REFUTED: Final = "refuted"
UNKNOWN: Final = "unknown"
_NOT_THERE: Final = "of which nothing was assumed"
"""Part of the reason where the code looks at an argument that the shapes do not have."""


@dataclass(frozen=True, slots=True)
class SweepResult:
    """One guarantee under one choice of readings."""

    name: str
    """Theorem, or the systems that meet and the clause that is looked at."""
    clause: str
    profile: str
    change: str
    """The reading that is not the profile's, as `name=value`; "" where all are."""
    verdict: str
    """`holds`, `refuted` or `unknown`."""
    as_before: bool
    """Whether the profile's own readings give the same verdict."""
    counterexample: str
    findings: tuple[str, ...]
    """Findings of the register that speak of this reading, or of this clause."""
    reason: str = ""
    """Why the verdict is unknown."""

    @property
    def is_news(self) -> bool:
        """Whether something is refuted that no finding speaks of."""
        return self.verdict == REFUTED and not self.as_before and not self.findings

    def to_json(self) -> dict[str, Any]:
        """Return the result as plain JSON values."""
        return {
            "name": self.name,
            "clause": self.clause,
            "profile": self.profile,
            "change": self.change,
            "verdict": self.verdict,
            "as_before": self.as_before,
            "counterexample": self.counterexample,
            "findings": list(self.findings),
            "news": self.is_news,
            "reason": self.reason,
        }


def other_values(reading: str, readings: Readings) -> tuple[str, ...]:
    """Return the choices of a reading that are not made, as `name=value`."""
    (values,) = (each.values for each in READINGS if each.name == reading)
    chosen = getattr(readings, field_name(reading))
    return tuple(f"{reading}={value}" for value in values if value != chosen)


def findings_of_reading(change: str) -> tuple[str, ...]:
    """Return the findings that depend on the reading of a change."""
    name = change.partition("=")[0]
    return tuple(finding.id for finding in FINDINGS if name in finding.readings)


def sweep(
    names: Sequence[str] | None = None,
    replication_factor: int = 2,
    progress: Progress | None = None,
    timeout_s: float = 120.0,
    processes: int = 2,
    protocol_factor: int = 1,
) -> list[SweepResult]:
    """Return what becomes of the named theorems (of all, and of the meetings, without names).

    `protocol_factor` bounds the theorems of the protocol, which take minutes beyond 1. Where the
    shapes lack what a reading has the code look at, nothing is asked. Raises UnknownTheoremError
    for a name there is not, and as `prove_all` where the machinery itself is at fault.
    """
    theorems = [
        item
        for item in get_theorems(None if names is None else list(names))
        if item.subject.under is not None and not item.subject.changes
    ]
    rows: list[SweepResult] = []
    for tier, factor in (("gate", replication_factor), ("full", protocol_factor)):
        groups = group_theorems([item for item in theorems if item.tier == tier])
        rows += _sweep_groups(groups, _Means(factor, progress, timeout_s, processes))
    return rows if names is not None else [*rows, *sweep_meetings()]


@dataclass(frozen=True, slots=True)
class _Means:
    """Up to where, for how long and on how many processes."""

    replication_factor: int
    progress: Progress | None
    timeout_s: float
    processes: int


def _sweep_groups(groups: Sequence[Sequence[Theorem]], means: _Means) -> list[SweepResult]:
    bases = _prove_under([(group, ()) for group in groups], means)
    verdicts = {result.name: result.verdict for result, _ in bases}
    read = {result.name: looked_at for result, looked_at in bases}
    asked: list[tuple[Sequence[Theorem], tuple[str, ...]]] = []
    for group in groups:
        readings = get_profile(group[0].profile)
        for name in sorted(read[group[0].name]):
            asked += [(group, (change,)) for change in other_values(name, readings)]
    found = (row for row, _ in _prove_under(asked, means) if _NOT_THERE not in row.reason)
    return [replace(row, as_before=verdicts[row.name] == row.verdict) for row in found]


def _prove_under(
    asked: Sequence[tuple[Sequence[Theorem], tuple[str, ...]]], means: _Means
) -> list[tuple[SweepResult, frozenset[str]]]:
    """Return each theorem of each group under the changes, with the readings that were read."""
    tasks: list[tuple[int, Task]] = []
    for place, (group, changes) in enumerate(asked):
        made = make_tasks(group, means.replication_factor, means.timeout_s)
        # One task for all shapes: under a reading that refutes everything it ends early.
        shapes = tuple(sorted(shape for task in made for shape in task.shapes))
        task = replace(made[0], shapes=shapes, readings=changes)
        tasks.append((place, task))
    answers = run_tasks([task for _, task in tasks], means.processes, means.progress)
    rows = []
    for (place, _), records in zip(tasks, answers, strict=True):
        group, changes = asked[place]
        read = frozenset(name for record in records for name in record.get("read", ()))
        for theorem in group:
            result = summarise_records(theorem, records, means.replication_factor)
            verdict = {"proved": HOLDS, "searched": HOLDS}.get(result.verdict, result.verdict)
            shown = result.counterexample["sentence"] if result.counterexample else ""
            change = changes[0] if changes else ""
            row = SweepResult(
                theorem.name,
                theorem.clause,
                theorem.profile,
                change,
                verdict,
                as_before=True,
                counterexample=shown,
                findings=findings_of_reading(change) if change else (),
                reason=result.reason,
            )
            rows.append((row, read))
    return rows


# Systems that meet ------------------------------------------------------------------------------

Successors = Callable[[Any], Iterator[tuple[Any, Any]]]


@dataclass(frozen=True, slots=True)
class Meeting:
    """Two systems, what may happen in both, and what none of it may lead to."""

    name: str
    profile: str
    readings: tuple[str, ...]
    """The readings that are varied."""
    start: Callable[[], Any]
    successors: Callable[[Readings], Successors]
    problems: Callable[[Readings], Mapping[str, Callable[[Any], str | None]]]
    """What must never be, by clause."""
    budget: tuple[tuple[type, int], ...]
    known: Mapping[str, tuple[str, ...]]
    """Findings of the register by clause, where the profile's own readings break it."""


_KEY: Final[PartitionKey] = ("t", 0)
_LIMIT: Final = 60_000


def _start_legacy() -> kip_236_legacy.Legacy:
    born = kip_236_legacy.make_legacy({_KEY: (1,)}, frozenset({1, 2, 3}))
    online = kip_236_legacy.step(born, Controller(), get_profile("kip-236-legacy"))
    assert isinstance(online, Accepted)
    return online.state


def _write(target: ReplicaList) -> kip_236_legacy.WriteLegacy:
    return kip_236_legacy.WriteLegacy((LegacyEntry(_KEY, target, None),))


_CLIENTS: Final = (
    _write((2,)),
    _write((3,)),
    kip_236_legacy.Ask(((_KEY, (2,)),)),
    kip_236_legacy.Ask(((_KEY, (1,)),)),
)


def _legacy_steps(readings: Readings) -> Successors:
    def successors(state: kip_236_legacy.Legacy) -> Iterator[tuple[Any, Any]]:
        actions: list[Any] = [*_CLIENTS, Failover(), Die(1)]
        actions += [Return(broker) for broker in sorted(state.known - state.live)]
        if kip_236_legacy.next_effect(state, readings) is not None:
            actions.append(Controller())
        inner = system.enabled(state.as_system(_KEY), readings)
        actions += [batch.On(_KEY, each) for each in inner if isinstance(each, Join)]
        for action in actions:
            if isinstance(action, Die) and action.broker not in state.live:
                continue
            outcome = kip_236_legacy.step(state, action, readings)
            if isinstance(outcome, Accepted):
                yield action, replace(outcome.state, controller_epoch=1)

    return successors


def _find_rejected(state: kip_236_legacy.Legacy, readings: Readings) -> str | None:
    """Say so when the rules reject what the controller owes."""
    if kip_236_legacy.next_effect(state, readings) is None:
        return None
    outcome = kip_236_legacy.step(state, Controller(), readings)
    return None if isinstance(outcome, Accepted) else f"rejected by {outcome.clause}"


def _find_broken(
    state: kip_236_legacy.Legacy, invariant: Invariant, readings: Readings
) -> str | None:
    partition = state.get(_KEY)
    rests = next_write(partition, state.as_system(_KEY).around, readings) is None
    return None if invariant.at_rest and not rests else invariant.find(partition)


def _find_waiting_client(state: kip_236_legacy.Legacy, readings: Readings) -> str | None:
    """Say so when the controller waits while an entry has nothing in flight for it."""
    if state.entries is None or kip_236_legacy.next_effect(state, readings) is not None:
        return None
    flight = state.get(_KEY).reassignment
    if flight is not None:
        return None
    return f"nothing is in flight for the entry {list(state.entries[0].target)}"


def _legacy_problems(readings: Readings) -> Mapping[str, Callable[[Any], str | None]]:
    found: dict[str, Callable[[Any], str | None]] = {
        each.clause: partial(_find_broken, invariant=each, readings=readings) for each in INVARIANTS
    }
    found["legacy.entry.removed-when-done"] = partial(_find_waiting_client, readings=readings)
    found["complete.carried-out"] = partial(_find_rejected, readings=readings)
    return found


_CONFIG: Final = kip_46.HealingConfig()


def _healing_steps(readings: Readings) -> Successors:
    tasks = tuple(kip_46.Submit(((_KEY, target),)) for target in ((2, 1), (1, 3)))

    def successors(cluster: kip_46.Cluster) -> Iterator[tuple[Any, Any]]:
        for action in (*kip_46.enabled(cluster, _CONFIG, readings), *tasks):
            outcome = kip_46.step(cluster, action, _CONFIG, readings)
            if isinstance(outcome, Accepted):
                yield action, outcome.state

    return successors


def _healing_problems(readings: Readings) -> Mapping[str, Callable[[Any], str | None]]:
    return {
        "heal.task.no-live-replica-removed": lambda cluster: kip_46.find_live_removed(
            cluster, _CONFIG, readings
        ),
        "heal.task.one-at-a-time": kip_46.find_two_running,
        "heal.target.no-duplicate": kip_46.find_duplicate,
        "heal.generate.replaces-failed": kip_46.find_factor_changed,
    }


def _deletion_steps(_: Readings) -> Successors:
    def successors(topic: topics.Topic) -> Iterator[tuple[Any, Any]]:
        actions: list[Any] = [topics.Ask(), topics.Reassign(0), topics.Grow((2,)), Failover()]
        actions += [Die(b) for b in sorted(topic.live)]
        actions += [Return(b) for b in sorted({1, 2} - topic.live)]
        actions += [topics.Complete(p) for p in sorted(topic.reassigning)]
        started = (k for k, s in topic.states if s is ReplicaState.DELETION_STARTED)
        actions += [topics.Answer(key) for key in started]
        actions += [Controller()] if topics.next_effect(topic) is not None else []
        for action in actions:
            outcome = topics.step(topic, action)
            if isinstance(outcome, Accepted):
                yield action, outcome.state

    return successors


def _find_deleted_while_moved(topic: topics.Topic) -> str | None:
    """Say so when a replica deletes its log, or the topic is gone, while a partition is moved."""
    if not topic.reassigning:
        return None
    started = [key for key, state in topic.states if state is ReplicaState.DELETION_STARTED]
    if started or not topic.partitions:
        return f"partition {min(topic.reassigning)} is being reassigned while the topic is deleted"
    return None


_SHIPPED: Final = find_machines()["kafka-zk"]


def _problems_of(
    machine: Machine[Any], readings: Readings
) -> Mapping[str, Callable[[Any], str | None]]:
    """Return what must never be of a machine, by clause."""
    return {
        each.clause: partial(machine.find_broken, each, readings=readings)
        for each in machine.properties
    }


def _shipped_steps(_: Readings) -> Successors:
    calls: tuple[ReplicaList | None, ...] = (None, (3,))

    def successors(shipped: kafka_zk.Shipped) -> Iterator[tuple[Any, Any]]:
        actions = [a for a in kafka_zk.enabled(shipped, calls) if not isinstance(a, Append)]
        entries = [kafka_zk.WriteEntry(target, shipped.entry is None) for target in ((2,), (3,))]
        for action in (*actions, *entries, kafka_zk.AskDeletion()):
            outcome = kafka_zk.step(shipped, action)
            if isinstance(outcome, Accepted):
                yield action, replace(outcome.state, leader_epoch=0)

    return successors


_HEALING_READINGS: Final = (
    "heal.redundancy",
    "heal.stale-task",
    "heal.regenerate",
    "heal.replaces",
)
_LEGACY_READINGS: Final = (
    "legacy.rewrite",
    "legacy.original-replicas",
    "drop.slice",
    "drop.evaluated",
    "drop.protects",
    "drop.reevaluated-on-failover",
    "top.recorded",
    "offline.drop",
    "request.same-target",
    "target.size",
    "target.dead-replica",
    "move.recheck-before-stop",
)
MEETINGS: Final[tuple[Meeting, ...]] = (
    Meeting(
        "requests with the old znode",
        "kip-236-legacy",
        _LEGACY_READINGS,
        _start_legacy,
        _legacy_steps,
        _legacy_problems,
        (
            (kip_236_legacy.WriteLegacy, 2),
            (kip_236_legacy.Ask, 1),
            (Failover, 1),
            (Die, 0),
            (Return, 0),
        ),
        {"legacy.entry.removed-when-done": ("legacy-3",)},
    ),
    Meeting(
        "healing with an operator's tasks",
        "kip-46",
        _HEALING_READINGS,
        lambda: kip_46.make_cluster({1: None, 2: None, 3: None, 4: None}, {_KEY: (1, 2)}),
        _healing_steps,
        _healing_problems,
        ((kip_46.Submit, 1), (Die, 2), (Return, 1), (Failover, 1), (kip_46.Tick, 1)),
        {"heal.task.no-live-replica-removed": ("heal-1",)},
    ),
    Meeting(
        "deletion with reassignment",
        "kafka-zk",
        (),
        lambda: topics.make_topic(((1,),), frozenset({1, 2})),
        _deletion_steps,
        lambda _: {
            "topic.delete.waits-for-reassignment": _find_deleted_while_moved,
            "topic.delete.config-not-left": topics.find_orphan_config,
        },
        ((topics.Ask, 1), (topics.Reassign, 1), (topics.Grow, 1), (Die, 1), (Failover, 1)),
        {},
    ),
    Meeting(
        "shipped calls with the old znode and deletion",
        "kafka-zk",
        (),
        lambda: kafka_zk.make_shipped((1,), frozenset({1, 2, 3})),
        _shipped_steps,
        partial(_problems_of, _SHIPPED),
        (
            (kafka_zk.Alter, 1),
            (kafka_zk.WriteEntry, 1),
            (kafka_zk.AskDeletion, 1),
            (Die, 1),
            (Return, 0),
            (Failover, 1),
        ),
        {each.clause: each.findings for each in _SHIPPED.properties},
    ),
)
"""What is gone through story by story."""


def sweep_meetings(names: Sequence[str] | None = None) -> list[SweepResult]:
    """Return what becomes of the guarantees where systems meet, under each reading."""
    rows: list[SweepResult] = []
    for meeting in MEETINGS:
        if names is None or meeting.name in names:
            rows += _sweep_meeting(meeting)
    return rows


def _sweep_meeting(meeting: Meeting) -> Iterator[SweepResult]:
    base = get_profile(meeting.profile)
    changes = [change for name in meeting.readings for change in other_values(name, base)]
    before: dict[str, str] = {}
    for change in ("", *changes):
        pairs = dict([change.split("=", 1)]) if change else {}
        readings = override_readings(base, pairs)
        found, reason = _find_stories(meeting, readings)
        for clause, story in found.items():
            shown = "" if story is None else "; ".join(map(str, story))
            missed = UNKNOWN if reason else HOLDS
            verdict = missed if story is None else REFUTED
            known = meeting.known.get(clause, ()) + (findings_of_reading(change) if change else ())
            yield SweepResult(
                f"{meeting.name}: {clause}",
                clause,
                meeting.profile,
                change,
                verdict,
                as_before=before.setdefault(clause, verdict) == verdict and bool(change),
                counterexample=shown,
                findings=known,
                reason=reason if verdict == UNKNOWN else "",
            )


def _find_stories(
    meeting: Meeting, readings: Readings
) -> tuple[dict[str, tuple[Any, ...] | None], str]:
    """Return a shortest story to each problem, and why the search was ended if it was."""
    successors, problems = meeting.successors(readings), meeting.problems(readings)
    kinds = tuple(kind for kind, _ in meeting.budget)
    found: dict[str, tuple[Any, ...] | None] = dict.fromkeys(problems)
    start = (meeting.start(), tuple(times for _, times in meeting.budget))
    frontier: list[tuple[Any, tuple[Any, ...]]] = [(start, ())]
    seen = {start}
    while frontier:
        reached = []
        for (state, left), story in frontier:
            for clause, find in problems.items():
                if found[clause] is None and find(state) is not None:
                    found[clause] = story
            for action, after in successors(state):
                rest = tuple(n - isinstance(action, k) for n, k in zip(left, kinds, strict=True))
                node = (after, rest)
                if min(rest) >= 0 and node not in seen:
                    seen.add(node)
                    reached.append((node, (*story, action)))
        frontier = reached
        if len(seen) > _LIMIT:
            return found, f"more than {_LIMIT} states are reachable"
    return found, ""


def to_json(results: Sequence[SweepResult]) -> dict[str, Any]:
    """Return the body of the report: `counts` and `sweep`."""
    verdicts = [result.verdict for result in results]
    return {
        "counts": {
            "asked": len(results),
            "holds": verdicts.count(HOLDS),
            "refuted": verdicts.count(REFUTED),
            "unknown": verdicts.count(UNKNOWN),
            "news": sum(result.is_news for result in results),
        },
        "sweep": [result.to_json() for result in results],
    }


def render(results: Sequence[SweepResult]) -> str:
    """Return what is refuted as lines, news first, and the counts."""
    lines = []
    for row in sorted(results, key=lambda each: not each.is_news):
        if row.verdict == HOLDS or row.as_before:
            continue
        under = f"{row.profile}, {row.change}" if row.change else row.profile
        known = "NEWS" if row.is_news else ", ".join(row.findings)
        lines.append(f"{row.name} under {under}: {row.verdict} ({known or row.reason})")
        lines += [f"    {row.counterexample}"] if row.counterexample else []
    counts = ", ".join(f"{value} {name}" for name, value in to_json(results)["counts"].items())
    return "\n".join([*lines, counts])


if __name__ == "__main__":
    import sys

    sys.stdout.write(render(sweep(sys.argv[1:] or None)) + "\n")
