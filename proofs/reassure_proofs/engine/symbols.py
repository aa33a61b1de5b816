"""Symbolic integers, truth values and sets, as code meets them in place of plain ones.

A symbolic integer answers every operator of a plain one, or refuses it by name; it never leaves
Python to answer for it. Lengths of sequences are plain numbers. What no operator sees (`is`,
`type`, a hash among plain numbers) is left out by the model's own code; code of others is run in
the form that `engine.dialect` gives it, where all of that is seen or refused.
Sets and dicts of symbolic values have to be asked for (`PathExplorer.hashable`), because they
mislead where plain numbers are in them as well.
"""

import dis
import linecache
import operator
import re
import sys
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from fractions import Fraction
from functools import cache
from itertools import islice
from math import ceil, floor, isinf, isnan
from types import CodeType, FrameType
from typing import Any, Final, NoReturn, Self

import z3

from reassure_proofs.engine.symex import GaveUp, PathExplorer, Term, conjunction, disjunction


class _Symbolic:
    """What symbolic integers and truth values share: a term, and that equal terms are one."""

    __slots__ = ("engine", "id", "term")

    def __init__(self, engine: PathExplorer, term: Term) -> None:
        self.engine = engine
        self.term = term
        # The solver keeps one copy of equal terms, so this tells terms apart. It is unique only
        # while the term lives, hence the engine keeps one value of each.
        self.id: int = term.get_id()
        engine.made.setdefault(self.id, self)

    def __hash__(self) -> int:
        """All alike, as whether two are equal is for the solver; refused unless asked for.

        A plain number that is equal on some inputs hashes differently, so a set that holds both
        kinds would find them different on all inputs, and no certificate would tell.
        """
        if not self.engine.hashable:
            raise GaveUp("the code under test puts symbolic values in a set or a dict")
        return 0

    def __repr__(self) -> str:
        # Messages of the model's code name values; printing terms would take most of the time.
        if self.engine.strict:
            raise GaveUp("text is made of a symbolic value")
        return f"<{type(self).__name__} {self.id}>"

    def __format__(self, _: str) -> str:
        return repr(self)


def _operator(
    build: Callable[[Term, Term], Term],
    *,
    result: str,
    commutes: bool = False,
    reflexive: bool | None = None,
    relation: str = "",
) -> Callable[[Any, object], Any]:
    """Return the method of a binary operator; `result` names the class that it returns.

    `reflexive` is the answer for a value and itself, where that is always the same. `relation` is
    how the operator is written, where it is a comparison.
    """

    def method(self: _Symbolic, other: object) -> Any:
        right: Any = other if type(other) is type(self) else _constant(self, other)
        if right is None:
            return _beside_another_kind(self, other, relation)
        # One order for both ways of asking, so that the second question is known to be the first.
        left, right = (right, self) if commutes and right.id < self.id else (self, right)
        made = self.engine.made
        if left is right and reflexive is not None:
            return _constant_truth(self.engine, reflexive)
        key = (build, left.id, right.id)
        found: Any = made.get(key)
        if found is None:
            kind = SInt if result == "SInt" else SBool
            found = made[key] = kind(self.engine, build(left.term, right.term))
        return found

    return method


def _constant_truth(engine: PathExplorer, value: bool) -> "SBool":
    def build() -> SBool:
        made = SBool(engine, z3.BoolVal(value))
        engine.note_literal(made, value)
        return made

    found: SBool = engine.make((bool, int(value)), build)
    return found


def plain(engine: PathExplorer, number: object) -> "SInt":
    """Return a plain integer as a symbolic one. Raises GaveUp for anything else."""
    if not isinstance(number, int):
        raise GaveUp(f"{type(number).__name__} stands where a number is expected")

    value = int(number)
    found: SInt = engine.make((int, value), lambda: SInt(engine, z3.IntVal(value)))
    return found


def _constant(beside: _Symbolic, value: object) -> _Symbolic | None:
    """Return a plain operand as a symbolic one, None if it is not of the kind it stands beside."""
    if isinstance(beside, SInt):
        if isinstance(value, SBool):
            return value.number()
        return plain(beside.engine, value) if isinstance(value, int) else None
    return _constant_truth(beside.engine, value) if isinstance(value, bool) else None


def _beside_another_kind(left: _Symbolic, other: object, relation: str) -> Any:
    """Return what an operator answers beside a value that is no integer, as a plain integer would.

    Refuses where that is not known: what a value of a foreign type says of an integer is up to it.
    """
    if isinstance(other, float | Fraction) and relation and isinstance(left, SInt):
        return _beside_fraction(left, other, relation)
    if isinstance(other, float | Fraction):
        raise GaveUp("arithmetic on a symbolic number and a fraction is not followed")
    if _has_own_comparison(other):
        raise GaveUp(f"an operator stands between a symbolic value and a {type(other).__name__}")
    return NotImplemented


