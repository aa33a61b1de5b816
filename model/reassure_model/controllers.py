"""Who acts as controller: elections and epochs, as ZooKeeper holds them."""

from dataclasses import dataclass

from reassure_model.outcome import Accepted, Rejected
from reassure_spec.clauses import clause


@dataclass(frozen=True, slots=True)
class Controllership:
    """The acting controller of a cluster."""

    broker: int | None = None
    """Broker id in `/controller`, None while nobody is elected."""
    epoch: int = 0
    """Number in `/controller_epoch`; 0 before the first election."""


@clause("controller.election.atomic", "controller.epoch.raised-by-one")
def accept_election(
    before: Controllership, broker: int | None, epoch: int
) -> Accepted[Controllership] | Rejected:
    """Judge one transaction that made a broker the controller, or changed the epoch, or both.

    `broker` is the new content of `/controller`, None where the transaction did not create it;
    `epoch` is the content of `/controller_epoch` after the transaction.
    """
    after = Controllership(broker, epoch)
    if broker is None:
        return Rejected("controller.election.atomic", "the epoch changed without an election")
    if epoch == before.epoch:
        return Rejected("controller.election.atomic", "elected without a new epoch")
    if epoch != before.epoch + 1:
        return Rejected(
            "controller.epoch.raised-by-one", f"epoch {epoch} after epoch {before.epoch}"
        )
    return Accepted(after, ("controller.election.atomic", "controller.epoch.raised-by-one"))
