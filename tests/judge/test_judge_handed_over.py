"""Monitors by the events that are handed over: what each keeps or breaks, step by step."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Final

import pytest

from reassure_judge.live_events import (
    ClusterView,
    Ended,
    Event,
    Looked,
    Received,
    Rested,
    ShutdownAsked,
    Wrote,
)
from reassure_judge.messages import Heard, StoredStates, Told
from reassure_judge.monitors import Driven, Monitor
from reassure_judge.protocols.kafka_42.monitor import MoveMonitor
from reassure_judge.protocols.topics.monitor import TopicsMonitor
from reassure_model.outcome import Rejected
from reassure_model.partition import LeaderAndIsr, Partition, Reassignment, to_znode
from reassure_spec import znodes
from reassure_spec.readings import get_profile, override_readings
from reassure_zookeeper.transactions import Check, CloseSession, Create, Delete, Op, SetData, multi

KEY: Final = ("orders", 0)
LIVE: Final = frozenset({1, 2, 3, 4})
LED: Final = LeaderAndIsr(1, 0, 1, (1, 2))
ASKED: Final = znodes.deleted_topic_path("orders")
TOPIC: Final = znodes.topic_path("orders")
OFFICE: Final = Create(znodes.CONTROLLER, znodes.encode_controller(4, 0), ephemeral=True)


class Cluster:
    """One partition of a driven cluster, and what a monitor says of it: broken clauses with a !."""

    def __init__(self, make: type[Monitor], profile: str, readings: dict[str, str]) -> None:
        chosen = override_readings(get_profile(profile), readings)
        self.driven = Driven("", chosen, Heard(), StoredStates(), hears=True)
        self.monitor = make(self.driven)
        first = {KEY: Partition(assigned=(1, 2), state=LED)}
        self.view = ClusterView(first, LIVE, LIVE, 4, 1, (), {})
        self.zxid = 0
        self.found: list[str] = []
        for broker in (1, 2):
            self.tell(broker, delete=False)

    def take(self, event: Event) -> None:
        """Hand an event over."""
        for _, outcome in self.monitor.take(event):
            broken = isinstance(outcome, Rejected)
            self.found.append(f"!{outcome.clause}" if broken else outcome)

    def write(
        self,
        *ops: Op,
        fenced: bool = True,
        live: Iterable[int] = (),
        epoch: int = 0,
        gone: bool = False,
        **changes: Any,
    ) -> None:
        """Commit a transaction, by which the partition changes so, or is gone."""
        self.zxid += 1
        before = self.view
        there = {} if gone else {KEY: replace(before.partitions.get(KEY, Partition()), **changes)}
        alive = frozenset(live) or before.live
        epoch = epoch or before.controller_epoch
        self.view = replace(before, partitions=there, live=alive, controller_epoch=epoch)
        check = (Check(znodes.CONTROLLER_EPOCH, 2),) if fenced else ()
        self.driven.stored.note(self.zxid, there, epoch)
        made = multi(*check, *(ops or (Delete("/none"),)), zxid=self.zxid)
        self.take(Wrote(made, before, self.view))

    def tell(self, broker: int, *, delete: bool = True, halt: bool = False, epoch: int = 1) -> None:
        """Tell a broker to delete its replica, to halt it, or to follow what is stored."""
        state = None if delete or halt else to_znode(self.view.partitions[KEY].state or LED)
        told = Told(broker, *KEY, epoch, state, (), delete=delete, zxid=self.zxid)
        self.driven.heard.take(told)
        self.take(Received(told))


Act = Callable[[Cluster], None]


def write(*ops: Op, **changes: Any) -> Act:
    """Return a transaction of the controller."""
    return lambda cluster: cluster.write(*ops, **changes)


def client(*ops: Op, **changes: Any) -> Act:
    """Return a transaction of somebody else."""
    return write(*ops, fenced=False, **changes)


def entry(*target: int) -> Act:
    """Return a client's write of the old znode."""
    return client(reassignment=Reassignment(target, 2, legacy=True))


