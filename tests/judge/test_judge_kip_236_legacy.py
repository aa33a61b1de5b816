"""The old znode beside the request protocol: sound walks hold, and each mistake is named."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from walks import JudgedWalk, LegacyWalk, find_unplanted, on

from reassure_judge.cross_partition import NO_KEY
from reassure_judge.doubt import GRACE_MS
from reassure_judge.moments import ACTS, DISTURBED, RESTS, SUCCEEDS, Place
from reassure_judge.verdicts import HOLDS, NOT_FOLLOWED, UNKNOWN, VIOLATED
from reassure_model.environment import Die, Failover, Join, Leave, On, Return
from reassure_model.outcome import Accepted
from reassure_model.partition import Environment, LeaderAndIsr, Partition, Reassignment
from reassure_model.protocols.kip_236.batch import WriteOwed
from reassure_model.protocols.kip_236_legacy import (
    Ask,
    DeleteLegacy,
    RewriteZnode,
    Translate,
    WriteLegacy,
)
from reassure_model.protocols.kip_236_legacy.entries import LIVES, YES, Entry
from reassure_model.protocols.kip_236_legacy.translating import (
    Translating,
    accept,
    find_debt,
    find_due,
)
from reassure_model.writes import DeleteReassignment
from reassure_spec import znodes
from reassure_spec.readings import Readings, get_profile, override_readings
from reassure_spec.znodes import LegacyEntry, PartitionKey, ReplicaList, RequestZnode

PROFILE: Final = "kip-236-legacy"
T0: Final = ("t", 0)
T1: Final = ("t", 1)
TAKEN_UP: Final = override_readings(get_profile(PROFILE), {"legacy.rewrite": "taken-up"})
FILLED: Final = override_readings(get_profile(PROFILE), {"legacy.original-replicas": "controller"})


class Noted:
    """A witness of what is decided by about the old znode."""

    def __init__(self) -> None:
        self.moments: list[tuple[str, Translating, Environment]] = []

    def note(self, kind: str, place: Place, states: tuple[Any, ...], around: Environment) -> None:
        """Take note of a moment; those of single partitions are not looked at."""
        if place[1:] == NO_KEY:
            self.moments += [(kind, state.partition, around) for state in states]


class Judged(JudgedWalk):
    """A walk with the old znode that a judge follows."""

    def __init__(
        self, *actions: object, readings: Readings | None = None, witness: Noted | None = None
    ) -> None:
        super().__init__(LegacyWalk({T0: (1, 2), T1: (2, 3)}, 5, readings), PROFILE, witness)
        self.take(*actions)

    def put_request(self, target: ReplicaList, *, legacy: bool) -> int:
        """Make a request as the controller that the model does not owe."""
        data = znodes.encode_request(RequestZnode({T0: target}, legacy))
        sequence = self.walk.state.next_sequence
        self.walk.state = replace(self.walk.state, next_sequence=sequence + 1)
        return self.control(self.walk.cluster.create(znodes.request_path(sequence), data))

    def put_znode(self, *entries: LegacyEntry) -> int:
        """Write the old znode as the controller."""
        data = znodes.encode_reassign_partitions(entries)
        return self.control(self.walk.cluster.put(znodes.REASSIGN_PARTITIONS, data))

    def drop_znode(self, *, fenced: bool = True) -> int:
        """Delete the old znode as the controller."""
        return self.control(self.walk.cluster.delete(znodes.REASSIGN_PARTITIONS), fenced=fenced)

    def put_record(self, top: int, *, legacy: bool) -> int:
        """Write the record in flight as the controller."""
        record = znodes.encode_reassignment(znodes.ReassignmentZnode(top, (2, 4), legacy))
        return self.control(self.walk.cluster.put(znodes.reassignment_path(*T0), record))

    def drop_record(self) -> int:
        """Delete the record in flight as the controller."""
        return self.control(*self.walk.find_ops(T0, DeleteReassignment()))


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
    for move in moves:
        if move[0] != 7 or len(judged.walk.state.get(T0).requests) <= 2:
            judged.play([(1 + move[1] if move[0] <= 3 else 0, partial(choose, *move))])


CARRIED: Final = Partition((2, 3), LeaderAndIsr(2, 0, 1, (2, 3)), Reassignment((2, 3), 2, True))


@pytest.mark.parametrize(
    ("partition", "entries", "clause"),
    [
        (Partition((1, 2)), ((T0, Entry((2, 3))),), "legacy.translate.request"),
        (CARRIED, ((T0, Entry((2, 3), translated=YES, begun=True)),), "legacy.entry.before-child"),
        (CARRIED, ((T0, Entry((1,), translated=YES)),), "legacy.entry.refused-removed"),
        (CARRIED, ((T0, Entry((1,), created=False)),), None),
        (CARRIED, (), "legacy.znode.deleted-with-last"),
        (CARRIED, None, None),
    ],
)
def test_a_rest_is_held_against_who_has_to_do_more_with_the_old_znode(
    partition: Partition, entries: tuple[tuple[PartitionKey, Entry], ...] | None, clause: str | None
) -> None:
    """An entry that nothing is made of, one that is complete, one that was refused, and none."""
    around = Environment(frozenset({1, 2, 3}), frozenset({1, 2, 3}))
    state = Translating({T0: partition}, entries)
    owed = find_debt(state, around, get_profile(PROFILE))
    assert (owed and owed.clause) == clause


def test_nothing_is_noted_of_an_entry_of_which_nobody_knows_what_was_made() -> None:
    """A request of it waits, and another controller has taken over."""
    noted = Noted()
    judged = Judged(write((T0, (2, 3))), witness=noted)
    judged.until(WriteOwed)
    before = len(noted.moments)
    judged.take(Failover())
    judged.feed()
    assert judged.walk.state.get(T0).requests
    judged.take(write((T0, (2, 3)), (T1, (1,))))
    assert [kind for kind, *_ in noted.moments[before:]] == [SUCCEEDS]


@settings(max_examples=60, deadline=None)
@given(moves=st.lists(MOVES, max_size=50))
def test_by_what_is_noted_a_right_controller_does_what_is_done(
    moves: list[tuple[int, int, int]],
) -> None:
    """Where one acts there is something that it may do, where one rests nothing is left to do.

    Whether it had looked before a client wrote something else nobody knows.
    """
    noted, readings = Noted(), get_profile(PROFILE)
    judged = Judged(witness=noted)
    play(judged, moves)
    judged.finish()
    assert noted.moments
    for kind, state, around in noted.moments:
        due = find_due(state, around, readings)
        if kind == RESTS:
            assert (due, find_debt(state, around, readings)) == (None, None)
        elif kind == ACTS and due is not None:
            assert isinstance(accept(state, due.write, around, readings), Accepted)
        elif kind == ACTS:
            assert any(not each.created for _, each in state.entries or ())


def test_what_is_done_about_the_old_znode_is_noted() -> None:
    """A client's write, its translation, a rest, who joins, the removal of the entry and a rest."""
    noted = Noted()
    judged = Judged(write((T0, (2, 3))), "rest", On(T0, Join(3)), "rest", witness=noted)
    judged.take(Failover(), write((T0, (1, 2))))
    judged.rest()
    kinds = [kind for kind, *_ in noted.moments]
    first = kinds.index(ACTS)
    assert kinds[first - 1 : first + 5] == [DISTURBED, ACTS, RESTS, DISTURBED, ACTS, RESTS]
    assert kinds[first + 5 :][:3] == [SUCCEEDS, DISTURBED, ACTS]
    entries = [state.entries for _, state, _ in noted.moments[first : first + 3]]
    assert entries[0] == ((T0, Entry((2, 3))),)
    assert entries[1] == entries[2] == ((T0, Entry((2, 3), translated=YES, begun=True)),)


