"""The reference model in the explorer: the same states as the model's own steps, known counts."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from toys import summarise

from reassure_conformance.answers.exploring import make_document
from reassure_explorer.engine.explore import UnknownEngine
from reassure_explorer.engine.plain import explore_plain
from reassure_explorer.engine.result import Verdict
from reassure_explorer.protocols.kip_236.scopes import bound
from reassure_explorer.scopes.catalogue import COUNTS, SCOPES, UnknownScope, explore_scope
from reassure_explorer.scopes.machine import MachineScope
from reassure_model.environment import Die, Failover, Leave
from reassure_model.outcome import Accepted
from reassure_model.protocols.kip_236 import system
from reassure_model.protocols.kip_236.machine import MACHINE
from reassure_spec.readings import UnknownReading, get_profile

QUEUE = 2
TINY = bound(
    3,
    ((1, 2),),
    ((2, 3), (1, 3)),
    {"requests": 2, "deaths": 1, "lags": 0, "failovers": 1},
    queue=QUEUE,
)

Counted = tuple[system.System, tuple[int, int, int, int]]
"""A complete record of the model, and what is left of requests, deaths, lags and failovers."""


def _normalise(after: system.System) -> system.System:
    """Count epochs and sequence numbers from 0, as the explorer does."""
    partition = after.partition
    state = partition.state
    assert state is not None
    requests = tuple(replace(r, sequence=at) for at, r in enumerate(partition.requests))
    partition = replace(
        partition, state=replace(state, leader_epoch=0, controller_epoch=0), requests=requests
    )
    return replace(after, partition=partition, controller_epoch=0, next_sequence=len(requests))


def _follow(counted: Counted, readings: Any) -> Iterator[Counted]:
    """Take every step the model itself lists, within the limits of TINY."""
    now, left = counted
    asked = [system.Submit(target) for target, _ in TINY.sets["targets"]]
    for action in system.enabled(now, readings, asked):
        kinds = (system.Submit, Die, Leave, Failover)
        spent = tuple(int(isinstance(action, kind)) for kind in kinds)
        after = tuple(have - use for have, use in zip(left, spent, strict=True))
        full = isinstance(action, system.Submit) and len(now.partition.requests) == QUEUE
        if min(after) < 0 or full:
            continue
        outcome = system.step(now, action, readings)
        if isinstance(outcome, Accepted):
            yield _normalise(outcome.state), after  # type: ignore[misc]


@pytest.mark.parametrize("profile", ["kip-236", "kip-236-amended"])
def test_views_reach_exactly_the_states_of_the_model(profile: str) -> None:
    """Exploring through views finds the states that the model's own enabled and step find."""
    readings = get_profile(profile)
    model = MachineScope(MACHINE, TINY, readings).make_model("tiny")
    start = (_normalise(TINY.start), (2, 1, 0, 1))
    seen, frontier, steps = {start}, [start], 0
    while frontier:
        reached = []
        for counted in frontier:
            for after in _follow(counted, readings):
                steps += 1
                if after not in seen:
                    seen.add(after)
                    reached.append(after)
        frontier = reached
    result = explore_plain(model, keep_going=True)
    assert (result.distinct, result.generated) == (len(seen), steps)


