"""KAFKA-4485: logs and high watermarks across elections."""

from collections.abc import Iterator
from typing import Final

from reassure_conformance.answers.guarantees import Guarantee, judge_machine, vary
from reassure_explorer.protocols.kafka_4485.counterexamples import bound
from reassure_model.protocols.kafka_4485.machine import MACHINE
from reassure_model.protocols.kafka_4485.replication import make_replication

_LOGS: Final = ("hw.over-stored-isr", "hw.served-from", "isr.entry", "follower.truncation")


def judge(depth: int = 8) -> Iterator[Guarantee]:
    """Yield what consumers and the stored in-sync set may rely on, with two brokers."""
    return judge_machine(
        MACHINE,
        dict((*vary(_LOGS, "kafka-4485"), *vary(_LOGS, "kip-236-amended"))),
        [(make_replication(2), {}, dict.fromkeys(("lags", "removals")))],
        f"2 brokers, 1 record, 2 elections, {depth} steps",
        depth,
        within={**bound(), "append": lambda before, _: not any(r.log for r in before.replicas)},
    )
