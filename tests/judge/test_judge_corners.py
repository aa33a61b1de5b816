"""What seldom happens, and has to be right when it does."""

from dataclasses import replace
from typing import Any

import pytest
from history_steps import Act, control, judge_alike, perform, write

from reassure_judge import transaction_reader
from reassure_judge.history import AssignedWritten
from reassure_judge.judge import Judge
from reassure_judge.live_events import Ended, Rested, ShutdownAsked, TimePassed
from reassure_judge.messages import Heard, Told
from reassure_judge.monitors import Driven, Monitor
from reassure_judge.protocols import NoRules, check_driven, get_observing, get_rules, make_rules
from reassure_judge.protocols.kafka_zk.partition import DropEntry, Logged
from reassure_judge.protocols.kafka_zk.router import EntryWritten, ListsWritten
from reassure_judge.protocols.kip_236.router import ReassignmentWritten
from reassure_judge.recognise import Gatherer, recognise
from reassure_judge.rules import Possible, Rules
from reassure_judge.transaction_reader import written_paths
from reassure_judge.verdicts import HOLDS, VIOLATED, ClauseVerdict, Tally, merge_verdicts
from reassure_model.outcome import Accepted, Rejected
from reassure_model.partition import Environment, LeaderAndIsr, Partition, Reassignment
from reassure_model.protocols.kafka_zk import Assignment
from reassure_model.writes import DeleteRequest, WriteState
from reassure_spec import znodes
from reassure_spec.observations import (
    KINDS,
    NOBODY,
    Answer,
    Evaluate,
    Fetch,
    Follow,
    IsrWrite,
    Lead,
    Observation,
    Produce,
    Replica,
    Restored,
    Stored,
    What,
    Writer,
)
from reassure_spec.readings import get_profile, override_readings
from reassure_spec.znodes import StateZnode, TaskZnode
from reassure_zookeeper.transactions import (
    Check,
    CloseSession,
    Create,
    Delete,
    SetData,
    committed,
    multi,
)

KEY = ("orders", 0)
TOPIC = znodes.topic_path("orders")
SETTINGS = znodes.topic_config_path("orders")
THERE = (
    (znodes.broker_path(1), znodes.encode_broker("h", 1, 0), 1),
    (TOPIC, znodes.encode_topic({0: (1, 2)}), 0),
)
"""A broker and a topic, as a snapshot holds them."""


# Clusters -----------------------------------------------------------------------------------------


def test_partition_of_many_brokers_is_judged_for_itself(make_simulation: Any) -> None:
    """Whoever has more replicas than forms are made of comes to the same, elections included."""
    cluster = make_simulation()
    cluster.start(brokers=30, assigned=tuple(range(1, 25)))
    cluster.submit(*range(1, 28))
    cluster.run()
    cluster.elect()
    cluster.change_isr(1, 2)
    assert judge_alike(cluster.judge.rules, cluster.history).violations == []


def test_cluster_of_which_nothing_was_seen_rests(make_simulation: Any) -> None:
    """A chroot under which there is nothing owes nothing."""
    judge = make_simulation().judge
    judge.quiesce("/nowhere")
    judge.miss_controller("/nowhere")
    assert (judge.violations, judge.is_owed("/nowhere")) == ([], False)


@pytest.mark.parametrize(
    "act",
    [
        lambda sim: sim.submit(2, 3),
        lambda sim: sim.perform_raised(isr=(1,)),
        lambda sim: sim.die(1),
    ],
)
def test_something_is_owed_until_it_is_done(simulation: Any, act: Act) -> None:
    """A request that waits, a shutdown that is suspected and a dead leader hinder a rest."""
    assert not simulation.judge.is_owed()
    act(simulation)
    assert simulation.judge.is_owed()


def test_nothing_is_due_of_a_partition_that_is_gone(simulation: Any) -> None:
    """What is not there needs nothing."""
    simulation.write(Delete(znodes.state_path("orders", 0)), session=900, fenced=True)
    simulation.write(Delete(TOPIC), session=900, fenced=True)
    assert simulation.judge.list_due() == {}


