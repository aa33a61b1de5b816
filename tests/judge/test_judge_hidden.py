"""What no znode shows: each such fact makes a write right, and one that is near stays wrong."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
from history_steps import make_transaction, read_log, win

from reassure_conformance import cli
from reassure_judge.doubt import GRACE_MS, Doubt
from reassure_judge.hidden import (
    CALLED,
    DISK,
    MOST_AT_ONCE,
    STOPPING,
    UNHEARD,
    find_never_shown,
    find_shown,
)
from reassure_judge.judge import Judge
from reassure_judge.suspicion import SHUTDOWN_MS
from reassure_judge.verdicts import Tally
from reassure_model.partition import Environment
from reassure_spec import znodes
from reassure_spec.readings import get_profile, override_readings
from reassure_zookeeper.transactions import CloseSession, Create, Delete, Op, SetData, Transaction

REMOVED = "isr.remove.only-when-due"
LEADERLESS = "shipped.leader.none-when-stopped"
DUE = "election.only-when-due"
CLEAN = "election.clean"
UNKNOWN = 2
"""The exit code of what nobody can say."""
EMPTY = "isr.never-empty"


def judge_all(profile: str, log: Iterable[Transaction], **settled: str) -> Judge:
    """Hold a history against a protocol of Kafka's own."""
    chosen = {name.replace("_", "."): value for name, value in settled.items()}
    readings = get_profile(profile)
    readings = override_readings(readings, {"move.expand-first": "yes", **chosen})
    judge = Judge(profile, readings)
    for each in log:
        judge.feed(each)
    return judge


def name_all(judge: Judge) -> dict[int, str]:
    """Return the clause that is named, by transaction."""
    return {violation.zxid: violation.clause for violation in judge.violations}


def sum_up(judge: Judge) -> Tally:
    """Return what judging comes to if nothing more comes."""
    return judge.tracking.sum_up()


def rewrite(log: list[Transaction], zxid: int, old: bytes, new: bytes) -> list[Transaction]:
    """Return the log with one transaction that writes something else."""
    each = next(each for each in log if each.zxid == zxid)
    *before, op = each.ops
    assert isinstance(op, SetData | Create) and old in op.data
    altered = replace(each, ops=(*before, replace(op, data=op.data.replace(old, new))))
    return [altered if each.zxid == zxid else each for each in log]


class Cluster:
    """Four brokers by hand, of which the last one is the controller; a second between writes."""

    def __init__(self) -> None:
        self.log: list[Transaction] = []
        self._zxids = count(1)
        self._versions = count(1)
        for broker in (1, 2, 3, 4):
            self.write(Create(f"/config/brokers/{broker}", b'{"version":1,"config":{}}'))
            self.register(broker)
        self.write(Create("/controller_epoch", b"0"), by=4)
        self.write(*win(4, 1), by=4)

    def write(self, *ops: Op, by: int = 99, fenced: bool = False, wait_ms: int = 1000) -> int:
        """Commit ops as one transaction; return its zxid."""
        zxid, fence = next(self._zxids), 2 if fenced else None
        time_ms = wait_ms + (self.log[-1].time_ms if self.log else 0)
        self.log.append(make_transaction(*ops, zxid=zxid, session=by, time_ms=time_ms, fence=fence))
        return zxid

    def register(self, broker: int, by: int | None = None) -> None:
        """Register a broker, in a session that has its number or another one."""
        data = znodes.encode_broker("127.0.0.1", 9092, 0)
        self.write(Create(f"/brokers/ids/{broker}", data, ephemeral=True), by=by or broker)

    def stop(self, broker: int) -> None:
        """End a broker's session."""
        self.write(CloseSession((f"/brokers/ids/{broker}",)), by=broker)

    def create(self, topic: str, *assigned: int, version: int = 2) -> None:
        """Bring a topic of one partition online, led by its first replica."""
        lists = ',"adding_replicas":{},"removing_replicas":{}' if version > 1 else ""
        data = f'{{"version":{version},"partitions":{{"0":{list(assigned)}}}{lists}}}'
        self.write(Create(f"/brokers/topics/{topic}", data.encode()))
        state = znodes.encode_state(znodes.StateZnode(assigned[0], 0, 1, assigned))
        fenced = version > 1
        self.write(
            Create(f"/brokers/topics/{topic}/partitions/0/state", state), by=4, fenced=fenced
        )

    def move(self, topic: str, replicas: list[int], adding: list[int], removing: list[int]) -> None:
        """Write the lists, as the controller does."""
        lists = f'"adding_replicas":{{"0":{adding}}},"removing_replicas":{{"0":{removing}}}'
        data = f'{{"version":2,"partitions":{{"0":{replicas}}},{lists}}}'
        lists_written = SetData(f"/brokers/topics/{topic}", data.encode(), next(self._versions))
        self.write(lists_written, by=4, fenced=True)

    def lead(
        self, topic: str, leader: int, epoch: int, *isr: int, by: int = 4, wait_ms: int = 1000
    ) -> int:
        """Write leader and in-sync set, as the controller does or as a leader."""
        state = znodes.encode_state(znodes.StateZnode(leader, epoch, 1, isr))
        path = f"/brokers/topics/{topic}/partitions/0/state"
        written = SetData(path, state, next(self._versions))
        return self.write(written, by=by, fenced=by == 4, wait_ms=wait_ms)

    def judge(self, profile: str = "kafka-zk") -> Judge:
        """Hold what was written against a protocol of Kafka's own."""
        return judge_all(profile, self.log)


