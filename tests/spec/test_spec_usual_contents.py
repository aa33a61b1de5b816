"""Contents as they are written nearly always, which are read faster: as JSON says all the same."""

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from reassure_spec.znodes import (
    BadZnode,
    ReassignmentZnode,
    StateZnode,
    decode_reassignment,
    decode_state,
    decode_topic_and_extras,
    decode_topic_lists,
    encode_reassignment,
    encode_state,
    encode_topic,
    read_usual_state,
)

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
    try:
        return decode("/z", data)
    except BadZnode as error:
        return "bad" if "not JSON" in error.reason else error.reason


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


def test_what_is_shared_by_topics_is_read_anew_where_it_differs() -> None:
    """Partitions and what stands beside them are remembered each by itself."""
    other = TOPIC.replace(b"7rz", b"8rz").replace(b"[2]", b"[2,1]")
    assert decode_topic_and_extras("/t", TOPIC)[1] == {"topic_id": "7rz"}
    assert decode_topic_and_extras("/t", other) == (
        {0: (4, 3, 1), 1: (), 12: (2, 1)},
        {"topic_id": "8rz"},
    )
