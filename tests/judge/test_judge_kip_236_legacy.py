"""The old znode beside the request protocol: sound walks hold, and each mistake is named."""

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))

from walks import LegacyWalk

from reassure_judge.doubt import GRACE_MS
from reassure_judge.judge import Judge
from reassure_judge.verdicts import HOLDS, NOT_FOLLOWED, UNKNOWN, VIOLATED
from reassure_model.environment import Die, Failover, Join, Leave, NotPossible, On, Return
from reassure_model.protocols.kip_236.batch import WriteOwed
from reassure_model.protocols.kip_236_legacy import (
    Ask,
    DeleteLegacy,
    RewriteZnode,
    Translate,
    WriteLegacy,
)
from reassure_model.protocols.kip_236_legacy.entries import LIVES
from reassure_model.writes import DeleteReassignment
from reassure_spec import znodes
from reassure_spec.readings import Readings, get_profile, override_readings
from reassure_spec.znodes import LegacyEntry, RequestZnode
from reassure_zookeeper.transactions import Create, Delete, SetData

PROFILE: Final = "kip-236-legacy"
ACTS: Final = {Create: "create", SetData: "change", Delete: "remove"}
T0: Final = ("t", 0)
T1: Final = ("t", 1)
TAKEN_UP: Final = override_readings(get_profile(PROFILE), {"legacy.rewrite": "taken-up"})
FILLED: Final = override_readings(get_profile(PROFILE), {"legacy.original-replicas": "controller"})


class Judged:
    """A walk that a judge follows; wherever the controller has nothing to do the cluster rests."""

    def __init__(self, readings: Readings | None = None) -> None:
        self.walk = LegacyWalk({T0: (1, 2), T1: (2, 3)}, 5, readings)
        self.judge = Judge(PROFILE, self.walk.readings)
        self._fed = 0
        self.rest()

    def feed(self) -> None:
        """Let the judge read what was written since."""
        for transaction in self.walk.transactions[self._fed :]:
            self.judge.feed(transaction)
        self._fed = len(self.walk.transactions)

    def rest(self) -> None:
        """Let the controller do all that it owes, and rest."""
        self.walk.run()
        self.look_at_rest()

    def look_at_rest(self) -> None:
        """Tell the judge that the cluster rests."""
        self.feed()
        self.judge.quiesce()

    def take(self, *actions: object) -> None:
        """Take actions."""
        for action in actions:
            self.walk.take(action)
        self.feed()

    def finish(self) -> None:
        """Let everybody act until nothing changes, resting in between."""
        for _ in range(20):
            self.rest()
            zxid = self.walk.cluster.zxid
            self.walk.join_all()
            if self.walk.cluster.zxid == zxid:
                return

    def broken(self) -> list[tuple[str, int]]:
        """Return clause and zxid of each violation."""
        self.feed()
        for tracker in self.judge.tracking.partitions.values():
            tracker.suspicions.rest()
        return [(each.clause, each.zxid) for each in self.judge.violations]

    def exercised(self) -> set[str]:
        """Return the clauses of the old znode that were put to the test."""
        self.feed()
        return {name for name, times in self.judge.exercised.items() if times}

    def control(self, *ops: object, fenced: bool = True) -> int:
        """Write as the controller what the model does not owe."""
        zxid = self.walk.cluster.control(*ops, fenced=fenced)  # type: ignore[arg-type]
        self.feed()
        return zxid


def write(*entries: tuple[tuple[str, int], tuple[int, ...]]) -> WriteLegacy:
    """Return a client's write of the znode."""
    return WriteLegacy(tuple(LegacyEntry(*entry) for entry in entries))


# Sound walks --------------------------------------------------------------------------------------

MOVES: Final = st.tuples(st.integers(0, 13), st.integers(0, 4), st.integers(0, 59))


