"""What readers of KIP-46 take for granted of tasks, and the traces that break it."""

from collections.abc import Mapping
from typing import Final

from reassure_explorer.counterexamples import Find, Make, Meetings, SmallWorld, make_world
from reassure_model.protocols import kip_46
from reassure_model.protocols.kip_46 import Cluster, HealingConfig, Submit
from reassure_model.protocols.kip_46.machine import MACHINE, find_made_twice, find_two_meanings
from reassure_spec.readings import Readings
from reassure_spec.znodes import ReplicaList

CONFIG: Final = HealingConfig()
_FIND: Final = {each.clause: each.find for each in MACHINE.properties}


def _find_stopped_queue(cluster: Cluster, readings: Readings) -> str | None:
    """Say so when the broker that a running task copies to is dead and another task waits."""
    running = kip_46.find_running(cluster)
    if running is None or kip_46.next_effect(cluster, CONFIG, readings) is not None:
        return None
    hosted = ((kip_46.get_hosted(cluster, key), target) for key, target in running.assignments)
    new = [r for h, target in hosted for r in target if h is not None and r not in h.assigned]
    dead = [replica for replica in new if replica not in cluster.live]
    return f"{dead[0]} is dead and a task waits behind it" if dead and cluster.tasks[1:] else None


def _find_made_twice(cluster: Cluster, _: Readings) -> str | None:
    return find_made_twice(cluster)


def _make_world(
    assignments: tuple[ReplicaList, ...],
    find: str | Find,
    *,
    brokers: int = 3,
    deaths: int = 1,
    returns: int = 0,
    failovers: int = 0,
    ticks: int = 1,
) -> Make:
    ids = range(1, brokers + 1)
    keys = {("t", number): replicas for number, replicas in enumerate(assignments)}
    times = {"deaths": deaths, "returns": returns, "failovers": failovers, "ticks": ticks}

    def make(readings: Readings, called: str) -> SmallWorld:
        first = kip_46.make_cluster(dict.fromkeys(ids), keys)
        return make_world(
            MACHINE,
            readings,
            {called: _FIND[find] if isinstance(find, str) else find},
            (),
            first,
            times=times,
            closing=("show",),
        )

    return make


WORLDS: Final[Mapping[str, Make]] = {
    "story-task-removes-no-live-replica": _make_world(
        ((1, 2),), "heal.task.no-live-replica-removed", deaths=2, returns=1
    ),
    "story-queue-goes-on": _make_world(((1, 2), (1, 2)), _find_stopped_queue, brokers=4, deaths=2),
    "story-targets-are-live": _make_world(((1, 2),), "heal.target.live", deaths=2),
    "story-one-meaning-of-redundancy": _make_world(((1, 2),), find_two_meanings, returns=1),
    "story-tasks-made-once": _make_world(((1, 2),), _find_made_twice, failovers=1),
    "story-queue-names-each-once": _make_world(((1, 2),), _find_made_twice, deaths=2, ticks=2),
}


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


MEETINGS: Final[Meetings] = {"meeting-of-tasks": _meet}
