"""How much of KAFKA-4485 a scope looks at.

Fetching, joining and following happen as often as they can.
"""

from itertools import product

from reassure_explorer.scopes.machine import Bounds
from reassure_model.protocols.kafka_4485.replication import Request, make_replication


def bound(brokers: int, records: int, elections: int, lags: int, removals: int) -> Bounds:
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