@pytest.mark.parametrize("readings", [None, TAKEN_UP, FILLED], ids=["as-is", "taken-up", "filled"])
@settings(max_examples=60, deadline=None)
@given(moves=st.lists(MOVES, max_size=50), rests=st.booleans())
def test_sound_walks_hold(
    readings: Readings | None, moves: list[tuple[int, int, int]], rests: bool
) -> None:
    """Whatever clients, brokers and controllers do, what the model owes and writes is allowed.

    A log of which nobody knows when the cluster rested is never red by a sound controller either.
    """
    judged = Judged(readings=readings)
    for move in moves:
        play(judged, [move])
        if rests and judged.walk.find_step() is None:
            judged.look_at_rest()
    judged.finish()
    judges = [judged.judge, *([judged.judge_anew(PROFILE)] if readings is None else [])]
    found = [violation for each in judges for violation in each.violations]
    binding = [(v.clause, v.reason) for v in found if v.binds()]
    advice = {v.clause for v in found if not v.binds()}
    assert binding == []
    assert advice <= {"client.request.unmarked"}


@pytest.mark.clause("legacy.failover.half-done", "legacy.failover.translated-again")
def test_failover_at_every_place_is_sound() -> None:
    """Whichever write was the last of a controller's, the next one ends as it would have."""
    exercised: set[str] = set()
    for place in range(40):
        judged = Judged(write((T0, (2, 4)), (T1, (9, 9))), Ask(((T1, (3, 2)),)))
        judged.fail_over_at(place, 12)
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
        ([write((T0, (2, 4))), "rest", DeleteLegacy()], {"legacy.znode.delete-does-not-cancel"}),
        ([write((T0, (2, 4))), "rest", Ask(((T0, (3, 4)),))], {"legacy.conflict.both-ways"}),
        (
            [write((T0, (2, 4))), "rest", Ask(((T0, (3, 4)),)), Failover()],
            {"legacy.failover.same-flag", "legacy.failover.sources-in-order"},
        ),
        (
            [write((T0, (2, 4))), "rest", Failover(), "rest", write((T0, (3, 4))), DeleteLegacy()],
            {"legacy.failover.translated-again"},
        ),
        (
            [write((T0, (2, 4))), "rest", DeleteLegacy(), write((T0, (3, 4))), Failover()],
            {"legacy.failover.top-from-child"},
        ),
        ([WriteLegacy((LegacyEntry(T0, (2, 1), (2, 1)),))], {"legacy.original.rollback"}),
    ],
)
def test_clauses_are_put_to_the_test(actions: list[object], clauses: set[str]) -> None:
    """Each clause on the old znode that a log can show comes up in a plain story, and holds."""
    judged = Judged(*actions)
    judged.finish()
    assert judged.broken() == []
    assert clauses <= judged.exercised()
    assert {judged.verdict(name) for name in clauses} == {HOLDS}


