"""Which protocol a log is of is told by the znodes that only one of them has."""

from collections.abc import Mapping

import pytest

from reassure_judge.recognise import Gatherer, recognise
from reassure_spec import znodes
from reassure_zookeeper.transactions import (
    Check,
    Create,
    Delete,
    Error,
    Op,
    SetData,
    committed,
    multi,
)

TOPIC = Create("/brokers/topics/t", b'{"version":1,"partitions":{"0":[1]}}')
LISTS = Create(
    "/brokers/topics/u",
    znodes.encode_topic_lists({0: znodes.AssignmentZnode((1,))}),
)
FENCE = Check("/controller_epoch", 1)
OLD = Create("/admin/reassign_partitions", b"{}")
REQUEST = Create("/admin/reassignment_requests/request_0000000000", b"{}")
TASK = Create("/admin/reassignment_tasks/task_0000000000", b"{}")
UNREAD = (
    SetData("/brokers/topics/v", b"{", 1),
    SetData("/brokers/topics/w", b"[]", 1),
    Create("/brokers/ids/1", b'{"version":"4"}'),
    Create("/elsewhere", b""),
    Delete("/brokers/topics/v"),
)
"""What tells nothing: content that cannot be read, other paths, and what is gone."""


def gather(*ops: Op) -> Gatherer:
    """Return what one transaction for each op tells."""
    gatherer = Gatherer()
    for zxid, op in enumerate(ops, 1):
        gatherer.feed(multi(FENCE, op, zxid=zxid))
    return gatherer


@pytest.mark.parametrize(
    ("ops", "profile", "readings"),
    [
        ((TOPIC, OLD), "kafka-42", {"controller.fenced": "yes"}),
        ((TOPIC, OLD, LISTS), "kafka-zk", {}),
        ((TOPIC, REQUEST), "kip-236", {}),
        ((TOPIC, OLD, REQUEST), "kip-236-legacy", {}),
        ((TOPIC, REQUEST, TASK), "kip-46", {}),
    ],
)
def test_protocol_is_told_by_its_znodes(
    ops: tuple[Op, ...], profile: str, readings: Mapping[str, str]
) -> None:
    """The most particular protocol counts, however the files that hold its znodes are cut."""
    whole, parts = gather(*UNREAD, *ops), Gatherer()
    for op in (*ops, *UNREAD):
        parts.add(gather(op))
    for gathered in (whole, parts):
        found = recognise([("a", gathered)])
        assert found is not None and not isinstance(found, str)
        said = found.as_dict()
        assert said["profile"] == profile
        assert said["readings"].items() >= readings.items()


def test_log_that_tells_nothing_is_nobodys() -> None:
    """Neither is one whose requests were all refused, nor what stands in every cluster."""
    gathered = Gatherer()
    for zxid, op in enumerate((TOPIC, *UNREAD), 1):
        gathered.feed(committed(op, zxid=zxid))
    gathered.feed(multi(REQUEST, Error(-110), zxid=9))
    gathered.note("/brokers/topics/t/partitions/0/state", b"{}")
    assert recognise([("a", gathered)]) is None


def test_logs_of_several_protocols_are_nobodys() -> None:
    """Each is named with its cluster and with what tells."""
    found = recognise([("a", gather(TOPIC, REQUEST)), ("b", gather(TOPIC, LISTS))])
    assert isinstance(found, str)
    assert "a, the cluster at /" in found and "(kip-236); b, the cluster at /" in found
