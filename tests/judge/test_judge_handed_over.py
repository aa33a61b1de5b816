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

    def tell(self, broker: int, *, delete: bool = True, epoch: int = 1) -> None:
        """Tell a broker to stop its replica, or to follow what is stored."""
        state = None if delete else to_znode(self.view.partitions[KEY].state or LED)
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
ASSIGNS = ["assigned.change.only-as-due", "assigned.no-duplicates"]
LEADS = ["leader.assigned", "election.held"]
SELECTED = ["leader.assigned", "move.selector.reassigned", "move.partition.self-transition"]
WAITS = ["move.step.start-new", "move.failure.never-in-sync"]
MOVED: Final = (
    entry(3, 4),
    client(**state(1, 0, 1, 2, 3, 4)),
    write(**state(3, 1, 1, 2, 3, 4)),
    write(**state(3, 2, 3, 4)),
)
ASSIGNED: Final = write(assigned=(3, 4), reassignment=None)
Case = tuple[tuple[Act, ...], list[str]]
MOVES: Final[dict[str, Case]] = {
    "a first state": ((client(state=None), write(state=LED)), ["partition.new.brought-online"]),
    "a state is removed": ((write(state=None),), []),
    "a partition is gone": ((write(gone=True),), []),
    "a dead follower is cut": (
        (client(live=(1, 3, 4)), write(**state(1, 1, 1))),
        ["isr.remove.dead"],
    ),
    "nobody leads": ((write(**state(-1, 1, 1, 2)),), []),
    "an election at a death": (
        (DIED, write(**state(2, 1, 1, 2))),
        [*LEADS, "move.selector.offline"],
    ),
    "an election of a stranger": (
        (DIED, write(**state(3, 1, 3))),
        [*["isr.remove.dead"], *LEADS, "!move.selector.offline"],
    ),
    "the target takes over": ((entry(3, 4), GROWN, write(**state(3, 1, 1, 2, 3))), SELECTED),
    "who is not in sync takes over": (
        (entry(3, 4), write(**state(3, 1, 1, 2))),
        ["leader.assigned", "!move.selector.reassigned", "move.partition.self-transition"],
    ),
    "an election for no move": ((write(**state(2, 1, 1, 2)),), ["leader.assigned"]),
    "a needless election is left out": (
        (elect, entry(1, 2), elect, write(**state(1, 1, 1, 2))),
        ["move.failover.no-needless-election"],
    ),
    "a needless election": (
        (elect, entry(1, 2), elect, write(**state(2, 1, 1, 2))),
        [*SELECTED[:1], "!move.failover.no-needless-election", *SELECTED[1:]],
    ),
    "a move goes on after a failover": (
        (elect, entry(1, 3), GROWN, DIED, elect, write(assigned=(1, 3)), done),
        [*ASSIGNS, "move.failover.resumes", "move.failover.re-elects"],
    ),
    "a move is given up after a failover": (
        (elect, entry(1, 3), GROWN, DIED, elect, done),
        ["!move.failover.re-elects", "request.refuse.dead-replica"],
    ),
    "a move changes after a failover": (
        (elect, entry(1, 3), GROWN, DIED, elect, entry(4, 3), done),
        [],
    ),
    "nobody of the target is left": (
        (elect, entry(1, 3), GROWN, client(live=(2, 4)), elect, done),
        ["request.refuse.dead-replica"],
    ),
    "an assignment that nobody asked for": ((write(assigned=(1, 2, 3)),), ASSIGNS),
    "a move that was taken up ends": (
        (entry(1, 3), rest, GROWN, write(assigned=(1, 3), reassignment=None)),
        ["!move.step.start-new", "move.failure.never-in-sync", *ASSIGNS, "move.step.listen"],
    ),
    "another move is begun with": (
        (entry(1, 3), rest, entry(3, 2), GROWN, write(assigned=(3, 2))),
        [
            *("!move.step.start-new", "move.failure.never-in-sync", *ASSIGNS),
            *("move.step.listen", "!move.listener.ignore-in-flight"),
        ],
    ),
    "the first move goes on": (
        (entry(1, 3), rest, entry(3, 2), GROWN, write(assigned=(1, 3))),
        [
            *("!move.step.start-new", "move.failure.never-in-sync", *ASSIGNS),
            *("move.step.listen", "move.listener.ignore-in-flight"),
        ],
    ),
    "nobody knows which target was taken up": ((entry(1, 3), entry(3, 2), rest), []),
    "a partition that is not there is asked for": (
        (client(gone=True), entry(1, 3), rest),
        ["!move.listener.refuse-missing"],
    ),
    "a target in sync waits": ((entry(2, 1), rest), ["!move.step.listen"]),
    "a target in sync waits after a failover": (
        (elect, entry(2, 1), elect, rest),
        ["!move.failover.resumes"],
    ),
    "a target that is assigned waits": ((entry(1, 2), rest), ["!move.step.remove-path"]),
    "the same is asked for": (
        (client(**state(1, 0, 1)), entry(1, 2), rest),
        ["!move.listener.refuse-same"],
    ),
    "who is dead is asked for": (
        (client(live=(1, 2, 4)), entry(1, 3), rest),
        ["!move.listener.refuse-dead"],
    ),
    "a move that completes waits": ((entry(1, 3), client(completing=True), rest), []),
    "the target is started": ((entry(1, 3), tell(3, delete=False), rest), WAITS),
    "the target goes on being awaited": (
        (elect, entry(1, 3), elect, tell(3, delete=False), rest),
        [*WAITS, "move.failover.resumes"],
    ),
    "an old replica is stopped while the target is awaited": (
        (entry(1, 4), tell(4, delete=False), tell(2), rest),
        ["move.step.start-new", "!move.failure.never-in-sync"],
    ),
    "the old ones are stopped before the end": (
        (*MOVED, tell(1), tell(2), ASSIGNED, rest),
        [*SELECTED, *ASSIGNS, "move.step.stop-old", "move.step.stop-old"],
    ),
    "one is never stopped": (
        (*MOVED, tell(1), ASSIGNED, rest),
        [*SELECTED, *ASSIGNS, "move.step.stop-old", "!move.step.stop-old"],
    ),
    "one is stopped after the end": (
        (*MOVED, tell(1), ASSIGNED, tell(2), rest),
        [*SELECTED, *ASSIGNS, "move.step.stop-old", "!move.step.write-assigned"],
    ),
    "entries and topics are rewritten": (
        (
            write(SetData(znodes.REASSIGN_PARTITIONS, b"{}", 1)),
            write(SetData(TOPIC, b"{}", 1), SetData("/elsewhere", b"", 1)),
        ),
        ["shipped.entry.client-asks", "topic.content-kept", "topic.partitions-kept"],
    ),
}
"""By what happens: the steps, and what they come to."""