def _beside_fraction(left: "SInt", other: float | Fraction, relation: str) -> Any:
    """Return how an integer compares with a fraction: as with the integers next to it."""
    if isinstance(other, float) and (isnan(other) or isinf(other)):
        above = not isnan(other) and other > 0
        below = not isnan(other) and other < 0
        answers = {"=": False, "!=": True, "<": above, "<=": above, ">": below, ">=": below}
        return _constant_truth(left.engine, answers[relation])
    whole = other == floor(other)
    if relation in ("=", "!=") and not whole:
        return _constant_truth(left.engine, relation == "!=")
    if relation in ("=", "!="):
        return left == floor(other) if relation == "=" else left != floor(other)
    if relation in ("<", ">="):
        return left < ceil(other) if relation == "<" else left >= ceil(other)
    return left <= floor(other) if relation == "<=" else left > floor(other)


def _has_own_comparison(value: object) -> bool:
    """Return whether a value that is no number may think itself equal to an integer."""
    kind = type(value)
    return kind not in _NEVER_NUMBERS and kind.__eq__ is not object.__eq__


_NEVER_NUMBERS: Final = (type(None), str, bytes, tuple, list, set, frozenset, dict, range)
"""Types whose values are never equal to an integer, nor before or after one."""


def _power_of_two(name: str, exponent: object) -> int:
    if not isinstance(exponent, int) or not 0 <= exponent <= _LARGEST_SHIFT:
        raise GaveUp(f"{name} is followed with a small plain number on its right only")
    return 1 << int(exponent)


_LARGEST_SHIFT: Final = 64


def _refuse_operator(name: str) -> Callable[..., NoReturn]:
    """Return the method of an operator that is refused by its name."""

    def refuse(*_: object) -> NoReturn:
        raise GaveUp(f"{name} is not supported on symbolic values")

    return refuse


class SInt(_Symbolic):
    """A symbolic integer without bounds."""

    __slots__ = ()

    @classmethod
    def named(cls, engine: PathExplorer, name: str) -> Self:
        """Return one that is called so in counterexamples."""
        return cls(engine, z3.Int(name))

    __eq__ = _operator(
        lambda a, b: a == b, result="SBool", commutes=True, reflexive=True, relation="="
    )
    __ne__ = _operator(
        lambda a, b: a != b, result="SBool", commutes=True, reflexive=False, relation="!="
    )
    __lt__ = _operator(lambda a, b: a < b, result="SBool", reflexive=False, relation="<")
    __le__ = _operator(lambda a, b: a <= b, result="SBool", reflexive=True, relation="<=")
    __gt__ = _operator(lambda a, b: a > b, result="SBool", reflexive=False, relation=">")
    __ge__ = _operator(lambda a, b: a >= b, result="SBool", reflexive=True, relation=">=")
    __add__ = __radd__ = _operator(lambda a, b: a + b, result="SInt", commutes=True)
    __sub__ = _operator(lambda a, b: a - b, result="SInt")
    __rsub__ = _operator(lambda a, b: b - a, result="SInt")
    __hash__ = _Symbolic.__hash__

    def __neg__(self) -> "SInt":
        return self._made("-", lambda: -self.term)

    def __pos__(self) -> "SInt":
        return self

    __trunc__ = __floor__ = __ceil__ = __pos__

    def __invert__(self) -> "SInt":
        return self._made("~", lambda: -self.term - 1)

    def __abs__(self) -> "SInt":
        return self._made("abs", lambda: z3.If(self.term >= 0, self.term, -self.term))

    def __mul__(self, other: object) -> Any:
        if isinstance(other, tuple | list | str):
            return NotImplemented
        if not isinstance(other, int):
            raise GaveUp("* of two symbolic numbers, or of one and a fraction, is not followed")
        return self._made(("*", int(other)), lambda: self.term * z3.IntVal(int(other)))

    __rmul__ = __mul__

    def __floordiv__(self, other: object) -> "SInt":
        return self._divided("//", other)

    def __mod__(self, other: object) -> "SInt":
        return self._divided("%", other)

    def _divided(self, name: str, other: object) -> "SInt":
        # The solver rounds as Python does where the divisor is positive.
        if not isinstance(other, int) or other <= 0:
            raise GaveUp(f"{name} is followed with a plain positive number on its right only")
        divisor = z3.IntVal(int(other))
        return self._made(
            (name, int(other)), lambda: self.term / divisor if name == "//" else self.term % divisor
        )

    def __lshift__(self, other: object) -> Any:
        return self * _power_of_two("<<", other)

    def __rshift__(self, other: object) -> Any:
        return self // _power_of_two(">>", other)

    def _made(self, how: object, build: Callable[[], Term]) -> "SInt":
        found: SInt = self.engine.make((how, self.id), lambda: SInt(self.engine, build()))
        return found

    def __getattr__(self, name: str) -> NoReturn:
        if hasattr(int, name):
            raise GaveUp(f"the attribute {name!r} of a symbolic number is not followed")
        raise AttributeError(f"'int' object has no attribute {name!r}")

    def __bool__(self) -> bool:
        return bool(self != 0)

    def __index__(self) -> int:
        """Return a plain bound for a slice, one path for each that makes a difference.

        All bounds beyond the end of the sequence are one case, so the sequence has to be known:
        anything but `name[:number]` and `name[number]` is refused.
        """
        if self.engine.strict:
            return self.enumerate()
        bound = _subscript_bound(sys._getframe(1))  # noqa: SLF001 - there is no public way
        return self.enumerate() if bound is None else self.choose_bound(bound)

    def enumerate(self) -> int:
        """Return the value of a number that has few: one path for each."""
        few = () if self < 0 else range(_FEW)
        for value in few:
            if self == value:
                return value
        raise GaveUp("a symbolic number is used as a plain one outside of a slice of a variable")

    def choose_bound(self, bound: int) -> int:
        """Return the value of this number, or `bound` or `-bound` for all at least as far out."""
        if self >= bound:
            return bound
        if self < 0:
            negative = (value for value in range(-1, -bound, -1) if self == value)
            return next(negative, -bound)
        # What is left is known without asking.
        return next((value for value in range(bound - 1) if self == value), bound - 1)


