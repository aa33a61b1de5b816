"""How much of KAFKA-4485 the standard scopes look at.

Fetching, joining and following happen as often as they can.
"""

from itertools import product
from typing import Final

from reassure_explorer.scopes.machine import Bounded, Bounds
from reassure_model.protocols.kafka_4485.replication import Request, make_replication


def bound_logs(brokers: int, records: int, elections: int, lags: int, removals: int = 0) -> Bounds:
    """Return the bounds of a partition with logs of so many records at most.

    `removals` is how often the controller takes a follower out of the stored in-sync set.
    """
    epochs, ends = tuple(range(elections + 1)), tuple(range(records + 1))
    return Bounds(
        make_replication(brokers),
        {
            "brokers": tuple(range(brokers)),
            "epochs": epochs,
            "ends": ends,
            "records": ends[1:],
            "requests": tuple(Request(*each) for each in product(epochs, ends, (False, True))),
        },
        {"lags": lags, "removals": removals},
        within={
            "append": lambda _, after: len(after.replicas[after.leader].log) <= records,
            "elect": lambda _, after: after.leader_epoch <= elections,
        },
    )


SCOPES: Final = (
    Bounded(
        "logs",
        "two brokers that keep logs of at most two records; one election, one lag, one removal",
        bound_logs(2, records=2, elections=1, lags=1, removals=1),
    ),
    Bounded(
        "logs-again",
        "two brokers that keep logs of at most two records; two elections, one lag, one removal",
        bound_logs(2, records=2, elections=2, lags=1, removals=1),
    ),
    Bounded(
        "logs-three",
        "three brokers that keep logs of at most two records; one election, three lags, three "
        "removals",
        bound_logs(3, records=2, elections=1, lags=3, removals=3),
    ),
    Bounded(
        "logs-elections",
        "three brokers that keep logs of at most two records; two elections, one lag, one removal",
        bound_logs(3, records=2, elections=2, lags=1, removals=1),
    ),
)
