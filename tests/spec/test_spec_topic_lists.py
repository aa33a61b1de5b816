"""The topic's znode with what is being added and removed."""

import pytest

from reassure_spec.znodes import (
    AssignmentZnode,
    BadZnode,
    decode_topic,
    decode_topic_lists,
    encode_topic,
    encode_topic_lists,
)

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
