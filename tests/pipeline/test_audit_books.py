"""Audits of the profiles that keep a book: the old znode, and healing, from disk to verdict."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from pipeline_steps import Server, Snapshot, audit_spark, show
from walks import HealingWalk, LegacyWalk, Walk

from reassure_conformance.cli import run_command
from reassure_model.environment import Die, Failover, Return
from reassure_model.protocols.kip_46 import Submit, Tick
from reassure_model.protocols.kip_236_legacy import Ask, DeleteLegacy, WriteLegacy
from reassure_pipeline.audit.run_audit import audit_named
from reassure_spec import znodes
from reassure_spec.readings import get_profile
from reassure_spec.znodes import LegacyEntry

MINUTE_MS = 60_000


def walk_legacy() -> LegacyWalk:
    """Return a walk of both routes, a failover and clients that change their minds."""
    walk = LegacyWalk({("t", n): (1 + n % 3, 2 + n % 3) for n in range(4)}, 5)
    walk.settle()
    moves = [LegacyEntry(("t", 0), (4, 5)), LegacyEntry(("t", 1), (9, 9))]
    walk.take(WriteLegacy(tuple(moves)))
    walk.run()
    walk.take(Ask(((("t", 0), (1, 2)), (("t", 2), (4, 5)))))
    walk.take(Failover())
    walk.run()
    walk.take(DeleteLegacy())
    walk.cluster.time_ms += MINUTE_MS
    walk.take(WriteLegacy((LegacyEntry(("t", 3), (5, 1)),)))
    walk.take(Die(3))
    walk.run()
    walk.take(Return(3))
    walk.settle()
    return walk


def walk_healing() -> HealingWalk:
    """Return a walk in which two brokers stay away, one after the other, and one comes back."""
    walk = HealingWalk({("t", n): (1 + n % 3, 2 + n % 3) for n in range(4)}, 5)
    walk.settle()
    walk.take(Die(2))
    walk.run()
    walk.take(Tick(MINUTE_MS))
    walk.run()
    walk.take(Failover())
    walk.settle()
    walk.take(Die(3))
    walk.run()
    walk.take(Submit(((("t", 0), (5, 1)),)))
    walk.take(Tick(MINUTE_MS))
    walk.take(Return(3))
    walk.settle()
    return walk


WALKS: dict[str, Callable[[], Walk[Any]]] = {"kip-236-legacy": walk_legacy, "kip-46": walk_healing}
OWN = {"kip-236-legacy": "legacy.", "kip-46": "heal."}


def plant(walk: Walk[Any], profile: str) -> tuple[int, str]:
    """Plant a mistake at the end; answer its zxid and the clause that is meant for it."""
    cluster = walk.cluster
    cluster.time_ms += MINUTE_MS
    if profile == "kip-46":
        record = znodes.encode_failed_broker(cluster.time_ms)
        path = znodes.failed_broker_path(1)
        return cluster.control(cluster.create(path, record)), "heal.record.first-failure"
    data = znodes.encode_reassign_partitions([LegacyEntry(("t", 0), (2, 3))])
    op = cluster.create(znodes.REASSIGN_PARTITIONS, data)
    return cluster.control(op), "legacy.entry.by-client"


@pytest.mark.parametrize("profile", WALKS)
def test_sound_archive_holds(server: Server, profile: str) -> None:
    """What a walk of the model left holds, at rest as well, and puts much to the test."""
    folder = server("one", WALKS[profile]().transactions)
    report = audit_named([folder], profile, get_profile(profile), at_rest=True)
    assert report.verdict == "holds"
    held = [each.id for each in report.clauses if each.verdict == "holds"]
    assert len([name for name in held if name.startswith(OWN[profile])]) >= 8
    assert len([name for name in held if not name.startswith(OWN[profile])]) >= 30


@pytest.mark.parametrize("profile", WALKS)
def test_planted_mistake_is_named_in_an_archive(server: Server, profile: str) -> None:
    """A mistake in what the book is about is a violation, with its zxid."""
    walk = WALKS[profile]()
    zxid, clause = plant(walk, profile)
    report = audit_named([server("one", walk.transactions)], profile, get_profile(profile))
    assert report.verdict == "violated"
    assert [(v.clause, v.zxid) for v in report.violations] == [(clause, zxid)]


@pytest.mark.parametrize("profile", WALKS)
def test_archive_may_begin_anywhere(server: Server, snapshot: Snapshot, profile: str) -> None:
    """A sound history that begins with a snapshot, wherever that was taken, is never red."""
    history = WALKS[profile]().transactions
    for cut in range(30, len(history) - 1, 7):
        folder = server(f"at-{cut}", history[cut:])
        snapshot(folder, history[:cut], history[cut - 1].zxid)
        report = audit_named([folder], profile, get_profile(profile), at_rest=True)
        assert [(v.clause, v.reason) for v in report.violations] == []


@pytest.mark.parametrize("profile", WALKS)
def test_archive_without_a_beginning_is_unknown(server: Server, profile: str) -> None:
    """A sound history of which the beginning is missing leaves open what cannot be known."""
    history = WALKS[profile]().transactions
    for cut in range(30, len(history) - 1, 11):
        report = audit_named([server(f"from-{cut}", history[cut:])], profile, get_profile(profile))
        assert report.verdict == "unknown"
        assert report.violations == ()


@pytest.mark.slow
@pytest.mark.spark
def test_spark_says_the_same_of_books(server: Server) -> None:
    """On Spark a cluster's book is kept by one worker, and the report is the same."""
    profile = "kip-46"
    walk = WALKS[profile]()
    plant(walk, profile)
    half = len(walk.transactions) // 2
    folder = server("one", walk.transactions[:half], walk.transactions[half:])
    readings = get_profile(profile)
    local = audit_named([folder], profile, readings, at_rest=True)
    spark = audit_spark([folder], profile, readings, at_rest=True)
    assert show(local) == show(spark)


@pytest.mark.parametrize("profile", WALKS)
def test_verb_judges_by_the_profile(
    server: Server, capsys: pytest.CaptureFixture[str], profile: str
) -> None:
    """`audit --profile` holds an archive against the clauses of the profile and its base."""
    walk = WALKS[profile]()
    folder = server("sound", walk.transactions)
    options = ["--profile", profile, "--format", "json"]
    assert run_command(["audit", str(folder), *options, "--at-rest"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["profile"] == profile
    assert document["verdict"] == "holds"
    names = {each["id"] for each in document["clauses"]}
    assert "child.from-request" in names
    assert any(name.startswith(OWN[profile]) for name in names)
    assert run_command(["audit", str(folder), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["profile"] == profile, "recognised from the log"
    zxid, clause = plant(walk, profile)
    assert run_command(["audit", str(server("broken", walk.transactions)), *options]) == 1
    (violation,) = json.loads(capsys.readouterr().out)["violations"]
    assert (violation["clause"], violation["zxid"]) == (clause, zxid)
