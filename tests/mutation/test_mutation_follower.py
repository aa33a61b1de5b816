"""What all but leaders at rest would have said by mutants of their rules.

Those are followers, leaders whose write fails, and who takes a replica up or is elected.
"""

from functools import cache
from typing import Final

import pytest

from reassure_model.protocols.kafka_4485 import replication as logs
from reassure_mutation.kills import ALLOWED, find_kills
from reassure_mutation.protocols.kafka_4485.first_words import ElectedMoment, RestoredMoment
from reassure_mutation.protocols.kafka_4485.follower_words import FollowerMoment
from reassure_mutation.protocols.kafka_4485.leader_words import LeaderMoment
from reassure_mutation.protocols.kafka_4485.replica_moments import (
    Moment,
    Moments,
    WordRules,
    find_refused,
)
from reassure_mutation.protocols.kafka_4485.worlds import READINGS, WORLDS, explore
from reassure_spec.observations import (
    Evaluate,
    IsrRead,
    IsrWrite,
    Lead,
    Observation,
    Replica,
    Restored,
)

MODEL: Final = "kafka_4485.replication"
PLANTED: Final = {
    f"{MODEL}._follow: bound: end -> end + 1": "follower.truncation.common-prefix",
    f"{MODEL}._answer: quantifier: min -> max": "hw.follower.from-leader",
    f"{MODEL}._answer: bound: len(replica.log) -> len(replica.log) + 1": "log.committed-kept",
    f"{MODEL}._write_isr: if state.term.version != state.version:": "isr.write.conditional",
    f"{MODEL}._elect: arithmetic: state.leader_epoch + 1 ->": "epoch.replica.never-back",
    f"{MODEL}._elect: constant: 0 -> 1": "hw.minimum-of-pseudo-isr",
    f"{MODEL}._elect: condition: broker not in state.isr -> False": "isr.change.leader-kept",
    f"{MODEL}.restore_mark: quantifier: min -> max": "hw.restored-not-raised",
    f"{MODEL}.restore_mark: constant: 0 -> 1": "hw.restored-not-raised",
}
"""By the beginning of the name of a mutant the clause that kills it."""


@cache
def list_moments() -> tuple[Moment, ...]:
    """Return the moments but those of leaders, and theirs where a write comes to nothing."""
    found = {
        each.situation: None
        for world in WORLDS
        for each in explore(world, WordRules(), None, calm=True)
    }
    return tuple(
        each
        for each in found
        if not isinstance(each, LeaderMoment)
        or each.known.stored
        or isinstance(each.event, IsrRead)
    )


@pytest.mark.parametrize(("name", "clause"), PLANTED.items())
def test_wrong_rule_is_killed(name: str, clause: str) -> None:
    """By the clause that is about it."""
    rules = WordRules()
    name = name.replace("_write_isr: ", "_write_isr: statement: ")
    mutants = [each for each in rules.list_mutants() if each.name.startswith(name)]
    assert len(mutants) == 1
    ((found, _),) = find_kills(rules, mutants, list_moments()).values()
    assert found == clause


def test_right_words_are_never_refused() -> None:
    """What the rules themselves say is accepted at every moment, and so is what follows."""
    kinds = {type(getattr(each, "event", each)) for each in list_moments()}
    assert kinds == {FollowerMoment, ElectedMoment, RestoredMoment, Evaluate, IsrRead}
    assert {find_refused(each, each.right) for each in list_moments()} == {""}


def test_words_are_judged_before_and_after_the_leader_hears_of_them() -> None:
    """A mark beyond the leader's is refused, which the leader's next mark would hide."""
    moment = next(
        each
        for each in list_moments()
        if isinstance(each, FollowerMoment)
        and each.sent is not None
        and each.sent.high_watermark < each.sent.log_end_offset
    )
    first, *others = moment.right
    assert isinstance(first, Replica)
    beyond = first._replace(high_watermark=first.log_end_offset)
    assert find_refused(moment, (beyond, *others)) == "hw.follower.from-leader"


def test_follower_behind_the_mark_is_not_elected() -> None:
    """An answer brings less than the leader has shown: a right follower says so, and is allowed."""
    held = logs.Replica((0,), 0, 1)
    moment = FollowerMoment(READINGS, 2, 1, 1, held, (0, 1, 1), 1, Replica(2, 3))
    first, asks, _ = moment.right
    assert (first, asks.offset) == (Replica(2, 2), 2)  # type: ignore[union-attr]
    assert find_refused(moment, moment.right) == ""


