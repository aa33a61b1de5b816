"""Where fields lie in a packed state, and which come first."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from reassure_explorer.engine.interface import (
    Action,
    Choice,
    Flag,
    FrozenMap,
    Int,
    MapOf,
    Model,
    Option,
    SequenceOf,
    SetOf,
)
from reassure_explorer.engine.packing import Layout
from reassure_explorer.engine.tracing import order_fields

FIELDS = {
    "rare": Int(0, 1000),
    "often": SetOf((1, 2, 3)),
    "never": Int(0, 2**40),
    "other": Int(-1, 9),
    "choice": Choice(("red", "green", None)),
    "flag": Flag(),
    "queue": SequenceOf(Int(0, 2), 3),
    "maybe": Option(Int(0, 5)),
    "table": MapOf(("a", "b"), Int(0, 2)),
    "padding": SequenceOf(Int(0, 1000), 5),
}
INITIAL = {
    "rare": 0,
    "often": frozenset(),
    "never": 7,
    "other": 0,
    "choice": "red",
    "flag": False,
    "queue": (),
    "maybe": None,
    "table": {"a": 0, "b": 0},
    "padding": (),
}


def make_model() -> Model:
    """Both actions read one field, one of them another as well, and none the others."""

    def join(state: Any, member: int) -> Any:
        return None if member in state.often else state.replace(often=state.often | {member})

    def count(state: Any, member: int) -> Any:
        if member not in state.often or state.rare == 1000:
            return None
        return state.replace(rare=state.rare + 1)

    actions = (Action("join", join, (1, 2, 3)), Action("count", count, (1, 2, 3)))
    return Model("order", FIELDS, (INITIAL,), actions)


def test_fields_that_are_read_most_come_first() -> None:
    """Fields are laid down by how many actions read them; the others keep their order."""
    others = tuple(name for name in FIELDS if name not in ("often", "rare"))
    assert order_fields(make_model()) == ("often", "rare", *others)


@given(st.data())
def test_order_of_fields_is_the_order_of_packed_states(data: st.DataObject) -> None:
    """Whatever the order, a state unpacks to itself, and the first field decides which is less."""
    model = make_model()
    layout = Layout(model, tuple(data.draw(st.permutations(list(FIELDS)))))
    draw = st.fixed_dictionaries(
        {
            "rare": st.integers(0, 1000),
            "often": st.frozensets(st.sampled_from((1, 2, 3))),
            "never": st.integers(0, 2**40),
            "other": st.integers(-1, 9),
            "choice": st.sampled_from(("red", "green", None)),
            "flag": st.booleans(),
            "queue": st.lists(st.integers(0, 2), max_size=3).map(tuple),
            "maybe": st.none() | st.integers(0, 5),
            "table": st.fixed_dictionaries(dict.fromkeys("ab", st.integers(0, 2))).map(FrozenMap),
            "padding": st.lists(st.integers(0, 1000), max_size=5).map(tuple),
        }
    )
    states = [model.state_type(**data.draw(draw)) for _ in range(2)]
    assert layout.words == 3
    packed = [layout.pack(state) for state in states]
    assert [layout.unpack(words) for words in packed] == states

    def encode(state: Any) -> list[tuple[int, ...]]:
        return [FIELDS[name].encode(getattr(state, name)) for name in layout.order]

    assert (packed[0] < packed[1]) == (encode(states[0]) < encode(states[1]))


def test_writing_a_cell_leaves_the_others() -> None:
    """Cells are written in place, and nothing else changes."""
    model = make_model()
    layout = Layout(model)
    before = model.initial_states[0]
    first = layout.first["other"]
    after = layout.unpack(layout.write(layout.pack(before), {first: 10}))
    assert after == before.replace(other=9)
