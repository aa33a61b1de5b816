"""Which reassignment is this? What a client can tell from the zxids of a record.

The record of a reassignment is made once and changed in place, so that the transaction that
created it (czxid) names the reassignment and the one that changed it last (mzxid) names its target.
A client that remembers both can tell whether what it asked for is still going on, and whether
somebody else has changed it.
"""

from dataclasses import dataclass, replace
from enum import Enum

from reassure_model.partition import Partition
from reassure_spec.clauses import clause


@dataclass(frozen=True, slots=True)
class Identity:
    """The zxids of a record, as ZooKeeper tells them to whoever reads it."""

    czxid: int
    mzxid: int


class Fate(Enum):
    """What has become of a reassignment that a client remembers."""

    UNCHANGED = "goes on unchanged"
    CHANGED = "goes on, and was changed"
    ENDED = "has ended"
    FOLLOWED = "has ended, and another has begun"


@clause("client.identity.by-zxid")
def compare_identity(remembered: Identity, now: Identity | None) -> Fate:
    """Say what has become of the reassignment that had this identity.

    >>> compare_identity(Identity(5, 5), Identity(5, 9))
    <Fate.CHANGED: 'goes on, and was changed'>
    """
    if now is None:
        return Fate.ENDED
    if now.czxid != remembered.czxid:
        return Fate.FOLLOWED
    return Fate.UNCHANGED if now.mzxid == remembered.mzxid else Fate.CHANGED


@clause("child.update-in-place", "client.identity.by-zxid")
def follow_record(
    identity: Identity | None, before: Partition, after: Partition, zxid: int
) -> Identity | None:
    """Return the zxids of the partition's record after a transaction, None where there is none."""
    if after.reassignment is None:
        return None
    if identity is None or before.reassignment is None:
        return Identity(zxid, zxid)
    changed = after.reassignment != before.reassignment
    return replace(identity, mzxid=zxid) if changed else identity
