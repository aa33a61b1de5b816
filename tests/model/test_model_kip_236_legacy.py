"""The old znode: what becomes of its entries, and what crashes and clients cannot spoil.

What a single history shows is told by the scenarios.
"""

from dataclasses import replace
from functools import partial
from typing import Final

import machine_steps as steps
import pytest

from reassure_explorer.scopes.machine import search
from reassure_model.environment import Controller, Die, Failover, Join, NotPossible, On
from reassure_model.outcome import Accepted
from reassure_model.protocols.kip_236.batch import WriteOwed
from reassure_model.protocols.kip_236.system import is_stopped
from reassure_model.protocols.kip_236_legacy import (
    PROMISES,
    Action,
    Ask,
    DeleteLegacy,
    Legacy,
    RewriteZnode,
    WriteLegacy,
    apply_effect,
    make_legacy,
    next_effect,
    step,
)
from reassure_model.protocols.kip_236_legacy.machine import MACHINE
from reassure_model.writes import DeleteReassignment
from reassure_spec.readings import Readings, get_profile, override_readings
from reassure_spec.znodes import (
    BadZnode,
    LegacyEntry,
    decode_reassign_partitions,
    encode_reassign_partitions,
)

WRITTEN: Final = get_profile("kip-236-legacy")
TAKEN_UP: Final = override_readings(WRITTEN, {"legacy.rewrite": "taken-up"})
RECORDED: Final = override_readings(WRITTEN, {"legacy.original-replicas": "controller"})
T0: Final = ("t", 0)
T1: Final = ("t", 1)
BROKERS: Final = frozenset({1, 2, 3, 4})
MOVE: Final = LegacyEntry(T0, (2, 3))
OTHER: Final = LegacyEntry(T0, (2, 4))
SECOND: Final = LegacyEntry(T1, (3, 4))
take = partial(steps.take, MACHINE, readings=WRITTEN)
run = partial(steps.run, MACHINE, readings=WRITTEN)


def online(*keys: tuple[str, int]) -> Legacy:
    """Return partitions on brokers 1 and 2, online, among four brokers."""
    return run(make_legacy(dict.fromkeys(keys or (T0,), (1, 2)), BROKERS))[0]


def settle(legacy: Legacy, readings: Readings) -> Legacy:
    """Let the controller act and every target replica catch up until nothing is in flight."""
    legacy, _ = run(legacy, readings=readings)
    while moving := [(key, p) for key, p in legacy.partitions if p.reassignment is not None]:
        for key, partition in moving:
            assert partition.reassignment is not None
            assert partition.state is not None
            for replica in partition.reassignment.target:
                stopped = is_stopped(legacy.get(key), replica, readings)
                if replica not in partition.state.isr and not stopped:
                    legacy = take(legacy, On(key, Join(replica)), readings=readings)
        legacy, _ = run(legacy, readings=readings)
    return legacy


def test_entry_leaves_before_the_record() -> None:
    """At completion the old znode changes right before the record of the reassignment goes."""
    legacy = take(run(take(online(), WriteLegacy((MOVE,))))[0], On(T0, Join(3)))
    _, effects = run(legacy)
    assert isinstance(effects[-2], RewriteZnode)
    assert isinstance(effects[-1], WriteOwed)
    assert isinstance(effects[-1].owed.write, DeleteReassignment)


@pytest.mark.parametrize("legacy_first", [True, False])
def test_routes_do_not_mix(*, legacy_first: bool) -> None:
    """Whichever route came first keeps the partition, and the other leaves nothing behind."""
    by_znode, by_request = WriteLegacy((MOVE,)), Ask(((T0, (1, 4)),))
    first, second = (by_znode, by_request) if legacy_first else (by_request, by_znode)
    legacy = run(take(run(take(online(), first))[0], second))[0]
    flight = legacy.get(T0).reassignment
    assert flight is not None
    assert flight.legacy == legacy_first
    assert flight.target == ((2, 3) if legacy_first else (1, 4))
    assert (legacy.entries is not None) == legacy_first
    assert legacy.get(T0).requests == ()


@pytest.mark.parametrize("readings", [WRITTEN, TAKEN_UP, RECORDED])
@pytest.mark.parametrize(
    ("actions", "caught_up"),
    [
        ((WriteLegacy((MOVE,)),), False),
        ((WriteLegacy((MOVE, SECOND)),), False),
        ((WriteLegacy((LegacyEntry(T0, (2, 1)),)),), False),
        ((WriteLegacy((LegacyEntry(("gone", 0), (1,)), MOVE)),), False),
        ((WriteLegacy((MOVE,)), Ask(((T0, (1, 4)), (T1, (3, 4))))), False),
        ((Ask(((T0, (1, 4)),)), WriteLegacy((MOVE, SECOND))), False),
        ((Ask(((T0, (1, 4)),)), Ask(((T0, (2, 3)), (T1, (1, 2))))), False),
        ((Ask(((T0, (2, 4)),), legacy=True), WriteLegacy((MOVE,))), False),
        ((WriteLegacy(()),), False),
        ((WriteLegacy((MOVE,)),), True),
    ],
)
def test_crash_anywhere_ends_the_same(
    actions: tuple[Action, ...], caught_up: bool, readings: Readings
) -> None:
    """Whatever effect was the last, the next controller ends where the first would have ended."""
    start = take(online(T0, T1), *actions, readings=readings)
    if caught_up:
        start = take(run(start, readings=readings)[0], On(T0, Join(3)), readings=readings)
    waiting, effects = run(start, readings=readings)
    end = settle(waiting, readings)
    for cut in range(len(effects) + 1):
        legacy = start
        for effect in effects[:cut]:
            outcome = apply_effect(legacy, effect, readings)
            assert isinstance(outcome, Accepted)
            legacy = outcome.state
        after = settle(take(legacy, Failover(), readings=readings), readings)
        assert [(k, p.assigned) for k, p in after.partitions] == [
            (k, p.assigned) for k, p in end.partitions
        ], cut
        assert after.entries == end.entries, cut
        assert all(p.reassignment is None and not p.requests for _, p in after.partitions)


