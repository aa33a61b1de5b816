"""World `rules`: the accepting rules of a profile, asked what they say of a write or of a rest.

    world rules brokers=1,2,3
    before Logged assigned=[1,2] state=LeaderAndIsr(1,0,1,[1,2])
    around live={1,3}
    write WriteState state=LeaderAndIsr(2,1,1,[2])

`before` names the record that the rules are about, with the fields that are not as they are where
nothing was written; `around` changes the environment. Both stay until they are told anew. What is
put to the rules by `write` is not taken over, so that several writes may follow one state. `rest`
tells what is broken and owed where nothing more is written, and `fail-over` what the next
controller finds. Values are spelt as in Python: `[1,2]` is a list of replicas, `{1,2}` a set.
"""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass, replace
from enum import Enum
from typing import Any, ClassVar, Final

from reassure_conformance.scenarios.worlds import dispatch
from reassure_judge.protocols import make_rules
from reassure_model.machine import Judgement
from reassure_model.outcome import Rejected
from reassure_model.partition import Environment
from reassure_mutation.linked import list_reached
from reassure_mutation.table import find_worlds, make_reference
from reassure_spec.readings import Readings
from reassure_spec.words import Arguments, ScenarioError, check_arguments, parse_replicas

Names = Mapping[str, Any]
"""Records by their names."""


def read_value(node: ast.AST, names: Names) -> Any:
    """Return the value that an expression spells. Raises ScenarioError for any that is none."""
    match node:
        case ast.Constant(value):
            return value
        case ast.UnaryOp(ast.USub(), ast.Constant(int(value))):
            return -value
        case ast.List(items) | ast.Tuple(items):
            return tuple(read_value(each, names) for each in items)
        case ast.Set(items):
            return frozenset(read_value(each, names) for each in items)
        case ast.Dict(keys, values) if None not in keys:
            pairs = zip(keys, values, strict=True)
            return {read_value(k, names): read_value(v, names) for k, v in pairs if k is not None}
        case ast.Call(ast.Name("frozenset"), [], []):
            return frozenset()
        case ast.Call(ast.Name(name), given, named) if name in names:
            more = {each.arg or "": read_value(each.value, names) for each in named}
            return _make(names[name], name, [read_value(each, names) for each in given], more)
    raise ScenarioError(f"{ast.unparse(node)!r} is no value; records are {', '.join(names)}")


def _make(kind: Any, name: str, given: list[Any], named: dict[str, Any]) -> Any:
    try:
        return kind(*given, **named)
    except (TypeError, ValueError) as error:
        raise ScenarioError(f"{name}: {error}") from error


def spell_value(value: Any) -> str:
    """Return a value as an argument has it, of a record the fields that are not the usual ones."""
    if is_dataclass(value) and not isinstance(value, type):
        said, named = [], False
        for each in fields(value):
            held = getattr(value, each.name)
            if each.default is not MISSING and held == each.default:
                named = True
                continue
            said.append(f"{each.name}={spell_value(held)}" if named else spell_value(held))
        return f"{type(value).__name__}({','.join(said)})"
    if isinstance(value, Enum):
        return f"{type(value).__name__}({value.value})"
    if isinstance(value, tuple):
        return f"[{','.join(map(spell_value, value))}]"
    if isinstance(value, frozenset):
        inner = ",".join(map(spell_value, sorted(value)))
        return f"{{{inner}}}" if inner else "frozenset()"
    if isinstance(value, Mapping):
        pairs = (f"{spell_value(k)}:{spell_value(v)}" for k, v in value.items())
        return f"{{{','.join(pairs)}}}"
    return repr(value)


def _list_changes(before: Any, after: Any, name: str = "") -> Iterator[str]:
    """Yield the fields that differ, those of records within records by themselves."""
    if before == after:
        return
    if is_dataclass(after) and type(before) is type(after):
        for each in fields(after):
            inner = f"{name}.{each.name}" if name else each.name
            yield from _list_changes(getattr(before, each.name), getattr(after, each.name), inner)
    else:
        yield f"{name} {spell_value(after)}"