def pick(number: int, count: int) -> tuple[int, ...]:
    """Return so many brokers of five, all different."""
    left, chosen = [1, 2, 3, 4, 5], []
    for _ in range(count):
        number, place = divmod(number, len(left))
        chosen.append(left.pop(place))
    return tuple(chosen)


def choose(what: int, which: int, other: int) -> object:
    """Return the action that three numbers stand for."""
    key, target = (T0, T1)[which % 2], pick(other, 1 + which % 3)
    match what:
        case 4:
            return write((key, target))
        case 5:
            return write((T0, target), (T1, pick(other + 7, 2)))
        case 6:
            return DeleteLegacy()
        case 7:
            return Ask(((key, target),))
        case 8 | 9:
            return On(key, Join(1 + other % 5))
        case 10:
            return On(key, Leave(1 + other % 5))
        case 11:
            return Die(1 + which)
        case 12:
            return Return(1 + which)
        case _:
            return Failover()


def play(judged: Judged, moves: list[tuple[int, int, int]]) -> None:
    """Take moves; what is not possible changes nothing."""
    for what, which, other in moves:
        if what <= 3:
            for _ in range(1 + which):
                judged.walk.control()
            continue
        if what == 7 and len(judged.walk.state.get(T0).requests) > 2:
            continue
        try:
            judged.take(choose(what, which, other))
        except NotPossible:
            continue


@pytest.mark.parametrize("readings", [None, TAKEN_UP, FILLED], ids=["as-is", "taken-up", "filled"])
@settings(max_examples=60, deadline=None)
@given(moves=st.lists(MOVES, max_size=50), rests=st.booleans())
def test_sound_walks_hold(
    readings: Readings | None, moves: list[tuple[int, int, int]], rests: bool
) -> None:
    """Whatever clients, brokers and controllers do, what the model owes and writes is allowed."""
    judged = Judged(readings)
    for move in moves:
        play(judged, [move])
        if rests and judged.walk.find_step() is None:
            judged.look_at_rest()
    judged.finish()
    binding = [(v.clause, v.reason) for v in judged.judge.violations if v.binds()]
    advice = {v.clause for v in judged.judge.violations if not v.binds()}
    assert binding == []
    assert advice <= {"client.request.unmarked"}


@settings(max_examples=40, deadline=None)
@given(moves=st.lists(MOVES, max_size=30))
def test_sound_walks_hold_when_nobody_says_that_they_rest(
    moves: list[tuple[int, int, int]],
) -> None:
    """A log of which nobody knows when the cluster rested is never red by a sound controller."""
    judged = Judged()
    play(judged, moves)
    judged.walk.settle()
    judge = Judge(PROFILE, get_profile(PROFILE))
    for transaction in judged.walk.transactions:
        judge.feed(transaction)
    assert [(v.clause, v.reason) for v in judge.violations] == []


@pytest.mark.clause("legacy.failover.half-done", "legacy.failover.translated-again")
def test_failover_at_every_place_is_sound() -> None:
    """Whichever write was the last of a controller's, the next one ends as it would have."""
    exercised: set[str] = set()
    for place in range(40):
        judged = Judged()
        judged.take(write((T0, (2, 4)), (T1, (9, 9))), Ask(((T1, (3, 2)),)))
        steps = 0
        for _ in range(12):
            while steps != place and judged.walk.control():
                steps += 1
            if steps == place:
                judged.take(Failover())
                steps += 1
            judged.walk.join_all()
        judged.finish()
        assert judged.broken() == []
        assert judged.walk.state.get(T0).assigned == (2, 4)
        assert judged.walk.state.entries is None
        exercised |= judged.exercised()
    assert {"legacy.failover.half-done", "legacy.failover.translated-again"} <= exercised


