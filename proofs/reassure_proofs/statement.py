"""The words of a proof: parameters, hypotheses, claims, what a shape is. Needs no solver."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

from reassure_proofs.formula import Truth

Values: TypeAlias = Mapping[str, Any]
"""The arguments by name: integers and tuples of integers, all plain or all symbolic."""
Function: TypeAlias = Callable[[Values], object]
"""The code under test; picks its arguments from the values."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument, or one sequence of arguments, without bounds on the integers."""

    length: int | None = None
    """Number of elements of a sequence, None for a single integer."""
    floor: int = 0
    """Counterexamples are sought from here upwards first. Taste, not a hypothesis."""


Shape: TypeAlias = Mapping[str, Parameter]
"""The arguments of one proof by name. Lengths are plain numbers, so each shape is proved alone."""


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A condition under which something is claimed."""

    name: str
    """Short name, as in the table of which hypotheses are needed."""
    sentence: str
    """The condition in words."""
    holds: Callable[[Values], Truth]
    """The condition as a formula, see `reassure_proofs.formula`."""


Claim: TypeAlias = Callable[[Values, Any], Truth]
"""A formula over the arguments and what the code returned for them."""


class Unread:
    """Stands for an argument that the code under test must not look at.

    What is proved with it holds for every value of that argument. Any use ends the proof as
    unknown.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def _refuse(self, *_: object) -> NoReturn:
        from reassure_proofs.symex import GaveUp

        raise GaveUp(f"the code under test reads {self._name!r}, of which nothing was assumed")

    __iter__ = __len__ = __getitem__ = __contains__ = __add__ = __radd__ = __bool__ = _refuse
    __hash__ = __eq__ = __lt__ = __le__ = __gt__ = __ge__ = __index__ = _refuse


def describe(value: object) -> str:
    """Return an argument as it is written in a counterexample: sequences in square brackets.

    >>> describe((1, 2))
    '[1, 2]'
    """
    if isinstance(value, tuple | list):
        return "[" + ", ".join(describe(part) for part in value) + "]"
    return str(value)


def describe_values(values: Values) -> str:
    """Return all arguments in one line.

    >>> describe_values({"assigned": (1, 2), "top": 1})
    'assigned=[1, 2] top=1'
    """
    return " ".join(f"{name}={describe(value)}" for name, value in values.items())


def summarise_verdict(refuted: bool, reason: str, paths: int, certified: bool) -> tuple[str, str]:
    """Return the verdict (`proved`, `refuted` or `unknown`), and why it is unknown.

    `reason` says what went wrong in the explorations, if anything; `paths` is how many they found;
    `certified` whether there is a certificate without a gap for every shape.
    """
    if refuted:
        return "refuted", ""
    if reason:
        return "unknown", reason
    if not certified:
        return "unknown", "a shape has no certificate that every input takes an explored path"
    if paths == 0:
        # The certificate holds for the empty set as well; a proof about nothing is none.
        return "unknown", "no input satisfies the hypotheses"
    return "proved", ""
