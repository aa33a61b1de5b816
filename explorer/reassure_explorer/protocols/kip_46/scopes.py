"""How much of KIP-46 a scope looks at.

Brokers return, partitions finish and time passes as often as they can. As written the queue of
tasks grows as long as two brokers stay away, and is cut off at a length; so nothing is claimed of
fair runs.
"""

from collections.abc import Mapping
from itertools import permutations
from typing import Final

from reassure_explorer.scopes.machine import Bounds
from reassure_model.protocols.kip_46 import HealingConfig, make_cluster
from reassure_spec.znodes import ReplicaList

CONFIG: Final = HealingConfig()
MOST_TASKS: Final = 4
"""How many tasks are persisted at most."""
_ALWAYS: Final = (
    "heal.task.one-at-a-time",
    "heal.target.no-duplicate",
    "heal.generate.replaces-failed",
)
"""The clauses of what holds whatever the readings."""


def bound(
    brokers: int,
    assigned: tuple[ReplicaList, ...],
    times: Mapping[str, int],
    *,
    promises: bool = False,
) -> Bounds:
    """Return the bounds of partitions that are assigned like this, each broker in its own rack.

    With `promises` what a reader takes for granted is an
    invariant; as written it is broken.
    """
    members = tuple(range(1, brokers + 1))
    keys = tuple(("t", number) for number in range(len(assigned)))
    first = dict(zip(keys, assigned, strict=True))
    moves = tuple(
        ((key, target),)
        for key, replicas in first.items()
        for target in permutations(members, len(replicas))
    )
    interval_ms = CONFIG.failure_interval_ms
    return Bounds(
        make_cluster({broker: f"rack-{broker}" for broker in members}, first),
        {
            "brokers": members,
            "keys": keys,
            "places": tuple(range(max(map(len, assigned)))),
            "intervals": (interval_ms,),
            "failures": tuple((broker, since) for broker in members for since in (0, interval_ms)),
            "moves": moves,
            "tasks": tuple((move, True) for move in moves),
            "queue": tuple(range(MOST_TASKS)),
        },
        times,
        within={"controller": lambda _, after: len(after.tasks) <= MOST_TASKS},
        without=("submit",),
        properties=None if promises else _ALWAYS,
    )