def state(leader: int, epoch: int, *isr: int) -> dict[str, LeaderAndIsr]:
    """Return leader and in-sync set."""
    return {"state": LeaderAndIsr(leader, epoch, 1, isr)}


def tell(broker: int, **how: Any) -> Act:
    """Return what a broker is told."""
    return lambda cluster: cluster.tell(broker, **how)


def rest(cluster: Cluster) -> None:
    """Let the cluster rest."""
    cluster.take(Rested(cluster.view))
    cluster.take(Looked(cluster.view, cluster.view.live, rests=True))


def look(cluster: Cluster) -> None:
    """Hand over that all has been handed over."""
    cluster.take(Looked(cluster.view, cluster.view.live, rests=False))


def stop(broker: int) -> Act:
    """Return that a broker asks to stop."""
    return lambda cluster: cluster.take(ShutdownAsked(broker, cluster.view))


def end(broker: int) -> Act:
    """Return that a broker's process ends."""
    return lambda cluster: cluster.take(Ended(broker))


elect = client(OFFICE)
done = write(reassignment=None)
GROWN = client(**state(1, 0, 1, 2, 3))
"""Broker 3 joins the in-sync set."""
DIED = client(live=(2, 3, 4))
"""Broker 1, which leads, dies."""
SELECTED = ["move.selector.reassigned", "move.partition.self-transition"]
WAITS = ["move.step.start-new", "move.failure.never-in-sync"]
MOVED: Final = (
    entry(3, 4),
    client(**state(1, 0, 1, 2, 3, 4)),
    write(**state(3, 1, 1, 2, 3, 4)),
    write(**state(3, 2, 3, 4)),
)
ASSIGNED: Final = write(assigned=(3, 4), reassignment=None)
Case = tuple[tuple[Act, ...], list[str]]


def case(found: list[str], *acts: Act) -> Case:
    """Return steps, and what they come to."""
    return acts, found