@pytest.mark.parametrize(
    ("actions", "clauses"),
    [
        (
            [write((T0, (2, 4)))],
            {
                "legacy.translate.request",
                "legacy.translate.flag",
                "legacy.entry.removed-when-done",
                "legacy.entry.before-child",
                "legacy.entry.matching-target",
                "legacy.znode.deleted-with-last",
            },
        ),
        ([write((T0, (9,)))], {"legacy.entry.refused-removed"}),
        ([write((T0, (2, 4))), "run", DeleteLegacy()], {"legacy.znode.delete-does-not-cancel"}),
        ([write((T0, (2, 4))), "run", Ask(((T0, (3, 4)),))], {"legacy.conflict.both-ways"}),
        (
            [write((T0, (2, 4))), "run", Ask(((T0, (3, 4)),)), Failover()],
            {"legacy.failover.same-flag", "legacy.failover.sources-in-order"},
        ),
        (
            [write((T0, (2, 4))), "run", Failover(), "run", write((T0, (3, 4))), DeleteLegacy()],
            {"legacy.failover.translated-again"},
        ),
        (
            [write((T0, (2, 4))), "run", DeleteLegacy(), write((T0, (3, 4))), Failover()],
            {"legacy.failover.top-from-child"},
        ),
        ([WriteLegacy((LegacyEntry(T0, (2, 1), (2, 1)),))], {"legacy.original.rollback"}),
    ],
)
def test_clauses_are_put_to_the_test(actions: list[object], clauses: set[str]) -> None:
    """Each clause on the old znode that a log can show comes up in a plain story, and holds."""
    judged = Judged()
    for action in actions:
        if action == "run":
            judged.rest()
        else:
            judged.take(action)
    judged.finish()
    assert judged.broken() == []
    assert clauses <= judged.exercised()
    verdicts = {each.id: each.verdict for each in judged.judge.report().verdicts}
    assert {verdicts[name] for name in clauses} == {HOLDS}


@pytest.mark.clause("legacy.rewrite.taken-up", "legacy.original.recorded")
def test_readings_of_the_old_znode_are_carried_out() -> None:
    """Entries that came later are owed a request by one reading, and may wait by the other."""
    for readings, owed in ((None, []), (TAKEN_UP, ["legacy.translate.request"])):
        judged = Judged(readings)
        judged.take(write((T0, (2, 4))))
        judged.rest()
        judged.take(write((T0, (2, 4)), (T1, (3, 4))))
        judged.look_at_rest()
        assert [clause for clause, _ in judged.broken()] == owed
    judged = Judged(FILLED)
    judged.take(write((T0, (2, 4))))
    judged.finish()
    assert judged.broken() == []
    assert "legacy.original.recorded" in judged.exercised()


# Planted mistakes ---------------------------------------------------------------------------------


def find_until(judged: Judged, kind: type, *, joins: bool = True) -> object:
    """Let everybody act until the controller is about to take a step of a kind; return it."""
    for _ in range(60):
        step = judged.walk.find_step()
        if isinstance(step, kind):
            judged.feed()
            return step
        if step is None:
            judged.look_at_rest()
            assert joins, f"no {kind.__name__} comes"
            judged.walk.join_all()
        else:
            judged.walk.control()
    raise AssertionError(f"no {kind.__name__} comes")


def in_flight() -> Judged:
    """Return a cluster in which T0 moves by the old route, and waits."""
    judged = Judged()
    judged.take(write((T0, (2, 4))))
    judged.rest()
    return judged


def before_record_goes() -> Judged:
    """Return a cluster that is about to take out the entry of what is complete."""
    judged = in_flight()
    step = find_until(judged, RewriteZnode)
    assert step == RewriteZnode((), "complete")
    return judged


def put_request(judged: Judged, target: tuple[int, ...], *, legacy: bool) -> int:
    """Make a request as the controller that the model does not owe."""
    data = znodes.encode_request(RequestZnode({T0: target}, legacy))
    sequence = judged.walk.state.next_sequence
    judged.walk.state = replace(judged.walk.state, next_sequence=sequence + 1)
    return judged.control(judged.walk.cluster.create(znodes.request_path(sequence), data))


