"""Encoding and decoding of znode contents and names."""

import json
import re
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reassure_spec import znodes
from reassure_spec.znodes import (
    AssignmentZnode,
    BadZnode,
    ReassignmentZnode,
    RequestZnode,
    StateZnode,
    decode_reassignment,
    decode_state,
    decode_topic,
    decode_topic_and_extras,
    decode_topic_lists,
    encode_reassignment,
    encode_state,
    encode_topic,
    encode_topic_lists,
    read_usual_state,
)

broker_ids = st.integers(-1, 2**31 - 1)
replicas = st.lists(broker_ids, max_size=4).map(tuple)
epochs = st.integers(0, 2**31 - 1)
topics = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)
numbers = st.integers(0, 9999)


@given(st.dictionaries(numbers, replicas, max_size=4))
def test_topic_comes_back(partitions: dict[int, tuple[int, ...]]) -> None:
    """An assignment that was encoded is decoded as it was."""
    assert znodes.decode_topic("/t", znodes.encode_topic(partitions)) == partitions


@given(st.builds(StateZnode, broker_ids, epochs, epochs, replicas))
def test_state_comes_back(state: StateZnode) -> None:
    """A state that was encoded is decoded as it was."""
    assert znodes.decode_state("/s", znodes.encode_state(state)) == state


@given(
    st.builds(
        RequestZnode,
        st.dictionaries(st.tuples(topics, numbers), replicas, max_size=4),
        st.booleans(),
    )
)
def test_request_comes_back(request: RequestZnode) -> None:
    """A request that was encoded is decoded as it was."""
    assert znodes.decode_request("/r", znodes.encode_request(request)) == request


@given(st.builds(ReassignmentZnode, epochs, replicas, st.booleans()))
def test_reassignment_comes_back(reassignment: ReassignmentZnode) -> None:
    """A reassignment that was encoded is decoded as it was."""
    data = znodes.encode_reassignment(reassignment)
    assert znodes.decode_reassignment("/a", data) == reassignment


@given(broker_ids, epochs, st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=3))
def test_small_contents_come_back(broker: int, epoch: int, config: dict[str, str]) -> None:
    """Controller, epoch, broker and settings are decoded as they were encoded."""
    assert znodes.decode_controller("/c", znodes.encode_controller(broker, 17)) == broker
    data = znodes.encode_controller_epoch(epoch)
    assert znodes.decode_controller_epoch("/e", data) == epoch
    assert znodes.decode_broker("/b", znodes.encode_broker("h", 9092, 17)) == ("h", 9092)
    assert znodes.decode_rack("/b", znodes.encode_broker("h", 9092, 17)) is None
    assert znodes.decode_rack("/b", znodes.encode_broker("h", 9092, 17, "a")) == "a"
    assert znodes.decode_config("/k", znodes.encode_config(config)) == config


def test_controller_may_say_where_it_listens_and_what_it_serves() -> None:
    """An address and protocols are decoded as they were encoded; Kafka's controllers have none."""
    plain = znodes.encode_controller(1, 17)
    data = znodes.encode_controller(1, 17, ("h", 9), ("topics", "tasks"))
    address, protocols = znodes.decode_controller_address, znodes.decode_controller_protocols
    assert (address("/c", plain), protocols("/c", plain)) == (None, None)
    assert (address("/c", data), protocols("/c", data)) == (("h", 9), {"topics", "tasks"})


def test_settings_are_read_as_numbers_and_truths() -> None:
    """A setting is read with spaces around it; one that is not there says nothing."""
    settings = {"min.insync.replicas": " 2 ", znodes.UNCLEAN: " True"}
    assert znodes.parse_limit("/k", settings, znodes.MIN_ISR) == 2
    assert znodes.parse_unclean("/k", settings) is True
    assert (znodes.parse_limit("/k", {}, "x"), znodes.parse_unclean("/k", {})) == (None, None)


