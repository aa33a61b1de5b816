"""Who acts as controller: elections, epochs and authority, as ZooKeeper holds them."""

from dataclasses import dataclass
from typing import Final

from reassure_model.outcome import Accepted, Rejected
from reassure_spec.clauses import checks


@dataclass(frozen=True, slots=True)
class Controllership:
    """The acting controller of a cluster."""

    broker: int | None = None
    """Broker id in `/controller`, None while nobody is elected."""
    epoch: int = 0
    """Number in `/controller_epoch`; 0 before the first election."""


ACTING: Final = "acting"
"""The session that won the current term."""
DEPOSED: Final = "deposed"
"""A session that won an earlier term."""
NONE: Final = "none"
"""A session that won no term: a broker's, or a plain client's."""
UNKNOWN: Final = "unknown"
"""Nobody can say: the current term was won before the history begins."""


@checks
def accept_election(
    before: Controllership, broker: int | None, epoch: int, *, ephemeral: bool = True
) -> Accepted[Controllership] | Rejected:
    """Judge one transaction that made a broker the controller, or changed the epoch, or both.

    `broker` is the new content of `/controller`, None where the transaction did not create it;
    `epoch` is the content of `/controller_epoch` after the transaction; `ephemeral` says whether
    `/controller` goes with the session that created it.
    """
    after = Controllership(broker, epoch)
    if broker is None:
        return Rejected("controller.election.atomic", "the epoch changed without an election")
    if epoch == before.epoch:
        return Rejected("controller.election.atomic", "elected without a new epoch")
    if not ephemeral:
        return Rejected("controller.registered-ephemeral", "/controller outlives its session")
    if epoch != before.epoch + 1:
        return Rejected(
            "controller.epoch.raised-by-one", f"epoch {epoch} after epoch {before.epoch}"
        )
    return Accepted(
        after,
        (
            "controller.election.atomic",
            "controller.registered-ephemeral",
            "controller.epoch.raised-by-one",
        ),
    )


@checks
def find_vacancy(now: Controllership) -> Rejected | None:
    """Find what is owed by whoever could be elected, once there was a first controller."""
    if now.broker is not None or now.epoch == 0:
        return None
    return Rejected("controller.election.held", "/controller is gone, and nobody was elected since")


@checks
def find_broken_authority(office: str, *, fenced: bool) -> tuple[Rejected, ...]:
    """Find what a controller's write breaks by who made it, whatever it says.

    `office` is what its session is; `fenced` says whether the transaction fails once the controller
    epoch is another one. Whoever won no term made no controller's write, so nothing is said of the
    fence that it would have needed.
    """
    broken: tuple[Rejected, ...] = ()
    if office == NONE:
        return (Rejected("controller.write.by-controller", "its session won no term"),)
    if office == DEPOSED:
        reason = "another session has won the term since"
        broken = (Rejected("controller.write.by-controller", reason),)
    if not fenced:
        reason = "the transaction does not check /controller_epoch"
        broken = (*broken, Rejected("controller.write.epoch-checked", reason))
    return broken
