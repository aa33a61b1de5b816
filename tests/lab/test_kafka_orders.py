"""What a controller says to Kafka's own brokers, and answers them, without any of them there."""

import socket
import struct
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode
from kio.serial import entity_reader

from reassure_controller.context import Context, LiveBroker, PartitionContext
from reassure_controller.isr_changes import IsrChange, find_refusal
from reassure_controller.messages import NO_EPOCH, LeaderAndIsr, Reply, StopReplica
from reassure_controller.session import connect, stop
from reassure_lab.node.cluster_news import WireOrders
from reassure_lab.node.controller_requests import UNDERSTOOD, ControllerRequests
from reassure_lab.node.orders import NOT_UNDERSTOOD, ClusterNews, WireTransport, find_id
from reassure_lab.wire.admin_messages import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    FindCoordinatorRequest,
    InitProducerIdRequest,
)
from reassure_lab.wire.apis import (
    ALTER_PARTITION,
    LEADER_AND_ISR,
    PRODUCER_IDS,
    STOP_REPLICA,
    UPDATE_METADATA,
)
from reassure_lab.wire.connection import Connection
from reassure_lab.wire.entities import fill
from reassure_lab.wire.frames import (
    encode_response,
    load_request,
    load_response,
)
from reassure_lab.wire.listener import Unanswerable, WireServer
from reassure_lab.wire.messages import KioMessage, MetadataRequest
from reassure_lab.wire.sockets import receive_frame
from reassure_spec.znodes import (
    CONTROLLER,
    Endpoint,
    StateZnode,
    TopicContent,
    decode_controller,
    encode_state,
    state_path,
)

RECORDED: dict[str, dict[int, tuple[int, int]]] = {
    "2.2.2": {4: (0, 2), 5: (0, 1), 6: (0, 5)},
    "2.6.3": {4: (0, 4), 5: (0, 3), 6: (0, 6)},
    "2.8.2": {4: (0, 5), 5: (0, 3), 6: (0, 7)},
    "3.9.1": {4: (0, 7), 5: (0, 4), 6: (0, 8)},
    "here": {4: (2, 2), 5: (3, 3)},
    "2.1.1": {4: (0, 1), 5: (0, 0), 6: (0, 4)},
}
"""By release: what its brokers answered ApiVersions with of orders; the last is written down."""
NAMED = {"t": UUID(int=7)}
LEAD = LeaderAndIsr(100, 3, "t", 0, 1, 5, (1, 2), 2, 9, (1, 2), True, 40)
STOP = StopReplica(100, 3, "t", 1, True, 40, 5)
NEWS = ClusterNews(
    100,
    3,
    40,
    ({"id_": 1, "rack": None, "endpoints": [{"listener": "L", "host": "h", "port": 9}]},),
    ({"topic_name": "t", "topic_id": NAMED["t"], "partition_states": []},),
)


class Recorder(threading.Thread):
    """A broker of a release: it answers which versions it knows, keeps orders, and is content."""

    def __init__(self, versions: Mapping[int, tuple[int, int]], *, strict: bool = False) -> None:
        super().__init__(daemon=True)
        self.versions, self.strict = versions, strict
        self.heard: list[Any] = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address: tuple[str, int] = self.listener.getsockname()
        self.start()

    def run(self) -> None:
        """Serve one connection."""
        with self.listener:
            connection, _ = self.listener.accept()
        with connection, suppress(OSError):
            while True:
                frame = receive_frame(connection, 2**20)
                connection.sendall(self.answer(frame))

    def answer(self, frame: bytes) -> bytes:
        """Return the response to a request."""
        key, version, number = struct.unpack_from(">hhi", frame)
        kind: Any = load_request(key, version)
        _, start = entity_reader(kind.__header_schema__)(frame, 0)
        entity, _ = entity_reader(kind)(frame, start)
        content: dict[str, Any] = {"error_code": ErrorCode.none}
        if key == 18:
            content["api_keys"] = [
                {"api_key": key, "min_version": low, "max_version": high}
                for key, (low, high) in self.versions.items()
            ]
        else:
            self.heard.append(entity)
            if self.strict and key == STOP_REPLICA:
                content["partition_errors"] = [
                    {
                        "topic_name": topic.topic_name,
                        "partition_index": one.partition_index,
                        "error_code": ErrorCode.fenced_leader_epoch
                        if one.leader_epoch >= 0
                        else ErrorCode.none,
                    }
                    for topic in entity.topic_states
                    for one in topic.partition_states
                ]
        response = KioMessage(fill(load_response(key, version), content))
        return encode_response(response, version, number)