def play(cluster: Cluster, acts: Iterable[Act]) -> list[str]:
    """Return what comes of steps."""
    for act in acts:
        act(cluster)
    return cluster.found


@pytest.mark.clause("move.step.stop-old")
@pytest.mark.parametrize("name", MOVES)
def test_first_reassignment_is_judged_by_events(name: str) -> None:
    """What a move keeps or breaks is told at the event that shows it."""
    acts, found = MOVES[name]
    readings = {"election.unclean": "no"}
    assert play(Cluster(MoveMonitor, "kafka-42", readings), acts) == found


def test_move_is_not_judged_unheard() -> None:
    """Where nobody hears what brokers are told, nothing is said of who was stopped."""
    heard = Cluster(MoveMonitor, "kafka-42", {})
    assert heard.monitor.is_able()
    assert not MoveMonitor(replace(heard.driven, hears=False)).is_able()


RECHECKED: Final[dict[str, Case]] = {
    "the target leads and is in sync": ((entry(1, 3), GROWN, tell(2)), ["move.stop.recheck"]),
    "the target is not in sync": ((entry(1, 3), tell(2)), ["!move.stop.recheck"]),
    "nobody asked": ((client(), tell(2)), []),
    "it is of the target": ((entry(1, 3), tell(3)), []),
    "it is started": ((entry(1, 3), tell(2, delete=False)), []),
}


@pytest.mark.clause("move.stop.recheck")
@pytest.mark.parametrize("name", RECHECKED)
def test_old_replica_is_stopped_after_another_look(name: str) -> None:
    """Where it is asked for, an old replica is stopped only with the target in sync and leading."""
    acts, found = RECHECKED[name]
    readings = {"move.recheck-before-stop": "yes"}
    assert play(Cluster(MoveMonitor, "kafka-42", readings), acts) == found


