"""Kafka 2.4 to 3.9 (KIP-455): a topic's znode says what is being added and removed."""

from typing import Final

from reassure_judge.protocols.kafka_zk.partition import (
    LISTS,
    DropEntry,
    Logged,
    Outcome,
    WriteLists,
    Written,
)
from reassure_judge.protocols.kafka_zk.router import KafkaHistory, KafkaRouter
from reassure_judge.protocols.kafka_zk.rules import (
    KafkaRules,
    find_dropped,
    find_entry_left,
    find_nobody_electable,
    make_invariants,
)
from reassure_judge.protocols.kafka_zk.writes import (
    accept_common,
    accept_entry_gone,
    accept_lists,
    fail_over,
    next_obligation,
)
from reassure_judge.rules import Sign, Signs
from reassure_judge.transaction_reader import ZnodePath
from reassure_model.invariants import Invariant
from reassure_model.machine import Judgement
from reassure_model.partition import Environment
from reassure_spec.readings import Readings


def accept(hosted: Logged, write: Written, around: Environment, readings: Readings) -> Outcome:
    """Judge any write to a partition."""
    if isinstance(write, WriteLists):
        return accept_lists(hosted, write, around)
    if isinstance(write, DropEntry):
        return accept_entry_gone(hosted, around)
    return accept_common(hosted, write, around, readings, LISTS)


class ListsRouter(KafkaRouter):
    """Notes until when a cluster was one of an earlier Kafka."""

    calls_elect = True
    completed = None
    together = "shipped.assignment.one-partition"

    def _on_topic(self, cluster: KafkaHistory, at: ZnodePath, data: bytes | None) -> None:
        """Note a topic that a broker wrote without lists; tools without them stay in use."""
        super()._on_topic(cluster, at, data)
        brokers = cluster.brokers_of_session.get(self._now[2])
        if data is None or not self._written or self._given:
            return
        if brokers and b'"adding_replicas"' not in data:
            cluster.earlier = self._now[0]


class ListsRules(KafkaRules):
    """Kafka with lists."""

    router = ListsRouter
    profiles = driven = ("kafka-zk",)
    earlier = "kafka-42"

    def count_besides(self, write: Written) -> tuple[str, ...]:
        """Return that lists that were accepted are of one partition, and end a move, if they do.

        The router sees to both.
        """
        besides = super().count_besides(write)
        if not isinstance(write, WriteLists):
            return besides
        ended = () if write.assignment.is_reassigning else ("shipped.complete.carried-out",)
        return (*besides, ListsRouter.together, *ended)

    @classmethod
    def find_sign(cls, signs: Signs) -> Sign | None:
        """Return that topics' znodes have lists, which Kafka writes from 2.4 on."""
        if signs.with_lists == 0:
            return None
        words = f"adding_replicas stands in topics' znodes, {signs.with_lists} times"
        return Sign(1, words, {})

    judgement = Judgement(
        Logged(),
        accept,
        fail_over,
        next_obligation,
        (
            *make_invariants("shipped.isr.within-assigned"),
            Invariant("shipped.isr.electable", find_nobody_electable, at_rest=True),
            Invariant("shipped.entry.not-for-ever", find_entry_left, at_rest=True),
            Invariant("shipped.complete.entry-last", find_dropped, at_rest=True),
        ),
    )


RULES: Final = ListsRules
