"""The algebra of shipped controllers: what a cancel goes back to."""

# ruff: noqa: D401  # the docstring of a claim is what it claims

from typing import Any, Final

from reassure_model.protocols.kafka_zk import Assignment, reassign_to
from reassure_proofs.engine.formula import Truth, distinct, same
from reassure_proofs.engine.statement import (
    Claims,
    Hypothesis,
    Subject,
    Telling,
    Values,
    given,
    ids,
)
from reassure_spec.words import spell_replicas


def move_and_cancel(values: Values) -> Any:
    """Return the replicas that a cancel asks for after a reassignment was begun."""
    return reassign_to(Assignment(values["assigned"]), values["target"]).original


CANCEL_ORDER: Final = Subject(
    "cancel-order",
    move_and_cancel,
    "what a cancel goes back to",
    lambda longest: (
        {"assigned": ids(assigned), "target": ids(target)}
        for assigned in range(1, longest + 1)
        for target in range(1, longest + 1)
    ),
    hashable=True,
    tell=lambda v: Telling(
        (
            f"world kafka-zk brokers={spell_replicas(sorted({*v['assigned'], *v['target']}))}",
            f"assign start={spell_replicas(v['assigned'])} targets={spell_replicas(v['target'])}",
        )
    ),
)
BOTH_DISTINCT: Final = Hypothesis(
    "distinct",
    "neither list names a replica twice",
    lambda v: distinct(v["assigned"]) & distinct(v["target"]),
)


THEOREMS: Final = Claims("kafka-zk", largest=2, tier="full")
"""Every theorem about the algebra of shipped controllers."""
about = THEOREMS.about


@about(CANCEL_ORDER, "cancel-keeps-order", "shipped.assignment.original-derivable", finding="zk-7")
@given(BOTH_DISTINCT)
def _keeps_order(values: Values, original: Any) -> Truth:
    """A cancel goes back to the original replicas in their order."""
    return same(values["assigned"], original)