@pytest.mark.parametrize(
    ("decode", "content", "reason"),
    [
        (znodes.decode_controller_protocols, b'{"protocols":[1]}', "expected a list of names"),
        (znodes.decode_rack, b'{"version":5,"rack":1}', "rack: expected text, found 1"),
        (znodes.decode_failed_broker, b'{"failure_timestamp":9223372036854775808}', "at most"),
        (znodes.decode_preferred_election, b'{"version":1}', "a list under 'partitions'"),
        (znodes.decode_preferred_election, b'{"version":1,"partitions":[1]}', "expected a topic"),
        (lambda path, _: znodes.parse_limit(path, {"x": "two"}, "x"), b"", "x: expected a number"),
        (lambda path, _: znodes.parse_unclean(path, {znodes.UNCLEAN: "1"}), b"", "true or false"),
    ],
)
def test_malformed_content_says_what_is_wrong(
    decode: Callable[[str, bytes], object], content: bytes, reason: str
) -> None:
    """What is wrong with a content is named in the error."""
    error = find_error(decode, content)
    assert error is not None
    assert reason in error.reason


def test_election_of_preferred_leaders_comes_back() -> None:
    """The partitions that are to be led as preferred are decoded as they were encoded."""
    data = znodes.encode_preferred_election([("t", 0), ("t", 1)])
    assert znodes.decode_preferred_election("/p", data) == {("t", 0), ("t", 1)}


def test_topics_of_a_request_are_found_without_reading_it() -> None:
    """A request that is written otherwise than usual says nothing of its topics."""
    data = znodes.encode_request(RequestZnode({("a", 0): (1,), ("b", 7): (2, 3)}))
    assert znodes.find_named_topics(data) == {"a", "b"}
    assert znodes.find_named_topics(data.replace(b":", b": ")) is None


def find_error(decode: Callable[[str, bytes], object], data: bytes) -> BadZnode | None:
    """Return what a decoder complains of, None where it does not."""
    try:
        decode("/some/where", data)
    except BadZnode as error:
        return error
    return None


@given(st.binary(max_size=60))
def test_any_bytes_decode_or_name_path(data: bytes) -> None:
    """Whatever the bytes, a decoder answers or raises BadZnode with the path in it."""
    decoders = (
        znodes.decode_topic,
        znodes.decode_state,
        znodes.decode_request,
        znodes.decode_reassignment,
        znodes.decode_controller,
        znodes.decode_controller_epoch,
        znodes.decode_broker,
        znodes.decode_config,
    )
    for decode in decoders:
        error = find_error(decode, data)
        if error is not None:
            assert error.path == "/some/where"
            assert str(error).startswith("/some/where: ")


@pytest.mark.clause("request.refuse.malformed")
@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "not JSON"),
        (b"\xff\xfe\xfa", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "expected a JSON object, found list"),
        (b'{"version":2,"assignments":{}}', "expected version 1, found 2"),
        (b'{"version":true,"assignments":{}}', "expected version 1, found True"),
        (b'{"version":1,"assignments":{},"extra":1,"more":2}', "unknown keys: extra, more"),
        (b'{"version":1,"assignments":{"t":{"0":[1],"0":[2]}}}', "key '0' stands twice"),
        (b'{"version":1,"assignments":{"t":{"00":[1]}}}', "expected a partition number"),
        (b'{"version":1,"assignments":{"t":[1]}}', "expected an object of partitions"),
        (b'{"version":1,"assignments":{"t":{"0":["1"]}}}', "t-0: expected an integer, found '1'"),
        (b'{"version":1,"assignments":{"t":{"0":[1.0]}}}', "expected an integer, found 1.0"),
        (b'{"version":1,"assignments":{},"legacy":0}', "legacy: expected true or false"),
    ],
)
def test_malformed_request_says_what_is_wrong(content: bytes, reason: str) -> None:
    """Each way to get a request wrong is named in the error."""
    with pytest.raises(BadZnode) as caught:
        znodes.decode_request("/r", content)
    assert reason in caught.value.reason


@pytest.mark.clause("request.refuse.too-large")
def test_too_large_request_refused_at_its_limit() -> None:
    """A request of exactly 1 MiB is read, one byte more is refused without being parsed."""
    small = znodes.encode_request(RequestZnode({("t", 0): (1,)}))
    exact = small + b" " * (znodes.MAX_ZNODE_BYTES - len(small))
    assert znodes.decode_request("/r", exact).assignments == {("t", 0): (1,)}
    with pytest.raises(BadZnode, match="1048577 bytes"):
        znodes.decode_request("/r", exact + b" ")


