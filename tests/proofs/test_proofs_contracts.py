"""The layer for any number of brokers, and its link to the code."""

from functools import partial
from typing import Any

import pytest

from reassure_proofs.engine.prover import prove
from reassure_proofs.engine.register import get_theorems
from reassure_proofs.protocols.kip_236.contracts import THEOREMS
from reassure_proofs.protocols.kip_236.drop import ask_drop
from reassure_spec.readings import Readings


def test_unbounded_theorems_say_that_they_are_about_a_contract() -> None:
    """Whatever is not bounded is marked as a contract, and has one of the two as a hypothesis."""
    for theorem in get_theorems():
        on_contract = any("contract" in item.name for item in theorem.hypotheses)
        assert (theorem.layer == "contract") == on_contract, theorem.name
        if on_contract:
            assert "any number of brokers" in theorem.bound(4)
    assert len(THEOREMS) == 7


@pytest.mark.parametrize("name", ["drop-meets-contract", "drop-amended-meets-contract"])
def test_code_meets_its_contract(name: str) -> None:
    """The link between the layers is proved of the model's own code."""
    (theorem,) = get_theorems([name])
    result = prove(theorem.subject.function, theorem.shapes(3), theorem.assumptions, theorem.claim)
    assert (result.verdict, theorem.layer) == ("proved", "code")


def test_code_that_breaks_the_contract_is_refuted() -> None:
    """A rule that ranks the assigned replicas as they stand breaks the link."""

    def rule(assigned: Any, leader: Any, isr: Any, top: Any, target: Any, readings: Any) -> Any:
        return assigned[top:]

    (theorem,) = get_theorems(["drop-meets-contract"])
    function = partial(ask_drop, readings=Readings(), rule=rule)
    result = prove(function, theorem.shapes(2), theorem.assumptions, theorem.claim)
    assert result.verdict == "refuted"


def test_contract_is_met_by_large_numbers() -> None:
    """The contract alone has models of any size, so that what follows from it is not vacuous."""
    (theorem,) = get_theorems(["unbounded-isr-at-least-min"])
    counts = {
        "in_sync": 400,
        "others": 600,
        "top": 500,
        "minimum": 300,
        "kept_in_sync": 400,
        "kept_others": 100,
        "wanted": 0,
        "target": 0,
    }
    assert all(item.holds(counts) for item in theorem.hypotheses)
    assert theorem.claim(counts, ())
    assert not theorem.hypotheses[0].holds({**counts, "kept_others": 101})