@pytest.mark.parametrize("release", RECORDED)
def test_orders_have_the_newest_version_that_the_broker_knows(release: str) -> None:
    """Each request has the version that broker and controller both know; without one none goes."""
    peer = Recorder(RECORDED[release])
    transport = WireTransport(100, NAMED, timeout_s=5)
    replies = transport.send_all(LiveBroker(1, 40, *peer.address), (LEAD, STOP, NEWS))
    transport.close()
    newest = {key: high for key, (_, high) in RECORDED[release].items()}
    newest = {} if release == "2.1.1" else newest
    heard = {one.__api_key__: one.__version__ for one in peer.heard}
    assert heard == newest
    keys = (LEADER_AND_ISR, STOP_REPLICA, UPDATE_METADATA)
    assert replies == [Reply("ok" if key in newest else NOT_UNDERSTOOD) for key in keys]
    for entity in peer.heard:
        assert (entity.controller_id, entity.controller_epoch, entity.broker_epoch) == (100, 3, 40)
        if entity.__api_key__ == LEADER_AND_ISR:
            [topic] = entity.topic_states
            [one] = topic.partition_states
            assert (one.leader, one.leader_epoch, one.isr) == (1, 5, (1, 2))
            assert (one.partition_epoch, one.is_new) == (9, True)
            assert getattr(topic, "topic_id", NAMED["t"]) == NAMED["t"]
        elif entity.__api_key__ == STOP_REPLICA and entity.__version__ < 3:
            assert entity.delete_partitions
            assert [(one.name, one.partition_indexes) for one in entity.topics] == [("t", (1,))]


def test_topic_without_id_is_told_in_a_version_that_names_it() -> None:
    """Answers from version 5 on name topics by their ids alone: without one nobody could tell."""
    peer = Recorder(RECORDED["3.9.1"])
    transport = WireTransport(100, timeout_s=5)
    assert transport.send_all(LiveBroker(1, 40, *peer.address), (LEAD,)) == [Reply("ok")]
    transport.close()
    assert [one.__version__ for one in peer.heard] == [4]


@pytest.mark.parametrize(("release", "again"), [("2.8.2", [5, NO_EPOCH]), ("3.9.1", [5])])
def test_stop_that_is_refused_for_its_epoch_comes_again_without(
    release: str, again: list[int]
) -> None:
    """Brokers up to 3.3 refuse the epoch that they know (KAFKA-13972); later ones mean it."""
    peer = Recorder(RECORDED[release], strict=True)
    transport = WireTransport(100, timeout_s=5)
    [reply] = transport.send_all(LiveBroker(1, 40, *peer.address), (STOP,))
    transport.close()
    told = [one.topic_states[0].partition_states[0].leader_epoch for one in peer.heard]
    assert told == again
    assert reply == Reply("ok" if NO_EPOCH in again else "FENCED_LEADER_EPOCH")


# What brokers are told of the cluster -------------------------------------------------------------


class Collected(WireOrders):
    """Orders that go nowhere: what would be sent, to whom, and with what answer."""

    def __init__(self) -> None:
        super().__init__(100)
        self.sent: list[tuple[int, ClusterNews]] = []
        self.answers: dict[int, Reply | None] = {}

    def send(self, broker: LiveBroker, message: Any) -> "Future[Reply | None]":
        """Keep a message, and answer it."""
        self.sent.append((broker.id, message))
        answer: Future[Reply | None] = Future()
        answer.set_result(self.answers.get(broker.id, Reply("ok")))
        return answer

    def tell(self, context: Context) -> dict[int, dict[tuple[str, int], Any]]:
        """Return who is told what of which partitions."""
        self.sent.clear()
        self.tell_cluster(context)
        return {
            broker: {
                (topic["topic_name"], one["partition_index"]): one
                for topic in news.topics
                for one in topic["partition_states"]
            }
            for broker, news in self.sent
        }


