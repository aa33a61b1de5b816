"""The derived engine never answers otherwise than the plain one: it agrees, or refuses by name."""

import enum
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from reassure_explorer.engine.derived import explore_derived
from reassure_explorer.engine.diagrams import Diagrams
from reassure_explorer.engine.domains import Int as IntDomain
from reassure_explorer.engine.interface import (
    Action,
    Choice,
    Domain,
    Flag,
    Goal,
    Int,
    Invariant,
    MapOf,
    Model,
    ModelError,
    Noted,
    RangeError,
    SequenceOf,
    SetOf,
)
from reassure_explorer.engine.map_domain import LazyMap
from reassure_explorer.engine.origins import NotTraceable, take_stock
from reassure_explorer.engine.packing import EngineError, Layout
from reassure_explorer.engine.plain import explore_plain
from reassure_explorer.engine.result import ExploreResult, Verdict
from reassure_explorer.engine.set_domain import LazySet
from reassure_explorer.engine.set_domain import SetOf as SetDomain


class Number(enum.IntEnum):
    """Numbers that are equal to plain ones, and are others."""

    FOUR = 4
    FIVE = 5


def count(state: Any, _: Any) -> Any:
    """Count to 9."""
    return state.replace(x=state.x + 1) if state.x < 9 else None


FIELDS: dict[str, Domain] = {"x": Int(0, 9), "m": SetOf((1, 2, 3)), "q": SequenceOf(Int(0, 2), 2)}
START: dict[str, Any] = {"x": 0, "m": frozenset({1}), "q": (1,)}


def make_model(find: Callable[[Any], str | None] | None = None, **changes: Any) -> Model:
    """Count from 0 to 9, with a set and a sequence beside it."""
    options: dict[str, Any] = {
        "name": "counter",
        "fields": FIELDS,
        "initial": (START,),
        "actions": (Action("count", count),),
        "invariants": () if find is None else (Invariant("never", find),),
    }
    return Model(**{**options, **changes})


def ask(answer: Callable[[Any], Any]) -> Callable[[Any], str | None]:
    """Return the invariant that something is not so."""
    return lambda state: "it is so" if answer(state) else None


def match_parts(state: Any) -> bool:
    """Take a state apart by pattern."""
    match state:
        case (5, _, (1, *_)):
            return True
    return False


def swallow(state: Any) -> bool:
    """Go on where a value is no real tuple."""
    try:
        text = "%d" % state.q  # noqa: UP031
    except Exception:
        return False
    return text == "1" and state.x == 5


def look_for_methods(state: Any) -> bool:
    """Go on where a method is lacking."""
    try:
        return bool(state.m.copy() and state.q.count(1) and state.x == 5)
    except Exception:
        return False


# What random models do not ask for (`test_explorer_fuzz.py`).
HONEST: dict[str, Callable[[Any], Any]] = {
    "format of a state": lambda s: f"{s}".startswith("State(x=5"),
    "representation of a state": lambda s: repr(s)[:9] == "State(x=5",
    "isinstance of a state": lambda s: isinstance(s, tuple) and s.x == 5,
    "class": lambda s: s.q.__class__ is tuple and s.x == 5,
    "match of parts": match_parts,
    "methods in try": look_for_methods,
    "values of a state": lambda s: [*s][:1] == [5] and s[0] == 5 and s._fields[0] == "x",
}


@pytest.mark.parametrize("name", HONEST)
def test_values_answer_as_plain_ones(name: str) -> None:
    """Whatever is asked of a value or a state as a whole, both engines find the violation."""
    model = make_model(ask(HONEST[name]))
    plain, derived = explore_plain(model), explore_derived(model)
    assert plain.verdict is derived.verdict is Verdict.VIOLATED
    assert plain.levels == derived.levels


REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "type": (lambda s: type(s.q) is tuple and s.x == 5, r"never uses `type`.*isinstance"),
    "identity": (lambda s: s.q is not s.m and s.x == 5, r"compares by identity.*honest.py:\d+.*=="),
    "id": (lambda s: id(s.q) and s.x == 5, r"never uses `id`"),
    "error swallowed": (swallow, r"check never in State\(x=.*TypeError.*tuple\(state.field\)"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_answered_is_refused(name: str) -> None:
    """What tells a traced value from a plain one is refused with check, line and advice."""
    answer, words = REFUSED[name]
    model = make_model(ask(answer))
    assert explore_plain(model).verdict is Verdict.VIOLATED
    with pytest.raises((NotTraceable, EngineError), match=words):
        explore_derived(model)


def test_parameter_may_be_declared_and_compared_by_identity() -> None:
    """A parameter that is declared to be no set, tuple or state may be told by identity."""

    def same(one: Number, other: Number) -> bool:
        return one is other

    model = make_model(ask(lambda s: same(Number.FIVE, Number(max(s.x, 4))) if s.x < 6 else False))
    assert explore_derived(model).verdict is explore_plain(model).verdict is Verdict.VIOLATED


WRITES: dict[str, dict[str, Any]] = {
    "member of an enum": {"x": Number.FIVE},
    "truth for a number": {"x": True},
    "list for a set": {"m": [1, 2]},
    "tuple for a set": {"m": (2, 2)},
    "numbers equal to members": {"m": frozenset({1.0})},
    "keys for a set": {"m": {1: 0, 3: 0}.keys()},
    "list for a sequence": {"q": [1, True]},
}


@pytest.mark.parametrize("name", WRITES)
def test_written_values_are_normal_in_both_engines(name: str) -> None:
    """Equal but different values are the same one for whoever reads the state next."""

    def write(state: Any, _: Any) -> Any:
        return state.replace(**WRITES[name]) if state.x == 4 else count(state, _)

    def tell(state: Any) -> str | None:
        kinds = [v.__class__.__name__ for v in (*state, *state.m, *state.q)]
        return None if {"int", "frozenset", "tuple"}.issuperset(kinds) else str(kinds)

    ends = {"terminal": lambda s: s.x == 9}
    model = make_model(tell, actions=(Action("write", write),), **ends)
    plain, derived = explore_plain(model), explore_derived(model)
    assert plain.verdict is derived.verdict is Verdict.HOLDS
    assert (plain.levels, plain.generated) == (derived.levels, derived.generated)


@pytest.mark.parametrize("explore", [explore_plain, explore_derived])
@pytest.mark.parametrize(
    "changes",
    [{"m": iter((1, 2))}, {"m": "12"}, {"q": iter((1,))}, {"q": frozenset({1, 2})}, {"x": 1.0}],
)
def test_values_that_cannot_be_kept_are_refused(
    explore: Callable[[Model], ExploreResult], changes: dict[str, Any]
) -> None:
    """What is gone once it was looked at, or has no order, is refused with field and action."""
    model = make_model(actions=(Action("write", lambda s, p: s.replace(**changes)),))
    with pytest.raises(RangeError, match=r"field [mqx]: .*in write"):
        explore(model)


def test_parts_of_a_model_are_kept_as_tuples() -> None:
    """Parameters, initial states, members and choices given as generators are there twice."""

    def add(state: Any, by: int) -> Any:
        return state.replace(x=state.x + by) if state.x + by < 10 else None

    def make(**parts: Any) -> Model:
        return make_model(
            ask(lambda s: s.x == 9),
            actions=(a for a in [Action("add", add, parameters=(i for i in (2, 3)))]),  # type: ignore[arg-type]
            initial=(s for s in [START, {**START, "x": 1}]),
            fields={**FIELDS, "m": SetOf(i for i in (1, 2))},  # type: ignore[arg-type]
        )

    plain, derived = explore_plain(make()), explore_derived(make())
    assert plain.verdict is derived.verdict is Verdict.VIOLATED
    assert plain.actions == derived.actions
    with pytest.raises(ValueError, match="differ from each other"):
        SetOf((1, True))


def test_bounded_field_may_overflow_after_a_violation() -> None:
    """A field that leaves its range one step after a violation does not hide the violation."""
    model = make_model(ask(lambda s: s.x == 9), actions=(Action("up", up_without_limit),))
    for explore in (explore_plain, explore_derived):
        assert explore(model).verdict is Verdict.VIOLATED
        with pytest.raises(RangeError, match="field x: 10"):
            explore(make_model(actions=(Action("up", up_without_limit),)))


def up_without_limit(state: Any, _: Any) -> Any:
    """Count beyond 9."""
    return state.replace(x=state.x + 1)


def test_states_of_many_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """A state of more words than a byte can count is explored as by the plain engine."""
    monkeypatch.setattr("reassure_explorer.engine.expander.BUFFER_STATES", 1)
    monkeypatch.setattr("reassure_explorer.engine.expander.CHUNK", 64)
    fields: dict[str, Domain] = {f"f{n}": Int(0, 2**63) for n in range(257)}
    fields = {"x": Int(0, 9), **fields, "last": Int(0, 9)}

    def move(state: Any, _: Any) -> Any:
        if state.last < state.x:
            return state.replace(last=state.last + 1, f0=state.last)
        return count(state, _)

    model = Model(
        "wide",
        fields,
        (dict.fromkeys(fields, 0),),
        (Action("move", move),),
        (Invariant("low", ask(lambda s: s.last == 7)),),
    )
    plain, derived = explore_plain(model), explore_derived(model)
    assert derived.details["words"] > 256
    assert plain.levels == derived.levels
    assert plain.verdict is derived.verdict is Verdict.VIOLATED


def test_more_words_than_there_is_room_for_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A state that is too wide is refused with its size and advice."""
    monkeypatch.setattr("reassure_explorer.engine.packing.MOST_WORDS", 2)
    fields: dict[str, Domain] = {f"f{n}": Int(0, 2**60) for n in range(3)}
    with pytest.raises(ModelError, match=r"3 words of 64 bits.*plain engine"):
        Layout(Model("wide", fields, (dict.fromkeys(fields, 0),), ()))


CALLS = 0
HISTORY: list[int] = []


def change_global(state: Any, _: Any) -> Any:
    """Count calls in a global."""
    global CALLS
    CALLS += 1
    return count(state, _)


def change_list(state: Any, _: Any) -> Any:
    """Count calls in a list."""
    HISTORY.append(1)
    return count(state, _) if len(HISTORY) < 10_000 else None


def make_changer() -> Callable[[Any, Any], Any]:
    """Return an action that counts its calls."""
    calls = 0

    def change_outer(state: Any, _: Any) -> Any:
        nonlocal calls
        calls += 1
        return count(state, _)

    return change_outer


def make_keeper() -> Callable[[Any, Any], Any]:
    """Return an action that keeps a value of the state before."""
    kept: dict[str, Any] = {}

    def keep(state: Any, _: Any) -> Any:
        before = kept.get("m", state.m)
        kept["m"] = state.m
        return state.replace(x=state.x + 1) if state.x < 9 and 1 in before else None

    return keep


def make_starter() -> Callable[[Any, Any], Any]:
    """Return an action that counts its first calls, and no others."""
    calls: list[int] = []

    def start(state: Any, _: Any) -> Any:
        if len(calls) < 20:
            calls.append(1)
        return count(state, _) if len(calls) < 20 else None

    return start


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (change_global, "action change changes the global 'CALLS'.*keep it in a field"),
        (change_list, "'HISTORY', named by .*change_list .in action change.*keep it in a field"),
        (make_changer(), "action change changes 'calls' of the function around it"),
        (make_starter(), "'calls', named by .*keep it in a field"),
        (make_keeper(), "'kept', named by .*keep it in a field|earlier state"),
    ],
)
def test_action_that_changes_what_is_outside_is_refused(
    step: Callable[[Any, Any], Any], words: str
) -> None:
    """An action that changes a global, or anything else that lasts, is refused by its name."""
    with pytest.raises(ModelError, match=words):
        explore_derived(make_model(actions=(Action("change", step),)))


_STOCK = """
import enum
from reassure_explorer.engine.interface import Action, Choice, Invariant, Model, SetOf
from reassure_explorer.engine.origins import take_stock
Color = enum.Enum("Color", "RED GREEN")
NAMES = frozenset("abcdefgh")
RULES = {name: {name, "x"} for name in NAMES}
def step(state, p):
    return state.replace(m=state.m - RULES[p]) if Color.RED else None
model = Model("m", {"m": SetOf(tuple("abcdefgh")), "c": Choice(tuple(Color))},
    ({"m": NAMES, "c": Color.RED},), (Action("step", step, tuple("abc")),),
    (Invariant("i", lambda s: None),))
print(take_stock(model).compute_digest())
"""


def test_digest_is_the_same_in_every_process() -> None:
    """What a checkpoint is known by does not depend on the order in which sets happen to be."""
    digests = set()
    for seed in ("1", "2", "3"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        answer = subprocess.run(
            [sys.executable, "-c", _STOCK],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        digests.add(answer.stdout)
    assert len(digests) == 1


def test_stock_follows_functions_to_what_they_name() -> None:
    """A digest changes with a helper's code, its default, a constant and a parameter."""
    made = []
    for helper in (lambda x: x + 1, lambda x: x + 2, lambda x, by=1: x + by):
        for parameters in ((1,), (2,)):

            def step(state: Any, p: Any, helper: Any = helper) -> Any:
                return state.replace(x=helper(p))

            actions = (Action("step", step, parameters),)
            made.append(take_stock(make_model(actions=actions)).compute_digest())
    assert len(set(made)) == len(made)


# Planted faults of the engine: the plain function, or packing, has to contradict each ------------


def _forget_writes(right: Any) -> Any:
    def wrong(self: Any, root: int, path: Any) -> int:
        fewer = tuple((dict([*writes.items()][1:]), notes) for writes, notes in path.steps)
        return int(right(self, root, type(path)(path.reads, fewer)))

    return wrong


def _forget_a_read(right: Any) -> Any:
    def wrong(self: Any, root: int, path: Any) -> int:
        return int(right(self, root, type(path)(path.reads[:-1], path.steps)))

    return wrong


def _say_no(right: Any) -> Any:
    def wrong(self: Any, root: int, path: Any) -> int:
        none = () if root >= self.actions else path.steps
        return int(right(self, root, type(path)(path.reads, none)))

    return wrong


def _drop_notes(right: Any) -> Any:
    def wrong(self: Any, root: int, path: Any) -> int:
        silent = tuple((writes, ()) for writes, _ in path.steps)
        return int(right(self, root, type(path)(path.reads, silent)))

    return wrong


def _lose_a_way(right: Any) -> Any:
    def wrong(self: Any, root: int, path: Any) -> int:
        return int(right(self, root, type(path)(path.reads, path.steps[:1])))

    return wrong


def _shift_by_one(right: Any) -> Any:
    return lambda self, value: right(self, max(self.low, value - 1))


def _lose_a_member(right: Any) -> Any:
    return lambda self, value: (*right(self, value)[:-1], 0)


def _read_nothing(right: Any) -> Any:
    def wrong(self: LazySet, member: object) -> bool:
        return self.changed.get(member, True)

    return wrong


def _take_the_first_key(right: Any) -> Any:
    return lambda self, _: right(self, 1)


PLANTED = [
    (Diagrams, "learn", _forget_writes),
    (Diagrams, "learn", _forget_a_read),
    (Diagrams, "learn", _say_no),
    (Diagrams, "learn", _drop_notes),
    (Diagrams, "learn", _lose_a_way),
    (IntDomain, "encode", _shift_by_one),
    (SetDomain, "encode", _lose_a_member),
    (LazySet, "__contains__", _read_nothing),
    (LazyMap, "__getitem__", _take_the_first_key),
]


def play(state: Any, p: int) -> Any:
    """Write every field, in one of two ways."""
    after = count(state, p) or state.replace(x=0)
    after = after.replace(m=after.m - {p} if p in state.m else after.m | {p})
    yield Noted(after.replace(q=(*state.q[:1], p - 1)), (f"played {p}",))
    yield state.replace(t=state.t | {p: 1 - state.t[p]})


@pytest.mark.parametrize(("owner", "name", "plant"), PLANTED)
def test_planted_fault_is_contradicted(
    monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, plant: Any
) -> None:
    """An engine that loses a write, a read, a note, a way, a violation or a bit is found out."""
    model = make_model(
        ask(lambda s: s.m == {1, 2, 3} and s.x == 8 and s.t[1] == 1),
        fields={**FIELDS, "t": MapOf((1, 2, 3), Int(0, 1))},
        initial=({**START, "t": {1: 0, 2: 0, 3: 0}},),
        actions=(Action("play", play, (1, 2, 3)),),
    )
    assert explore_derived(model).verdict is Verdict.VIOLATED
    monkeypatch.setattr(owner, name, plant(getattr(owner, name)))
    with pytest.raises((EngineError, ModelError)):
        explore_derived(model)


def test_values_of_a_choice_keep_their_identity() -> None:
    """A choice is the very value that the model declares, in both engines, whatever was written."""
    model = make_model(
        ask(lambda s: s.c is True or s.f is True),
        fields={**FIELDS, "c": Choice((0, 1)), "f": Flag()},
        initial=({**START, "c": 0, "f": False},),
        actions=(Action("set", lambda s, p: s.replace(c=True, f=1)),),
        goals=(Goal("flag", lambda s: s.f is True and s.c is not True),),
    )
    plain, derived = explore_plain(model), explore_derived(model)
    assert plain.goals == derived.goals == {"flag": 1}
    assert plain.verdict is derived.verdict is Verdict.VIOLATED