@pytest.mark.clause("legacy.rewrite.taken-up", "legacy.original.recorded")
def test_readings_of_the_old_znode_are_carried_out() -> None:
    """Entries that came later are owed a request by one reading, and may wait by the other."""
    for readings, owed in ((None, []), (TAKEN_UP, ["legacy.translate.request"])):
        judged = Judged(write((T0, (2, 4))), "rest", readings=readings)
        judged.take(write((T0, (2, 4)), (T1, (3, 4))))
        judged.look_at_rest()
        assert [clause for clause, _ in judged.broken()] == owed
    judged = Judged(write((T0, (2, 4))), readings=FILLED)
    judged.finish()
    assert judged.broken() == []
    assert "legacy.original.recorded" in judged.exercised()


# Planted mistakes ---------------------------------------------------------------------------------


MOVE: Final = write((T0, (2, 4)))
"""A client asks for T0 to move."""
TWO: Final = write((T0, (3, 4)), (T1, (3, 4)))
Plant = Callable[[], tuple[Judged, int]]


def after(*actions: object) -> Callable[[], Judged]:
    """Return what makes a cluster in which this has happened."""
    return lambda: Judged(*actions)


asked = after(MOVE)
in_flight = after(MOVE, "rest")
"""T0 moves by the old route, and waits."""


def translated() -> Judged:
    """Return a cluster of which the old znode was made a request of, which waits."""
    judged = asked()
    judged.walk.control()
    return judged


def before_record_goes() -> Judged:
    """Return a cluster that is about to take out the entry of what is complete."""
    judged = in_flight()
    assert judged.until(RewriteZnode) == RewriteZnode((), "complete")
    return judged


def resurrect_znode(judged: Judged) -> int:
    """Make the znode again that a client has deleted."""
    judged.look_at_rest()
    data = znodes.encode_reassign_partitions([LegacyEntry(T0, (2, 4))])
    return judged.control(judged.walk.cluster.create(znodes.REASSIGN_PARTITIONS, data))


def drop_when_deposed(judged: Judged) -> int:
    """Take the entry out as a controller that is not in office any more."""
    cluster = judged.walk.cluster
    session = 0x2000 + cluster.controller
    judged.take(Failover())
    return judged.client(cluster.delete(znodes.REASSIGN_PARTITIONS), session=session)


