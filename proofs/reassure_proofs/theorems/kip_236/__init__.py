"""Reassignment by KIP-236: the drop rule, the protocol by induction, acts, broken promises."""

from typing import Final

from reassure_proofs.engine.statement import Rule, Theorem
from reassure_proofs.theorems.kip_236.acts import ACT_THEOREMS
from reassure_proofs.theorems.kip_236.contracts import CONTRACT_THEOREMS
from reassure_proofs.theorems.kip_236.drop import DROP_THEOREMS, RULE, WITHOUT
from reassure_proofs.theorems.kip_236.protocol import PROTOCOL_THEOREMS
from reassure_proofs.theorems.kip_236.refutations import REFUTATIONS
from reassure_proofs.theorems.kip_236.writes import STEP_THEOREMS

THEOREMS: Final[tuple[Theorem, ...]] = (
    *DROP_THEOREMS,
    *WITHOUT,
    *CONTRACT_THEOREMS,
    *PROTOCOL_THEOREMS,
    *STEP_THEOREMS,
    *ACT_THEOREMS,
    *REFUTATIONS,
)
RULES: Final[tuple[Rule, ...]] = (RULE,)