# A broker is stopping -----------------------------------------------------------------------------


@pytest.mark.clause("isr.remove.only-when-due")
def test_stopping_broker_that_is_let_in_again_stops_all_the_same(tmp_path: Path) -> None:
    """The end of its session explains each partition that it was taken out of, let in or not."""
    judge = judge_all("kafka-42", read_log("n102", tmp_path))
    assert name_all(judge) == {}
    assert sum_up(judge).explained[REMOVED, STOPPING] > 10


@pytest.mark.clause("isr.remove.only-when-due")
def test_broker_that_is_let_in_again_and_stays_was_not_stopping(tmp_path: Path) -> None:
    """Where the session goes on until nobody takes it for a shutdown, every removal is named."""
    log = [each for each in read_log("n102", tmp_path) if each.zxid <= 0x18E]
    back = log[-1]
    log.append(replace(back, zxid=0x18F, time_ms=back.time_ms + SHUTDOWN_MS + 1))
    assert name_all(judge_all("kafka-42", log)) == {0x18D: REMOVED}


@pytest.mark.clause("isr.remove.only-when-due")
def test_broker_that_was_not_taken_out_of_every_set_did_not_stop_in_order(tmp_path: Path) -> None:
    """One set with somebody else alive was left to it: what was taken out before is named."""
    log = [each for each in read_log("n102", tmp_path) if each.zxid != 0x189]
    named = name_all(judge_all("kafka-42", log))
    assert {zxid for zxid, each in named.items() if each == REMOVED} >= {0x184, 0x187, 0x18D}


def make_shutdown_in_a_move(*, target: tuple[int, ...] = (1, 3)) -> Cluster:
    """Move 1,2 to a target that keeps the leader, which stops: another of the target takes over."""
    cluster = Cluster()
    cluster.create("b", 1, 2)
    cluster.create("t", 1, 2)
    added = [replica for replica in target if replica not in (1, 2)]
    cluster.move("t", [*target, 2], added, [2])
    cluster.lead("t", 1, 1, 1, 2)
    cluster.lead("t", 1, 1, 1, 2, 3, by=1)
    cluster.lead("b", 2, 1, 2)
    return cluster


@pytest.mark.clause("election.only-when-due")
def test_move_is_completed_by_electing_past_a_leader_that_stops() -> None:
    """The leader is not online to the controller, and stays in sync until it is taken out."""
    cluster = make_shutdown_in_a_move()
    past = cluster.lead("t", 3, 2, 1, 2, 3)
    assert sum_up(cluster.judge()).facts == {(DUE, STOPPING): 1, (REMOVED, STOPPING): 1}
    cluster.lead("t", 3, 3, 1, 3)
    cluster.move("t", [1, 3], [], [])
    cluster.lead("t", 3, 4, 3)
    cluster.stop(1)
    judge = cluster.judge()
    assert (name_all(judge), judge.undecided) == ({}, {})
    assert sum_up(judge).explained[DUE, STOPPING] == 1
    stays = replace(cluster.log[-2], zxid=cluster.log[-1].zxid)
    late = replace(stays, time_ms=stays.time_ms + SHUTDOWN_MS + 1)
    assert name_all(judge_all("kafka-zk", [*cluster.log[:-1], late]))[past] == DUE