def put_znode(judged: Judged, *entries: LegacyEntry, fenced: bool = True) -> int:
    """Write the old znode as the controller."""
    data = znodes.encode_reassign_partitions(entries)
    return judged.control(judged.walk.cluster.put(znodes.REASSIGN_PARTITIONS, data), fenced=fenced)


def drop_znode(judged: Judged, *, fenced: bool = True) -> int:
    """Delete the old znode as the controller."""
    return judged.control(judged.walk.cluster.delete(znodes.REASSIGN_PARTITIONS), fenced=fenced)


def plant_request_of_nobody() -> tuple[Judged, int]:
    """A request is made that no entry asks for."""
    judged = Judged()
    judged.take(write((T0, (2, 4))))
    return judged, put_request(judged, (3, 4), legacy=True)


def plant_unmarked_request() -> tuple[Judged, int]:
    """The request of an entry does not say legacy."""
    judged = Judged()
    judged.take(write((T0, (2, 4))))
    return judged, put_request(judged, (2, 4), legacy=False)


def plant_early_removal() -> tuple[Judged, int]:
    """An entry goes while its move goes on."""
    judged = in_flight()
    return judged, drop_znode(judged)


def plant_early_rewrite() -> tuple[Judged, int]:
    """One of two entries goes while its move goes on."""
    judged = Judged()
    judged.take(write((T0, (2, 4)), (T1, (3, 4))))
    judged.rest()
    return judged, put_znode(judged, LegacyEntry(T1, (3, 4)))


def plant_lost_by_rewrite() -> tuple[Judged, int]:
    """A newer entry goes, and another that is as new stays."""
    judged = in_flight()
    judged.take(write((T0, (3, 4)), (T1, (3, 4))))
    return judged, put_znode(judged, LegacyEntry(T1, (3, 4)))


def plant_untranslated_removal() -> tuple[Judged, int]:
    """The znode is deleted before anything was made of it."""
    judged = Judged()
    judged.take(write((T0, (2, 4))))
    return judged, drop_znode(judged)


def plant_lost_entry() -> tuple[Judged, int]:
    """A newer entry for the same partition goes with the older one."""
    judged = in_flight()
    judged.take(write((T0, (3, 4))))
    return judged, drop_znode(judged)


def plant_empty_rewrite() -> tuple[Judged, int]:
    """The last entry is taken out and the znode stays."""
    judged = before_record_goes()
    return judged, put_znode(judged)


def plant_record_before_entry() -> tuple[Judged, int]:
    """The record goes first, the entry after it."""
    judged = before_record_goes()
    op = judged.walk.find_ops(T0, DeleteReassignment())
    return judged, judged.control(*op)


def plant_invented_entry() -> tuple[Judged, int]:
    """The controller adds an entry that nobody asked for."""
    judged = in_flight()
    return judged, put_znode(judged, LegacyEntry(T0, (2, 4)), LegacyEntry(T1, (3, 4)))


def plant_other_target() -> tuple[Judged, int]:
    """The controller writes another target into an entry."""
    judged = in_flight()
    return judged, put_znode(judged, LegacyEntry(T0, (4, 2)))


def plant_resurrected_znode() -> tuple[Judged, int]:
    """The controller makes the znode again that a client has deleted."""
    judged = in_flight()
    judged.take(DeleteLegacy())
    judged.look_at_rest()
    data = znodes.encode_reassign_partitions([LegacyEntry(T0, (2, 4))])
    create = judged.walk.cluster.create(znodes.REASSIGN_PARTITIONS, data)
    return judged, judged.control(create)


def plant_wrong_originals() -> tuple[Judged, int]:
    """The controller notes other original replicas than there were."""
    judged = in_flight()
    return judged, put_znode(judged, LegacyEntry(T0, (2, 4), (5, 4)))


def plant_unfenced_rewrite() -> tuple[Judged, int]:
    """The controller's rewrite checks no epoch."""
    judged = before_record_goes()
    return judged, drop_znode(judged, fenced=False)


