"""The life of every znode of the protocol: which rule is about its creation, change and removal.

`LIVES` is the one table of it. What a partition's znodes may hold is judged by
the rules of its protocol; here are the rules on what may go, whoever takes it away.
"""

from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Final

from reassure_model.outcome import Rejected
from reassure_spec.clauses import checks

Cell = tuple[str, ...] | str
"""The clauses that are about it, or why anybody may do it."""


@dataclass(frozen=True, slots=True)
class Life:
    """What may become of one kind of znode."""

    path: str
    create: Cell
    change: Cell
    remove: Cell


_BROKERS = "a broker's own business"
_OPERATORS = "an operator's business; what it says counts from then on"
_EMPTY = "it has no content"

LIVES: Final[Mapping[str, Life]] = {
    "controller": Life(
        "/controller",
        ("controller.election.atomic", "controller.registered-ephemeral"),
        ("controller.election.atomic",),
        "offices end with their session, or when an operator ends them",
    ),
    "epoch": Life(
        "/controller_epoch",
        ("controller.election.atomic",),
        ("controller.epoch.raised-by-one", "controller.election.atomic"),
        ("controller.epoch.kept",),
    ),
    "root": Life(
        "/brokers/topics", "whoever starts a cluster makes it", _EMPTY, ("znode.roots-kept",)
    ),
    "broker": Life("/brokers/ids/N", ("broker.registered-ephemeral",), _BROKERS, _BROKERS),
    "broker_config": Life("/config/brokers/N", _OPERATORS, _OPERATORS, _OPERATORS),
    "default_config": Life("/config/brokers/<default>", _OPERATORS, _OPERATORS, _OPERATORS),
    "topic": Life(
        "/brokers/topics/T",
        "clients make topics",
        ("assigned.change.only-as-due", "topic.partitions-kept", "topic.content-kept"),
        ("topic.removed-when-asked",),
    ),
    "topic_config": Life("/config/topics/T", _OPERATORS, _OPERATORS, ("topic.settings-kept",)),
    "state": Life(
        "/brokers/topics/T/partitions/P/state",
        ("partition.new.leader-first-live", "partition.new.isr-all-live"),
        ("leader-epoch.raised-by-one", "election.only-when-due", "isr.change.keeps-leader"),
        ("partition.state-kept",),
    ),
    "request": Life(
        "/admin/reassignment_requests/request_N",
        "clients make requests",
        "whoever made a request may change it: it counts as it stands, in its old place",
        ("request.delete.child-first",),
    ),
    "flight": Life(
        "/admin/reassignments/T/P",
        ("child.from-request", "child.foreign-removed"),
        ("top.once-per-chain", "child.from-request"),
        ("complete.child-last", "child.update-in-place"),
    ),
    "parent": Life(
        "/admin/reassignments/T", "it comes with the first record", _EMPTY, ("child.parent-gone",)
    ),
    "preferred": Life(
        "/admin/preferred_replica_election", "clients ask", "clients ask", "it has been answered"
    ),
    "deletion": Life("/admin/delete_topics/T", "clients ask", _EMPTY, ("topic.deletion-ended",)),
}
"""Every kind of znode that the judge knows, by the name that it has there."""


@checks
def find_broken_registration(*, ephemeral: bool) -> Rejected | None:
    """Find why a broker may not register so: the registration has to go with its session."""
    if ephemeral:
        return None
    return Rejected("broker.registered-ephemeral", "the registration outlives its session")


@checks
def find_broken_topic(
    lost: Set[int], changed: Set[str], *, removed: bool, deleting: bool
) -> Rejected | None:
    """Find what a write of a topic's znode may not do.

    `lost` are partitions that it held and holds no more; `changed` is what else it held and does
    not hold so any more; `removed` says that it is gone. While a client asks for the topic to be
    deleted all of it may go.
    """
    if deleting:
        return None
    if removed:
        return Rejected("topic.removed-when-asked", "nobody asks for the topic to be deleted")
    if lost:
        return Rejected("topic.partitions-kept", f"partitions {sorted(lost)} are left out")
    if changed:
        return Rejected("topic.content-kept", f"{', '.join(sorted(changed))} lost or changed")
    return None


@checks
def find_broken_state_removal(*, exists: bool, deleting: bool) -> Rejected | None:
    """Find why a partition's state may not be removed: not while it exists and is to stay."""
    if deleting or not exists:
        return None
    return Rejected("partition.state-kept", "the partition exists, and is not to be deleted")


@checks
def find_broken_settings_removal(*, exists: bool, deleting: bool) -> Rejected | None:
    """Find why a topic's settings may not be removed."""
    if deleting or not exists:
        return None
    return Rejected("topic.settings-kept", "the topic exists, and is not to be deleted")


@checks
def find_broken_deletion_end(*, begun: bool, has_settings: bool) -> Rejected | None:
    """Find why what a client wrote to delete a topic may not be removed yet.

    `begun` says that the topic's znode has been removed since the client asked.
    """
    if begun and has_settings:
        return Rejected("topic.deletion-ended", "the topic's settings are still there")
    return None