@pytest.mark.clause("election.only-when-due")
@pytest.mark.parametrize("isr", [(1, 2), (1, 2, 3)])
def test_election_past_a_leader_is_no_shutdown_without_a_move_that_is_due(
    isr: tuple[int, ...],
) -> None:
    """Nothing is moved, or the target is not in sync: a leader that stops leaves the set."""
    cluster = Cluster()
    cluster.create("t", 1, 2)
    if len(isr) == 2:
        cluster.move("t", [1, 3, 2], [3], [2])
        cluster.lead("t", 1, 1, 1, 2)
    else:
        cluster.create("u", 1, 2, 3)
    topic, epoch = ("t", 2) if len(isr) == 2 else ("u", 1)
    wrong = cluster.lead(topic, 2, epoch, *isr)
    cluster.stop(1)
    assert name_all(cluster.judge())[wrong] == DUE


# Its disk is dead ---------------------------------------------------------------------------------

FAILED = 0x8D
"""In v282: broker 1 tells that a disk died; at 0x8E and 0x98 a controller takes j-0 offline."""


@pytest.mark.clause("shipped.leader.none-when-stopped")
def test_dead_disk_stays_dead_for_the_next_controller(tmp_path: Path) -> None:
    """A controller that has not heard elects there, is told, and takes it offline again."""
    judge = judge_all("kafka-zk", read_log("v282", tmp_path))
    assert (name_all(judge), judge.undecided) == ({}, {})
    assert sum_up(judge).explained[LEADERLESS, DISK] == 2


def _drop_notice(log: list[Transaction]) -> list[Transaction]:
    return [each for each in log if each.zxid != FAILED]


def _notify_by_another(log: list[Transaction]) -> list[Transaction]:
    other = next(each.session_id for each in log if each.zxid == 0x93)
    return [replace(each, session_id=other) if each.zxid == FAILED else each for each in log]


@pytest.mark.clause("shipped.leader.none-when-stopped")
@pytest.mark.parametrize("alter", [_drop_notice, _notify_by_another])
def test_nobody_is_taken_offline_for_a_disk_that_did_not_fail(
    alter: Callable[[list[Transaction]], list[Transaction]], tmp_path: Path
) -> None:
    """Without a notice, or with that of another broker, a leader that is alive was taken away."""
    named = name_all(judge_all("kafka-zk", alter(read_log("v282", tmp_path))))
    assert named[0x8E] == named[0x98] == LEADERLESS


def fail_disk(*assigned: int) -> Cluster:
    """Let a disk of broker 1 die that may hold a partition, led by its first replica."""
    cluster = Cluster()
    cluster.create("t", *assigned)
    notice = b'{"version":1,"broker":1,"event":1}'
    cluster.write(Create("/log_dir_event_notification/log_dir_event_0000000000", notice), by=1)
    return cluster


def remove_late(cluster: Cluster, *, wait_ms: int = 1000) -> bool:
    """Take broker 1 out, which goes on being registered; return whether that is named."""
    removed = cluster.lead("t", 2, 1, 2, wait_ms=wait_ms)
    cluster.lead("t", 2, 1, 2, 1, by=2, wait_ms=SHUTDOWN_MS + 1)
    return name_all(cluster.judge()) == {removed: REMOVED}


@pytest.mark.clause("isr.remove.only-when-due")
def test_replica_on_a_disk_that_failed_is_taken_out_soon() -> None:
    """The broker answers what it lost when it is asked, and not half a minute later."""
    assert not remove_late(fail_disk(2, 1))
    assert remove_late(fail_disk(2, 1), wait_ms=31_000)


@pytest.mark.clause("isr.remove.only-when-due")
def test_replica_that_fetches_is_on_another_disk() -> None:
    """Who left the set by the leader's word and joins again has a log to copy to."""
    cluster = fail_disk(2, 1)
    cluster.lead("t", 2, 0, 2, by=2)
    cluster.lead("t", 2, 0, 2, 1, by=2)
    assert remove_late(cluster)


@pytest.mark.clause("shipped.leader.none-when-stopped")
@pytest.mark.parametrize("again", [False, True])
def test_broker_that_starts_again_has_its_disks(again: bool) -> None:
    """It is elected and taken away once more: right while its disk is dead, and not afterwards."""
    cluster = fail_disk(1, 2)
    cluster.lead("t", 1, 0, 1, by=1)
    cluster.lead("t", -1, 1, 1)
    if again:
        cluster.stop(1)
        cluster.register(1)
    cluster.lead("t", 1, 2, 1)
    lost = cluster.lead("t", -1, 3, 1, wait_ms=31_000)
    assert name_all(cluster.judge()) == ({lost: LEADERLESS} if again else {})


# Asked by a call ----------------------------------------------------------------------------------


