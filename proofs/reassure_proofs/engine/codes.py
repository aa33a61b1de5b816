"""What a function holds: the codes inside of its own, and the variables around it."""

from collections.abc import Iterator
from types import CodeType, FunctionType


def inner_codes(code: CodeType) -> Iterator[CodeType]:
    """Yield the codes of the functions that stand in a code."""
    return (constant for constant in code.co_consts if isinstance(constant, CodeType))


def all_codes(code: CodeType) -> Iterator[CodeType]:
    """Yield a code and those of all functions inside of it."""
    yield code
    for inner in inner_codes(code):
        yield from all_codes(inner)


def find_names(code: CodeType) -> dict[str, None]:
    """Return the globals and attributes that a code and those inside of it name."""
    return {name: None for each in all_codes(code) for name in each.co_names}


def read_closure(function: FunctionType) -> Iterator[object]:
    """Yield what a function has from around it."""
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:
            # A cell may be empty: what it is for was not made yet.
            continue
