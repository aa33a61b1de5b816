"""Theorems about what the protocols have in common: the offices of controllers, and selectors."""

from reassure_proofs.protocols.common import controllers, selectors

THEOREMS = (*controllers.THEOREMS, *selectors.THEOREMS)
