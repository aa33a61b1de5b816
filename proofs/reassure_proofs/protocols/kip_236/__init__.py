"""Reassignment by KIP-236: the drop rule, the protocol by induction, acts, broken promises."""

from typing import Final

from reassure_proofs.protocols.kip_236 import acts, drop, protocol, refutations, writes

THEOREMS: Final = (
    *drop.THEOREMS,
    *drop.WITHOUT,
    *protocol.THEOREMS,
    *writes.THEOREMS,
    *acts.THEOREMS,
    *refutations.THEOREMS,
)
RULES: Final = (drop.RULE,)