def test_nothing_stands_between_a_join_and_the_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the rules take anybody in, the dead, strangers and those in sync join as well."""
    model = MachineScope(MACHINE, TINY, get_profile("kip-236")).make_model("tiny")
    (first,), join = model.initial_states, next(a for a in model.actions if a.name == "join")
    dead = first.replace(live=frozenset({1, 2}))
    asked = [(state, replica) for state in (first, dead) for replica in (1, 2, 3)]
    assert [join.step(state, replica) for state, replica in asked] == [None] * 6
    monkeypatch.setattr(
        system, "accept_write", lambda now, write, *_: Accepted(replace(now, state=write.state))
    )
    for state, replica in asked:
        assert join.step(state, replica).isr == (1, 2, replica)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("scope", "profile"),
    [
        ("restless", "kip-236-amended"),
        ("logs", "kafka-4485"),
        ("moves", "kafka-42"),
        ("logs", "kip-236-amended"),
        ("old-znode-promises", "kip-236-legacy"),
        ("healing-promises", "kip-46"),
        ("shipped-change", "kafka-zk"),
    ],
)
def test_engines_agree_on_the_reference_model(scope: str, profile: str) -> None:
    """Plain and derived engine agree on every count of a scope, clauses included."""
    summaries = [
        summarise(explore_scope(scope, engine=engine, profile=profile, keep_going=True).result)
        for engine in ("plain", "derived")
    ]
    assert summaries[0] == summaries[1]


def test_exclusive_slice_contradicts_its_own_note() -> None:
    """Read as exclusive, the slice asks to leave fewer in sync than the minimum, in 8 steps."""
    readings = {"drop.slice": "exclusive"}
    (violation,) = explore_scope("min-two", readings=readings).result.violations
    assert violation.invariant == "model.owed-is-allowed"
    assert violation.reason.startswith(
        "drop.carried-out asks for what drop.isr-at-least-min forbids"
    )
    assert len(violation.trace.steps) == 8


def test_logs_as_written_lose_records_in_the_fewest_steps() -> None:
    """As written a record shown to consumers is lost across an election; the stories are short."""
    across = {"hw.scope": "across-clean-elections"}
    result = explore_scope("logs", "kafka-4485", across, keep_going=True).result
    assert {v.invariant: len(v.trace.steps) for v in result.violations} == {
        "isr.stored.holds-committed": 3,
        "hw.consumer.monotone": 4,
        "log.committed-kept": 4,
    }


QUICK = (
    ("small", "kip-236"),
    ("small", "kip-236-amended"),
    ("logs", "kip-236-amended"),
    ("moves", "kip-236-amended"),
    ("moves-growth", "kip-236-amended"),
    ("healing", "kip-46"),
    ("old-znode", "kip-236-legacy"),
    ("moves", "kafka-42"),
    ("shipped-change", "kafka-zk"),
)
BROKEN = {"kafka-42", "kafka-zk"}
"""Profiles as written under which something is broken."""


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("scope", "profile"), QUICK)
def test_scope_has_the_counts_written_down(scope: str, profile: str) -> None:
    """A standard scope has exactly the counts that are written down, whether it holds or not."""
    exploration = explore_scope(scope, profile=profile, keep_going=True)
    counts = exploration.counts
    assert (counts["distinct"], counts["generated"], counts["depth"]) == COUNTS[scope, profile]
    expected = Verdict.VIOLATED if profile in BROKEN else Verdict.HOLDS
    assert exploration.result.verdict is expected


def test_document_has_the_common_head_and_counts() -> None:
    """The JSON document begins as every verb's does and has the counts by their stable names."""
    document = make_document(explore_scope("small")).as_dict()
    head = ["verb", "version", "verdict", "exit_code", "seconds", "seed", "profile", "readings"]
    assert list(document)[:9] == [*head, "counts"]
    assert list(document["counts"]) == [
        "distinct",
        "generated",
        "depth",
        "invariants",
        "goals_reached",
        "goals",
        "actions_never_happened",
    ]


def test_unknown_names_are_refused_with_those_there_are() -> None:
    """A scope, reading or engine that does not exist is refused; the message lists the others."""
    with pytest.raises(UnknownScope, match="small"):
        explore_scope("smal")
    with pytest.raises(UnknownReading, match="drop"):
        explore_scope("small", readings={"drop.nothing": "yes"})
    with pytest.raises(UnknownEngine, match="derived"):
        explore_scope("small", engine="fast")


def test_every_scope_can_be_made_under_every_profile() -> None:
    """Every standard scope is a sound model and fits few words a state."""
    from reassure_explorer.engine.packing import Layout

    for scope in SCOPES.values():
        assert Layout(scope.make_model(get_profile(scope.profile))).words <= 3