@pytest.mark.parametrize(
    ("path", "data"),
    [
        (znodes.DEFAULT_BROKER_CONFIG, b"{"),
        (znodes.topic_config_path("orders"), b"{"),
        (znodes.CONTROLLER, b"{"),
        (znodes.CONTROLLER_EPOCH, b"x"),
    ],
)
def test_what_cannot_be_read_changes_nothing(simulation: Any, path: str, data: bytes) -> None:
    """It is named, and everything is judged on as it was."""
    zxid = simulation.write(SetData(path, data, 1), session=50)
    assert simulation.broken() == [("znode.well-formed", zxid)]
    assert simulation.judge.view().min_insync_replicas("orders") == 1


def test_call_for_preferred_leaders_that_cannot_be_read_asks_for_nothing(simulation: Any) -> None:
    """A client's mistake is nobody else's."""
    simulation.write(Create(znodes.PREFERRED_ELECTION, b"{"), session=50)
    assert simulation.broken() == []


def test_client_may_write_a_sound_record_anew(simulation: Any) -> None:
    """A record of a partition that there is may be anybody's: what is wrong is who wrote it."""
    record = znodes.encode_reassignment(znodes.ReassignmentZnode(2, (2, 3)))
    simulation.write(Create(znodes.reassignment_path("orders", 0), record), session=50)
    assert {clause for clause, _ in simulation.broken()} == {"controller.write.by-controller"}


