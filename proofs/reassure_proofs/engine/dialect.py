"""The Python of a reviewer's rule, rewritten so that nothing happens to a symbolic value unseen.

A rule is an ordinary function. Run as it is on symbolic integers it would mislead wherever Python
answers without asking them: a plain number in a set, `is`, `type`, a handler that catches
everything. Therefore its source is taken, every construct that could do so is made a call of the
`Runtime` below, and what results, the *twin*, is run in its place. What the twin finds outside of
its arguments is converted by `engine.library`. All that is not known is refused, where it
is met, by name; the place is in the traceback, as twins keep the lines of what they were made of.

Plain inputs are always run through the rule itself, never through its twin.
"""

import builtins
import dis
import functools
import importlib
import sys
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from types import BuiltinFunctionType, CellType, CodeType, FunctionType
from typing import Any, Final

from reassure_proofs.engine.codes import all_codes, find_names
from reassure_proofs.engine.containers import Order, RuleDict, RuleSet, unordered
from reassure_proofs.engine.library import (
    Known,
    Unknown,
    convert_plain,
    get_attribute,
    get_plain_type,
)
from reassure_proofs.engine.rewriting import RUNTIME, Unfollowed, rewrite
from reassure_proofs.engine.symbols import SBool, SInt, bound_beyond
from reassure_proofs.engine.symex import GaveUp, Signal

_CACHED: Final = type(functools.cache(len))


class Runtime:
    """What the rewritten constructs call."""

    set = RuleSet
    slice = slice

    def __init__(self) -> None:
        self.unordered = unordered

    def each(self, values: Any, *called: Any) -> Iterator[Any]:
        """Return the members of what a comprehension goes through, that calls these by name."""
        if not all(isinstance(function, Known) for function in called):
            return iter(values)
        if isinstance(values, RuleSet) and not values.ordered:
            Order.taken = Order.taken or len(values) > 1
        return unordered(values)

    def dict(self, pairs: Iterable[Any]) -> RuleDict:
        """Make a dict of pairs."""
        return RuleDict(pairs)

    def items(self, mapping: Any) -> Any:
        """Return the pairs of what a dict display takes in with `**`."""
        if not isinstance(mapping, RuleDict):
            raise GaveUp("** is applied to what is no plain dict")
        return mapping.items()

    def same(self, first: Any, second: Any) -> bool:
        """Return whether two values are one, where plain Python leaves no doubt about that."""
        for one, other in ((first, second), (second, first)):
            if other is None or other is ...:
                return one is other
            if type(one) is SBool and isinstance(other, SBool | bool):
                return bool(one == other)
        if isinstance(first, bool | Known) and isinstance(second, bool | Known):
            return first is second
        for value in (first, second):
            lasting = isinstance(value, list | RuleDict) or type(value) is object
            if lasting or (isinstance(value, RuleSet) and not value.frozen):
                return first is second
        if {type(first), type(second)} in ({SInt, bool}, {SInt, SBool}):
            return False
        raise GaveUp("`is` between values of which equal ones may or may not be one")

    def attribute(self, value: Any, name: str) -> Any:
        """Return an attribute."""
        return get_attribute(value, name, convert)

    def module(self, name: str, attribute: str = "") -> Any:
        """Return what an import inside of a rule gives."""
        module = importlib.import_module(name)
        return convert(getattr(module, attribute) if attribute else module, f"{name}.{attribute}")

    def item(self, value: Any, key: Any) -> Any:
        """Return an element or a slice."""
        return value[self.key(value, key)]

    def key(self, value: Any, key: Any) -> Any:
        """Return a subscript with plain bounds, one path for each that makes a difference."""
        if not isinstance(value, list | tuple | str | range):
            return key
        if isinstance(key, slice):
            beyond = bound_beyond(len(value), forwards=key.step is None)
            start, stop = (_plain_bound(end, beyond) for end in (key.start, key.stop))
            return slice(start, stop, key.step)
        return _plain_bound(key, bound_beyond(len(value), forwards=False))

    def handled(self) -> None:
        """Go on with a run that is over, where its end was caught; called first in handlers."""
        if Signal.latest is not None:
            raise Signal.latest
        error = sys.exc_info()[1]
        if isinstance(error, RecursionError):
            raise GaveUp("a call without end is caught")
        if error is not None and Order.taken:
            raise GaveUp("whether an error is raised may depend on the order of a set")

    def refuse(self, what: str) -> None:
        """Refuse by name."""
        raise GaveUp(f"{what} is not followed")


def _plain_bound(value: Any, beyond: int) -> Any:
    if isinstance(value, SBool):
        return int(bool(value))
    return value.choose_bound(beyond) if isinstance(value, SInt) else value