def start_unmarked(judged: Judged) -> int:
    """Let the record that a legacy request starts not say so."""
    judged.walk.control()
    judged.feed()
    cluster, record = judged.walk.cluster, znodes.ReassignmentZnode(2, (2, 4), legacy=False)
    above = cluster.create(f"{znodes.REASSIGNMENTS}/t")
    op = cluster.create(znodes.reassignment_path(*T0), znodes.encode_reassignment(record))
    return judged.control(above, op)


def take_sources_out_of_order(judged: Judged) -> int:
    """Have done with the old znode before requests that were found."""
    judged.put_request((1, 2), legacy=True)
    sequence = judged.walk.state.next_sequence - 1
    return judged.control(judged.walk.cluster.delete(znodes.request_path(sequence)))


_MISTAKES: Final[dict[str, dict[str, Plant]]] = {
    "legacy.translate.request": {
        "request-of-nobody": on(asked, lambda j: j.put_request((3, 4), legacy=True)),
        "untranslated-removal": on(asked, Judged.drop_znode),
        # The next controller cannot know that it was refused.
        "unread-by-the-next": on(
            after(write((T0, (9,))), RewriteZnode, Failover()), Judged.drop_znode
        ),
    },
    "legacy.translate.once": {
        "translated-twice": on(translated, lambda j: j.put_request((2, 4), legacy=True)),
        "translated-in-flight": on(in_flight, lambda j: j.put_request((2, 4), legacy=True)),
    },
    "legacy.translate.flag": {
        "unmarked-request": on(asked, lambda j: j.put_request((2, 4), legacy=False)),
        "unmarked-record": on(after(MOVE, Translate), start_unmarked),
    },
    "legacy.entry.removed-when-done": {
        # While its move goes on.
        "early-removal": on(in_flight, Judged.drop_znode),
        "early-rewrite": on(
            after(write((T0, (2, 4)), (T1, (3, 4))), "rest"),
            lambda j: j.put_znode(LegacyEntry(T1, (3, 4))),
        ),
    },
    "legacy.entry.matching-target": {
        # A newer entry goes, and another that is as new stays.
        "lost-by-rewrite": on(
            after(MOVE, "rest", TWO), lambda j: j.put_znode(LegacyEntry(T1, (3, 4)))
        ),
        # A newer entry for the same partition goes with the older one.
        "lost-entry": on(after(MOVE, "rest", write((T0, (3, 4)))), Judged.drop_znode),
    },
    "legacy.znode.deleted-with-last": {"empty-rewrite": on(before_record_goes, Judged.put_znode)},
    "legacy.entry.before-child": {
        "record-before-entry": on(before_record_goes, Judged.drop_record)
    },
    "legacy.entry.by-client": {
        "invented-entry": on(
            in_flight, lambda j: j.put_znode(LegacyEntry(T0, (2, 4)), LegacyEntry(T1, (3, 4)))
        ),
        "other-target": on(in_flight, lambda j: j.put_znode(LegacyEntry(T0, (4, 2)))),
        "resurrected-znode": on(after(MOVE, "rest", DeleteLegacy()), resurrect_znode),
    },
    "legacy.original.recorded": {
        "wrong-originals": on(in_flight, lambda j: j.put_znode(LegacyEntry(T0, (2, 4), (5, 4))))
    },
    "controller.write.epoch-checked": {
        "unfenced-rewrite": on(before_record_goes, lambda j: j.drop_znode(fenced=False))
    },
    "controller.write.by-controller": {
        "deposed-controller": on(before_record_goes, drop_when_deposed)
    },
    "legacy.conflict.both-ways": {
        "flipped-route": on(in_flight, lambda j: j.put_record(2, legacy=False))
    },
    "legacy.failover.same-flag": {
        "flipped-route-after-failover": on(
            after(MOVE, "rest", Failover()), lambda j: j.put_record(2, legacy=False)
        )
    },
    "legacy.failover.top-from-child": {
        "top-computed-again": on(
            after(MOVE, "rest", Failover()), lambda j: j.put_record(3, legacy=True)
        )
    },
    "legacy.failover.sources-in-order": {
        "sources-out-of-order": on(
            after(Ask(((T1, (3, 2)),)), write((T0, (1, 2))), Failover()), take_sources_out_of_order
        )
    },
}
"""By clause: mistakes that break it."""
PLANTED = {
    name: (clause, plant) for clause, plants in _MISTAKES.items() for name, plant in plants.items()
}