MOVES: Final[dict[str, Case]] = {
    "a first state": case([], client(state=None), write(state=LED)),
    "a state is removed": case([], write(state=None)),
    "a partition is gone": case([], write(gone=True)),
    "a dead follower is cut": case([], client(live=(1, 3, 4)), write(**state(1, 1, 1))),
    "nobody leads": case([], write(**state(-1, 1, 1, 2))),
    "an election at a death": case(["move.selector.offline"], DIED, write(**state(2, 1, 1, 2))),
    "an election of a stranger": case(["!move.selector.offline"], DIED, write(**state(3, 1, 3))),
    "the target takes over": case(SELECTED, entry(3, 4), GROWN, write(**state(3, 1, 1, 2, 3))),
    "who is not in sync takes over": case(
        ["!move.selector.reassigned", "move.partition.self-transition"],
        *(entry(3, 4), write(**state(3, 1, 1, 2))),
    ),
    "an election for no move": case([], write(**state(2, 1, 1, 2))),
    "a needless election is left out": case(
        ["move.failover.no-needless-election"],
        *(elect, entry(1, 2), elect, write(**state(1, 1, 1, 2))),
    ),
    "a needless election": case(
        ["!move.failover.no-needless-election", *SELECTED],
        *(elect, entry(1, 2), elect, write(**state(2, 1, 1, 2))),
    ),
    "a move goes on after a failover": case(
        ["move.failover.resumes", "move.failover.re-elects"],
        *(elect, entry(1, 3), GROWN, DIED, elect, write(assigned=(1, 3)), done),
    ),
    "a move is given up after a failover": case(
        ["!move.failover.re-elects"],
        *(elect, entry(1, 3), GROWN, DIED, elect, done),
    ),
    "a move changes after a failover": case(
        [], elect, entry(1, 3), GROWN, DIED, elect, entry(4, 3), done
    ),
    "nobody of the target is left": case(
        [],
        *(elect, entry(1, 3), GROWN, client(live=(2, 4)), elect, done),
    ),
    "an assignment that nobody asked for": case([], write(assigned=(1, 2, 3))),
    "a move that was taken up ends": case(
        ["!move.step.start-new", "move.failure.never-in-sync", "move.step.listen"],
        *(entry(1, 3), rest, GROWN, write(assigned=(1, 3), reassignment=None)),
    ),
    "another move is begun with": case(
        [
            *("!move.step.start-new", "move.failure.never-in-sync"),
            *("move.step.listen", "!move.listener.ignore-in-flight"),
        ],
        *(entry(1, 3), rest, entry(3, 2), GROWN, write(assigned=(3, 2))),
    ),
    "the first move goes on": case(
        [
            *("!move.step.start-new", "move.failure.never-in-sync"),
            *("move.step.listen", "move.listener.ignore-in-flight"),
        ],
        *(entry(1, 3), rest, entry(3, 2), GROWN, write(assigned=(1, 3))),
    ),
    "nobody knows which target was taken up": case([], entry(1, 3), entry(3, 2), rest),
    "a partition that is not there is asked for": case(
        ["!move.listener.refuse-missing"], client(gone=True), entry(1, 3), rest
    ),
    "a target in sync waits": case(["!move.step.listen"], entry(2, 1), rest),
    "a target in sync waits after a failover": case(
        ["!move.failover.resumes"], elect, entry(2, 1), elect, rest
    ),
    "a target that is assigned waits": case(["!move.step.remove-path"], entry(1, 2), rest),
    "the same is asked for": case(
        ["!move.listener.refuse-same"], client(**state(1, 0, 1)), entry(1, 2), rest
    ),
    "who is dead is asked for": case(
        ["!move.listener.refuse-dead"], client(live=(1, 2, 4)), entry(1, 3), rest
    ),
    "a move that completes waits": case([], entry(1, 3), client(completing=True), rest),
    "the target is started": case(WAITS, entry(1, 3), tell(3, delete=False), rest),
    "the target goes on being awaited": case(
        ["move.failover.resumes", *WAITS], elect, entry(1, 3), elect, tell(3, delete=False), rest
    ),
    "an old replica is stopped while the target is awaited": case(
        ["move.step.start-new", "!move.failure.never-in-sync"],
        *(entry(1, 4), tell(4, delete=False), tell(2), rest),
    ),
    "the old ones are stopped before the end": case(
        [*SELECTED, "move.step.stop-old", "move.step.stop-old"],
        *(*MOVED, tell(1), tell(2), ASSIGNED, rest),
    ),
    "one is never stopped": case(
        [*SELECTED, "move.step.stop-old", "!move.step.stop-old"],
        *(*MOVED, tell(1), ASSIGNED, rest),
    ),
    "one is stopped after the end": case(
        [*SELECTED, "move.step.stop-old", "!move.step.write-assigned"],
        *(*MOVED, tell(1), ASSIGNED, tell(2), rest),
    ),
    "entries and topics are rewritten": case(
        ["shipped.entry.client-asks"],
        write(SetData(znodes.REASSIGN_PARTITIONS, b"{}", 1)),
        write(SetData(TOPIC, b"{}", 1), SetData("/elsewhere", b"", 1)),
    ),
}
"""By what happens: the steps, and what they come to."""


def play(cluster: Cluster, acts: Iterable[Act]) -> list[str]:
    """Return what comes of steps."""
    for act in acts:
        act(cluster)
    return cluster.found


@pytest.mark.parametrize("name", MOVES)
def test_what_brokers_are_told_is_not_judged_unheard(name: str) -> None:
    """Where nobody hears that, nothing is said of who was started or stopped; all else is."""
    cluster = Cluster(MoveMonitor, "kafka-42", {"election.unclean": "no"})
    cluster.monitor = MoveMonitor(replace(cluster.driven, hears=False))
    acts, found = MOVES[name]
    by_words = (*WAITS, "move.step.stop-old", "move.step.write-assigned")
    assert play(cluster, acts) == [each for each in found if each.strip("!") not in by_words]