_twins: Final[dict[int, tuple[Any, Any]]] = {}
"""Functions and their twins, by the identity of the function."""


def make_twin(function: Any) -> Any:
    """Return the twin of a function, or an Unknown that says why there is none."""
    known = _twins.get(id(function))
    if known is not None and known[0] is function:
        return known[1]
    if not isinstance(function, FunctionType):
        name = getattr(function, "__qualname__", type(function).__name__)
        return Unknown(f"{name} (a {type(function).__name__})")
    try:
        code = rewrite(function)
    except Unfollowed as error:
        return Unknown(str(error))
    kept = _find_memory(code)
    if kept:
        return Unknown(f"{function.__qualname__}, which changes {kept!r} of its environment,")
    cells = {name: CellType() for name in code.co_freevars}
    names: dict[str, Any] = {"__builtins__": {}, "__name__": function.__module__}
    twin = FunctionType(code, names, function.__name__, None, tuple(cells.values()))
    # A function may call itself; what it finds outside is filled in once it can be found itself.
    _twins[id(function)] = (function, twin)
    own = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    for name, cell in own:
        if name in cells:
            cells[name].cell_contents = convert(cell.cell_contents, name)
    defaults = function.__defaults__ or ()
    twin.__defaults__ = tuple(convert(value, function.__name__) for value in defaults)
    named = function.__kwdefaults__ or {}
    twin.__kwdefaults__ = {name: convert(value, name) for name, value in named.items()}
    names[RUNTIME] = Runtime()
    for name in find_names(code).keys() - {RUNTIME}:
        if name in function.__globals__:
            names[name] = convert(function.__globals__[name], name)
        elif hasattr(builtins, name):
            names[name] = convert(getattr(builtins, name), name)
    return twin


def _find_memory(code: CodeType) -> str:
    """Return what a function changes that outlives its calls, "" for nothing."""
    outer = set(code.co_freevars)
    for each in all_codes(code):
        for step in dis.get_instructions(each):
            stores = step.opname in ("STORE_DEREF", "DELETE_DEREF")
            # A variable of its own that goes by the same name is no free one there.
            if stores and step.argval in outer and step.argval in each.co_freevars:
                return str(step.argval)
    return ""


def convert(value: Any, name: str) -> Any:
    """Return a value that is found outside of the call as the twin of a rule may use it."""
    if isinstance(value, FunctionType):
        return make_twin(value)
    if type(value) is _CACHED:
        return _remember(make_twin(value.__wrapped__), name)
    if type(value) is functools.partial:
        named = {key: convert(part, name) for key, part in value.keywords.items()}
        given = (convert(part, name) for part in value.args)
        return functools.partial(convert(value.func, name), *given, **named)
    if isinstance(value, BuiltinFunctionType) and value.__module__:
        name = f"{value.__module__}.{value.__name__}"
    return convert_plain(value, name, convert)


def _remember(twin: Any, name: str) -> Any:
    """Return what stands for a cached function: what it remembers it would compute again.

    That is so only of values that cannot be changed; and a cache takes equal keys of different
    types for one.
    """

    def call(*arguments: Any, **named: Any) -> Any:
        _refuse_unless(_REMEMBERED_FOR, (*arguments, *named.values()), f"{name} is called with")
        answer = twin(*arguments, **named)
        _refuse_unless(_REMEMBERED, (answer,), f"{name} remembers")
        return answer

    return Known(name, call)


_REMEMBERED_FOR: Final = (SInt, int, str, type(None))
_REMEMBERED: Final = (*_REMEMBERED_FOR, SBool, bool, float, Fraction)


def _refuse_unless(kinds: tuple[type, ...], values: Iterable[Any], what: str) -> None:
    for value in values:
        if type(value) is tuple:
            _refuse_unless(kinds, value, what)
        elif type(value) not in kinds:
            told = get_plain_type(value).__name__
            raise GaveUp(f"the cached function {what} a {told}, which is not followed")


def run_twin(twin: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a twin answers. An error that may depend on the order of a set is refused."""
    Order.taken = False
    try:
        return twin(*arguments)
    except Exception as error:
        if Order.taken:
            raise GaveUp("whether an error is raised may depend on the order of a set") from error
        raise


def find_place(signal: BaseException) -> str:
    """Return the file and the line of a rule at which its run was ended, "" if not in a rule."""
    place, step = "", signal.__traceback__
    while step is not None:
        if RUNTIME in step.tb_frame.f_globals:
            place = f"{step.tb_frame.f_code.co_filename}:{step.tb_lineno}"
        step = step.tb_next
    cause = signal.__cause__
    return find_place(cause) if not place and cause is not None else place