def plant_deposed_controller() -> tuple[Judged, int]:
    """A controller that is not in office any more takes the entry out."""
    judged = before_record_goes()
    cluster = judged.walk.cluster
    session = 0x2000 + cluster.controller
    judged.take(Failover())
    zxid = cluster.append(cluster.delete(znodes.REASSIGN_PARTITIONS), session=session)
    return judged, zxid


def plant_flipped_route() -> tuple[Judged, int]:
    """The record in flight changes its route."""
    judged = in_flight()
    record = znodes.ReassignmentZnode(2, (2, 4), legacy=False)
    op = judged.walk.cluster.put(znodes.reassignment_path(*T0), znodes.encode_reassignment(record))
    return judged, judged.control(op)


def plant_flipped_route_after_failover() -> tuple[Judged, int]:
    """The next controller changes the route of what is in flight."""
    judged = in_flight()
    judged.take(Failover())
    record = znodes.ReassignmentZnode(2, (2, 4), legacy=False)
    op = judged.walk.cluster.put(znodes.reassignment_path(*T0), znodes.encode_reassignment(record))
    return judged, judged.control(op)


def plant_top_computed_again() -> tuple[Judged, int]:
    """The next controller counts the replicas anew."""
    judged = in_flight()
    judged.take(Failover())
    record = znodes.ReassignmentZnode(3, (2, 4), legacy=True)
    op = judged.walk.cluster.put(znodes.reassignment_path(*T0), znodes.encode_reassignment(record))
    return judged, judged.control(op)


def plant_unmarked_record() -> tuple[Judged, int]:
    """The record that a legacy request starts does not say so."""
    judged = Judged()
    judged.take(write((T0, (2, 4))))
    find_until(judged, Translate)
    judged.walk.control()
    judged.feed()
    cluster, record = judged.walk.cluster, znodes.ReassignmentZnode(2, (2, 4), legacy=False)
    above = cluster.create(f"{znodes.REASSIGNMENTS}/t")
    op = cluster.create(znodes.reassignment_path(*T0), znodes.encode_reassignment(record))
    return judged, judged.control(above, op)


def plant_unread_by_the_next() -> tuple[Judged, int]:
    """The next controller deletes the znode, of which it cannot know that it was refused."""
    judged = Judged()
    judged.take(write((T0, (9,))))
    find_until(judged, RewriteZnode)
    judged.take(Failover())
    return judged, drop_znode(judged)


def plant_sources_out_of_order() -> tuple[Judged, int]:
    """A new controller has done with the old znode before requests that it found."""
    judged = Judged()
    judged.take(Ask(((T1, (3, 2)),)), write((T0, (1, 2))), Failover())
    zxid = put_request(judged, (1, 2), legacy=True)
    sequence = judged.walk.state.next_sequence - 1
    assert zxid
    return judged, judged.control(judged.walk.cluster.delete(znodes.request_path(sequence)))


PLANTED: Final[dict[Callable[[], tuple[Judged, int]], str]] = {
    plant_request_of_nobody: "legacy.translate.request",
    plant_unmarked_request: "legacy.translate.flag",
    plant_early_removal: "legacy.entry.removed-when-done",
    plant_early_rewrite: "legacy.entry.removed-when-done",
    plant_lost_by_rewrite: "legacy.entry.matching-target",
    plant_untranslated_removal: "legacy.translate.request",
    plant_lost_entry: "legacy.entry.matching-target",
    plant_empty_rewrite: "legacy.znode.deleted-with-last",
    plant_record_before_entry: "legacy.entry.before-child",
    plant_invented_entry: "legacy.entry.by-client",
    plant_other_target: "legacy.entry.by-client",
    plant_resurrected_znode: "legacy.entry.by-client",
    plant_wrong_originals: "legacy.original.recorded",
    plant_unfenced_rewrite: "controller.write.epoch-checked",
    plant_deposed_controller: "controller.write.by-controller",
    plant_flipped_route: "legacy.conflict.both-ways",
    plant_flipped_route_after_failover: "legacy.failover.same-flag",
    plant_top_computed_again: "legacy.failover.top-from-child",
    plant_unmarked_record: "legacy.translate.flag",
    plant_unread_by_the_next: "legacy.translate.request",
    plant_sources_out_of_order: "legacy.failover.sources-in-order",
}


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__[6:])
def test_planted_mistake_is_named_where_it_is(plant: Callable[[], tuple[Judged, int]]) -> None:
    """Each single mistake is found at its own transaction, by the clause that is meant for it."""
    judged, zxid = plant()
    assert (PLANTED[plant], zxid) in judged.broken()
    assert min(found for _, found in judged.broken()) == zxid
    verdicts = {each.id: each.verdict for each in judged.judge.report().verdicts}
    assert verdicts[PLANTED[plant]] in (VIOLATED, NOT_FOLLOWED)


