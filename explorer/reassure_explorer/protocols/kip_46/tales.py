"""What readers of KIP-46 take for granted of tasks, and the stories that break it."""

from typing import Final

from reassure_explorer.promises import Find, Meeting, SmallWorld, Tale, make_world
from reassure_model.protocols import kip_46
from reassure_model.protocols.kip_46 import Cluster, HealingConfig, Submit
from reassure_model.protocols.kip_46.machine import MACHINE, find_made_twice, find_two_meanings
from reassure_spec.readings import Readings
from reassure_spec.znodes import ReplicaList

CONFIG: Final = HealingConfig()


def _find_stopped_queue(cluster: Cluster, readings: Readings) -> str | None:
    """Say so when the broker that a running task copies to is dead and another task waits."""
    running = kip_46.find_running(cluster)
    if running is None or kip_46.next_effect(cluster, CONFIG, readings) is not None:
        return None
    hosted = ((kip_46.get_hosted(cluster, key), target) for key, target in running.assignments)
    new = [r for h, target in hosted for r in target if h is not None and r not in h.assigned]
    dead = [replica for replica in new if replica not in cluster.live]
    return f"{dead[0]} is dead and a task waits behind it" if dead and cluster.tasks[1:] else None


def _tale(
    name: str,
    clause: str,
    statement: str,
    finding: str,
    steps: int,
    assignments: tuple[ReplicaList, ...],
    find: Find,
    *,
    brokers: int = 3,
    deaths: int = 1,
    returns: int = 0,
    failovers: int = 0,
    ticks: int = 1,
) -> Tale:
    ids = range(1, brokers + 1)
    keys = {("t", number): replicas for number, replicas in enumerate(assignments)}
    times = {"deaths": deaths, "returns": returns, "failovers": failovers, "ticks": ticks}

    def make(readings: Readings, called: str) -> SmallWorld:
        first = kip_46.make_cluster(dict.fromkeys(ids), keys)
        return make_world(
            MACHINE, readings, {called: find}, (), first, times=times, closing=("show",)
        )

    return Tale(name, clause, statement, finding, steps, "kip-46", make)


_FIND: Final = {each.clause: each.find for each in MACHINE.properties}

TALES: Final = (
    _tale(
        "story-task-removes-no-live-replica",
        "heal.task.no-live-replica-removed",
        "As written, where stale tasks are executed, an automatic task removes no live replica.",
        "heal-1",
        9,
        ((1, 2),),
        _FIND["heal.task.no-live-replica-removed"],
        deaths=2,
        returns=1,
    ),
    _tale(
        "story-queue-goes-on",
        "heal.cancel.never-running",
        "A task does not wait for a broker that another task copies to.",
        "heal-2",
        10,
        ((1, 2), (1, 2)),
        _find_stopped_queue,
        brokers=4,
        deaths=2,
    ),
    _tale(
        "story-targets-are-live",
        "heal.target.live",
        "A task that is made names live brokers only.",
        "heal-3",
        5,
        ((1, 2),),
        _FIND["heal.target.live"],
        deaths=2,
    ),
    _tale(
        "story-one-meaning-of-redundancy",
        "heal.cancel.enough-replicas",
        "Whether a task is cancelled does not depend on what the desired number of replicas is.",
        "heal-5",
        6,
        ((1, 2),),
        find_two_meanings,
        returns=1,
    ),
    _tale(
        "story-tasks-made-once",
        "heal.failover.generated-again",
        "With one failover, no task is made twice.",
        "heal-6",
        8,
        ((1, 2),),
        lambda cluster, _: find_made_twice(cluster),
        failovers=1,
    ),
    _tale(
        "story-queue-names-each-once",
        "heal.generate.from-plan",
        "With two deaths and no failover, no task is made twice.",
        "heal-7",
        15,
        ((1, 2),),
        lambda cluster, _: find_made_twice(cluster),
        deaths=2,
        ticks=2,
    ),
)


# An operator's tasks beside its own -------------------------------------------------------------


def _meet(readings: Readings) -> SmallWorld:
    key = ("t", 0)
    tasks = tuple(Submit(((key, target),)) for target in ((2, 1), (1, 3)))
    named = {each.clause: each.find for each in MACHINE.properties if each.name}
    return make_world(
        MACHINE,
        readings,
        named,
        (),
        kip_46.make_cluster(dict.fromkeys(range(1, 5)), {key: (1, 2)}),
        times={"tasks": 1, "deaths": 2, "returns": 1, "failovers": 1, "ticks": 1},
        others=lambda _: tasks,
        closing=("show",),
    )


MEETINGS: Final = (
    Meeting(
        "meeting-of-tasks",
        "healing and an operator's tasks: a partition on two of four brokers; one task, two "
        "deaths, one return, one failover, one interval",
        "kip-46",
        _meet,
    ),
)
