"""How scenarios spell numbers, lists of brokers and the arguments of a command."""

from collections.abc import Collection, Mapping

from reassure_spec.errors import BadData
from reassure_spec.znodes import ReplicaList

Arguments = Mapping[str, str]
"""The arguments of one command by name; a bare word is an argument whose value is `yes`."""


class ScenarioError(BadData):
    """A scenario file, a command or an argument that makes no sense; says what would."""


def check_arguments(
    arguments: Arguments, required: Collection[str] = (), optional: Collection[str] = ()
) -> None:
    """Refuse missing and unknown arguments. Raises ScenarioError, which lists what is taken."""
    known = [*required, *(f"[{name}]" for name in optional)]
    takes = f"it takes: {', '.join(known)}" if known else "it takes none"
    for name in required:
        if name not in arguments:
            raise ScenarioError(f"argument {name!r} is missing; {takes}")
    for name in arguments:
        if name not in required and name not in optional:
            raise ScenarioError(f"no argument {name!r}; {takes}")


def parse_number(name: str, text: str) -> int:
    """Return the number in an argument; `none` is -1, the leader id that says there is none.

    >>> parse_number("top", "2")
    2
    """
    if text == "none":
        return -1
    try:
        return int(text)
    except ValueError:
        raise ScenarioError(f"{name}={text}: expected a whole number") from None


def parse_replicas(name: str, text: str) -> ReplicaList:
    """Return the broker ids in an argument such as `1,2,3`; `none` is the empty list.

    >>> parse_replicas("target", "2,3")
    (2, 3)
    """
    if text in ("", "none"):
        return ()
    return tuple(parse_number(name, part) for part in text.split(","))


def spell_replicas(replicas: Collection[int]) -> str:
    """Return replicas as an argument of a command has them.

    >>> spell_replicas((2, 3))
    '2,3'
    """
    return ",".join(map(str, replicas)) or "none"


def format_replicas(replicas: Collection[int]) -> str:
    """Return replicas as the outputs of scenarios show them.

    >>> format_replicas((2, 3))
    '[2,3]'
    """
    return f"[{','.join(map(str, replicas))}]"
