"""What holds under which reading, found by looking at every case within a small scope.

A row is one guarantee under one choice of readings: it holds within the scope, or the smallest
counterexample is shown. Five families: the drop rule, by enumeration of its arguments; one
partition under KIP-236 with everything around it; the first reassignment with a death or an
interruption and a failover; shipped controllers; logs and high watermarks across elections. Where
it takes states, the explorer's plain engine goes through them.

Findings that a scenario shows are checked by telling the scenario to the model: `shown` where it
runs as written, under the readings it names.
"""

import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from itertools import permutations, product
from typing import Any, Final, TypeVar

from reassure_conformance.answers.places import find_shown
from reassure_conformance.report import display
from reassure_conformance.report.document import HOLDS, VIOLATED, Document
from reassure_conformance.scenarios.scenario import (
    compare,
    read_scenario,
    run_scenario,
    scenarios_folder,
)
from reassure_explorer.engine.plain import explore_plain
from reassure_explorer.engine.result import Budget
from reassure_explorer.engine.search import Sketch
from reassure_explorer.tales.kafka_4485 import bound
from reassure_model import kafka_42, kafka_zk
from reassure_model.environment import Controller, Die, Failover, Join, Return
from reassure_model.kafka_4485.replication import make_replication
from reassure_model.kip_236 import system
from reassure_model.kip_236.drop import compute_drop
from reassure_model.kip_236.invariants import INVARIANTS, Invariant
from reassure_model.kip_236.obligations import compute_plan, next_write
from reassure_model.kip_236.state import Partition
from reassure_model.machine import Sets, Times, Within, find_machines
from reassure_model.outcome import Accepted
from reassure_proofs.engine.counterexamples import AREA
from reassure_spec.findings import FINDINGS
from reassure_spec.readings import READINGS, Readings, get_profile, override_readings
from reassure_spec.znodes import ReplicaList

COLUMNS: Final = ("guarantee", "under", "within", "verdict", "smallest counterexample")

S = TypeVar("S", bound=Hashable)
A = TypeVar("A")
Find = Callable[[S], str | None]
"""Answers why a guarantee is broken in a state, or None."""


@dataclass(frozen=True, slots=True)
class Guarantee:
    """One row: a clause under a choice of readings."""

    clause: str
    under: str
    within: str
    """The scope."""
    counterexample: str = ""
    """Empty where the guarantee holds within the scope."""

    @property
    def verdict(self) -> str:
        """Whether it holds within the scope."""
        return VIOLATED if self.counterexample else HOLDS

    def as_row(self) -> list[str]:
        """Return the values of `COLUMNS`."""
        return [self.clause, self.under, self.within, self.verdict, self.counterexample]


def find_stories(sketch: Sketch, depth: int) -> dict[str, tuple[str, tuple[object, ...]]]:
    """Return why and by which shortest story each problem is met within so many steps."""
    model = sketch.make_model("guarantees")
    result = explore_plain(model, keep_going=True, budget=Budget(depth=depth))
    return {
        each.invariant: (each.reason, tuple(step.parameter for step in each.trace.steps))
        for each in result.violations
    }


def _vary(names: Iterable[str], base: str) -> Iterator[tuple[str, Readings]]:
    """Yield the profile and every other value of each of these readings, with what to call it."""
    start = get_profile(base)
    yield base, start
    for reading in READINGS:
        if reading.name in names:
            for value in reading.values:
                changed = override_readings(start, {reading.name: value})
                if changed != start:
                    yield f"{base}, {reading.name}={value}", changed


# The drop rule ----------------------------------------------------------------------------------

_DROP_CLAUSES: Final = (
    "drop.leader-kept",
    "drop.isr-at-least-min",
    "drop.slice.inclusive",
    "drop.before-expansion",
    "drop.protect-target",
    "drop.offline.skip",
)


@dataclass(frozen=True, slots=True)
class _Case:
    assigned: ReplicaList
    isr: ReplicaList
    leader: int
    top: int
    minimum: int
    target: ReplicaList

    def __str__(self) -> str:
        lists = [f"{n}={list(v)}" for n, v in (("A", self.assigned), ("I", self.isr))]
        numbers = f"L={self.leader} top={self.top} m={self.minimum} T={list(self.target)}"
        return f"{' '.join(lists)} {numbers}"