@pytest.mark.clause("request.foreign-removed")
def test_only_request_names_are_requests() -> None:
    """A name is a request's only with the prefix and exactly ten digits."""
    assert znodes.parse_request_name("request_0000000012") == 12
    for name in ("request_12", "request_00000000012", "note", "request_000000000x", ""):
        assert znodes.parse_request_name(name) is None


def test_paths_are_kafkas() -> None:
    """Paths are spelled as Kafka spells them."""
    assert znodes.topic_path("t") == "/brokers/topics/t"
    assert znodes.partition_path("t", 3) == "/brokers/topics/t/partitions/3"
    assert znodes.state_path("t", 3) == "/brokers/topics/t/partitions/3/state"
    assert znodes.reassignment_path("t", 3) == "/admin/reassignments/t/3"
    assert znodes.request_path(3) == "/admin/reassignment_requests/request_0000000003"
    assert znodes.broker_path(1) == "/brokers/ids/1"
    assert znodes.broker_config_path(1) == "/config/brokers/1"
    assert znodes.topic_config_path("t") == "/config/topics/t"


@given(
    st.integers(-2, 2**31),
    st.integers(-1, 2**31),
    st.integers(-1, 2**31),
    st.lists(st.integers(-1, 2**31), max_size=4),
    st.permutations(["version", "leader", "leader_epoch", "controller_epoch", "isr"]),
    st.sampled_from([",", ", "]),
)
def test_states_are_read_alike_however_they_are_spelled(
    leader: int, epoch: int, term: int, isr: list[int], order: list[str], comma: str
) -> None:
    """The order of the keys and the spaces between them make no difference."""
    value: dict[str, object] = {
        "version": 1,
        "leader": leader,
        "leader_epoch": epoch,
        "controller_epoch": term,
    }
    value |= {"isr": isr}
    orders = (
        ["version", "leader", "leader_epoch", "controller_epoch", "isr"],
        ["controller_epoch", "leader", "version", "leader_epoch", "isr"],
    )
    usual = [{key: value[key] for key in keys} for keys in orders]
    spelled = [json.dumps(each, separators=(",", ":")).encode() for each in usual]
    other = json.dumps({key: value[key] for key in order}, separators=(comma, ": ")).encode()
    try:
        expected = znodes.decode_state("/state", other)
    except BadZnode as error:
        for each in spelled:
            with pytest.raises(BadZnode, match=re.escape(error.reason)):
                znodes.decode_state("/state", each)
    else:
        assert [znodes.decode_state("/state", each) for each in spelled] == [expected, expected]
        assert expected == StateZnode(leader, epoch, term, tuple(isr))


# What is being added and removed -----------------------------------------------------------------

LISTS = {0: AssignmentZnode((3, 1, 2), (3,), (1,)), 1: AssignmentZnode((2, 1))}


def test_lists_are_read_as_written() -> None:
    """What is encoded is decoded, and the assigned replicas are those of every version."""
    data = encode_topic_lists(LISTS)
    assert decode_topic_lists("/t", data) == LISTS
    assert decode_topic("/t", data) == {0: (3, 1, 2), 1: (2, 1)}


def test_version_1_adds_and_removes_nothing() -> None:
    """A znode without the lists has nothing in flight."""
    assert decode_topic_lists("/t", encode_topic({0: (1, 2)})) == {0: AssignmentZnode((1, 2))}


@pytest.mark.parametrize(
    ("lists", "reason"),
    [
        ('"adding_replicas":[]', "expected an object"),
        ('"adding_replicas":{"0":[4]}', "not assigned"),
        ('"removing_replicas":{"1":[1]}', "not assigned"),
        ('"removing_replicas":{"0":1}', "removing_replicas, partition 0"),
    ],
)
def test_lists_that_contradict_the_assignment_are_refused(lists: str, reason: str) -> None:
    """Lists of another type, of other partitions or of other replicas are malformed."""
    data = f'{{"version":2,"partitions":{{"0":[1,2]}},{lists}}}'.encode()
    with pytest.raises(BadZnode, match=reason):
        decode_topic_lists("/t", data)