def test_paths_are_remembered_in_bounds(
    make_simulation: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where there are more paths than are kept they are looked up anew."""
    monkeypatch.setattr(transaction_reader, "_CACHE_LIMIT", 3)
    cluster = make_simulation()
    cluster.start()
    cluster.submit(2, 3)
    cluster.run()
    assert cluster.broken() == []


def test_paths_that_matter_are_listed() -> None:
    """Writes are listed, and neither checks nor the ends of sessions."""
    ops = (Create("/a", b""), Delete("/b"), SetData("/c", b"", 1), CloseSession(("/d",)))
    listed = [list(written_paths(committed(op, zxid=1))) for op in ops]
    assert listed == [["/a"], ["/b"], ["/c"], []]


def test_requests_concern_nobody_where_there_are_none() -> None:
    """Kafka's own protocols have no queue."""
    router = make_rules("kafka-42", get_profile("kafka-42")).make_router()
    assert router.find_asked("request_0000000000", b"{}") is None


@pytest.mark.parametrize("profile", ["kip-46", "kip-236-legacy"])
def test_topic_that_is_deleted_is_followed_no_more(make_simulation: Any, profile: str) -> None:
    """What is kept of all partitions at once forgets it as well."""
    cluster = make_simulation(profile)
    cluster.start()
    gone = [znodes.state_path("orders", 0), TOPIC, znodes.deleted_topic_path("orders")]
    perform(cluster, [write(Create(gone[2], b"")), *(control(Delete(path)) for path in gone)])
    cluster.judge.quiesce()
    assert cluster.judge.tracking.clusters[""].across.partitions[KEY].assigned is None


def test_minimum_of_in_sync_replicas_counts_for_healing(make_simulation: Any) -> None:
    """A task whose reassignment is refused by the settings may go; racks may be unreadable."""
    cluster = make_simulation("kip-46")
    cluster.start()
    settings = znodes.encode_config({"min.insync.replicas": "3"})
    task = znodes.encode_task(TaskZnode({KEY: (2, 3)}, automatic=False))
    acts = [
        write(Create(znodes.DEFAULT_BROKER_CONFIG, settings)),
        write(Create(SETTINGS, settings)),
        write(SetData(znodes.broker_path(4), b"{", 1), session=4),
        write(Create(znodes.task_path(0), task)),
        control(Delete(znodes.task_path(0))),
        control(Delete(f"{znodes.REASSIGNMENT_TASKS}/strange")),
    ]
    zxid = perform(cluster, acts)
    assert "heal.task.as-reassignment" in cluster.judge.exercised
    assert [clause for clause, at in cluster.broken() if at < zxid] == []


def test_healing_goes_on_from_a_snapshot() -> None:
    """Records and tasks that a snapshot holds are nobody's fault."""
    judge = Judge("kip-46", get_profile("kip-46"))
    task = znodes.encode_task(TaskZnode({KEY: (1, 3)}, automatic=True))
    judge.load(
        [
            *THERE,
            (znodes.failed_broker_path(2), znodes.encode_failed_broker(0), 0),
            (znodes.task_path(0), task, 0),
        ]
    )
    judge.feed(committed(Delete(znodes.failed_broker_path(7)), zxid=9))
    assert "heal.record.first-failure" not in judge.exercised


def test_office_that_was_won_before_a_history_begins_is_in_doubt() -> None:
    """Who removes a record under a fence may be the controller, and nobody can say."""
    judge = Judge("kip-46", get_profile("kip-46"))
    judge.router = judge.rules.make_router(whole=False)
    judge.load([*THERE, (znodes.failed_broker_path(2), znodes.encode_failed_broker(0), 0)])
    fence = Check(znodes.CONTROLLER_EPOCH, 1)
    judge.feed(multi(fence, Delete(znodes.failed_broker_path(2)), zxid=10, session_id=5))
    assert judge.undecided["controller.write.by-controller"] == 1


def test_request_of_a_snapshot_is_nobodys() -> None:
    """Whether a client or a controller made it is not asked."""
    judge = Judge("kip-236-legacy", get_profile("kip-236-legacy"))
    data = znodes.encode_request(znodes.RequestZnode({KEY: (1, 2)}, legacy=True))
    judge.load([*THERE, (znodes.request_path(0), data, 0)])
    assert (judge.violations, judge.exercised["client.request.unmarked"]) == ([], 0)


def test_request_that_was_refused_does_not_go_for_the_next(simulation: Any) -> None:
    """Whoever has decided the lowest request removes that one first."""
    simulation.submit(9)
    second = simulation.submit(2, 3)
    zxid = simulation.perform(DeleteRequest(second))
    assert simulation.broken() == [("request.order.sequence", zxid)]


# Those who drive ----------------------------------------------------------------------------------


def test_clause_that_the_profile_does_not_ask_for_is_not_told(drive: Any) -> None:
    """Of what brokers believe Kafka's own profile says nothing."""
    cluster = drive("kafka-zk", hears=True)
    cluster.look()
    assert cluster.found == []


def test_message_that_nobody_dates_tells_nothing(drive: Any) -> None:
    """Where it is not known what its sender had seen, no order is judged."""
    cluster = drive("kip-236")
    cluster.tell(1, zxid=None, replicas=(1, 2))
    cluster.look(rests=False)
    assert cluster.found == []


def test_replica_of_a_topic_to_be_deleted_may_go(drive: Any) -> None:
    """Whoever leads or is in sync is told to delete its replica where somebody asks for that."""
    cluster = drive("kip-236", hears=True)
    zxid = cluster.write(Create(znodes.deleted_topic_path("orders"), b""), session=50)
    cluster.tell(1, zxid=zxid)
    cluster.look(rests=False)
    assert (cluster.found, cluster.live.deleting) == ([], {"orders"})


def test_view_answers_by_topic_then_for_all(simulation: Any) -> None:
    """A topic's own settings count before the default of all brokers."""
    config = {"min.insync.replicas": "2", znodes.UNCLEAN: "true"}
    simulation.write(Create(SETTINGS, znodes.encode_config(config)), session=50)
    view = simulation.judge.view()
    assert (view.min_insync_replicas("orders"), view.min_insync_replicas("other")) == (2, 1)
    assert (view.allows_unclean("orders"), view.allows_unclean("other")) == (True, False)


def test_messages_are_kept_as_they_were_heard() -> None:
    """Each is a record for reports; what a leader was told last says whom it takes for replicas."""
    state = StateZnode(1, 0, 1, (1, 2))
    started = Told(1, *KEY, 1, state, (1, 2))
    stopped = Told(2, *KEY, 1, None, delete=True)
    assert started.as_dict()["replicas"] == [1, 2]
    assert stopped.as_dict()["delete"] is True
    heard = Heard()
    heard.take(started)
    partitions = {KEY: Partition(state=LeaderAndIsr(1, 0, 1, (1,))), ("new", 0): Partition()}
    assert heard.list_admitted(partitions) == {KEY: (1, 2)}
    assert (heard.find(1, KEY), heard.find(2, KEY)) == (state, None)
    assert list(heard.find_broken(partitions, frozenset({1, 2}))) == []


def test_monitor_knows_of_no_deletion_by_itself() -> None:
    """Only who follows topics says which of them are to be deleted."""

    class Silent(Monitor):
        def take(self, event: object) -> Any:
            return iter(())

    monitor = Silent(Driven("", get_profile("kip-236"), Heard(), None))  # type: ignore[arg-type]
    assert (monitor.is_deleting("orders", 1), monitor.deleting) == (False, frozenset())


def test_profile_under_which_nobody_is_driven_is_refused() -> None:
    """Who wants to drive an implementation hears under which profiles it can be."""
    check_driven("kip-236")
    with pytest.raises(
        NoRules, match="not driven under profile 'kafka-4485': they are under kafka-42"
    ):
        check_driven("kafka-4485")


INTERVAL = 1000


@pytest.mark.parametrize("clock", [0, INTERVAL])
def test_healing_by_the_clock_in_detail(drive: Any, clock: int) -> None:
    """Who is back is not missed, unless a record says so; unread and operators' tasks count not."""
    cluster = drive("kip-46", has_clock=True, failure_interval_ms=clock)
    record, again = znodes.failed_broker_path(2), znodes.encode_broker("127.0.0.1", 9092, 0)
    cluster.die(2)
    back = write(Create(znodes.broker_path(2), again, ephemeral=True), session=2)
    manual = znodes.encode_task(TaskZnode({KEY: (1, 4)}, automatic=False))
    perform(
        cluster,
        [
            control(Create(record, znodes.encode_failed_broker(0))),
            back,
            write(CloseSession((znodes.broker_path(2), "/elsewhere")), session=2),
            control(Delete(record)),
            back,
            control(Create(record, znodes.encode_failed_broker(0))),
            control(Delete(record)),
            control(Create(znodes.task_path(0), b"{")),
            write(Create(znodes.task_path(1), manual)),
        ],
    )
    cluster.hand_over(TimePassed(INTERVAL))
    cluster.hand_over(Rested(cluster.judge.view()))
    cluster.hand_over(ShutdownAsked(1, cluster.judge.view()))
    assert cluster.found == []
    assert not cluster.counted("heal.interval")


def test_worst_verdict_of_several_histories_counts() -> None:
    """What one history violates the others do not make good."""
    each = [ClauseVerdict("a", "MUST", verdict, 2, 1) for verdict in (HOLDS, VIOLATED)]
    assert merge_verdicts(each) == ClauseVerdict("a", "MUST", VIOLATED, 4, 2)
    tally = Tally()
    tally.count(("a",), 0)
    assert tally.exercised == {}


# Which protocol a log is of -----------------------------------------------------------------------


def test_readings_that_logs_settle_otherwise_are_left_to_others() -> None:
    """Two clusters of one protocol settle what both settle alike; a tree alone is no cluster."""
    archives = []
    for version in (3, 4):
        gathered = Gatherer()
        gathered.note("/brokers/ids/1", f'{{"version":{version}}}'.encode())
        gathered.note("/brokers/topics/t", b'{"version":1,"partitions":{}}')
        gathered.note("/admin/reassign_partitions", b"{}")
        gathered.note("/else/controller_epoch", None)
        archives.append((f"log {version}", gathered))
    found = recognise(archives)
    assert found is not None and not isinstance(found, str)
    assert found.profile == "kafka-42"
    assert found.readings == {"move.cut-isr": "yes", "move.expand-first": "yes"}


def test_paths_that_tell_no_more_are_kept_in_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many there are, few are remembered."""
    monkeypatch.setattr("reassure_judge.recognise._MOST_PATHS", 2)
    gathered = Gatherer()
    gathered.note("/controller_epoch", None)
    for number in range(5):
        gathered.note(f"/brokers/topics/t/partitions/{number}/state", b"{}")
    assert len(gathered.told) <= 2


# Kafka's own writes -------------------------------------------------------------------------------

STATE = LeaderAndIsr(1, 4, 1, (1, 2))
ALL = Environment(live=frozenset({1, 2, 3}), known=frozenset({1, 2, 3}), controller_epoch=1)


def ask(profile: str, hosted: Logged, wrote: Any, **readings: str) -> str:
    """Return the clause that a write breaks first, or those that it keeps."""
    chosen = {name.replace("__", "."): value for name, value in readings.items()}
    rules = make_rules(profile, override_readings(get_profile(profile), chosen))
    outcome = rules.accept(Possible(hosted), wrote, ALL)
    if isinstance(outcome, Rejected):
        return f"!{outcome.clause}"
    assert isinstance(outcome, Accepted)
    return " ".join(outcome.clauses)


@pytest.mark.parametrize(
    ("entry", "same", "kept"),
    [
        ((2, 1), "as-set", "move.listener.refuse-same"),
        ((2, 1), "as-list", "move.listener.refuse-dead"),
        ((), "as-list", "move.listener.removes-path"),
        ((3, 3), "as-list", "move.listener.removes-path"),
    ],
)
def test_entry_goes_for_a_reason(entry: tuple[int, ...], same: str, kept: str) -> None:
    """The same replicas, by the reading; nobody; or somebody twice."""
    hosted = Logged((1, 2), state=STATE, entry=entry)
    dead = replace(ALL, live=frozenset({1}))
    rules = make_rules(
        "kafka-42", override_readings(get_profile("kafka-42"), {"move.same-replicas": same})
    )
    outcome = rules.accept(Possible(hosted), DropEntry(), dead)
    assert isinstance(outcome, Accepted)
    assert outcome.clauses[0] == kept


def test_old_replica_is_stopped_under_a_leader_of_the_target() -> None:
    """With the target in sync the others go, once one of the target leads."""
    moving = Logged((1, 2, 3), (3,), (1,), replace(STATE, isr=(1, 2, 3)))
    cut = WriteState(LeaderAndIsr(1, 5, 1, (1, 3)))
    moving = replace(moving, removing=(1, 2), adding=(3,))
    assert ask("kafka-zk", moving, cut) == "!shipped.complete.leader-first"


def test_kafka_partition_that_is_not_there_is_not_shown() -> None:
    """Neither is one owed anything of which no replica is alive."""
    rules = make_rules("kafka-zk", get_profile("kafka-zk"))
    assert rules.show(Logged()) is None
    dead = replace(ALL, live=frozenset())
    assert rules.find_owed(Logged((1, 2)), dead) is None


def test_what_facts_ask_of_the_rules() -> None:
    """Where a partition goes, and what says so, is told by the events of each protocol."""
    entries, lists = (make_rules(name, get_profile(name)) for name in ("kafka-42", "kafka-zk"))
    asked = EntryWritten((3, 4))
    assert (entries.tells_flight(asked), entries.find_target(asked)) == (None, (3, 4))
    assert (entries.find_route(asked), lists.find_route(None)) == ("entry", "lists")
    assert lists.find_assigned(ListsWritten(None)) is None
    shown = lists.show(Logged((1, 2), entry=(3, 4)))
    assert shown is not None and shown.reassignment == Reassignment((3, 4), 2, legacy=True)
    requests = make_rules("kip-236", get_profile("kip-236"))
    record = ReassignmentWritten(Reassignment((3, 4), 2, legacy=True))
    assert requests.find_assigned(AssignedWritten((1, 2))) == (1, 2)
    assert [requests.tells_flight(each) for each in (record, None)] == [True, None]
    assert requests.find_target(ReassignmentWritten(None)) is None
    assert (requests.find_route(record), requests.find_route(None)) == ("legacy record", "record")
    moving = ListsWritten(Assignment((1, 3), (3,), (1,)))
    assert (lists.find_target(moving), lists.find_target(None)) == ((3,), None)
    plain: Any = Rules
    assert (plain.notice(lists, None, None, {}), plain.list_kept(lists, None)) == ((), ())
    assert (plain.find_target(lists, None), plain.find_route(lists, None)) == (None, "")
    assert plain.look_past(lists, 1, 2) == (1, 2)


def test_request_concerns_the_topics_that_it_names() -> None:
    """What is no request, or asks for nothing, concerns the cluster as a whole."""
    router = make_rules("kip-236", get_profile("kip-236")).make_router()
    data = znodes.encode_request(znodes.RequestZnode({KEY: (1, 2)}))
    assert router.find_asked("request_0000000000", data) == {"orders"}
    assert router.find_asked("notes", data) is None
    assert router.find_asked("request_0000000000", b"{") is None


def test_others_judge_what_is_not_owned(simulation: Any) -> None:
    """Nothing is told of a topic that somebody else judges."""
    router = make_rules("kafka-zk", get_profile("kafka-zk")).make_router()
    router.owns = lambda *_: False
    simulation.change_isr(1)
    assert [seen for each in simulation.history for seen in router.feed(each)] == []


def test_broker_may_not_clear_the_queue(simulation: Any) -> None:
    """What is no request is removed by the controller, or by whoever made it."""
    path = f"{znodes.REASSIGNMENT_REQUESTS}/notes"
    simulation.write(Create(path, b""), session=50)
    zxid = simulation.write(Delete(path), session=1)
    assert ("controller.write.by-controller", zxid) in simulation.broken()


def test_profile_that_nobody_knows_has_no_rules() -> None:
    """Whoever asks hears which there are."""
    with pytest.raises(NoRules, match="there are rules for kafka-42"):
        get_rules("nothing")


def test_broker_that_ended_has_to_be_told_again(drive: Any) -> None:
    """Its memory ended with it."""
    cluster = drive("kip-236", hears=True)
    for broker in (1, 2):
        cluster.tell(broker, zxid=cluster.history[-1].zxid, replicas=(1, 2))
    cluster.hand_over(Ended(2))
    cluster.look()
    assert cluster.found == ["message.replica-told"]


def test_cluster_speaks_requests_by_a_sign_of_them(simulation: Any) -> None:
    """A request that waits is one; Kafka's own clusters have none."""
    assert not simulation.judge.router.get_cluster("").speaks_requests()
    simulation.submit(2, 3)
    assert simulation.judge.router.get_cluster("").speaks_requests()


# Lines of brokers ---------------------------------------------------------------------------------


def say(*whats: tuple[int, What], readings: str = "kip-236-amended", **changed: str) -> Tally:
    """Return what comes of one broker's lines, each in a run."""
    head = Writer(tuple(kind for kind in KINDS if kind not in ("writer", "stored")))
    chosen = {name.replace("__", "."): value for name, value in changed.items()}
    judging = get_observing().make_judge(override_readings(get_profile(readings), chosen))
    runs: dict[int, int] = {}
    for number, (run, what) in enumerate(whats, 1):
        if run not in runs:
            judging.feed(Observation("b", run, 0, "", "", -1, NOBODY, 0, 0, head), "told", number)
        runs[run] = runs.get(run, 0) + 1
        said = Observation("b", run, runs[run], "", "t", 0, 2, 1, 3, what)
        judging.feed(said, "told", number)
    return judging.finish(is_over=True)


@pytest.mark.parametrize(
    ("whats", "changed"),
    [
        # Epochs are told, by who begins and by who leads; a later start knows less.
        ([(1, Restored(3, 1, ((0, 0), (2, 1)))), (1, Follow(3, 1))], {}),
        ([(1, Restored(3, 1)), (1, Lead(3, 1, (2, 1), (2,), 1, epochs=((0, 0),)))], {}),
        ([(1, Restored(0, 0)), (1, Follow(0, 0)), (2, Replica(0, 0))], {}),
        # No version of the stored set, an evaluation without a set, an answer that is an error.
        ([(1, Restored(0, 0)), (1, Lead(0, 0, (2, 1), (2,)))], {}),
        (
            [(1, Restored(0, 0)), (1, Lead(0, 0, (2, 1), (2,))), (1, Evaluate((2,), 0))],
            {"isr__members": "memoryless"},
        ),
        ([(1, Evaluate((2,), 0, (2,)))], {"isr__members": "memoryless"}),
        (
            [(1, Restored(0, 0)), (1, Lead(0, 0, (2,), (2,))), (1, Produce(1)), (1, Answer(1, 7))],
            {},
        ),
        # A follower that nobody named, a fetch without a time or without a credit.
        (
            [
                (1, Restored(0, 0)),
                (1, Lead(0, 0, (2, 1), (2, 1), 1, time_ms=1000, lag_ms_max=100)),
                (1, Fetch(1, 0)),
                (1, Fetch(1, 0, time_ms=1001)),
                (1, Fetch(9, 0, time_ms=1002)),
            ],
            {"lag__clock-read": "after-end"},
        ),
        ([(1, Restored(0, 0)), (1, Follow(0, 0))], {"follower__truncation": "own-high-watermark"}),
        (
            [(1, Restored(0, 0)), (1, Follow(0, 0)), (1, Lead(0, 0, (2, 1), (2,)))],
            {"follower__truncation": "leader-end"},
        ),
    ],
)
def test_lines_that_say_less_break_nothing(
    whats: list[tuple[int, What]], changed: dict[str, str]
) -> None:
    """What is left out of a line, or said besides, is no fault."""
    assert say(*whats, **changed).violations == []


def test_leader_that_was_leading_before_is_judged_by_what_it_says() -> None:
    """A write of the in-sync set is judged though nobody saw its author begin to lead."""
    tally = say((1, IsrWrite((1,), 3, 4)))
    assert [v.clause for v in tally.violations] == ["isr.change.leader-kept"]


def test_mark_beyond_the_end_is_told_once() -> None:
    """A leader that begins with such a mark is judged on as if it were at its end."""
    tally = say((1, Restored(0, 0)), (1, Lead(0, 5, (2,), (2,))))
    assert [v.clause for v in tally.violations] == ["hw.at-most-leader-end"]
    place = tally.violations[0].as_dict()
    assert (place["file"], place["line"]) == ("told", 2)


def test_what_zookeeper_says_stands_beside_the_lines() -> None:
    """A stored state is judged with the lines, and a line that is torn is counted as missing."""
    judging = get_observing().make_judge(get_profile("kip-236-amended"))
    lead = Observation("b", 1, 0, "", "t", 0, 2, 1, 3, Lead(0, 0, (2, 1), (2, 1), 4))
    judging.feed(lead, "told", 1)
    judging.tear("b")
    judging.join(lead._replace(broker=NOBODY, what=Stored(2, (2, 1), 4)), "log", 9)
    assert judging.count_gaps() == {"b": 1}
    assert judging.finish(is_over=True).violations == []
