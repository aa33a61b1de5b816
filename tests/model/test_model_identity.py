"""What the zxids of a record tell a client."""

import pytest

from reassure_model.partition import Partition, Reassignment
from reassure_model.protocols.kip_236 import Fate, Identity, compare_identity, follow_record

IDLE = Partition((1, 2))
FIRST = Partition((1, 2), reassignment=Reassignment((1, 3), 2))
SECOND = Partition((1, 2), reassignment=Reassignment((1, 4), 2))


@pytest.mark.clause("client.identity.by-zxid")
@pytest.mark.parametrize(
    ("now", "fate"),
    [
        (Identity(5, 5), Fate.UNCHANGED),
        (Identity(5, 8), Fate.CHANGED),
        (Identity(8, 8), Fate.FOLLOWED),
        (None, Fate.ENDED),
    ],
)
def test_fate_follows_from_the_two_zxids(now: Identity | None, fate: Fate) -> None:
    """The creation tells whether it goes on, the modification whether it was changed."""
    assert compare_identity(Identity(5, 5), now) is fate


@pytest.mark.clause("client.identity.by-zxid", "child.update-in-place")
def test_record_is_followed_through_its_life() -> None:
    """Made, left alone, changed, removed and made anew: the zxids say which."""
    made = follow_record(None, IDLE, FIRST, 3)
    assert made == Identity(3, 3)
    assert follow_record(made, FIRST, FIRST, 4) == made
    assert follow_record(made, FIRST, SECOND, 5) == Identity(3, 5)
    assert follow_record(made, FIRST, IDLE, 6) is None
    assert follow_record(None, IDLE, FIRST, 7) == Identity(7, 7)
