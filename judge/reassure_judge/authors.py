"""Who wrote: the author of a write, as far as ZooKeeper tells it.

A session is what it owns. It is a broker while it owns `/brokers/ids/N`, and the acting controller
from the transaction that won it the term until somebody else wins one: a session whose
`/controller` was deleted by another may still write, as its fence still holds. One session may be
both, as in Kafka, whose brokers are the controllers.

A *fence* is a check of `/controller_epoch` by the number of the version that it really has. The
server would not have carried out another number; but a check of any version (-1) passes always and
fences nothing. Servers that record the version found for it, as 3.9 does, do not show that.
"""

from typing import Final, NamedTuple, Protocol

from reassure_model.controllers import ACTING, DEPOSED, NONE, UNKNOWN, find_broken_authority
from reassure_model.outcome import Rejected

BY_CONTROLLER: Final = "controller.write.by-controller"
FENCED: Final = "controller.write.epoch-checked"


class Author(NamedTuple):
    """Who made a write."""

    session: int
    brokers: frozenset[int]
    """The brokers that its session has registered."""
    office: str
    """What its session is to the term: `acting`, `deposed`, `none` or `unknown`."""
    fenced: bool
    """Whether the transaction fails once the controller epoch is another one."""
    broken: tuple[Rejected, ...]
    """What a controller's write breaks by its being this author's."""
    tested: tuple[str, ...]
    """The clauses that a controller's write by this author puts to the test, and keeps."""
    undecided: tuple[str, ...]
    """The clauses of which nobody can say whether such a write keeps them."""

    @property
    def is_client(self) -> bool:
        """Whether a client may have written, and no broker or controller: nothing is fenced."""
        return self.office in (NONE, UNKNOWN) and not self.brokers and not self.fenced

    def describe(self) -> str:
        """Return who it is, in words."""
        parts = [f"broker {broker}" for broker in sorted(self.brokers)]
        parts += [_OFFICES[self.office]] if self.office in _OFFICES else []
        return ", ".join(parts) or "client"


_OFFICES: Final = {
    ACTING: "controller",
    DEPOSED: "deposed controller",
    UNKNOWN: "controller or client",
}


class Verdicts(NamedTuple):
    """What a controller's write comes to by who made it, whatever it says."""

    broken: tuple[Rejected, ...]
    """What it breaks."""
    tested: tuple[str, ...]
    """The clauses that it puts to the test, and keeps."""
    undecided: tuple[str, ...]
    """The clauses of which nobody can say whether it keeps them."""


class Authority(Protocol):
    """What a protocol says of who may write as a controller."""

    def __call__(self, office: str, *, fenced: bool) -> Verdicts:
        """Judge a session by what it is to the term, and whether its transaction is fenced."""


def judge_authority(office: str, *, fenced: bool) -> Verdicts:
    """Judge an author where controllers write under a fence only."""
    broken = find_broken_authority(office, fenced=fenced)
    tested = ((BY_CONTROLLER,) if office == ACTING else ()) + (
        (FENCED,) if fenced and office != NONE else ()
    )
    return Verdicts(broken, tested, (BY_CONTROLLER,) if office == UNKNOWN else ())


def make_author(
    session: int, brokers: frozenset[int], office: str, authority: Authority, *, fenced: bool
) -> Author:
    """Return the author with what follows for a controller's write of his."""
    return Author(session, brokers, office, fenced, *authority(office, fenced=fenced))


class Terms:
    """Whose term it is in one cluster, and whose it was."""

    def __init__(self, *, whole: bool) -> None:
        self.whole = whole
        """Whether all elections before now were seen."""
        self.owner: int | None = None
        """The session that created `/controller`, None where there is no such znode."""
        self.ephemeral = True
        self.winner: int | None = None
        """The session that won the current term, None where that was not seen."""
        self.won_zxid = 0
        """When it did."""
        self.epoch_version: int | None = None
        """The version of `/controller_epoch`, None where that is not known."""
        self._earlier: set[int] = set()

    def win(self, session: int, zxid: int) -> None:
        """Note that the epoch was raised in this transaction, by this session."""
        if self.winner is not None:
            self._earlier.add(self.winner)
        self.winner = session if self.owner is None else self.owner
        self._earlier.discard(self.winner)
        self.won_zxid = zxid

    def find_office(self, session: int) -> str:
        """Return what a session is to the current term."""
        if session == self.winner:
            return ACTING
        if session in self._earlier:
            return DEPOSED
        return UNKNOWN if self.winner is None and not self.whole else NONE

    def is_fence(self, version: int) -> bool:
        """Whether a recorded check of `/controller_epoch` fails once the epoch changes.

        A check is recorded with the version found plus one, or with -1 for any.
        """
        return version != -1 and self.epoch_version in (None, version - 1)