def test_top_survives_a_failover() -> None:
    """The record keeps top, though the assignment has grown when the next controller changes it."""
    legacy = run(take(online(), WriteLegacy((LegacyEntry(T0, (3, 4)),))))[0]
    assert legacy.get(T0).assigned == (1, 2, 3, 4)
    legacy = run(take(legacy, Failover(), DeleteLegacy(), WriteLegacy((OTHER,))))[0]
    flight = legacy.get(T0).reassignment
    assert flight is not None
    assert (flight.target, flight.top) == ((2, 4), 2)


def test_newer_entry_survives_the_completion_of_an_older() -> None:
    """Completion removes the entry of the target reached and no other."""
    legacy = take(run(take(online(), WriteLegacy((MOVE,))))[0], WriteLegacy((OTHER,)))
    assert settle(legacy, WRITTEN).entries == (OTHER,)


def test_target_that_is_dead_waits() -> None:
    """A dead target keeps its entry in the znode; nothing is given up."""
    legacy = run(take(online(), Die(3), WriteLegacy((MOVE,))))[0]
    assert legacy.entries == (MOVE,)
    assert legacy.get(T0).reassignment is not None


def test_refused_entry_is_told_where_the_other_route_is_in_the_way() -> None:
    """What is refused for another reason is cleaned up, and that is no finding."""
    moving = run(take(online(), Ask(((T0, (1, 4)),))))[0]
    for entry, told in ((MOVE, True), (SECOND, False)):
        legacy = take(moving, WriteLegacy((entry,)))
        while not isinstance(next_effect(legacy, WRITTEN), RewriteZnode):
            legacy = take(legacy, Controller())
        found = PROMISES["legacy.entry.refused-removed"](legacy, WRITTEN)
        assert (found is not None) is told


def test_broken_invariant_names_its_partition() -> None:
    """What is broken of one of several partitions is said with its place."""
    legacy = online(T0, T1)
    bare = replace(legacy.get(T1), state=replace(legacy.get(T1).state, isr=()))
    found = [each.find(legacy.having(T1, bare), WRITTEN) for each in MACHINE.properties]
    assert "partition 1: no replica is in sync" in found
    alone = replace(legacy, partitions=((T1, bare),))
    assert "no replica is in sync" in [e.find(alone, WRITTEN) for e in MACHINE.properties]


def test_deleting_a_znode_that_is_not_there_is_impossible() -> None:
    """An action that has nothing to act upon is refused rather than ignored."""
    with pytest.raises(NotPossible):
        step(online(), DeleteLegacy(), WRITTEN)


def is_stuck(legacy: Legacy, readings: Readings) -> bool:
    """Whether the controller rests on an entry that it has seen and that nothing is in flight for.

    A request that stays while the controller rests is stuck as well.
    """
    if next_effect(legacy, readings) is not None:
        return False
    flights = {key for key, p in legacy.partitions if p.reassignment and p.reassignment.legacy}
    seen = [e for e in legacy.entries or () if e in (legacy.seen or ())]
    waiting = any(p.requests for _, p in legacy.partitions)
    return waiting or any(entry.key not in flights for entry in seen)


def is_unseen(legacy: Legacy, readings: Readings) -> bool:
    """Whether the controller rests on the old znode with nothing in flight."""
    flights = any(p.reassignment for _, p in legacy.partitions)
    return next_effect(legacy, readings) is None and not flights and legacy.entries is not None


SETS: Final = {"contents": ((MOVE,), (OTHER,)), "asked": (((T0, (1, 4)),),)}


@pytest.mark.parametrize(
    "times", [{"writes": 1, "requests": 1}, {"writes": 2}, {"writes": 1, "failovers": 1}]
)
@pytest.mark.parametrize("readings", [WRITTEN, TAKEN_UP], ids=["ignored", "taken-up"])
def test_no_entry_and_no_request_is_ever_stuck(times: dict[str, int], readings: Readings) -> None:
    """In no interleaving of clients, copies and a failover does a seen entry wait for nothing."""
    story = search(MACHINE, online(), readings, lambda s: is_stuck(s, readings), times, SETS)
    assert story is None


@pytest.mark.parametrize(("readings", "reached"), [(WRITTEN, True), (TAKEN_UP, False)])
def test_rewritten_entry_is_unseen_for_ever_when_ignored(readings: Readings, reached: bool) -> None:
    """An entry that was written over another waits for nothing, only where that is ignored."""
    sets = {**SETS, "contents": ((OTHER,),)}
    start = run(take(online(), WriteLegacy((MOVE,))), readings=readings)[0]
    story = search(MACHINE, start, readings, lambda s: is_unseen(s, readings), {"writes": 1}, sets)
    assert (story is not None) == reached


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b'{"version":1}',
        b'{"version":2,"partitions":[]}',
        b'{"version":1,"partitions":[7]}',
        encode_reassign_partitions((MOVE, OTHER)),
        b'{"version":1,"partitions":[{"topic":"t","partition":"0","replicas":[1]}]}',
        b'{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":["1"]}]}',
        b'{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[],"original_replicas":1}]}',
    ],
)
def test_malformed_znodes_are_refused(content: bytes) -> None:
    """Content that is no list of partitions is refused with the path and the reason."""
    with pytest.raises(BadZnode, match="p: "):
        decode_reassign_partitions("p", content)