# Contents as they are written nearly always ------------------------------------------------------

TOPIC = (
    b'{"partitions":{"0":[4,3,1],"1":[],"12":[2]},"topic_id":"7rz","adding_replicas":{"0":[4]},'
    b'"removing_replicas":{},"version":3}'
)
KAFKAS = b'{"controller_epoch":1,"leader":4,"version":1,"leader_epoch":7,"isr":[4,5,6]}'
CASES = (
    (decode_topic_and_extras, TOPIC),
    (decode_topic_lists, TOPIC),
    (decode_topic_and_extras, encode_topic({0: (1, 2), 5: (3,)})),
    (decode_topic_and_extras, b'{"version":1,"x":{"partitions":{"0":[1]}},"partitions":{"0":[2]}}'),
    (decode_topic_and_extras, b'{"version":1,"partitions":{"0":[1]},"partitions":{"0":[2]}}'),
    (decode_topic_and_extras, b'{"version":1,"partitions":{"0":[1]},"partition\\u0073":{}}'),
    (decode_topic_and_extras, b'{"version":1,"partitions":{"0":[1],"0":[2]}}'),
    (decode_state, KAFKAS),
    (decode_state, encode_state(StateZnode(-1, 0, 3, ()))),
    (decode_reassignment, encode_reassignment(ReassignmentZnode(3, (1, 2), legacy=True))),
)


def _read(decode: Callable[[str, bytes], Any], data: bytes) -> Any:
    error = find_error(decode, data)
    if error is not None:
        return "bad" if "not JSON" in error.reason else error.reason
    return decode("/z", data)


@pytest.mark.parametrize(("decode", "data"), CASES)
def test_content_means_the_same_with_a_space_in_it(
    decode: Callable[[str, bytes], Any], data: bytes
) -> None:
    """What is written otherwise is read as JSON, and says the same, whatever byte is changed."""
    random = Random(1)
    for turn in range(400):
        found = bytearray(data)
        for _ in range(turn and random.randint(1, 2)):
            place = random.randrange(len(found))
            found[place : place + random.randint(0, 1)] = random.choice(
                (b"0", b"7", b",", b"]", b"[", b"}", b"{", b'"', b":", b"-", b"1.5", b"\\", b"")
            )
        assert _read(decode, bytes(found)) == _read(decode, b" " + bytes(found)), bytes(found)


def test_usual_states_are_told_from_others() -> None:
    """Of a state as it is written nearly always all is said; of any other nothing."""
    assert read_usual_state(KAFKAS) == (4, 7, 1, (4, 5, 6))
    assert read_usual_state(KAFKAS.replace(b":7", b":07")) is None
    assert read_usual_state(KAFKAS + b" ") is None


def test_topic_keeps_what_else_stands_there() -> None:
    """With a topic id a topic has lists; what was added to a replaced assignment is left out."""
    data = encode_topic({0: (4, 3, 1)}, "7rz")
    assert decode_topic_and_extras("/t", data) == ({0: (4, 3, 1)}, {"topic_id": "7rz"})
    replaced = znodes.decode_topic_content("/t", TOPIC).replace(0, (5,)).encode()
    assert decode_topic_lists("/t", replaced)[0] == AssignmentZnode((5,))


def test_pieces_are_forgotten_when_there_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was read before is remembered up to a number of pieces, and read again after that."""
    monkeypatch.setattr("reassure_spec.znodes.topics._REMEMBERED", 1)
    topic = {0: (1,), 1: (2,), 2: (3,)}
    assert decode_topic("/t", encode_topic(topic)) == topic


def test_what_is_shared_by_topics_is_read_anew_where_it_differs() -> None:
    """Partitions and what stands beside them are remembered each by itself."""
    other = TOPIC.replace(b"7rz", b"8rz").replace(b"[2]", b"[2,1]")
    assert decode_topic_and_extras("/t", TOPIC)[1] == {"topic_id": "7rz"}
    assert decode_topic_and_extras("/t", other) == (
        {0: (4, 3, 1), 1: (), 12: (2, 1)},
        {"topic_id": "8rz"},
    )