@pytest.mark.parametrize("hears", [True, False])
def test_leaders_admit_whom_they_were_told_of(drive: Callable[..., Any], hears: bool) -> None:
    """By what a leader received where that is heard; else by what monitors make of the log."""
    cluster = drive("kip-236", hears=hears)
    cluster.tell(1, zxid=1, replicas=(1, 2, 3))
    admitted = cluster.live.list_admitted(cluster.judge.view().partitions)
    assert admitted == ({KEY: (1, 2, 3)} if hears else {})


def test_who_was_taken_up_is_admitted_where_nobody_hears() -> None:
    """The target named at a rest is, until the end; not one that another controller took up."""
    cluster = Cluster(MoveMonitor, "kafka-42", {})
    monitor = MoveMonitor(replace(cluster.driven, hears=False))
    cluster.monitor = monitor
    play(cluster, (elect, entry(1, 3)))
    assert monitor.admitted == {}
    play(cluster, (rest, entry(1, 4), rest))
    assert monitor.admitted == {KEY: (1, 3)}
    play(cluster, (elect, rest))
    assert monitor.admitted == {}
    play(cluster, (write(reassignment=None), entry(3, 2), rest))
    assert monitor.admitted == {KEY: (3, 2)}


RECHECKED: Final[dict[str, Case]] = {
    "the target leads and is in sync": case(["move.stop.recheck"], entry(1, 3), GROWN, tell(2)),
    "the target is not in sync": case(["!move.stop.recheck"], entry(1, 3), tell(2)),
    "nobody asked": case([], client(), tell(2)),
    "it is of the target": case([], entry(1, 3), tell(3)),
    "it is started": case([], entry(1, 3), tell(2, delete=False)),
}


READ_OTHERWISE: Final[dict[str, tuple[dict[str, str], Case]]] = {
    "the same replicas in another order": (
        {"move.same-replicas": "as-set"},
        case(["!move.listener.refuse-same"], client(**state(1, 0, 1)), entry(2, 1), rest),
    ),
    "a dead replica is waited for": (
        {"target.dead-replica": "wait"},
        case([], client(live=(1, 2, 4)), entry(1, 3), rest),
    ),
    "an unclean election is the last resort": (
        {"election.unclean": "last-resort"},
        case(
            ["move.selector.offline"],
            *(client(**state(1, 0, 1)), DIED, write(**state(2, 1, 2))),
        ),
    ),
    "a move with somebody dead is refused at a failover": (
        {"move.dead-at-failover": "refuse"},
        case([], elect, entry(1, 3), GROWN, DIED, elect, done),
    ),
}
ALL_MOVES = {
    **{name: ({"election.unclean": "no"}, made) for name, made in MOVES.items()},
    **{name: ({"move.recheck-before-stop": "yes"}, made) for name, made in RECHECKED.items()},
    **READ_OTHERWISE,
}


@pytest.mark.clause("move.step.stop-old", "move.stop.recheck")
@pytest.mark.parametrize("name", ALL_MOVES)
def test_first_reassignment_is_judged_by_events(name: str) -> None:
    """What a move keeps or breaks is told at the event that shows it, as it is read.

    Where that is asked for, an old replica is stopped only with the target in sync and leading.
    """
    readings, (acts, found) = ALL_MOVES[name]
    assert play(Cluster(MoveMonitor, "kafka-42", readings), acts) == found


def delete_topic(*before: Act, after: tuple[Act, ...] = ()) -> tuple[Act, ...]:
    """Return a deletion of the topic: asked for, then carried out and ended."""
    removed = write(Delete(TOPIC), gone=True)
    return (client(Create(ASKED, b"")), *before, removed, *after, write(Delete(ASKED), gone=True))


