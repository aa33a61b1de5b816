"""The algebra of shipped controllers: what a cancel goes back to."""

from typing import Any, Final

from reassure_model.kafka_zk import Assignment, reassign_to
from reassure_proofs.engine.formula import Truth, all_of, distinct
from reassure_proofs.engine.statement import (
    Hypothesis,
    Parameter,
    Subject,
    Telling,
    Theorem,
    Values,
)
from reassure_spec.words import spell_replicas


def _ids(length: int) -> Parameter:
    return Parameter(length, floor=1)


def move_and_cancel(values: Values) -> Any:
    """Return the replicas that a cancel asks for after a reassignment was begun."""
    return reassign_to(Assignment(values["assigned"]), values["target"]).original


CANCEL_ORDER: Final = Subject(
    "cancel-order",
    move_and_cancel,
    "what a cancel goes back to",
    lambda longest: (
        {"assigned": _ids(assigned), "target": _ids(target)}
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


def _same_list(values: Values, original: Any) -> Truth:
    if len(original) != len(values["assigned"]):
        return False
    return all_of(a == b for a, b in zip(values["assigned"], original, strict=True))


def _refuted(
    name: str,
    clause: str,
    statement: str,
    subject: Subject,
    hypotheses: tuple[Hypothesis, ...],
    claim: Any,
    finding: str,
    profile: str = "kafka-zk",
) -> Theorem:
    return Theorem(
        name,
        clause,
        statement,
        subject,
        hypotheses,
        claim,
        profile,
        expected="refuted",
        finding=finding,
        tier="full",
        largest=2,
    )


THEOREMS: Final[tuple[Theorem, ...]] = (
    _refuted(
        "cancel-keeps-order",
        "shipped.assignment.original-derivable",
        "A cancel goes back to the original replicas in their order.",
        CANCEL_ORDER,
        (BOTH_DISTINCT,),
        _same_list,
        "zk-7",
        "kafka-zk",
    ),
)
"""Every theorem about the algebra of shipped controllers."""