@pytest.mark.parametrize(
    ("readings", "acts", "found"),
    [
        (
            {"move.same-replicas": "as-set"},
            (client(**state(1, 0, 1)), entry(2, 1), rest),
            ["!move.listener.refuse-same"],
        ),
        ({"target.dead-replica": "wait"}, (client(live=(1, 2, 4)), entry(1, 3), rest), []),
        (
            {"election.unclean": "last-resort"},
            (client(**state(1, 0, 1)), DIED, write(**state(2, 1, 2))),
            ["isr.remove.dead", *LEADS, "move.selector.offline"],
        ),
        (
            {"move.dead-at-failover": "refuse"},
            (elect, entry(1, 3), GROWN, DIED, elect, done),
            ["request.refuse.dead-replica"],
        ),
    ],
)
def test_readings_of_the_first_reassignment(
    readings: dict[str, str], acts: tuple[Act, ...], found: list[str]
) -> None:
    """Each value that is read otherwise comes to something else."""
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
    "both delete their logs": ((*delete_topic(*BOTH), look), [*ENDED, ANSWERED]),
    "one deletes its log": ((*delete_topic(tell(1)), look), [*ENDED, f"!{ANSWERED}"]),
    "one is started again": (
        (*delete_topic(*BOTH, tell(2, delete=False)), look),
        [*ENDED, f"!{ANSWERED}"],
    ),
    "another controller begins again": (
        (*delete_topic(*BOTH, write(epoch=2), tell(1, epoch=2), tell(2, epoch=2)), look),
        [*ENDED, ANSWERED, "topic.delete.failover-begins-again"],
    ),
    "the deletion waits for a move": (
        delete_topic(entry(3, 4), done),
        ["topic.delete.waits-for-reassignment", *ENDED],
    ),
    "the topic goes in a move": (
        delete_topic(entry(3, 4)),
        ["!topic.delete.waits-for-reassignment", *ENDED],
    ),
    "the deletion waits for a broker": (
        delete_topic(client(live=(1, 3, 4)), client(live=LIVE)),
        ["topic.delete.waits-for-brokers", *ENDED],
    ),
    "the topic goes without a broker": (
        (client(live=(1, 3, 4)), *delete_topic()),
        ["!topic.delete.waits-for-brokers", *ENDED],
    ),
    "who came back is told again": (
        (*delete_topic(client(live=(1, 3, 4)), client(live=LIVE), *BOTH), look),
        ["topic.delete.waits-for-brokers", *ENDED, ANSWERED, "topic.delete.failed-retried-later"],
    ),
    "who came back is not told": (
        (*delete_topic(client(live=(1, 3, 4)), client(live=LIVE), tell(1)), look),
        ["topic.delete.waits-for-brokers", *ENDED, "!topic.delete.failed-retried-later"],
    ),
    "the topic is still there": (
        (client(Create(ASKED, b"")), write(Delete(ASKED))),
        ["!topic.delete.asked-last"],
    ),
    "the settings are still there": (
        (client(Create(SETTINGS, b"{}")), *delete_topic()),
        ["!topic.delete.config-not-left"],
    ),
    "the settings go as well": (
        (
            client(Create(SETTINGS, b"{}")),
            *delete_topic(after=(write(Delete(SETTINGS), gone=True),)),
        ),
        ENDED,
    ),
    "no such topic": (
        (client(gone=True), client(Create(ASKED, b""), gone=True), write(Delete(ASKED), gone=True)),
        ["topic.delete.unknown-removed"],
    ),
    "no such topic is waited for": (
        (client(gone=True), client(Create(ASKED, b""), gone=True), rest),
        ["!topic.delete.unknown-removed"],
    ),
    "a topic that is gone is waited for": (
        (client(Create(ASKED, b"")), write(Delete(TOPIC), gone=True), rest),
        [f"!{ANSWERED}", "!act.deletion-carried-out"],
    ),
    "nothing hinders a deletion": (
        (client(Create(ASKED, b"")), rest),
        ["!act.deletion-carried-out"],
    ),
    "a move hinders a deletion": (
        (client(Create(ASKED, b"")), entry(3, 4), rest),
        ["topic.delete.waits-for-reassignment"],
    ),
    "a broker hinders a deletion": (
        (client(Create(ASKED, b""), live=(1, 3, 4)), rest),
        ["topic.delete.waits-for-brokers"],
    ),
    "the preferred one is elected": (
        (client(**state(2, 1, 1, 2)), client(PREFERRED), write(**state(1, 2, 1, 2)), NO_PREFERRED),
        ["act.preferred-election-held"],
    ),
    "the preferred one is not elected": (
        (client(**state(2, 1, 1, 2)), client(PREFERRED), NO_PREFERRED),
        ["!act.preferred-election-held"],
    ),
    "the preferred one leads": ((client(PREFERRED), NO_PREFERRED), []),
    "nobody is there to be preferred": (
        (client(gone=True), client(PREFERRED, gone=True), NO_PREFERRED),
        [],
    ),
    "who asks cannot be read": (
        (client(Create(znodes.PREFERRED_ELECTION, b"{")), NO_PREFERRED),
        [],
    ),
    "a preferred election is left undone": (
        (client(PREFERRED), rest),
        ["!act.preferred-election-held"],
    ),
    "a leader hands over": (
        (stop(1), write(**state(2, 1, 2)), client(GO, live=(2, 3, 4))),
        ["act.shutdown-handed-over"],
    ),
    "a leader stops in office": (
        (stop(1), client(GO, live=(2, 3, 4))),
        ["!act.shutdown-handed-over"],
    ),
    "a session ends in office": (
        (stop(1), client(CloseSession((znodes.broker_path(1),)), live=(2, 3, 4))),
        ["!act.shutdown-handed-over"],
    ),
    "a topic goes while its leader stops": (
        (stop(1), write(gone=True), client(GO, gone=True)),
        ["act.shutdown-handed-over"],
    ),
    "a follower stops in sync": (
        (client(**state(2, 1, 1, 2)), stop(1), client(GO, live=(2, 3, 4))),
        ["!act.shutdown-handed-over"],
    ),
    "who had nothing stops": ((stop(3), client(Delete(znodes.broker_path(3)))), []),
    "nothing is there to hand over": ((client(gone=True), stop(1), client(GO, gone=True)), []),
    "who was killed hands nothing over": ((stop(1), end(1), client(GO, live=(2, 3, 4))), []),
    "who did not ask hands nothing over": ((client(GO, live=(2, 3, 4)),), []),
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
