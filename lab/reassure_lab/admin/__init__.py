"""What an operator does about reassignments, by way of ZooKeeper alone.

The verbs of Kafka's own tool (`verbs`), with its files (`move_files`) and its output
(`kafka_output`), by either protocol: requests of KIP-236, or the old znode, which a real Kafka
listens to as well. `proposing` spreads replicas over brokers as Kafka does, `survey` reads what
there is, `limiting` says which replicas a limit holds for, and `submitting` asks for it.
"""

from collections.abc import Mapping
from typing import Final

from reassure_spec.profiles import list_readers
from reassure_spec.znodes import REASSIGN_PARTITIONS, REASSIGNMENT_REQUESTS

REQUESTS: Final = list_readers(REASSIGNMENT_REQUESTS)[0]
"""The protocol of requests, which the option `--protocol` calls by its name."""
LEGACY: Final = "legacy"
PLACES: Final[Mapping[str, str]] = {REQUESTS: REASSIGNMENT_REQUESTS, LEGACY: REASSIGN_PARTITIONS}
"""By protocol: where it is asked for."""