@pytest.mark.parametrize("name", PLANTED)
def test_planted_mistake_is_named_where_it_is(name: str) -> None:
    """Each single mistake is found at its own transaction, by the clause that is meant for it."""
    clause, plant = PLANTED[name]
    judged, zxid = plant()
    assert (clause, zxid) in judged.broken()
    assert min(found for _, found in judged.broken()) == zxid
    assert judged.verdict(clause) in (VIOLATED, NOT_FOLLOWED)


def test_every_act_on_the_znode_has_its_mistake() -> None:
    """For each way to write the old znode every rule about it is broken by a planted one."""
    assert find_unplanted(LIVES, PLANTED.values()) == set()


@pytest.mark.parametrize(
    ("until", "clause"),
    [(Translate, "legacy.translate.request"), (RewriteZnode, "legacy.entry.refused-removed")],
)
def test_controller_that_rests_too_early_is_named(until: type, clause: str) -> None:
    """What is owed to the old znode at rest is named, once."""
    judged = Judged(write((T0, (9,))), until)
    judged.look_at_rest()
    judged.look_at_rest()
    assert [found for found, _ in judged.broken()] == [clause]


@pytest.mark.clause("legacy.entry.removed-when-done")
def test_entry_that_stays_after_its_move_is_named() -> None:
    """An entry whose record went is owed to its client still."""
    judged = before_record_goes()
    judged.drop_record()
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
            judged.drop_znode()
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
    judged.take(MOVE)
    judged.drop_record()
    assert judged.broken() == []


@pytest.mark.clause("legacy.entry.before-child")
def test_entry_that_came_back_unnoticed_is_in_doubt() -> None:
    """Who has seen an entry go need not have seen it come back before the record went."""
    judged = before_record_goes()
    judged.take(DeleteLegacy(), MOVE)
    judged.drop_record()
    assert judged.broken() == []
    assert judged.verdict("legacy.entry.before-child") == UNKNOWN


def test_entry_that_was_removed_in_time_may_come_back() -> None:
    """However late the record goes, what a client wrote anew is not what the move was asked by."""
    judged = before_record_goes()
    judged.walk.control()
    judged.take(MOVE)
    judged.walk.cluster.time_ms += 10 * GRACE_MS
    judged.drop_record()
    assert judged.judge_anew(PROFILE).violations == []


@pytest.mark.clause("legacy.translate.request")
def test_translation_of_what_a_client_took_back_is_in_doubt() -> None:
    """A controller may translate what it read before a client changed its mind."""
    judged = Judged(MOVE, DeleteLegacy())
    judged.put_request((2, 4), legacy=True)
    assert judged.broken() == []
    assert judged.verdict("legacy.translate.request") == UNKNOWN


@pytest.mark.clause("legacy.translate.once")
@pytest.mark.parametrize("client", [(Failover(),), (DeleteLegacy(), MOVE)])
def test_entry_is_translated_again_by_another_or_when_made_anew(client: tuple[object, ...]) -> None:
    """Another controller may translate what stands, and the same one what was written anew."""
    judged = translated()
    judged.take(*client)
    judged.put_request((2, 4), legacy=True)
    if isinstance(client[0], DeleteLegacy):  # which of the two it was made of nobody can say
        judged.put_request((2, 4), legacy=True)
    assert judged.broken() == []
    assert judged.verdict("legacy.translate.once") == HOLDS


def test_client_may_withdraw_the_request_of_an_entry() -> None:
    """Whoever deletes the request that an entry became is not the controller's fault."""
    judged = Judged(MOVE, Translate)
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
    judged = Judged(Ask(((T0, (2, 4)),), legacy=True))
    judged.finish()
    assert [clause for clause, _ in judged.broken()] == ["client.request.unmarked"]
    assert judged.verdict("client.request.unmarked") == NOT_FOLLOWED


def test_under_kip_236_the_old_znode_is_a_tree_of_its_own() -> None:
    """Without the profile nothing is said of the znode, and that it was left out is said."""
    judged = in_flight()
    for profile, times in (("kip-236", 1), (PROFILE, 0)):
        unjudged = judged.judge_anew(profile).router.count_unjudged()
        assert unjudged[znodes.REASSIGN_PARTITIONS] == times


def test_walk_tells_what_is_owed() -> None:
    """A walk of the model ends where nothing is owed, and says what is otherwise."""
    judged = in_flight()
    assert judged.walk.find_step() is None
    judged.walk.join_all()
    assert isinstance(judged.walk.find_step(), WriteOwed)
