"""Which tree a path belongs to that nobody judges, so that a verdict can say what it left out."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from reassure_spec.profiles import list_readers
from reassure_spec.znodes import FAILED_BROKERS, REASSIGN_PARTITIONS, REASSIGNMENT_TASKS

TREES: Final[Mapping[str, str]] = {
    **{
        path: f"{words} ({', '.join(list_readers(path))})"
        for path, words in (
            (REASSIGN_PARTITIONS, "the first reassignment protocol"),
            (REASSIGNMENT_TASKS, "tasks of self-healing"),
            (FAILED_BROKERS, "records of failed brokers"),
        )
    },
    "/brokers/ids": "names that are no broker's id",
    "/brokers/topics": "names that are no topic's, partition's or state's",
    "/brokers/seqid": "numbers for new brokers",
    "/config/brokers": "names that are no broker's id",
    "/config/users": "quotas and credentials",
    "/config/clients": "quotas",
    "/config/ips": "quotas",
    "/config/changes": "notifications of changed configuration",
    "/isr_change_notification": "notifications of changed in-sync sets",
    "/log_dir_event_notification": "notifications of failed disks",
    "/consumers": "consumer groups",
    "/kafka-acl": "access control",
    "/kafka-acl-changes": "access control",
    "/kafka-acl-extended": "access control",
    "/kafka-acl-extended-changes": "access control",
    "/delegation_token": "tokens",
    "/latest_producer_id_block": "numbers for producers",
    "/cluster": "the cluster's id",
    "/feature": "features",
    "/migration": "the way out of ZooKeeper",
}
"""Trees of a Kafka cluster for which there are no rules, and what is in them."""

KAFKAS_OWN: Final = (
    REASSIGN_PARTITIONS,
    "/isr_change_notification",
    "/log_dir_event_notification",
    "/latest_producer_id_block",
    "/brokers/seqid",
    "/consumers",
)
"""Trees that Apache Kafka writes to, the most telling first, and no controller of KIP-236 must."""

MORE: Final = "/…"
"""Stands for what lies below a tree that is none of Kafka's."""

_PARENT: Final = re.compile(
    r"(?:/[^/]+)*?(?:/brokers|/config|/config/(?:topics|brokers)|/admin|/admin/delete_topics"
    r"|/brokers/topics/[^/]+/partitions(?:/[0-9]+)?)",
    re.DOTALL,
)
_TREE: Final = re.compile(
    rf"((?:/[^/]+)*?(?:{'|'.join(map(re.escape, sorted(TREES, reverse=True)))}))(?:/.*)?", re.DOTALL
)


def name_tree(path: str) -> str:
    """Return the tree of a path that is not judged; "" for a parent of what is.

    >>> name_tree("/kafka/config/users/orders"), name_tree("/hbase/rs/1"), name_tree("/lock")
    ('/kafka/config/users', '/hbase/…', '/lock')
    """
    if _PARENT.fullmatch(path):
        return ""
    match = _TREE.fullmatch(path)
    if match is not None:
        return match[1]
    top, slash, _ = path[1:].partition("/")
    return f"/{top}{MORE if slash else ''}"


def describe_tree(tree: str) -> str:
    """Return what is in a tree, in words; "" where nobody knows."""
    return next((words for tail, words in TREES.items() if tree.endswith(tail)), "")


def gather(counts: Mapping[str, int], chroots: Iterable[str]) -> dict[str, int]:
    """Return how often each tree was written, the paths that only lead to a cluster aside.

    Each of those is taken to have been written once.

    >>> gather({"/kafka": 1, "/kafka/…": 1, "/lock": 2, "/lock/…": 3}, ["/kafka/one"])
    {'/lock/…': 5}
    """
    left = dict(counts)
    ways = {chroot[:at] for chroot in chroots for at in (*_find_cuts(chroot), len(chroot)) if at}
    for way in ways:
        tree = name_tree(way)
        if tree in left:
            left[tree] -= 1
    gathered: dict[str, int] = {}
    for tree, count in left.items():
        name = tree + MORE if left.get(tree + MORE, 0) > 0 else tree
        gathered[name] = gathered.get(name, 0) + count
    return {tree: count for tree, count in sorted(gathered.items()) if count > 0}


def _find_cuts(chroot: str) -> list[int]:
    """Return where each of the parents of a chroot ends."""
    return [at for at, character in enumerate(chroot) if character == "/"]
