"""Every theorem there is: each protocol's, found by being there.

A module or folder of `reassure_proofs.protocols` holds what is claimed of one module of the model
and is named like it. It exports `THEOREMS`, and `RULES` where a reviewer may bring a rule of his
own. Nothing else has to know of it.

Nothing here needs the solver, so that the matrix of clauses can list the theorems for nothing.
"""

from collections.abc import Iterator
from difflib import get_close_matches
from functools import cache
from types import ModuleType

from reassure_proofs.engine.statement import Rule, Theorem
from reassure_spec.errors import BadUsage
from reassure_spec.protocols import import_parts


class UnknownTheoremError(BadUsage):
    """A theorem name that the register does not have."""


@cache
def find_modules() -> tuple[ModuleType, ...]:
    """Return the module of every protocol, in their usual order."""
    return tuple(import_parts("reassure_proofs").values())


def find_rules() -> Iterator[Rule]:
    """Yield every kind of rule that a reviewer may bring."""
    for module in find_modules():
        rules: tuple[Rule, ...] = getattr(module, "RULES", ())
        yield from rules


@cache
def _find_theorems() -> tuple[Theorem, ...]:
    return tuple(theorem for module in find_modules() for theorem in module.THEOREMS)


def get_theorems(
    names: tuple[str, ...] | list[str] | None = None, tier: str = "full"
) -> tuple[Theorem, ...]:
    """Return the named theorems in the register's order, all of the tier without names.

    Raises UnknownTheoremError for a name there is not; the message names those that are close.
    """
    theorems = _find_theorems()
    if names is None:
        return tuple(item for item in theorems if tier in ("full", item.tier))
    known = [theorem.name for theorem in theorems]
    unknown = [name for name in names if name not in known]
    if unknown:
        close = ", ".join(get_close_matches(unknown[0], known, 5, 0.4)) or "none"
        raise UnknownTheoremError(
            f"there is no theorem {unknown[0]!r}; names that are close: {close} "
            f"(`reassure prove --list` tells all {len(known)})"
        )
    return tuple(theorem for theorem in theorems if theorem.name in names)