SETTINGS: Final = znodes.topic_config_path("orders")
PREFERRED: Final = Create(
    znodes.PREFERRED_ELECTION, b'{"version":1,"partitions":[{"topic":"orders","partition":0}]}'
)
NO_PREFERRED: Final = write(Delete(znodes.PREFERRED_ELECTION))
ENDED: Final = [
    "topic.delete.asked-last",
    "topic.delete.config-not-left",
    "act.deletion-carried-out",
]
ANSWERED: Final = "topic.delete.all-successful-first"
BOTH: Final = (tell(1), tell(2))
GO: Final = Delete(znodes.broker_path(1))
TOPICS: Final[dict[str, Case]] = {
    "both delete their logs": case([*ENDED, ANSWERED], *delete_topic(*BOTH), look),
    "one deletes its log": case([*ENDED, f"!{ANSWERED}"], *delete_topic(tell(1)), look),
    "one is started again": case(
        [*ENDED, f"!{ANSWERED}"], *delete_topic(*BOTH, tell(2, delete=False)), look
    ),
    "another controller begins again": case(
        [*ENDED, ANSWERED, "topic.delete.failover-begins-again"],
        *(*delete_topic(*BOTH, write(epoch=2), tell(1, epoch=2), tell(2, epoch=2)), look),
    ),
    "the deletion waits for a move": case(
        ["topic.delete.waits-for-reassignment", *ENDED], *delete_topic(entry(3, 4), done)
    ),
    "the topic goes in a move": case(
        ["!topic.delete.waits-for-reassignment", *ENDED], *delete_topic(entry(3, 4))
    ),
    "the deletion waits for a broker": case(
        ["topic.delete.waits-for-brokers", *ENDED],
        *delete_topic(client(live=(1, 3, 4)), client(live=LIVE)),
    ),
    "the topic goes without a broker": case(
        ["!topic.delete.waits-for-brokers", *ENDED], client(live=(1, 3, 4)), *delete_topic()
    ),
    "a deletion is begun without a broker": case(
        ["!topic.delete.waits-for-brokers"],
        *(client(live=(1, 3, 4)), client(Create(ASKED, b"")), tell(1), tell(1), look),
    ),
    "a deletion is begun without a broker that went before a rest": case(
        ["topic.delete.waits-for-brokers", "!topic.delete.waits-for-brokers"],
        *(client(Create(ASKED, b"")), client(live=(1, 3, 4)), rest, client(), tell(1), look),
    ),
    "a broker goes as a deletion is begun": case(
        [], client(Create(ASKED, b"")), client(live=(1, 3, 4)), tell(1), look
    ),
    "a deletion is begun in a move": case(
        ["!topic.delete.waits-for-reassignment"],
        *(client(Create(ASKED, b"")), entry(1, 4), tell(1), look),
    ),
    "a move stops a replica of a topic that is to go": case(
        [], client(Create(ASKED, b"")), entry(1, 4), tell(2), look
    ),
    "who stops is told so while a deletion waits": case(
        [],
        client(live=(1, 3, 4)),
        client(Create(ASKED, b"")),
        stop(1),
        tell(1, delete=False, halt=True),
        look,
    ),
    "a znode of a topic goes without a broker": case(
        ["!topic.delete.waits-for-brokers", *ENDED],
        *(client(live=(1, 3, 4)), *delete_topic(write(Delete(f"{TOPIC}/partitions")))),
    ),
    "who came back is told again": case(
        ["topic.delete.waits-for-brokers", *ENDED, ANSWERED, "topic.delete.failed-retried-later"],
        *(*delete_topic(client(live=(1, 3, 4)), client(live=LIVE), *BOTH), look),
    ),
    "who came back is not told": case(
        ["topic.delete.waits-for-brokers", *ENDED, "!topic.delete.failed-retried-later"],
        *(*delete_topic(client(live=(1, 3, 4)), client(live=LIVE), tell(1)), look),
    ),
    "the topic is still there": case(
        ["!topic.delete.asked-last"], client(Create(ASKED, b"")), write(Delete(ASKED))
    ),
    "the settings are still there": case(
        ["!topic.delete.config-not-left"], client(Create(SETTINGS, b"{}")), *delete_topic()
    ),
    "the settings go as well": case(
        ENDED,
        client(Create(SETTINGS, b"{}")),
        *delete_topic(after=(write(Delete(SETTINGS), gone=True),)),
    ),
    "no such topic": case(
        ["topic.delete.unknown-removed"],
        *(
            client(gone=True),
            client(Create(ASKED, b""), gone=True),
            write(Delete(ASKED), gone=True),
        ),
    ),
    "no such topic is waited for": case(
        ["!topic.delete.unknown-removed"],
        *(client(gone=True), client(Create(ASKED, b""), gone=True), rest),
    ),
    "a topic that is gone is waited for": case(
        [f"!{ANSWERED}", "!act.deletion-carried-out"],
        *(client(Create(ASKED, b"")), write(Delete(TOPIC), gone=True), rest),
    ),
    "nothing hinders a deletion": case(
        ["!act.deletion-carried-out"], client(Create(ASKED, b"")), rest
    ),
    "a move hinders a deletion": case(
        ["topic.delete.waits-for-reassignment"], client(Create(ASKED, b"")), entry(3, 4), rest
    ),
    "a broker hinders a deletion": case(
        ["topic.delete.waits-for-brokers"], client(Create(ASKED, b""), live=(1, 3, 4)), rest
    ),
    "the preferred one is elected": case(
        ["act.preferred-election-held"],
        *(client(**state(2, 1, 1, 2)), client(PREFERRED), write(**state(1, 2, 1, 2)), NO_PREFERRED),
    ),
    "the preferred one is not elected": case(
        ["!act.preferred-election-held"],
        *(client(**state(2, 1, 1, 2)), client(PREFERRED), NO_PREFERRED),
    ),
    "the preferred one leads": case([], client(PREFERRED), NO_PREFERRED),
    "nobody is there to be preferred": case(
        [], client(gone=True), client(PREFERRED, gone=True), NO_PREFERRED
    ),
    "who asks cannot be read": case(
        [], client(Create(znodes.PREFERRED_ELECTION, b"{")), NO_PREFERRED
    ),
    "a preferred election is left undone": case(
        ["!act.preferred-election-held"], client(PREFERRED), rest
    ),
    "a leader hands over": case(
        ["act.shutdown-handed-over"], stop(1), write(**state(2, 1, 2)), client(GO, live=(2, 3, 4))
    ),
    "a leader stops in office": case(
        ["!act.shutdown-handed-over"], stop(1), client(GO, live=(2, 3, 4))
    ),
    "a session ends in office": case(
        ["!act.shutdown-handed-over"],
        *(stop(1), client(CloseSession((znodes.broker_path(1),)), live=(2, 3, 4))),
    ),
    "a topic goes while its leader stops": case(
        ["act.shutdown-handed-over"], stop(1), write(gone=True), client(GO, gone=True)
    ),
    "a follower stops in sync": case(
        ["!act.shutdown-handed-over"],
        *(client(**state(2, 1, 1, 2)), stop(1), client(GO, live=(2, 3, 4))),
    ),
    "who had nothing stops": case([], stop(3), client(Delete(znodes.broker_path(3)))),
    "nothing is there to hand over": case([], client(gone=True), stop(1), client(GO, gone=True)),
    "who was killed hands nothing over": case([], stop(1), end(1), client(GO, live=(2, 3, 4))),
    "who did not ask hands nothing over": case([], client(GO, live=(2, 3, 4))),
}
"""By what happens: the steps, and what they come to."""


@pytest.mark.clause(ANSWERED)
@pytest.mark.clause("act.deletion-carried-out")
@pytest.mark.clause("act.shutdown-handed-over")
@pytest.mark.parametrize("name", TOPICS)
def test_topics_are_judged_by_events(name: str) -> None:
    """Deletions, preferred elections and shutdowns are told at the event that shows them."""
    acts, found = TOPICS[name]
    assert play(Cluster(TopicsMonitor, "kip-236", {}), acts) == found
