"""Theorems about what the protocols have in common: the offices of controllers, and selectors."""

from typing import Final

from reassure_proofs.engine.statement import Rule, Theorem
from reassure_proofs.protocols.common import controllers, selectors

THEOREMS: Final[tuple[Theorem, ...]] = (*controllers.THEOREMS, *selectors.THEOREMS)
RULES: Final[tuple[Rule, ...]] = selectors.RULES
