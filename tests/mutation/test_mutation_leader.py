"""What a leader would have said by mutants of its rules, and what the judge says of that."""

from functools import cache
from typing import Final

import pytest

from reassure_mutation.kills import SURVIVES, find_kills
from reassure_mutation.protocols.kafka_4485 import worlds
from reassure_mutation.protocols.kafka_4485.leader_words import LeaderMoment
from reassure_mutation.protocols.kafka_4485.replica_moments import (
    Moments,
    WordRules,
    find_refused,
)
from reassure_mutation.protocols.kafka_4485.worlds import READINGS, WORLDS, explore
from reassure_spec.observations import Evaluate, Fetch, Observation

WORLD: Final = next(world for world in WORLDS if world.name == "as written")
PLANTED: Final = {
    "kafka_4485.compute_high_watermark: quantifier: min -> max": "hw.minimum-of-pseudo-isr",
    "kafka_4485.compute_pseudo_isr: comparison: lag <= lag_ms_max -> lag < lag_ms_max": (
        "isr.pseudo.by-lag"
    ),
    "kafka_4485.is_answered: comparison: end <= leader.high_watermark -> "
    "end < leader.high_watermark": "hw.acks-all.answered",
}
"""By the name of a mutant the clause that kills it."""


@cache
def list_moments() -> tuple[LeaderMoment, ...]:
    """Return the moments of a world in which little happens."""
    found = {each.situation: None for each in explore(WORLD, WordRules(), None, calm=True)}
    return tuple(each for each in found if isinstance(each, LeaderMoment))


@pytest.mark.parametrize(("name", "clause"), PLANTED.items())
def test_wrong_leader_rule_is_killed(name: str, clause: str) -> None:
    """By the clause that is about it, at some moment; at the first, where all is alike, by none."""
    leaders = WordRules()
    mutants = [each for each in leaders.list_mutants() if each.name == name]
    assert len(mutants) == 1
    ((found, number),) = find_kills(leaders, mutants, list_moments()).values()
    assert (found, number is not None) == (clause, True)
    ((found, number),) = find_kills(leaders, mutants, list_moments()[:1]).values()
    assert (found in SURVIVES, number) == (True, None)


def test_right_leader_is_never_refused() -> None:
    """What the rules themselves say is accepted at every moment, and so is what follows."""
    assert {find_refused(each, each.right) for each in list_moments()} == {""}
    assert {type(each.event) for each in list_moments()} == {Evaluate, Fetch}


def test_moments_are_read_from_what_was_observed() -> None:
    """What a leader said in a world leads to the same moment again, and only once."""
    moment = max(list_moments(), key=lambda each: len(each.before))
    lines = [each._replace(sequence=at) for at, each in enumerate(moment.before)]
    asked = lines[0]._replace(sequence=-1, what=moment.event)
    moments = Moments()
    moments.read([[*lines, asked, asked]], WORLD.readings)
    found = moments.take_fresh()
    assert found.count(moment) == 1
    assert moments.take_fresh() == ()
    other = Moments()
    other.read([[*lines, asked]], READINGS)
    assert moment not in other.take_fresh()


def test_late_request_is_fenced_where_it_was_asked() -> None:
    """A request of another epoch leaves no line; that it came is what a mutant is held against."""
    first = list_moments()[0].before[0]
    late = Fetch(2, 0, first.leader_epoch - 1, time_ms=worlds.BEGINS_MS)
    moments = Moments()
    asked: Observation = first._replace(sequence=-1, what=late)
    moments.read([[first, asked]], WORLD.readings)
    (moment,) = moments.take_fresh()
    assert moment.right == ()
    assert find_refused(moment, (late,)) == "fetch.epoch-fenced"