def live(*brokers: int) -> dict[int, LiveBroker]:
    """Return registered brokers."""
    end = Endpoint("PLAINTEXT", "127.0.0.1", 1, "PLAINTEXT")
    return {one: LiveBroker(one, 10 + one, "127.0.0.1", 1, (end,)) for one in brokers}


def make_context() -> Context:
    """Return a cluster of two brokers with two partitions."""
    context = Context(epoch=3, brokers=live(1, 2))
    for number in (0, 1):
        state = StateZnode(1, 4, 3, (1, 2))
        context.put(("t", number), PartitionContext((1, 2), state, 7))
    context.topic_contents["t"] = TopicContent({}, {"topic_id": "AAAAAAAAAAAAAAAAAAAABw"}, {})
    return context


def test_all_brokers_are_told_of_all_and_then_of_changes() -> None:
    """Whoever comes hears of everything; of a change everybody hears, once."""
    orders, context = Collected(), make_context()
    orders.address = "127.0.0.1", 99
    told = orders.tell(context)
    assert {one: {*partitions} for one, partitions in told.items()} == {
        1: {("t", 0), ("t", 1)},
        2: {("t", 0), ("t", 1)},
    }
    news = orders.sent[0][1]
    assert (news.controller, news.controller_epoch, news.broker_epoch) == (100, 3, 11)
    assert [one["id_"] for one in news.brokers] == [1, 2, 100]
    assert [one["port"] for one in news.brokers[-1]["endpoints"]] == [99]
    assert news.topics[0]["topic_id"] == find_id("AAAAAAAAAAAAAAAAAAAABw") == UUID(int=7)
    assert orders.tell(context) == {}
    context.put(("t", 0), PartitionContext((2, 1), StateZnode(2, 5, 3, (2,)), 8))
    context.put(("t", 1), context.partitions["t", 1])  # read again, and as it was
    told = orders.tell(context)
    assert told == {1: told[2], 2: told[2]}
    assert told[1].keys() == {("t", 0)}
    one = told[1]["t", 0]
    assert (one["leader"], one["leader_epoch"], one["zk_version"]) == (2, 5, 8)
    assert (one["isr"], one["replicas"]) == ((2,), (2, 1))


def test_news_of_brokers_and_of_partitions_that_go() -> None:
    """A broker that dies leaves its replicas offline; what is deleted has Kafka's leader -2."""
    orders, context = Collected(), make_context()
    orders.tell(context)
    context.brokers = live(1)
    told = orders.tell(context)
    assert {key: one["offline_replicas"] for key, one in told[1].items()} == {
        ("t", 0): (2,),
        ("t", 1): (2,),
    }
    context.brokers = live(1, 3)
    told = orders.tell(context)
    assert told.keys() == {1, 3}
    assert not told[1]
    assert told[3].keys() == {("t", 0), ("t", 1)}
    context.drop(("t", 1))
    told = orders.tell(context)
    assert {one: partitions["t", 1]["leader"] for one, partitions in told.items()} == {1: -2, 3: -2}


def test_who_did_not_hear_is_told_again_and_who_cannot_is_left_alone() -> None:
    """An answer that does not come has a broker told of all once more."""
    orders, context = Collected(), make_context()
    orders.answers = {1: None, 2: Reply(NOT_UNDERSTOOD)}
    assert orders.tell(context).keys() == {1, 2}
    orders.answers = {}
    told = orders.tell(context)
    assert told.keys() == {1}
    assert told[1].keys() == {("t", 0), ("t", 1)}
    context.brokers = live(2)
    assert not orders.tell_cluster(context)


# What brokers ask the controller ------------------------------------------------------------------