@pytest.mark.clause("election.clean")
def test_unclean_election_may_be_asked_for_by_a_call(tmp_path: Path) -> None:
    """From 2.4 on a call may ask for it, which nothing shows before states are marked (3.2)."""
    judge = judge_all("kafka-zk", read_log("v241", tmp_path))
    assert (name_all(judge), judge.undecided) == ({}, {CLEAN: 1})
    assert sum_up(judge).facts == {(CLEAN, CALLED): 1}


@pytest.mark.clause("election.clean")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        # The rest of the set is not thrown away, or somebody who is not assigned is elected.
        (b'"isr":[2]', b'"isr":[2,1]'),
        (b'"leader":2,"version":1,"leader_epoch":3,"isr":[2]', b'"leader":3,"version":1,"isr":[3]'),
    ],
)
def test_call_asks_for_nothing_else(old: bytes, new: bytes, tmp_path: Path) -> None:
    """What differs from what a call leads to is named."""
    assert 0xB3 in name_all(
        judge_all("kafka-zk", rewrite(read_log("v241", tmp_path), 0xB3, old, new))
    )


@pytest.mark.clause("election.clean")
def test_there_is_no_such_call_in_earlier_or_marked_versions(tmp_path: Path) -> None:
    """Before 2.4 nobody can call, and from 3.2 on what a call leads to is marked."""
    cluster = Cluster()
    cluster.create("t", 1, 2)
    cluster.lead("t", 1, 0, 1, by=1)
    cluster.stop(1)
    cluster.lead("t", -1, 1, 1)
    unclean = cluster.lead("t", 2, 2, 2)
    assert sum_up(cluster.judge()).facts == {(CLEAN, CALLED): 1}
    earlier = judge_all("kafka-42", cluster.log, election_unclean="no")
    assert name_all(earlier) == {unclean: CLEAN}
    marked = rewrite(read_log("v241", tmp_path), 0xB2, b'"isr"', b'"leader_recovery_state":0,"isr"')
    assert name_all(judge_all("kafka-zk", marked))[0xB3] == CLEAN


@pytest.mark.clause("election.clean")
def test_call_elects_nobody_past_a_leader_or_replica_that_is_in_sync() -> None:
    """With a leader, or an in-sync replica, that is alive a call leads to no unclean election."""
    for isr in ((1,), (1, 3)):
        cluster = Cluster()
        cluster.create("t", 1, 2, 3)
        cluster.lead("t", 1, 0, *isr, by=1)
        if len(isr) == 2:
            cluster.stop(1)
        unclean = cluster.lead("t", 2, 1, 2)
        assert name_all(cluster.judge())[unclean] == CLEAN


