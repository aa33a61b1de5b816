"""What readers of KIP-46 take for granted of tasks, and the stories that break it."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Final

from reassure_explorer.tales import Find, Meeting, SmallWorld, Tale, say
from reassure_model import kip_46
from reassure_model.environment import Die, Failover, Return
from reassure_model.kip_46 import Cluster, Finish, HealingConfig, Submit, Tick
from reassure_model.outcome import Accepted
from reassure_spec.readings import Readings
from reassure_spec.words import spell_replicas
from reassure_spec.znodes import ReplicaList

CONFIG: Final = HealingConfig()
LIMITED: Final = {"deaths": Die, "returns": Return, "failovers": Failover, "ticks": Tick}
"""What happens so many times at most, by the word for many of it."""


def follow(
    cluster: Cluster, readings: Readings, others: Iterable[Any] = (), config: HealingConfig = CONFIG
) -> Iterator[tuple[Any, Cluster]]:
    """Yield every action that is possible, and what operators do, with the cluster after it."""
    for action in (*kip_46.enabled(cluster, config, readings), *others):
        outcome = kip_46.step(cluster, action, config, readings)
        if isinstance(outcome, Accepted):
            yield action, outcome.state


def _say(action: Any) -> str:
    match action:
        case Submit((((topic, number), target),)):
            return f"submit partition={topic}-{number} target={spell_replicas(target)}"
        case Tick(milliseconds):
            return f"tick ms={milliseconds}"
        case Finish((topic, number)):
            return f"finish partition={topic}-{number}"
    return say(action)


def _ask(find: Callable[[Cluster, HealingConfig, Readings], str | None]) -> Find:
    """Return a problem of the model under the usual settings."""
    return lambda cluster, readings: find(cluster, CONFIG, readings)


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

    def make(readings: Readings, called: str) -> SmallWorld:
        return SmallWorld(
            kip_46.make_cluster(dict.fromkeys(ids), keys),
            partial(follow, readings=readings),
            {called: lambda cluster: find(cluster, readings)},
            {Die: deaths, Return: returns, Failover: failovers, Tick: ticks},
            _say,
            (
                f"world kip-46 racks={spell_replicas(ids)}",
                *(
                    f"partition name=t-{n} replicas={spell_replicas(r)}"
                    for (_, n), r in keys.items()
                ),
            ),
        )

    return Tale(name, clause, statement, finding, steps, "kip-46", make)


TALES: Final = (
    _tale(
        "story-task-removes-no-live-replica",
        "heal.task.no-live-replica-removed",
        "As written, where stale tasks are executed, an automatic task removes no live replica.",
        "heal-1",
        9,
        ((1, 2),),
        _ask(kip_46.find_live_removed),
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
        _ask(kip_46.find_dead_named),
        deaths=2,
    ),
    _tale(
        "story-one-meaning-of-redundancy",
        "heal.cancel.enough-replicas",
        "Whether a task is cancelled does not depend on what the desired number of replicas is.",
        "heal-5",
        6,
        ((1, 2),),
        kip_46.find_two_meanings,
        returns=1,
    ),
    _tale(
        "story-tasks-made-once",
        "heal.failover.generated-again",
        "With one failover, no task is made twice.",
        "heal-6",
        8,
        ((1, 2),),
        lambda cluster, _: kip_46.find_made_twice(cluster),
        failovers=1,
    ),
    _tale(
        "story-queue-names-each-once",
        "heal.generate.from-plan",
        "With two deaths and no failover, no task is made twice.",
        "heal-7",
        15,
        ((1, 2),),
        lambda cluster, _: kip_46.find_made_twice(cluster),
        deaths=2,
        ticks=2,
    ),
)


# An operator's tasks beside its own -------------------------------------------------------------


def _meet(readings: Readings) -> SmallWorld:
    key = ("t", 0)
    tasks = tuple(Submit(((key, target),)) for target in ((2, 1), (1, 3)))
    return SmallWorld(
        kip_46.make_cluster(dict.fromkeys(range(1, 5)), {key: (1, 2)}),
        partial(follow, readings=readings, others=tasks),
        {
            "heal.task.no-live-replica-removed": lambda cluster: kip_46.find_live_removed(
                cluster, CONFIG, readings
            ),
            "heal.task.one-at-a-time": kip_46.find_two_running,
            "heal.target.no-duplicate": kip_46.find_duplicate,
            "heal.generate.replaces-failed": kip_46.find_factor_changed,
        },
        {Submit: 1, Die: 2, Return: 1, Failover: 1, Tick: 1},
        _say,
        ("world kip-46 racks=1,2,3,4", "partition name=t-0 replicas=1,2"),
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
