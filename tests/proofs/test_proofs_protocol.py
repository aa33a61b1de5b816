"""The protocol by induction: what a failover may end with, and what the invariant is for."""

import pytest
from claim_proofs import find_outcomes, prove

from reassure_proofs.engine.statement import is_any_size
from reassure_proofs.engine.tasks import ProofTask, run_task
from reassure_proofs.protocols.kip_236.invariant import DROP_FOLLOWED, INVARIANT, holds_invariant
from reassure_proofs.protocols.kip_236.partition_steps import crash_and_resume, make_partition
from reassure_proofs.protocols.kip_236.protocol import THEOREMS


def test_failover_after_a_drop_can_drop_again() -> None:
    """Between a drop and its expansion an election and a failover drop a replica more.

    The smallest instance, on the plain model: the old leader was kept by the drop, another one
    leads now, and the next controller ranks anew.
    """
    values = {"assigned": (1, 2), "isr": (1, 2), "leader": 1, "target": (1, 3), "top": 1}
    values |= {"live": frozenset({1, 2, 3}), "acting_epoch": 1, "drop_due": False}
    assert holds_invariant(make_partition(values), values)
    assert not DROP_FOLLOWED.holds(values)
    final, resumed = crash_and_resume(values)
    assert final.assigned == (1, 2, 3)
    assert resumed[0].assigned == (1, 3)


def test_plan_ends_alike_once_the_drop_protects_the_target() -> None:
    """A failover that ends otherwise as written does not so once a drop spares the target."""
    name = "as-written-failover-ends-alike"
    assert find_outcomes([name], 4, tier="full") == {name: "finding"}
    (record,) = run_task(ProofTask((name,), (0,), 2, 60.0, readings=("drop.protects=target",)))
    assert (record["counterexamples"], record["certificate"]["gap"]) == ({}, "unsat")


@pytest.mark.slow
def test_invariant_is_needed_where_it_is_a_hypothesis() -> None:
    """Each theorem that rests on the invariant fails in some state outside of it."""
    for theorem in THEOREMS:
        rests = INVARIANT in theorem.hypotheses and theorem.name != "step-keeps-isr-distinct"
        if rests and theorem.subject.name in ("step", "owed", "caught-up"):
            others = [item for item in theorem.assumptions if item is not INVARIANT]
            function, shapes = theorem.subject.function, theorem.shapes(1)
            # Where one shape is enough the others need not be looked at, least those of any size.
            tried = (
                prove(function, [shape], others, theorem.claim, hashable=True).verdict
                for shape in sorted(shapes, key=is_any_size)
            )
            assert "refuted" in tried, theorem.name