def _iterate_cases() -> Iterator[_Case]:
    """Yield what the rule is about: a leader in sync, top and in-sync set at least the minimum."""
    for size in (1, 2, 3):
        assigned = tuple(range(1, size + 1))
        for count in range(1, size + 1):
            for isr in permutations(assigned, count):
                for leader in (*sorted(isr), -1):
                    for top in range(1, size + 1):
                        for minimum in range(1, min(top, count) + 1):
                            for target in ((1,), (1, 2), (2, 3), (1, 3)):
                                yield _Case(assigned, isr, leader, top, minimum, target)


def _broken_by_drop(case: _Case, drop: ReplicaList) -> Iterator[str]:
    left = [replica for replica in case.isr if replica not in drop]
    if case.leader == -1:
        if not left:
            yield "drop.offline.skip"
        return
    if case.leader in drop:
        yield "drop.leader-kept"
    if len(left) < case.minimum:
        yield "drop.isr-at-least-min"
    if any(replica not in case.assigned for replica in drop):
        yield "drop.before-expansion"
    elif len(case.assigned) == case.top and drop:
        yield "drop.slice.inclusive"
    if any(replica in case.target and replica in case.isr for replica in drop):
        yield "drop.protect-target"


def judge_drop() -> Iterator[Guarantee]:
    """Yield the guarantees of the drop rule, by enumeration of up to three replicas."""
    names = ("drop.slice", "drop.evaluated", "drop.protects", "offline.drop")
    for under, readings in _vary(names, "kip-236"):
        found: dict[str, str] = {}
        for case in _iterate_cases():
            numbers = (case.leader, case.isr, case.top, case.target)
            assigned = case.assigned
            if readings.drop_evaluated == "after-expansion":
                assigned = (*assigned, *(r for r in case.target if r not in assigned))
            drop = compute_drop(assigned, *numbers, readings)
            for clause_id in _broken_by_drop(case, drop):
                found.setdefault(clause_id, f"{case}: drop {list(drop)}")
        for clause_id in _DROP_CLAUSES:
            yield Guarantee(clause_id, under, "3 replicas", found.get(clause_id, ""))


# One partition under KIP-236 --------------------------------------------------------------------

_PROTOCOL: Final = (
    "drop.slice",
    "drop.protects",
    "drop.reevaluated-on-failover",
    "top.recorded",
    "offline.drop",
)
"""The readings that the rules for one partition tell apart and that are no matter of arguments."""
_ASSIGNED: Final = (1, 2)
_TARGETS: Final = ((1, 3), (4,))


def _normalise(state: system.System) -> system.System:
    """Count epochs and requests from the start, so that states can be the same."""
    partition = state.partition
    stored = partition.state
    if stored is not None:
        stored = replace(stored, leader_epoch=0, controller_epoch=1)
    requests = tuple(replace(r, sequence=n) for n, r in enumerate(partition.requests))
    partition = replace(partition, state=stored, requests=requests)
    return replace(state, partition=partition, controller_epoch=1, next_sequence=len(requests))


def _iterate_protocol(
    state: system.System, readings: Readings
) -> Iterator[tuple[system.Action, system.System]]:
    """Yield everything but deaths, with one pending request at most."""
    asked = () if state.partition.requests else tuple(map(system.Submit, _TARGETS))
    for action in system.enabled(state, readings, asked):
        if not isinstance(action, Die | Return):
            outcome = system.step(state, action, readings)
            if isinstance(outcome, Accepted):
                yield action, _normalise(outcome.state)


def _find_endless(state: system.System, readings: Readings) -> str | None:
    """Say so when replicas that catch up one by one, a failover after each, do not end it."""
    for _ in range(12):
        partition = compute_plan(state.partition, state.around, readings)[1]
        state = replace(state, partition=partition)
        if partition.reassignment is None:
            return None
        joins = [a for a in system.enabled(state, readings) if isinstance(a, Join)]
        actions: tuple[system.Action, ...] = (*joins[:1], Failover())
        for action in actions:
            outcome = system.step(state, action, readings)
            assert isinstance(outcome, Accepted)  # a leader may take in who has caught up
            state = outcome.state
    flight = state.partition.reassignment
    return None if flight is None else f"never completes: target {list(flight.target)}"


def _find_grown(state: system.System, readings: Readings) -> str | None:
    """Say so when more are assigned at rest than the first assignment and the target have."""
    partition = state.partition
    flight, assigned = partition.reassignment, partition.assigned or ()
    if flight is None or next_write(partition, state.around, readings) is not None:
        return None
    grown = len(assigned) > len(_ASSIGNED) + len(flight.target)
    return f"assigned {list(assigned)}" if grown else None


