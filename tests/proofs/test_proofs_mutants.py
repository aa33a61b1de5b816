"""Every theorem bites: planted mistakes refute it, a rule without rules among them.

A theorem that stays proved whatever the model does proves nothing. Each one here is held against
the emptiest rules there are (one that accepts everything, one that answers always the same), and
against the model with the rule of its clause taken out, or looking at a part only. The mistakes
stand in `mutants.toml`. Theorems to which that does not apply stand in a register, each with the
reason.
"""

import tomllib
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final

import pytest
from planting import find_refuted, planted, replaced, without_refusals

from reassure_proofs.engine.register import get_theorems
from reassure_proofs.engine.runner import prove_all
from reassure_proofs.engine.statement import Theorem

PROVED: Final = {each.name: each for each in get_theorems() if each.expected != "refuted"}
FILE: Final = Path(__file__).with_name("mutants.toml")
MUTANTS: Final = tomllib.loads(FILE.read_text(encoding="utf-8"))["mutant"]

NOT_BY_ANY_WRITE: Final = ("step-failover-forgets", "step-moves-partition-by-table")
"""Steps of which no write that is accepted says anything; an empty failover refutes them."""
NO_VALUE: Final = {
    "plan-comes-to-rest": "a plan that does not end, or that a rule refuses, is an error: no value "
    "of it could refute the claim (`test_plan_that_does_not_rest_is_no_proof`)",
    "plan-is-short": "no mistake is known that makes a plan longer and lets it come to its end",
}
"""Theorems that no mutant can refute by a value, each with the reason."""
_TWIN: Final = "the rules are those of its twin under the amendments, which fails without them"
NO_RULE: Final = {
    "step-moves-partition-by-table": "a step makes, changes and keeps a state; what it lacks is "
    "one that takes the state away, as the empty failover does",
    "protocol-starts-in-invariant": "a partition begins with nothing but its assignment",
    "failover-ends-alike": "the failover is one statement; the empty one forgets what is in flight",
    "heal-choice-if-possible": "the choice refuses nobody; the empty one refuses everybody",
    "replication-starts-in-invariant": "a partition begins empty; the empty one has no members",
    **{name: _TWIN for name in PROVED if name.startswith("as-written-step-")},
}


def plant(mutant: dict[str, Any]) -> AbstractContextManager[Any]:
    """Return what has the mistake in the model for a while."""
    module = mutant["module"]
    if "lacks" in mutant:
        return without_refusals(module, *mutant["lacks"].split())
    if "says" in mutant:
        return replaced(module, mutant["says"])
    return planted(module, mutant["old"], mutant["new"])


def refuted_by(mutant: dict[str, Any]) -> tuple[str, ...]:
    """Return the theorems that a mutant has to refute; `step-*` are all about writes."""
    if mutant["refutes"] != ["step-*"]:
        return tuple(mutant["refutes"])
    kinds = ("step", "step-as-written")
    steps = (name for name, each in PROVED.items() if each.subject.name in kinds)
    return tuple(name for name in steps if name not in NOT_BY_ANY_WRITE)


def _name(mutant: dict[str, Any]) -> str:
    what = mutant.get("lacks") or mutant.get("says") or f"{mutant['new']} "
    return f"{mutant['module']}: {what.splitlines()[-1].strip()[:50]}"


@pytest.mark.sampled(10)
@pytest.mark.parametrize("mutant", MUTANTS, ids=_name)
def test_mutant_is_refuted(mutant: dict[str, Any]) -> None:
    """What a planted mistake has to break is refuted by a value, and so by no crash."""
    names = refuted_by(mutant)
    where = (mutant.get("factor", 2), mutant.get("writes", ""), mutant.get("at", ""))
    with plant(mutant):
        refuted = find_refuted(names, *where)
    assert sorted(set(names) - set(refuted)) == []


def _covered(*, empty: bool) -> set[str]:
    return {
        name for mutant in MUTANTS if ("says" in mutant) == empty for name in refuted_by(mutant)
    }


@pytest.mark.parametrize("theorem", PROVED.values(), ids=PROVED)
def test_empty_rule_refutes_every_theorem(theorem: Theorem) -> None:
    """Each theorem fails for the emptiest rules, or the register says why it cannot."""
    assert (theorem.name in _covered(empty=True)) != (theorem.name in NO_VALUE)


@pytest.mark.parametrize("theorem", PROVED.values(), ids=PROVED)
def test_missing_rule_refutes_every_theorem(theorem: Theorem) -> None:
    """Each theorem fails with a part of its rule gone, or the register says why it cannot."""
    excused = {**NO_VALUE, **NO_RULE}
    assert (theorem.name in _covered(empty=False)) != (theorem.name in excused)


def test_registers_have_reasons_for_theorems_there_are() -> None:
    """No register names a theorem that is gone, and each gives a reason."""
    for register in (NO_VALUE, NO_RULE):
        assert set(register) <= set(PROVED)
        assert all(len(reason) > 20 for reason in register.values())


def test_plan_that_does_not_rest_is_no_proof() -> None:
    """Where a plan does not come to its end the theorem is refuted by the error, and violated."""
    endless = "def next_for_reassignment(partition, around, readings):\n"
    endless += "    return Obligation(WriteAssigned(partition.assigned), 'complete.carried-out')\n"
    with replaced("protocols.kip_236", endless):
        (result,) = prove_all(["plan-comes-to-rest"], 1, processes=1)
    assert (result.verdict, result.outcome, result.raised) == ("refuted", "violated", True)