def _counted(apply: Callable[..., Any]) -> Callable[..., Any]:
    """Return the method of an operator before which a truth value counts as a number."""
    return lambda self, *other: apply(self.number(), *other)


class SBool(_Symbolic):
    """A symbolic truth value. In sums and beside numbers it counts as 0 or 1, as a bool does."""

    __slots__ = ()

    @classmethod
    def named(cls, engine: PathExplorer, name: str) -> Self:
        """Return one that is called so in counterexamples."""
        return cls(engine, z3.Bool(name))

    __and__ = __rand__ = _operator(conjunction, result="SBool")
    __or__ = __ror__ = _operator(disjunction, result="SBool")
    __xor__ = __rxor__ = _operator(z3.Xor, result="SBool")
    _same = _operator(lambda a, b: a == b, result="SBool")
    __hash__ = _Symbolic.__hash__
    __lt__, __le__ = _counted(operator.lt), _counted(operator.le)
    __gt__, __ge__ = _counted(operator.gt), _counted(operator.ge)
    __add__ = __radd__ = _counted(operator.add)
    __sub__, __rsub__ = _counted(operator.sub), _counted(lambda n, other: -n + other)
    __mul__ = __rmul__ = _counted(operator.mul)
    __neg__, __pos__ = _counted(operator.neg), _counted(operator.pos)

    def __eq__(self, other: object) -> Any:
        return self._same(other) if isinstance(other, SBool | bool) else self.number() == other

    def __ne__(self, other: object) -> Any:
        return self ^ other if isinstance(other, SBool | bool) else self.number() != other

    def __index__(self) -> int:
        return int(bool(self))

    def __bool__(self) -> bool:
        return self.engine.decide(self)

    def choose(self, yes: object, no: object) -> SInt:
        """Return `yes` where this holds and `no` where it does not, without a decision."""
        first, second = (v if isinstance(v, SInt) else plain(self.engine, v) for v in (yes, no))
        found: SInt = self.engine.make(
            ("choose", self.id, first.id, second.id),
            lambda: SInt(self.engine, z3.If(self.term, first.term, second.term)),
        )
        return found

    def number(self) -> SInt:
        """Return 1 where this holds and 0 where it does not."""
        return self.choose(1, 0)


_OBJECT_WIDE: Final = frozenset(dir(object)) - {
    *("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"),
    *("__hash__", "__repr__", "__str__", "__format__"),
}
"""What every object has and no operator asks for."""


def refuse_the_rest(kind: type, plain: type) -> None:
    """Refuse by name every operator of the plain type that what stands for it does not define."""
    for name in sorted(set(dir(plain)) - _OBJECT_WIDE):
        own = getattr(kind, name, None)
        if name.startswith("__") and own in (None, getattr(object, name, None)):
            setattr(kind, name, _refuse_operator(f"{name} of {plain.__name__}"))


refuse_the_rest(SInt, int)
refuse_the_rest(SBool, bool)