def _find_broken(
    invariant: Invariant[Partition], state: system.System, readings: Readings
) -> str | None:
    if invariant.at_rest and next_write(state.partition, state.around, readings) is not None:
        return None
    return invariant.find(state.partition)


def judge_protocol(depth: int) -> Iterator[Guarantee]:
    """Yield invariants and progress of one partition that is sent to and fro."""
    scope = f"4 brokers, 2 targets, {depth} steps"
    for under, readings in _vary(_PROTOCOL, "kip-236"):
        checks: dict[str, Find[system.System]] = {
            "complete.carried-out": partial(_find_endless, readings=readings),
            "top.bounds-assigned": partial(_find_grown, readings=readings),
        }
        for each in INVARIANTS:
            checks.setdefault(each.clause, partial(_find_broken, each, readings=readings))
        born = system.make_system(_ASSIGNED, (1, 2, 3, 4))
        online = system.step(born, Controller(), readings)
        assert isinstance(online, Accepted)
        successors = partial(_iterate_protocol, readings=readings)
        found = find_stories(Sketch(_normalise(online.state), successors, checks), depth)
        for clause_id in checks:
            yield Guarantee(clause_id, under, scope, _tell(found.get(clause_id)))


# The first reassignment -------------------------------------------------------------------------

_MOVE: Final = {
    "move.expand-first": "yes",
    "move.cut-isr": "yes",
    "move.recheck-before-stop": "yes",
    "election.unclean": "no",
}
"""What repairs it: each is needed."""


def judge_move(depth: int) -> Iterator[Guarantee]:
    """Yield what must never be during a move, with a failover and a death or an interruption."""
    written = get_profile("kafka-42")
    repaired = override_readings(written, _MOVE)
    choices = {"kafka-42": written, "kafka-42, all four repairs": repaired}
    for name in _MOVE:
        left = {name: written.as_dict()[name]}
        choices[f"kafka-42, all repairs but {name}"] = override_readings(repaired, left)
    starts = []
    for assigned, target in (((1,), (2,)), ((1, 2), (3, 4))):
        move = kafka_42.make_move(assigned, frozenset(assigned + target))
        starts.append(replace(move, path=target, wanted=target))
    faults = ({"deaths": 1, "failovers": 1}, {"failovers": 1, "interrupts": 1})
    return judge_machine(
        "kafka-42",
        choices,
        product(starts, [{}], faults),
        f"2 moves, 2 faults, {depth} steps",
        depth,
    )


def judge_machine(
    name: str,
    choices: Mapping[str, Readings],
    cases: Iterable[tuple[Any, Sets, Times]],
    scope: str,
    depth: int,
    within: Within[Any] | None = None,
) -> Iterator[Guarantee]:
    """Yield the properties of a machine that scenarios can ask for, under choices of readings.

    A case is a start, what the machine's sets stand for, and how often what is counted may happen.
    """
    machine = find_machines()[name]
    cases = tuple(cases)
    for under, readings in choices.items():
        found: dict[str, tuple[str, tuple[object, ...]]] = {}
        checks = {
            each.clause: partial(machine.find_broken, each, readings=readings)
            for each in machine.by_name.values()
        }
        for start, sets, times in cases:
            successors = partial(
                machine.iterate_successors,
                readings=readings,
                sets=sets,
                without=machine.vocabulary.overlooked,
                within=within,
            )
            sketch = Sketch(start, successors, checks, machine.list_limits(times))
            for clause_id, story in find_stories(sketch, depth).items():
                if clause_id not in found or len(story[1]) < len(found[clause_id][1]):
                    found[clause_id] = story
        for clause_id in checks:
            yield Guarantee(clause_id, under, scope, _tell(found.get(clause_id)))


# Shipped controllers ----------------------------------------------------------------------------

_CALLS: Final = ({"targets": (None,)}, {"targets": ((2, 4),)})
"""What a second call asks for: a cancel, or another target."""


def judge_shipped(depth: int) -> Iterator[Guarantee]:
    """Yield what must never be under a shipped controller, with a second call and a fault."""
    starts = []
    for assigned, target in (((1,), (2, 3)), ((1, 2), (3, 4))):
        begun = kafka_zk.step(
            kafka_zk.make_shipped(assigned, frozenset({1, 2, 3, 4})), kafka_zk.Alter(target)
        )
        assert isinstance(begun, Accepted)
        starts.append(begun.state)
    faults = ({"calls": 1, "deaths": 1}, {"calls": 1, "failovers": 1})
    return judge_machine(
        "kafka-zk",
        {"kafka-zk": get_profile("kafka-zk")},
        product(starts, _CALLS, faults),
        f"2 moves, a second call, 1 fault, {depth} steps",
        depth,
    )