def test_audit_names_the_facts_by_which_a_clause_may_be_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is open is listed with the call, what is settled with the brokers that stopped."""
    read_log("v241", tmp_path)
    command = ["audit", str(tmp_path), "--profile", "kafka-zk", "--verbose"]
    assert cli.run_command(command) == UNKNOWN
    lines = capsys.readouterr().out.splitlines()
    assert f"  holds if one of these is true: {CALLED}" in lines
    stopped = f"{tmp_path}: {REMOVED} holds "
    assert any(line.startswith(stopped) and line.endswith(STOPPING) for line in lines)


# Deletion has begun -------------------------------------------------------------------------------

ASKED = 0xC9
"""In echo: a client asks for z to be deleted; its sets are emptied at 0xCC, 0xCD and 0xCF."""


@pytest.mark.clause("isr.never-empty")
def test_last_replica_may_be_taken_out_only_at_a_deletion(tmp_path: Path) -> None:
    """To 1.0 a deletion empties the set, which loses nothing; without one records are lost."""
    log = read_log("echo", tmp_path)
    assert name_all(judge_all("kafka-42", log)) == {0x81: EMPTY}
    kept = name_all(judge_all("kafka-42", [each for each in log if each.zxid != ASKED]))
    assert {zxid for zxid, each in kept.items() if each == EMPTY} == {0x81, 0xCC, 0xCD, 0xCF}


@pytest.mark.clause("isr.never-empty")
@pytest.mark.parametrize(
    ("zxid", "old", "new"),
    [(0xCE, b'"isr":[2]', b'"isr":[]'), (0xCC, b'"leader":-1', b'"leader":3')],
)
def test_deletion_takes_one_after_the_other_and_leaves_no_leader(
    zxid: int, old: bytes, new: bytes, tmp_path: Path
) -> None:
    """Two replicas out at once, or a leader with nobody in sync, are no deletion."""
    log = rewrite(read_log("echo", tmp_path), zxid, old, new)
    assert name_all(judge_all("kafka-42", log))[zxid] in (EMPTY, "leader.in-isr")


@pytest.mark.clause("isr.never-empty")
@pytest.mark.parametrize(("profile", "named"), [("kafka-42", False), ("kafka-zk", True)])
def test_deletion_keeps_the_last_replica_from_1_1_on(profile: str, named: bool) -> None:
    """KAFKA-5083: since 1.1 the last one stays in the set, whatever it is taken offline for."""
    cluster = Cluster()
    cluster.create("t", 1, version=1)
    cluster.write(Create("/admin/delete_topics/t"))
    emptied = cluster.lead("t", -1, 1)
    assert (name_all(cluster.judge(profile)).get(emptied) == EMPTY) == named


@pytest.mark.clause("znode.well-formed")
@pytest.mark.parametrize(
    ("profile", "data", "named"),
    [("kafka-42", b"", False), ("kafka-42", b"{", True), ("kafka-zk", b"", True)],
)
def test_settings_without_content_are_none_to_earlier_versions(
    profile: str, data: bytes, named: bool
) -> None:
    """They read an empty znode as no overrides; what is not JSON is a mistake all the same."""
    cluster = Cluster()
    cluster.create("t", 1, version=1)
    written = cluster.write(Create("/config/topics/t", data))
    cluster.write(Create("/admin/delete_topics/t"))
    cluster.write(Delete("/config/topics/t"))
    assert (name_all(cluster.judge(profile)).get(written) == "znode.well-formed") == named


# The layer itself ---------------------------------------------------------------------------------

ALL = frozenset(range(9))


def test_fewest_brokers_are_taken_for_gone_first_and_only_those_that_matter() -> None:
    """Where a disk is among what is assumed it gives the name; who is not alive is gone anyway."""
    around = Environment(live=frozenset({1, 2, 3}), known=ALL)
    doubt = Doubt(disks=frozenset({1}), returned=frozenset({2, 3, 4}))
    facts = list(find_shown(around, doubt, frozenset({1, 2, 4})))
    assert [(fact.name, sorted(fact.around.stopping)) for fact in facts] == [
        (DISK, [1]),
        (UNHEARD, [2]),
        (DISK, [1, 2]),
    ]


def test_many_brokers_are_taken_for_gone_all_at_once() -> None:
    """The number of choices is bounded."""
    around = Environment(live=ALL, known=ALL)
    few, many = (frozenset(range(n)) for n in (MOST_AT_ONCE, MOST_AT_ONCE + 1))
    assert len(list(find_shown(around, Doubt(returned=few), ALL))) == 2**MOST_AT_ONCE - 1
    (fact,) = find_shown(around, Doubt(returned=many), ALL)
    assert fact.around.stopping == many


def test_call_is_no_fact_where_the_setting_allows_the_same() -> None:
    """Nothing is left open that is allowed as it is written."""
    around = Environment(live=ALL, known=ALL)
    (fact,) = find_never_shown(around, Doubt(called=True))
    assert fact == (CALLED, replace(around, unclean_allowed=True))
    assert list(find_never_shown(fact.around, Doubt(called=True))) == []


# Whose session it is ------------------------------------------------------------------------------


@pytest.mark.clause("isr.change.by-leader")
@pytest.mark.parametrize(("session", "named"), [(11, False), (12, True), (0, True)])
def test_leader_goes_on_in_a_session_that_it_registers_later(session: int, named: bool) -> None:
    """One that lost its session writes before it registers: that, and nothing else, shows whose."""
    cluster = Cluster()
    cluster.create("t", 1, 2, version=1)
    cluster.stop(1)
    zxid = cluster.lead("t", 1, 0, 1, by=11)
    assert not cluster.judge("kafka-42").violations
    if session:
        cluster.register(1, by=session)
    cluster.write(Create("/brokers"), wait_ms=GRACE_MS)
    cluster.create("u", 2, 3, version=1)
    expected = {zxid: "isr.change.by-leader"} if named else {}
    assert name_all(cluster.judge("kafka-42")) == expected


@pytest.mark.clause("isr.change.by-leader")
def test_nobody_writes_for_a_leader_that_is_registered() -> None:
    """While its registration stands no other session is a leader's."""
    cluster = Cluster()
    cluster.create("t", 1, 2, version=1)
    zxid = cluster.lead("t", 1, 0, 1, by=11)
    assert name_all(cluster.judge("kafka-42")) == {zxid: "isr.change.by-leader"}