class RulesWorld:
    """What stands before a write, and the rules."""

    name: ClassVar[str] = "rules"

    def __init__(self, profile: str, readings: Readings, arguments: Arguments) -> None:
        check_arguments(arguments, ("brokers",))
        brokers = frozenset(parse_replicas("brokers", arguments["brokers"]))
        self._around = Environment(brokers, brokers)
        self._readings: Final = readings
        own = (each for each in find_worlds(profile) if hasattr(each, "make_rules"))
        judged = [
            make_rules(profile, readings).judgement,
            *(make_reference(each, profile).rules.judgement for each in own),
        ]
        self._judged: Final[dict[str, Judgement[Any, Any]]] = {
            type(each.begin).__name__: each for each in judged
        }
        self._names: Final = {
            name: value
            for each in judged
            for function in list_reached(each.accept)  # type: ignore[arg-type]
            for name, value in function.__globals__.items()
            if isinstance(value, type) and (is_dataclass(value) or issubclass(value, Enum))
        }
        self._judgement = judged[0]
        self._before: Any = judged[0].begin

    def run(self, command: str, arguments: Arguments) -> str:
        """Carry out one command. Raises ScenarioError."""
        handlers = {
            "before": self._set,
            "around": self._surround,
            "write": self._write,
            "rest": self._rest,
            "fail-over": self._fail_over,
        }
        return dispatch(handlers, command, arguments)

    def _read(self, arguments: Arguments) -> tuple[str, dict[str, Any]]:
        """Return the record that is named first, and the fields."""
        name, *words = arguments
        if arguments[name] != "yes":
            raise ScenarioError(f"name a record before {name!r}")
        return name, self._read_fields({word: arguments[word] for word in words})

    def _read_fields(self, arguments: Arguments) -> dict[str, Any]:
        found = {}
        for name, text in arguments.items():
            spelt = "True" if text == "yes" else text
            try:
                found[name] = read_value(ast.parse(spelt, mode="eval").body, self._names)
            except SyntaxError as error:
                raise ScenarioError(f"{name}={text}: {error.msg}") from error
        return found

    def _set(self, arguments: Arguments) -> str:
        name, given = self._read(arguments)
        if name not in self._judged:
            raise ScenarioError(f"no rules are about {name!r}; they are of {list(self._judged)}")
        self._judgement = self._judged[name]
        self._before = _make(lambda **new: replace(self._judgement.begin, **new), name, [], given)
        return ""

    def _surround(self, arguments: Arguments) -> str:
        given = self._read_fields(arguments)
        self._around = _make(lambda **new: replace(self._around, **new), "around", [], given)
        return ""

    def _write(self, arguments: Arguments) -> str:
        name, given = self._read(arguments)
        if name not in self._names:
            raise ScenarioError(f"no record {name!r}; there are {', '.join(self._names)}")
        write = _make(self._names[name], name, [], given)
        said = self._judgement.accept(self._before, write, self._around, self._readings)
        if isinstance(said, Rejected):
            return f"rejected by {said.clause}: {said.reason}"
        clauses = ", ".join(sorted(said.clauses)) or "no clause"
        return "\n".join((f"accepted by {clauses}", *_list_changes(self._before, said.state)))

    def _rest(self, arguments: Arguments) -> str:
        check_arguments(arguments)
        asked = ((each, each.find(self._before)) for each in self._judgement.invariants)
        lines = [f"broken {each.clause}: {why}" for each, why in asked if why]
        owed = self._judgement.owed(self._before, self._around, self._readings)
        if owed is not None:
            by = f" by {owed.clause}" if owed.clause else ""
            lines.append(f"owed{by}: {spell_value(owed.write)}")
        return "\n".join(lines) or "nothing is broken or owed"

    def _fail_over(self, arguments: Arguments) -> str:
        check_arguments(arguments)
        after = self._judgement.fail_over(self._before, self._readings)
        return "\n".join(_list_changes(self._before, after)) or "nothing changes"