# Logs across elections --------------------------------------------------------------------------

_LOGS: Final = ("hw.over-stored-isr", "hw.served-from", "isr.entry", "follower.truncation")


def judge_logs(depth: int) -> Iterator[Guarantee]:
    """Yield what consumers and the stored in-sync set may rely on, with two brokers."""
    return judge_machine(
        "kafka-4485",
        dict((*_vary(_LOGS, "kafka-4485"), *_vary(_LOGS, "kip-236-amended"))),
        [(make_replication(2), {}, dict.fromkeys(("lags", "removals")))],
        f"2 brokers, 1 record, 2 elections, {depth} steps",
        depth,
        {**bound(), "append": lambda before, _: not any(r.log for r in before.replicas)},
    )


# In all -----------------------------------------------------------------------------------------


def _tell(found: tuple[str, tuple[object, ...]] | None) -> str:
    if found is None:
        return ""
    why, story = found
    return f"{len(story)} steps: {'; '.join(map(_format, story))} => {why}"


def _format(action: object) -> str:
    """Return an action in a word or two."""
    values = [getattr(action, name) for name in getattr(action, "__slots__", ())]
    words = [str(list(v) if isinstance(v, tuple) else v) for v in values if v is not False]
    return " ".join([type(action).__name__.lower(), *words])


@cache
def compute_guarantees() -> tuple[Guarantee, ...]:
    """Return every guarantee under every choice of readings; takes a few seconds."""
    return (*judge_drop(), *judge_protocol(12), *judge_move(16), *judge_shipped(20), *judge_logs(8))


def check_finding(shown: Sequence[str]) -> str:
    """Say what becomes of a finding that these show (`places.find_shown`).

    `shown` where every scenario among them runs as written, `differs` where one does not; where
    there is none, what else shows it, `words` where nothing does.
    """
    kinds = [each.partition(" ") for each in shown]
    # What a theorem or a small world finds is a scenario that is called like it.
    names = [name if kind == "scenario" else f"{AREA}/{name}" for kind, _, name in kinds]
    files = [file for name in names if (file := scenarios_folder() / f"{name}.txt").is_file()]
    if not files:
        return kinds[0][0] if kinds else "words"
    told = map(read_scenario, files)
    return "differs" if any(compare(each, run_scenario(each)) for each in told) else "shown"


def findings_document() -> Document:
    """Return the guarantees and the register of findings. Raises ScenarioError."""
    start = time.perf_counter()
    guarantees = compute_guarantees()
    records = []
    for finding in FINDINGS:
        shown = find_shown().get(finding.id, ())
        record = {name: _flat(value) for name, value in asdict(finding).items()}
        records.append({**record, "shown_by": ", ".join(shown), "status": check_finding(shown)})
    status = [record["status"] for record in records]
    counts = {
        "findings": len(records),
        "shown": status.count("shown"),
        "guarantees": len(guarantees),
        "violated": sum(1 for each in guarantees if each.counterexample),
    }
    body = {
        "guarantees": [dict(zip(COLUMNS, each.as_row(), strict=True)) for each in guarantees],
        "findings": records,
    }
    verdict = VIOLATED if "differs" in status else HOLDS
    return Document("spec findings", verdict, time.perf_counter() - start, counts, body=body)


def _flat(value: Any) -> Any:
    return ", ".join(value) if isinstance(value, tuple) else value


def render_findings(document: Document, form: str) -> str:
    """Return both as tables; what holds takes one line for all that hold under a reading."""
    holding: dict[str, list[str]] = {}
    rows: list[list[str]] = []
    for record in document.body["guarantees"]:
        if record["verdict"] == HOLDS:
            holding.setdefault(f"{record['under']} ({record['within']})", []).append(
                record["guarantee"]
            )
        else:
            rows.append([record[name] for name in COLUMNS if name not in ("verdict", "within")])
    held = [[under, ", ".join(clauses)] for under, clauses in holding.items()]
    shown = ("id", "title", "readings", "instance", "status", "shown_by")
    findings = [[record[name] for name in shown] for record in document.body["findings"]]
    broken = [name for name in COLUMNS if name not in ("verdict", "within")]
    return "\n".join(
        (
            display.render_table("What holds", ["under (within)", "guarantees"], held, form),
            display.render_table("What does not", broken, rows, form),
            display.render_table("Findings", list(shown), findings, form),
        )
    )
