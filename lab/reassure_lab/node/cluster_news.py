"""What brokers are told of the whole cluster, for their clients: Kafka's UpdateMetadata.

Kafka's brokers answer clients from what the controller tells them. Each is told of all that there
is when it registers, and of what changes afterwards; that goes before orders that need it, as who
follows a leader has to know where it is. Brokers that do not understand it are left alone.

The controller names itself among the brokers, as one that leads nothing: clients and brokers look
there for where it listens.
"""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Final
from uuid import UUID

from reassure_controller.context import Context, LiveBroker
from reassure_controller.transport import Answered, QueuedTransport
from reassure_lab.node.orders import NOT_UNDERSTOOD, ClusterNews, WireTransport, find_id
from reassure_spec.znodes import PartitionKey

_PROTOCOLS: Final = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}
"""Kafka's numbers of security protocols."""
_GOES: Final = -2
"""Kafka's leader of a partition that is deleted."""
_Told = dict[PartitionKey, Mapping[str, Any]]


class WireOrders(QueuedTransport):
    """Delivers orders over the wire in the background, and tells how the cluster stands."""

    def __init__(self, controller: int) -> None:
        self._ids: dict[str, UUID] = {}
        """Kafka's ids of topics that have one."""
        super().__init__(partial(WireTransport, controller, self._ids))
        self._controller = controller
        self.address: tuple[str, int] | None = None
        """Where the controller listens."""
        self._context: Context | None = None
        """Of the term in which `_told` was told."""
        self._live: Mapping[int, LiveBroker] = {}
        """Who was alive then."""
        self._told: _Told = {}
        self._heard: dict[int, int] = {}
        """By broker that was told of all: its epoch."""
        self._deaf: set[tuple[int, int]] = set()
        """Brokers and epochs of those that do not understand it."""

    def tell_cluster(self, context: Context) -> bool:
        """Tell what is new in the context; return whether there is anybody who understands."""
        if context is not self._context:
            self._context, self._live, self._told, self._heard = context, {}, {}, {}
        hearing = [one for one in context.brokers.values() if (one.id, one.epoch) not in self._deaf]
        if not hearing:
            context.renewed.clear()
            return False
        moved = context.brokers != self._live
        changed = self._find_changed(context, self._list_looked_at(context, moved=moved))
        context.renewed.clear()
        self._live = dict(context.brokers)
        missed = [one for one in hearing if self._heard.get(one.id) != one.epoch]
        brokers = self._list_brokers(context) if moved or changed or missed else ()
        for broker in hearing if moved or changed else missed:
            self._heard[broker.id] = broker.epoch
            self._tell(context, broker, brokers, self._told if broker in missed else changed)
        return True

    def _list_looked_at(self, context: Context, *, moved: bool) -> Iterable[PartitionKey]:
        """Return what may have changed: where brokers came or went, any partition."""
        return context.partitions.keys() | context.renewed if moved else context.renewed

    def _find_changed(self, context: Context, keys: Iterable[PartitionKey]) -> _Told:
        changed: _Told = {}
        for topic in {key[0] for key in keys}:
            number = find_id(context.find_topic_id(topic))
            if number is not None:
                self._ids[topic] = number
            else:
                self._ids.pop(topic, None)
        for key in keys:
            before, now = self._told.get(key), _describe(context, key)
            if now is not None and now != before:
                changed[key] = self._told[key] = now
            elif now is None and before is not None:
                del self._told[key]
                changed[key] = {**before, "leader": _GOES, "isr": (), "replicas": ()}
        return changed

    def _tell(
        self,
        context: Context,
        broker: LiveBroker,
        brokers: tuple[Mapping[str, Any], ...],
        partitions: _Told,
    ) -> None:
        by_topic: dict[str, list[Mapping[str, Any]]] = {}
        for key, content in partitions.items():
            by_topic.setdefault(key[0], []).append(content)
        topics = tuple(
            {
                "topic_name": topic,
                "topic_id": self._ids.get(topic),
                "partition_states": states,
            }
            for topic, states in by_topic.items()
        )
        news = ClusterNews(self._controller, context.epoch, broker.epoch, brokers, topics)
        self.send(broker, news).add_done_callback(
            lambda done: self._note(broker, None if done.exception() else done.result())
        )

    def _note(self, broker: LiveBroker, answer: Answered) -> None:
        """Remember who has to be told of all once more; called from another thread."""
        if answer is not None and answer.result == NOT_UNDERSTOOD:
            self._deaf.add((broker.id, broker.epoch))
        elif answer is None or answer.result != "ok":
            self._heard.pop(broker.id, None)

    def _list_brokers(self, context: Context) -> tuple[Mapping[str, Any], ...]:
        """Return who is alive, and the controller under each name of a listener without secrets."""
        found: list[Mapping[str, Any]] = [
            {
                "id_": broker.id,
                "rack": context.racks.get(broker.id),
                "endpoints": [
                    _endpoint(end.listener, (end.host, end.port), end.protocol)
                    for end in broker.endpoints
                ],
            }
            for broker in context.brokers.values()
        ]
        ends = [end for broker in context.brokers.values() for end in broker.endpoints]
        names = sorted({end.listener for end in ends if end.protocol == "PLAINTEXT"})
        if self.address is not None and self._controller not in context.brokers:
            own = [_endpoint(name, self.address, "PLAINTEXT") for name in names]
            found.append({"id_": self._controller, "rack": None, "endpoints": own})
        return tuple(found)


def _endpoint(listener: str, address: tuple[str, int], protocol: str) -> Mapping[str, Any]:
    return {
        "listener": listener,
        "host": address[0],
        "port": address[1],
        "security_protocol": _PROTOCOLS[protocol],
    }


def _describe(context: Context, key: PartitionKey) -> Mapping[str, Any] | None:
    """Return what is told of a partition, None where it is not there or was never online."""
    content = context.partitions.get(key)
    if content is None or content.state is None:
        return None
    state = content.state
    return {
        "partition_index": key[1],
        "controller_epoch": state.controller_epoch,
        "leader": state.leader,
        "leader_epoch": state.leader_epoch,
        "isr": state.isr,
        "zk_version": content.state_version,
        "replicas": content.assigned,
        "offline_replicas": tuple(one for one in content.assigned if not context.is_live(one)),
    }
