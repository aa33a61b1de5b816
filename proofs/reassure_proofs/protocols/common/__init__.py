"""Theorems about what the protocols have in common: the offices of controllers, and selectors."""

from typing import Final

from reassure_proofs.protocols.common import controllers, selectors

THEOREMS: Final = (*controllers.THEOREMS, *selectors.THEOREMS)
RULES: Final = selectors.RULES