def test_every_act_on_the_znode_has_its_mistake() -> None:
    """For each way to write the old znode every rule about it is broken by a planted one."""
    found = set()
    for plant, clause in PLANTED.items():
        judged, zxid = plant()
        ops = next(t.ops for t in judged.walk.transactions if t.zxid == zxid)
        for op in ops:
            kind = judged.judge.router.locate(getattr(op, "path", ""))[0]
            found.add((kind, ACTS.get(type(op)), clause))
    wanted = {
        (kind, act, clause)
        for kind, life in LIVES.items()
        for act in ACTS.values()
        for clause in getattr(life, act)
    }
    assert wanted - found == set()


@pytest.mark.parametrize(
    ("until", "clause"),
    [(Translate, "legacy.translate.request"), (RewriteZnode, "legacy.entry.refused-removed")],
)
def test_controller_that_rests_too_early_is_named(until: type, clause: str) -> None:
    """What is owed to the old znode at rest is named, once."""
    judged = Judged()
    judged.take(write((T0, (9,))))
    find_until(judged, until)
    judged.look_at_rest()
    judged.look_at_rest()
    assert [found for found, _ in judged.broken()] == [clause]


@pytest.mark.clause("legacy.entry.removed-when-done")
def test_entry_that_stays_after_its_move_is_named() -> None:
    """An entry whose record went is owed to its client still."""
    judged = before_record_goes()
    judged.control(*judged.walk.find_ops(T0, DeleteReassignment()))
    judged.judge.quiesce()
    found = [clause for clause, _ in judged.broken()]
    assert found == ["legacy.entry.before-child", "legacy.entry.removed-when-done"]


@pytest.mark.parametrize(
    ("content", "clause"),
    [
        (b"{", "legacy.znode.malformed"),
        (b'{"version":1,"partitions":[{"topic":"t"}]}', "legacy.znode.malformed"),
        (b'{"version":1,"partitions":[]}', "legacy.znode.deleted-with-last"),
    ],
)
def test_content_that_nobody_can_use_is_deleted(content: bytes, clause: str) -> None:
    """A znode without a usable entry is owed its deletion, and the deletion is right."""
    for deletes in (False, True):
        judged = Judged()
        cluster = judged.walk.cluster
        cluster.append(cluster.create(znodes.REASSIGN_PARTITIONS, content))
        if deletes:
            drop_znode(judged)
            assert clause in judged.exercised()
        judged.look_at_rest()
        assert [found for found, _ in judged.broken()] == ([] if deletes else [clause])


def test_entry_and_record_in_one_transaction_are_in_order() -> None:
    """Whoever takes out both at once takes neither before the other."""
    judged = before_record_goes()
    record = judged.walk.find_ops(T0, DeleteReassignment())
    judged.control(*record, judged.walk.cluster.delete(znodes.REASSIGN_PARTITIONS))
    judged.judge.quiesce()
    assert judged.broken() == []