class SSet:
    """A symbolic set of integers: any set, of any size. All that can be asked is who is in it."""

    __slots__ = ("asked", "engine", "function")

    def __init__(self, engine: PathExplorer, function: Term) -> None:
        self.engine = engine
        self.function = function
        self.asked: list[SInt] = []
        """The numbers of which it was asked whether they are in it."""

    @classmethod
    def named(cls, engine: PathExplorer, name: str) -> Self:
        """Return one that is called so in counterexamples."""
        return cls(engine, z3.Function(name, z3.IntSort(), z3.BoolSort()))

    def holds(self, member: object) -> Any:
        """Return whether `member` is in the set, without asking for a decision."""
        number = member if isinstance(member, SInt) else plain(self.engine, member)
        name = self.function.name()

        def build() -> SBool:
            self.asked.append(number)
            return SBool(self.engine, self.function(number.term))

        return self.engine.make((name, number.id), build)

    def __contains__(self, member: object) -> bool:
        return bool(self.holds(member))

    def _refuse(self, *_: object) -> NoReturn:
        raise GaveUp("the code under test does more with a set of any size than ask who is in it")

    __iter__ = __len__ = __eq__ = __ne__ = __hash__ = __bool__ = _refuse
    __or__ = __ror__ = __rand__ = __sub__ = __rsub__ = __xor__ = __rxor__ = _refuse
    __lt__ = __le__ = __gt__ = __repr__ = __format__ = _refuse

    def __and__(self, other: object) -> Any:
        # A set whose members are known can answer by asking for each of them.
        return NotImplemented if hasattr(other, "members") else self._refuse()

    __ge__ = __and__

    def __getattr__(self, name: str) -> NoReturn:
        if hasattr(frozenset, name):
            self._refuse()
        raise AttributeError(f"'frozenset' object has no attribute {name!r}")


refuse_the_rest(SSet, frozenset)


_FEW: Final = 16
"""From here on a plain number is not few any more."""
_NAMED_SUBSCRIPT: Final = re.compile(r"(\w+)\[([^\[\]]*)\]")
_BINARY_OP_SUBSCRIPT: Final = 26
"""The argument of BINARY_OP that means a subscript, in the versions that have no BINARY_SUBSCR."""


def bound_beyond(length: int, *, forwards: bool) -> int:
    """Return from where on all bounds of a sequence are alike.

    The slices `xs[:-len(xs)]` and `xs[:-len(xs) - 1]` are; with a step that goes backwards they are
    not, and the subscripts are not either.
    """
    return length if forwards else length + 1


def _subscript_bound(frame: FrameType) -> int | None:
    """Return from where on all bounds are alike, None if that cannot be told from `frame`."""
    code, at = frame.f_code, frame.f_lasti
    name = dis.opname[code.co_code[at]]
    if name == "BINARY_OP" and code.co_code[at + 1] == _BINARY_OP_SUBSCRIPT:
        name = "BINARY_SUBSCR"
    match = _NAMED_SUBSCRIPT.fullmatch(_source_text(code, at))
    if match is None or name not in ("BINARY_SUBSCR", "BINARY_SLICE"):
        return None
    sequence = frame.f_locals.get(match[1])
    if not isinstance(sequence, tuple | list):
        return None
    return bound_beyond(len(sequence), forwards=match[2].count(":") == 1)


@cache
def _source_text(code: CodeType, at: int) -> str:
    """Return the source of the expression that the instruction at `at` evaluates, "" if unknown."""
    line, last_line, start, end = next(islice(code.co_positions(), at // 2, None))
    if line is None or line != last_line or start is None or end is None:
        return ""
    return linecache.getline(code.co_filename, line).encode()[start:end].decode()


def concretise(value: object, model: Term, known: dict[int, object] | None = None) -> object:
    """Return the plain value that `value` has in a model; containers are converted throughout.

    `known` are the values of terms by identity; a term that stands in many places is asked once.
    """
    known = {} if known is None else known
    if isinstance(value, SInt | SBool):
        if value.id not in known:
            plain = model.eval(value.term, model_completion=True)
            known[value.id] = plain.as_long() if isinstance(value, SInt) else z3.is_true(plain)
        return known[value.id]
    if hasattr(type(value), "concretise"):
        return value.concretise(lambda part: concretise(part, model, known))  # type: ignore[attr-defined]
    if isinstance(value, tuple | list | set | frozenset):
        return type(value)(concretise(part, model, known) for part in value)
    if isinstance(value, dict):
        pairs = value.items()
        return {concretise(k, model, known): concretise(part, model, known) for k, part in pairs}
    if is_dataclass(value) and not isinstance(value, type):
        parts = {part.name: getattr(value, part.name) for part in fields(value)}
        plain_parts = {name: concretise(part, model, known) for name, part in parts.items()}
        return replace(value, **plain_parts)
    return value