STATE = StateZnode(1, 4, 3, (1, 2))
REFUSALS = {
    "": (1, IsrChange(("t", 0), 4, 7, (1, 2, 3))),
    "has it already, and did not hear": (1, IsrChange(("t", 0), 4, 6, (2, 1))),
    "UNKNOWN_TOPIC_OR_PARTITION": (1, IsrChange(("t", 9), 4, 7, (1,))),
    "FENCED_LEADER_EPOCH": (1, IsrChange(("t", 0), 3, 7, (1,))),
    "NOT_CONTROLLER": (1, IsrChange(("t", 0), 5, 7, (1,))),
    "NOT_CONTROLLER by version": (1, IsrChange(("t", 0), 4, 8, (1,))),
    "INVALID_UPDATE_VERSION": (1, IsrChange(("t", 0), 4, 6, (1,))),
    "INVALID_REQUEST of no leader": (2, IsrChange(("t", 0), 4, 7, (1, 2, 3))),
    "INVALID_REQUEST without itself": (1, IsrChange(("t", 0), 4, 7, (2,))),
    "INELIGIBLE_REPLICA that is dead": (1, IsrChange(("t", 0), 4, 7, (1, 2, 4))),
    "INELIGIBLE_REPLICA that stops": (1, IsrChange(("t", 0), 4, 7, (1, 2, 5))),
    "INELIGIBLE_REPLICA of another partition": (1, IsrChange(("t", 0), 4, 7, (1, 2, 6))),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_in_sync_sets_are_given_by_kafkas_rules(case: str) -> None:
    """A leader gets what it asks for, or the error that Kafka has for it."""
    context = Context(epoch=3, brokers=live(1, 2, 3, 5, 6), stopping={5})
    context.put(("t", 0), PartitionContext((1, 2, 3, 4, 5), STATE, 7))
    expected = case.split(maxsplit=1)[0] if case and case.split(maxsplit=1)[0].isupper() else ""
    assert find_refusal(context, *REFUSALS[case]) == expected


@dataclass
class Sitting:
    """A controller that works, and where it listens."""

    cluster: Any
    controller: Any
    office: ControllerRequests
    ended: threading.Event = field(default_factory=threading.Event)

    def ask(self, key: int, version: int, **content: Any) -> Any:
        """Ask as a broker does."""
        return self.send(KioMessage(fill(load_request(key, version), content))).entity

    def send(self, request: Any) -> Any:
        """Ask anything over the wire."""
        connection = Connection(*self.office.address, "broker-1", timeout_s=20)
        try:
            return connection.ask(request)
        finally:
            connection.close()

    def change(self, version: int, isr: tuple[int, ...], **other: Any) -> Any:
        """Ask for an in-sync set of t-0 as its leader."""
        content = {
            "broker_id": 1,
            "broker_epoch": self.cluster.brokers[1].find_broker_epoch(1),
            **other,
        }
        stat = self.cluster.admin.get(state_path("t", 0))[1]
        state = self.cluster.state("t", 0)
        partition = {
            "partition_index": 0,
            "leader_epoch": state.leader_epoch,
            "new_isr": isr,
            "new_isr_with_epochs": [{"broker_id": one, "broker_epoch": -1} for one in isr],
            "partition_epoch": stat.version,
        }
        topic = {"topic_name": "t", "topic_id": NAMED["t"], "partitions": [partition]}
        return self.ask(ALTER_PARTITION, version, topics=[topic], **content)


@pytest.fixture
def sitting(cluster: Any) -> Iterator[Sitting]:
    """Give a controller that works, with one partition t-0 of brokers 1 to 3."""
    topic = b'{"version":3,"topic_id":"AAAAAAAAAAAAAAAAAAAABw","partitions":{"0":[1,2,3]}}'
    controller = cluster.controller(client=connect(cluster.hosts))
    cluster.admin.create("/brokers/topics/t", topic)
    controller.drain()
    client = connect(cluster.hosts)
    office = ControllerRequests(controller, client)
    with closing(office), WireServer(office, apis=UNDERSTOOD) as server:
        office.address = server.address
        found = Sitting(cluster, controller, office)
        working = threading.Thread(target=controller.run_forever, args=(found.ended,))
        working.start()
        yield found
        found.ended.set()
        working.join()
    stop(client)


@pytest.mark.parametrize("version", range(4))
def test_leader_has_its_in_sync_set_changed(sitting: Sitting, version: int) -> None:
    """The state is written as the leader would have, and the answer says how it stands."""
    before = sitting.cluster.state("t", 0)
    [topic] = sitting.change(version, (1, 3)).topics
    [told] = topic.partitions
    assert (told.error_code, told.isr) == (ErrorCode.none, (1, 3))
    state = sitting.cluster.state("t", 0)
    assert state.isr == (1, 3)
    assert (state.leader, state.leader_epoch) == (before.leader, before.leader_epoch)
    stat = sitting.cluster.admin.get(state_path("t", 0))[1]
    assert (told.leader_id, told.partition_epoch) == (1, stat.version)
    stranger = sitting.change(version, (1, 9)).topics[0].partitions[0].error_code
    ineligible, older = ErrorCode.ineligible_replica, ErrorCode.operation_not_attempted
    assert stranger == (ineligible if version > 1 else older)
    assert sitting.cluster.state("t", 0) == state
    stale = sitting.change(version, (1,), broker_epoch=1)
    assert (stale.error_code, stale.topics) == (ErrorCode.stale_broker_epoch, ())


def test_change_between_reading_and_writing_is_found_out(sitting: Sitting) -> None:
    """Of two who decide from one state the second is told so, though no event has come yet."""
    path, write = state_path("t", 0), sitting.controller._engine._submit
    other = encode_state(replace(sitting.cluster.state("t", 0), isr=(1, 2)))

    def submit(*arguments: Any) -> Any:
        if sitting.cluster.admin.get(path)[1].version == 0:
            sitting.cluster.admin.set(path, other)
        return write(*arguments)

    sitting.controller._engine._submit = submit
    [topic] = sitting.change(0, (1, 3)).topics
    assert topic.partitions[0].error_code == ErrorCode.invalid_update_version
    assert sitting.cluster.state("t", 0).isr == (1, 2)


def test_controller_answers_what_clients_ask_of_one(sitting: Sitting) -> None:
    """It makes topics with any setting, gives ids, and names itself among the nodes."""
    settings = (CreatableTopicConfig("cleanup.policy", "compact"),)
    made = sitting.send(
        CreateTopicsRequest((CreatableTopic("__consumer_offsets", 2, 1, (), settings),), 20_000)
    )
    assert [one.error_code for one in made.topics] == [ErrorCode.none]
    metadata = sitting.send(MetadataRequest(None))
    assert metadata.controller_id == sitting.controller.broker_id
    assert {one.node_id for one in metadata.brokers} == {1, 2, 3, 4, 100}
    found = sitting.send(FindCoordinatorRequest("g"))
    assert found.error_code == ErrorCode.none
    number = 103 % 2  # Java's hash of "g"
    assert found.node_id == sitting.cluster.state("__consumer_offsets", number).leader
    assert sitting.send(FindCoordinatorRequest("g", 7)).error_code == ErrorCode.invalid_request
    with pytest.raises(Unanswerable, match="__transaction_state has no leader"):
        sitting.office.handle(FindCoordinatorRequest("g", 1), "c", 2)
    assert sitting.send(InitProducerIdRequest(None, 1)).error_code == ErrorCode.none
    epoch = sitting.cluster.brokers[1].find_broker_epoch(1)
    blocks = [sitting.ask(PRODUCER_IDS, 0, broker_id=1, broker_epoch=epoch) for _ in range(2)]
    assert [one.error_code for one in blocks] == [ErrorCode.none] * 2
    starts = [one.producer_id_start for one in blocks]
    assert starts[1] == starts[0] + blocks[0].producer_id_len
    stale = sitting.ask(PRODUCER_IDS, 0, broker_id=1, broker_epoch=1)
    assert stale.error_code == ErrorCode.stale_broker_epoch


@pytest.mark.parametrize(
    ("protocols", "is_taken"), [("", True), (',"protocols":["kip-236"]', False)]
)
def test_office_is_taken_from_kafkas_controllers_only(
    cluster: Any, protocols: str, is_taken: bool
) -> None:
    """One that names no protocols is Kafka's own, and is deposed in one transaction."""
    controller = cluster.controller()
    controller.resign()
    other = f'{{"version":2,"brokerid":1,"timestamp":"5"{protocols}}}'
    cluster.admin.create(CONTROLLER, other.encode(), ephemeral=True)
    controller.contend()
    assert not controller.is_active
    controller.candidate.deposes = True
    controller.contend()
    assert controller.is_active is is_taken
    holder = decode_controller("", cluster.admin.get(CONTROLLER)[0])
    assert holder == (controller.broker_id if is_taken else 1)
    if is_taken:
        assert controller.epoch == 2