def test_entry_that_a_client_wrote_a_moment_ago_is_in_doubt() -> None:
    """A controller need not have seen an entry that was written just before its record went."""
    judged = before_record_goes()
    judged.walk.control()
    judged.take(write((T0, (2, 4))))
    judged.control(*judged.walk.find_ops(T0, DeleteReassignment()))
    assert judged.broken() == []


@pytest.mark.clause("legacy.entry.before-child")
def test_entry_that_came_back_unnoticed_is_in_doubt() -> None:
    """Who has seen an entry go need not have seen it come back before the record went."""
    judged = before_record_goes()
    judged.take(DeleteLegacy(), write((T0, (2, 4))))
    judged.control(*judged.walk.find_ops(T0, DeleteReassignment()))
    assert judged.broken() == []
    verdicts = {each.id: each.verdict for each in judged.judge.report().verdicts}
    assert verdicts["legacy.entry.before-child"] == UNKNOWN


def test_entry_that_was_removed_in_time_may_come_back() -> None:
    """However late the record goes, what a client wrote anew is not what the move was asked by."""
    judged = before_record_goes()
    judged.walk.control()
    judged.take(write((T0, (2, 4))))
    judged.walk.cluster.time_ms += 10 * GRACE_MS
    judged.control(*judged.walk.find_ops(T0, DeleteReassignment()))
    judge = Judge(PROFILE, get_profile(PROFILE))
    for transaction in judged.walk.transactions:
        judge.feed(transaction)
    assert [(v.clause, v.zxid) for v in judge.violations] == []


@pytest.mark.clause("legacy.translate.request")
def test_translation_of_what_a_client_took_back_is_in_doubt() -> None:
    """A controller may translate what it read before a client changed its mind."""
    judged = Judged()
    judged.take(write((T0, (2, 4))), DeleteLegacy())
    put_request(judged, (2, 4), legacy=True)
    assert judged.broken() == []
    verdicts = {each.id: each.verdict for each in judged.judge.report().verdicts}
    assert verdicts["legacy.translate.request"] == UNKNOWN


def test_client_may_withdraw_the_request_of_an_entry() -> None:
    """Whoever deletes the request that an entry became is not the controller's fault."""
    judged = Judged()
    judged.take(write((T0, (2, 4))))
    find_until(judged, Translate)
    judged.walk.control()
    judged.walk.cluster.append(judged.walk.cluster.delete(znodes.request_path(0)))
    state = judged.walk.state
    judged.walk.state = state.having(T0, replace(state.get(T0), requests=()))
    judged.finish()
    assert judged.broken() == []
    assert judged.walk.state.entries is None


@pytest.mark.clause("client.request.unmarked")
def test_client_that_says_legacy_is_told() -> None:
    """A client's request that is marked breaks nothing that binds."""
    judged = Judged()
    judged.take(Ask(((T0, (2, 4)),), legacy=True))
    judged.finish()
    assert [clause for clause, _ in judged.broken()] == ["client.request.unmarked"]
    verdicts = {each.id: each.verdict for each in judged.judge.report().verdicts}
    assert verdicts["client.request.unmarked"] == NOT_FOLLOWED


def test_under_kip_236_the_old_znode_is_a_tree_of_its_own() -> None:
    """Without the profile nothing is said of the znode, and that it was left out is said."""
    walk = in_flight().walk
    judge = Judge("kip-236", get_profile("kip-236"))
    for transaction in walk.transactions:
        judge.feed(transaction)
    assert judge.router.count_unjudged()[znodes.REASSIGN_PARTITIONS] == 1
    judged = Judge(PROFILE, get_profile(PROFILE))
    for transaction in walk.transactions:
        judged.feed(transaction)
    assert judged.router.count_unjudged()[znodes.REASSIGN_PARTITIONS] == 0


def test_walk_tells_what_is_owed() -> None:
    """A walk of the model ends where nothing is owed, and says what is otherwise."""
    judged = in_flight()
    assert judged.walk.find_step() is None
    judged.walk.join_all()
    assert isinstance(judged.walk.find_step(), WriteOwed)