@pytest.mark.parametrize("is_answered", [False, True])
def test_moments_of_followers_are_read_from_what_was_observed(is_answered: bool) -> None:
    """What a follower and its leader said, and what it was sent, leads to the same moment again."""
    followers = [each for each in list_moments() if isinstance(each, FollowerMoment)]
    wanted = [each for each in followers if each.held.log and (each.sent is None) != is_answered]
    for moment in wanted:
        ((before, _), _) = moment.tell(moment.right)
        told: dict[str, list[Observation]] = {}
        for line in before:
            lines = told.setdefault(line.writer, [])
            lines.append(line._replace(sequence=len(lines)))
        own = told[f"broker-{moment.broker}"]
        head = own[-1]._replace(sequence=len(own), leader_epoch=moment.epoch)
        if moment.sent is not None:
            own.append(head._replace(sequence=-1, what=moment.sent))
        own.append(head._replace(what=moment.right[0]))
        moments = Moments()
        moments.read(told.values(), moment.readings)
        assert moment in moments.take_fresh()
    assert len(wanted) > 10


def test_first_words_are_read_from_what_was_observed() -> None:
    """A replica that is taken up again, and an election, are moments; the first of each is none."""
    head = Observation("broker-1", 1, 0, "", "t", 0, 1, 1, 0, Restored(0, 0, ()))
    lead = Lead(2, 1, (1, 2, 3), (1, 2), 4, 1000, 10**6)
    told = [
        head,
        head._replace(what=Lead(0, 0, (1, 2, 3), (1, 2, 3), 0, 1000, 10**6)),
        head._replace(what=Replica(2, 1)),
        head._replace(run=2, what=Restored(2, 1)),
        head._replace(run=2, leader_epoch=1, what=lead),
    ]
    moments = Moments()
    moments.read([[line._replace(sequence=at) for at, line in enumerate(told)]], READINGS)
    first = [each for each in moments.take_fresh() if not isinstance(each, LeaderMoment)]
    restored = [each for each in first if isinstance(each, RestoredMoment)]
    assert restored == [RestoredMoment(READINGS, 1, 1, 1, 2)]
    elected = [each for each in first if isinstance(each, ElectedMoment)]
    assert [each.broker for each in elected] == [1, 3]
    assert [line.what for line in elected[0].right] == [
        Lead(2, 1, (1, 2, 3), (1, 2), 4, 1000, 10**6),
        Evaluate((1, 2), 1, None, 10**6),
    ]
    assert elected[1].right == ()
    assert {find_refused(each, each.right) for each in first} == {""}


def read(told: tuple[Observation, ...], *, is_answered: bool) -> list[LeaderMoment]:
    """Return the moments of one leader."""
    moments = Moments()
    lines = [line._replace(sequence=at) for at, line in enumerate(told)]
    moments.read([lines], READINGS, is_answered=is_answered)
    return [each for each in moments.take_fresh() if isinstance(each, LeaderMoment)]


def test_look_whose_write_was_refused_is_read_where_no_answer_was_lost() -> None:
    """Then somebody else has written; with a lost answer nobody can say, until it reads again."""
    wanted = next(
        each
        for each in list_moments()
        if isinstance(each, LeaderMoment) and isinstance(each.right[-1], IsrWrite)
    )
    assert wanted.right[-1].isr_version is None  # type: ignore[union-attr]
    told, after = next(wanted.tell(wanted.right))
    told = (*told, *after[: len(wanted.right)])
    refused, unsure = (read(told, is_answered=sure) for sure in (True, False))
    assert [(each.known.stored is None, each.right) for each in refused][-1] == (
        False,
        wanted.right,
    )
    assert all(each.known.stored is None for each in unsure)
    isr, version = wanted.known.isr, wanted.known.version
    again = told[-1]._replace(what=IsrRead(isr, version + 1))
    look = told[-1]._replace(what=wanted.event)
    assert [each.event for each in read((*told, look, again), is_answered=True)][-1] == again.what
    assert find_refused(refused[-1], refused[-1].right) == ""


def test_who_reads_anew_what_is_not_stored_is_not_refused() -> None:
    """No clause is about it: only what is written is held against the stored state for certain."""
    reads = [
        each
        for each in list_moments()
        if isinstance(each, LeaderMoment) and isinstance(each.event, IsrRead)
    ]
    rules = WordRules()
    mutants = [each for each in rules.list_mutants() if "._refresh: field" in each.name]
    assert mutants and reads
    assert {said for said, _ in find_kills(rules, mutants, reads).values()} == {ALLOWED}


def test_log_whose_epochs_nobody_told_makes_no_moment() -> None:
    """A follower's log is known where it was told; else nobody knows where to cut it."""
    moment = next(
        each for each in list_moments() if isinstance(each, FollowerMoment) and each.held.log
    )
    ((before, _), _) = moment.tell(moment.right)
    untold = [
        line._replace(what=line.what._replace(epochs=None))
        if isinstance(line.what, Lead) or hasattr(line.what, "epochs")
        else line
        for line in before
    ]
    moments = Moments()
    moments.read([untold, [before[-1]._replace(what=moment.right[0])]], READINGS)
    assert not any(isinstance(each, FollowerMoment) for each in moments.take_fresh())
