"""The algebra of shipped controllers: what a cancel goes back to."""

# ruff: noqa: D401  # the docstring of a claim is what it claims

from typing import Any, Final

from reassure_model.protocols.kafka_zk import Assignment, reassign_to
from reassure_proofs.engine.formula import Truth, distinct, same
from reassure_proofs.engine.statement import Claims, Hypothesis, Values, given, ids, subject
from reassure_spec.words import spell_replicas as spell


@subject(
    "cancel-order",
    "what a cancel goes back to",
    lambda longest: (
        {"assigned": ids(assigned), "target": ids(target)}
        for assigned in range(1, longest + 1)
        for target in range(1, longest + 1)
    ),
    hashable=True,
    tell=lambda v: (
        f"world kafka-zk brokers={spell(sorted({*v['assigned'], *v['target']}))}",
        f"assign start={spell(v['assigned'])} targets={spell(v['target'])}",
    ),
)
def cancel_order(values: Values) -> Any:
    """Return the replicas that a cancel asks for after a reassignment was begun."""
    return reassign_to(Assignment(values["assigned"]), values["target"]).original


BOTH_DISTINCT: Final = Hypothesis(
    "distinct",
    "neither list names a replica twice",
    lambda v: distinct(v["assigned"]) & distinct(v["target"]),
)


THEOREMS: Final = Claims("kafka-zk", largest=2, tier="full")
"""Every theorem about the algebra of shipped controllers."""
about = THEOREMS.about


@about(cancel_order, "cancel-keeps-order", "shipped.assignment.original-derivable", finding="zk-7")
@given(BOTH_DISTINCT)
def _keeps_order(values: Values, original: Any) -> Truth:
    """A cancel goes back to the original replicas in their order."""
    return same(values["assigned"], original)
