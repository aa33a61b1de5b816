"""Controllers: no epoch is used twice.

Epochs and brokers are any integers at all.
"""

# ruff: noqa: D205, D401  # the docstring of a claim is what it claims

from collections.abc import Iterator
from typing import Any, Final

from reassure_model.controllers import Controllership, accept_election
from reassure_model.outcome import Accepted
from reassure_proofs.engine.formula import Truth
from reassure_proofs.engine.statement import (
    ID,
    Claims,
    Hypothesis,
    Parameter,
    Shape,
    Values,
    given,
    subject,
)


def _office_shapes(_: int) -> Iterator[Shape]:
    epochs = {name: Parameter() for name in ("epoch", "new_epoch", "used")}
    yield epochs
    yield {"broker": ID, **epochs}


@subject(
    "office",
    "the election",
    _office_shapes,
    bounded="any number of elections",
    shown="it is about who is controller, not about what one makes of a partition",
)
def office(values: Values) -> tuple[Any, Any]:
    """Return who holds the office after a transaction in what epoch; the same if it is refused.

    The transaction would make a broker the controller, or change the epoch, or both.
    """
    before = Controllership(None, values["epoch"])
    outcome = accept_election(before, values.get("broker"), values["new_epoch"])
    after = outcome.state if isinstance(outcome, Accepted) else before
    return after.broker, after.epoch


USED_BEFORE: Final = Hypothesis(
    "used-before",
    "the epoch of an earlier controller is not beyond the last",
    lambda v: v["used"] <= v["epoch"],
)


THEOREMS: Final = Claims("kip-236-amended", largest=2, tier="full")
"""Every theorem about controllers."""
about = THEOREMS.about


@about(office, "controller-epoch-is-new", "controller.epoch.raised-by-one")
@given(USED_BEFORE)
def _is_new_epoch(values: Values, after: Any) -> Truth:
    """Whoever is elected controller has the epoch after the last, which no controller had
    before: at most one acts in each.

    That the epoch of an earlier controller is not beyond the last holds on.
    """
    broker, epoch = after
    new = True if broker is None else (epoch != values["used"]) & (epoch == values["epoch"] + 1)
    return new & (values["used"] <= epoch) & (values["epoch"] <= epoch)


@about(office, "controller-epoch-only-with-election", "controller.election.atomic")
def _is_election(values: Values, after: Any) -> Truth:
    """The controller epoch changes with an election only, and then by one."""
    broker, epoch = after
    if broker is None:
        return epoch == values["epoch"]
    return (epoch == values["epoch"] + 1) & (epoch == values["new_epoch"])
