"""What a run against brokers says of mutants of the rules that they go by."""

from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
from told_brokers import tell

from reassure_conformance.gate.replication.brokers_outcome import BrokersResult
from reassure_conformance.gate.story import BROKERS, format_story, make_story, shipped_stories
from reassure_conformance.report.qualified import read_report
from reassure_mutation.protocols.kafka_4485 import worlds
from reassure_mutation.protocols.kafka_4485.first_words import ElectedMoment, RestoredMoment
from reassure_mutation.protocols.kafka_4485.follower_words import FollowerMoment
from reassure_mutation.protocols.kafka_4485.leader_words import LeaderMoment
from reassure_mutation.protocols.kafka_4485.replica_moments import Moment, Moments, find_refused
from reassure_mutation.table import load_table
from reassure_spec.observations import Evaluate, Fetch, IsrRead, Serve
from reassure_zookeeper.server import Server

TOLD: Final = frozenset(
    {
        "in-sync-set-changed-meanwhile",
        "one-batch-at-a-time",
        "written-and-not-answered",
        "leaders-die-with-records-of-their-own",
    }
)
"""Shipped tales in which all that brokers have mutants of happens."""


def run(
    tmp_path: Path, server: Server, tales: tuple[tuple[str, ...], ...], **more: object
) -> BrokersResult:
    """Tell these tales to the bundled brokers."""
    return tell(tmp_path, server, (format_story(make_story(lines)) for lines in tales), **more)


def list_tales() -> tuple[tuple[str, ...], ...]:
    """Return the tales of the table, each once."""
    table = load_table(worlds, worlds.PROFILE)
    assert table is not None
    return tuple(dict.fromkeys(each.steps for each in table.killable.values()))


def test_tales_of_the_table_kill_what_they_are_for(tmp_path: Path, own_server: Server) -> None:
    """Told to brokers, they kill every mutant that was found killable, and every report says so."""
    result = run(tmp_path, own_server, list_tales())
    assert result.failure is None, result.failure
    assert [each.name for each in result.score.survivors] == []
    killed = result.score.counts()["mutants"]
    assert f"{killed} of {killed} mutants killed" in headline(result)


def test_moments_of_real_brokers_are_right(
    tmp_path: Path, own_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each kind of moment is read from the shipped tales, and right words hold there."""
    found: list[Moment] = []
    take = Moments.take_fresh
    monkeypatch.setattr(Moments, "take_fresh", lambda self: found.extend(take(self)) or found)
    tales = [each for each in shipped_stories(BROKERS) if each.name in TOLD]
    texts = (format_story(replace(each, why=())) for each in tales)
    result = run(tmp_path, own_server, tuple(tuple(text.splitlines()) for text in texts))
    assert result.failure is None and len(tales) == len(TOLD)
    followers = [each for each in found if isinstance(each, FollowerMoment)]
    assert {each.sent is None for each in followers} == {True, False}
    assert any(each.sent and each.sent.log_end_offset < len(each.led) for each in followers)
    leaders = [each for each in found if isinstance(each, LeaderMoment)]
    assert {type(each.event) for each in leaders} >= {Evaluate, Fetch, IsrRead, Serve}
    assert any(each.known.stored for each in leaders)
    assert {type(each) for each in found} >= {ElectedMoment, RestoredMoment}
    assert {find_refused(each, each.right) for each in found} == {""}


def test_clause_that_no_killed_mutant_stands_for_is_missing(
    tmp_path: Path, own_server: Server
) -> None:
    """Where nothing happens most mutants survive, each with a sentence and a tale that kills it."""
    result = run(tmp_path, own_server, (("world brokers", "wait 500 ms"),))
    score = result.score
    assert 0 < score.counts()["mutants_killed"] < score.counts()["mutants"]
    alike = {each.id for each in result.clauses if each.verdict == "not discriminated"}
    assert alike and alike <= set(result.missing())
    told = result.as_document().as_dict()
    assert all(each["sentence"] and each["steps"] for each in told["survivors"])
    assert f"{score.counts()['mutants_killed']} of " in headline(result)
    assert any("Would not have been caught" in each for each in read_report(told).notes)


def test_other_readings_are_not_scored(tmp_path: Path, own_server: Server) -> None:
    """What can be killed under them nobody looked for; the report says why there is no score."""
    result = run(
        tmp_path, own_server, (("world brokers",),), readings={"isr.entry": "high-watermark"}
    )
    told = result.as_document().as_dict()
    assert told["counts"]["mutants"] == 0
    assert told["not_scored"] == "readings differ from the profile's"


@pytest.mark.parametrize("fault", ["limit-doubled"])
def test_failure_has_no_score(tmp_path: Path, own_server: Server, fault: str) -> None:
    """A run that ends with a failure was not there to be scored."""
    lines = "world brokers", "produce 1 with acks -1 to 1", "deliver all", *("wait 500 ms",) * 4
    result = run(tmp_path, own_server, (lines,), faults=(fault,))
    assert result.failure is not None
    assert result.score.counts() == {"mutants_killed": 0, "mutants": 0}


def headline(result: BrokersResult) -> str:
    """Return the first line of the report."""
    return read_report(result.as_document().as_dict()).headline
