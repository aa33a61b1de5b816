"""Symmetry: one state of each orbit, in both engines, and what is refused."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from toys import summarise

from reassure_explorer.engine import kernels
from reassure_explorer.engine.derived import Engine, explore_derived
from reassure_explorer.engine.interface import (
    Action,
    Choice,
    Flag,
    Goal,
    Int,
    Invariant,
    Model,
    ModelError,
    Noted,
    Option,
    SequenceOf,
    SetOf,
    Symmetry,
    rename_whole,
)
from reassure_explorer.engine.plain import explore_plain
from reassure_explorer.engine.result import Budget, Trace
from reassure_explorer.engine.symmetry import NotSymmetric, make_group
from reassure_explorer.scopes.catalogue import get_model

BOTH = pytest.mark.parametrize("run", [explore_plain, explore_derived])

# A model that uses every kind of field, and whose rules ask only whether things are the same.

WHO = ("a", "b", 3)
FIELDS = {
    "first": Option(Choice(WHO)),
    "inside": SetOf(WHO),
    "queue": SequenceOf(Choice(WHO), 3),
    "pair": Choice((None, *((x, y) for x in WHO for y in WHO))),
    "count_a": Int(0, 2),
    "count_b": Int(0, 2),
    "count_3": Int(0, 2),
    "flag": Flag(),
    "padding": SequenceOf(Int(0, 1000), 5),
}
INITIAL = {
    "first": None,
    "inside": frozenset(),
    "queue": (),
    "pair": None,
    "count_a": 0,
    "count_b": 0,
    "count_3": 0,
    "flag": False,
    "padding": (),
}
SYMMETRY = Symmetry(
    "member",
    WHO,
    values={
        "first": rename_whole,
        "inside": rename_whole,
        "queue": rename_whole,
        "pair": lambda rename, pair: pair and tuple(map(rename, pair)),
    },
    families=(("count_a", "count_b", "count_3"),),
    parameters=dict.fromkeys((f"action {n}" for n in range(5)), rename_whole),
)
GUARDS: tuple[Callable[[Any, Any], bool], ...] = (
    lambda s, p: s.first != p,
    lambda s, p: p not in s.inside,
    lambda s, p: bool(s.inside) or s.flag,
    lambda s, p: s.queue[-1:] != (p,),
    lambda s, p: s.pair is None or s.pair[0] != p,
    lambda s, p: getattr(s, f"count_{p}") < 2,
    lambda s, p: not s.flag,
)
EFFECTS: tuple[Callable[[Any, Any], Any], ...] = (
    lambda s, p: s.replace(first=p),
    lambda s, p: s.replace(first=None, flag=True),
    lambda s, p: s.replace(inside=s.inside | {p}),
    lambda s, p: s.replace(inside=s.inside - {p}, flag=False),
    lambda s, p: s.replace(queue=(*s.queue, p)) if len(s.queue) < 3 else None,
    lambda s, p: s.replace(queue=s.queue[1:]),
    lambda s, p: s.replace(pair=(p, s.first)) if s.first is not None else None,
    lambda s, p: Noted(s.replace(**{f"count_{p}": 2}), ("filled",)),
    lambda s, p: s.replace(**{f"count_{p}": 0}),
    lambda s, p: s.replace(padding=(7,) if p in s.inside else (1000, 0)),
)


@st.composite
def models(draw: st.DrawFn) -> Model:
    """Small symmetric models; where they start need not be symmetric."""
    table = st.tuples(st.lists(st.sampled_from(GUARDS), max_size=2), st.sampled_from(EFFECTS))
    chosen = draw(st.lists(table, min_size=2, max_size=5))

    def make(guards: list[Any], effect: Any) -> Callable[[Any, Any], Any]:
        return lambda s, p: effect(s, p) if all(guard(s, p) for guard in guards) else None

    limit = draw(st.integers(1, 4))
    return Model(
        "random",
        FIELDS,
        ({**INITIAL, "first": draw(st.sampled_from((None, *WHO)))},),
        tuple(Action(f"action {n}", make(*parts), WHO) for n, parts in enumerate(chosen)),
        (Invariant("few", lambda s: "many" if len(s.inside) + len(s.queue) > limit else None),),
        (Goal("all", lambda s: all(member in s.inside for member in WHO)),),
        symmetries=(
            replace(
                SYMMETRY,
                parameters=dict.fromkeys((f"action {n}" for n in range(len(chosen))), rename_whole),
            ),
        ),
    )


def find_reachable(model: Model) -> set[Any]:
    """Return the reachable states, by the plainest search there is."""
    found = set(model.initial_states)
    fresh = list(found)
    while fresh:
        state = fresh.pop()
        for action, parameter in model.instances:
            after = action.step(state, parameter)
            after = after.state if isinstance(after, Noted) else after
            if after is not None and after not in found:
                found.add(after)
                fresh.append(after)
    return found


def replay(model: Model, story: Trace) -> None:
    """Assert that a story is one of the model itself, from its start, step by step."""
    assert story.initial in model.initial_states
    steps = {action.name: action.step for action in model.actions}
    state = story.initial
    for step in story.steps:
        after = steps[step.action](state, step.parameter)
        state = after.state if isinstance(after, Noted) else after
        assert state == step.state


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(models())
def test_random_symmetric_models_are_explored_alike(model: Model) -> None:
    """Both engines find the orbits of the states that are reachable without symmetry."""
    budget = Budget(states=600)
    plain = explore_plain(model, keep_going=True, budget=budget, symmetry=True)
    derived = explore_derived(model, keep_going=True, budget=budget, symmetry=True)
    assert summarise(plain) == summarise(derived)
    assert plain.details["symmetry"]["permutations"] == 6
    whole = explore_plain(model, keep_going=True, budget=Budget(states=2000))
    for violation in (*plain.violations, *derived.violations):
        replay(model, violation.trace)
        without = {v.invariant: len(v.trace.steps) for v in whole.violations}
        assert without.get(violation.invariant) == len(violation.trace.steps)
    if plain.unfinished is None and whole.unfinished is None:
        group = make_group(model)
        assert plain.distinct == len({group.represent(state) for state in find_reachable(model)})
        assert plain.goals == whole.goals


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_tables_rename_as_the_plain_permutation_does(data: st.DataObject) -> None:
    """The compiled renaming of a packed state is the renaming of the plain one, packed."""
    actions = tuple(Action(f"action {n}", EFFECTS[0], WHO) for n in range(5))
    model = Model("packed", FIELDS, (INITIAL,), actions, symmetries=(SYMMETRY,))
    engine = Engine(model, symmetry=True)
    assert engine.layout.words == 2
    member = st.sampled_from(WHO)
    state = model.state_type(
        first=data.draw(st.none() | member),
        inside=data.draw(st.frozensets(member)),
        queue=tuple(data.draw(st.lists(member, max_size=3))),
        pair=data.draw(st.none() | st.tuples(member, member)),
        flag=data.draw(st.booleans()),
        padding=tuple(data.draw(st.lists(st.integers(0, 1000), max_size=5))),
        **{f"count_{who}": data.draw(st.integers(0, 2)) for who in WHO},
    )
    rows = np.array([engine.layout.pack(state)], dtype=np.uint64)
    group = make_group(model)
    for number, permutation in enumerate(group.permutations):
        image = tuple(kernels.permute(rows, engine.tables, number)[0].tolist())
        assert image == engine.layout.pack(permutation.apply(state))
    kernels.represent(rows, engine.tables)
    images = [engine.layout.pack(permutation.apply(state)) for permutation in group.permutations]
    assert tuple(rows[0].tolist()) == min(images)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("scope", "profile", "orbits", "permutations"),
    [
        ("logs", "kafka-4485", 4284, 2),
        ("logs", "kip-236-amended", 3760, 2),
        ("new", "kip-236", 15294, 2),
        ("small", "kip-236", 17507, 1),
    ],
)
def test_orbits_of_standard_scopes(
    scope: str, profile: str, orbits: int, permutations: int
) -> None:
    """The orbits are those of all reachable states; broken clauses and story lengths stay."""
    _, model = get_model(scope, profile)
    alike = explore_derived(model, keep_going=True, symmetry=True)
    assert (alike.distinct, alike.details["symmetry"]["permutations"]) == (orbits, permutations)
    whole = Engine(model)
    every = whole.run(keep_going=True, budget=Budget())
    tables = Engine(model, symmetry=True).tables
    rows = np.concatenate([level.restore() for level in whole.levels]).reshape(-1, 1)
    kernels.represent(rows, tables)
    assert len(np.unique(rows)) == orbits
    assert alike.goals == every.goals
    assert {v.invariant: len(v.trace.steps) for v in alike.violations} == {
        v.invariant: len(v.trace.steps) for v in every.violations
    }
    for violation in alike.violations:
        replay(model, violation.trace)


def test_members_that_play_the_same_part_are_told() -> None:
    """Where requests are not the same for all brokers the group is smaller, and says so."""
    _, model = get_model("new", "kip-236")
    described = make_group(model).as_json_dict()
    assert described == {"permutations": 2, "broker": [[1, 2], [3]]}
    _, model = get_model("two-partitions", "kip-236")
    described = make_group(model).as_json_dict()
    assert described == {
        "permutations": 2,
        "broker": [[1], [2], [3]],
        "partition": [[0, 1]],
    }


# What is refused ---------------------------------------------------------------------------------


def make_votes(**changes: Any) -> Model:
    """Everybody votes for somebody; whoever gets two votes leads."""

    def vote(state: Any, ballot: tuple[str, str]) -> Any:
        who, choice = ballot
        if getattr(state, f"vote_{who}") is not None:
            return None
        return state.replace(**{f"vote_{who}": choice})

    def lead(state: Any, who: str) -> Any:
        votes = sum(getattr(state, f"vote_{voter}") == who for voter in "xyz")
        return state.replace(leader=who) if votes > 1 and state.leader is None else None

    ballots = tuple((who, choice) for who in "xyz" for choice in "xyz")
    options: dict[str, Any] = {
        "name": "votes",
        "fields": {
            **{f"vote_{who}": Option(Choice(tuple("xyz"))) for who in "xyz"},
            "leader": Option(Choice(tuple("xyz"))),
        },
        "initial": ({**{f"vote_{who}": None for who in "xyz"}, "leader": None},),
        "actions": (Action("vote", vote, ballots), Action("lead", lead, tuple("xyz"))),
        "terminal": lambda s: None not in (s.vote_x, s.vote_y, s.vote_z),
        "symmetries": (
            Symmetry(
                "voter",
                tuple("xyz"),
                dict.fromkeys(("vote_x", "vote_y", "vote_z", "leader"), rename_whole),
                (("vote_x", "vote_y", "vote_z"),),
                {"vote": lambda r, p: (r(p[0]), r(p[1])), "lead": rename_whole},
            ),
        ),
    }
    return Model(**{**options, **changes})


@BOTH
def test_votes_are_symmetric(run: Any) -> None:
    """Fields of a family that hold members themselves are renamed and change places.

    Four votes, none included, for each of three: 64 states, and 30 more with a leader. Exchanging
    two of them leaves 10 as they are, turning all three round leaves 4: (94 + 3 * 10 + 2 * 4) / 6.
    """
    model = make_votes()
    assert run(model).distinct == 94
    assert run(model, symmetry=True).distinct == 22


@BOTH
def test_smallest_member_is_refused_with_state_and_field(run: Any) -> None:
    """The message says which action in which state leaves which field at what."""

    def choose(state: Any, _: None) -> Any:
        return state.replace(leader=min(state.inside)) if len(state.inside) == 2 else None

    model = Model(
        "smallest",
        {"inside": SetOf((1, 2, 3)), "leader": Option(Choice((1, 2, 3)))},
        ({"inside": frozenset(), "leader": None},),
        (
            Action("join", lambda s, p: s.replace(inside=s.inside | {p}), (1, 2, 3)),
            Action("choose", choose),
        ),
        symmetries=(
            Symmetry(
                "member",
                (1, 2, 3),
                {"inside": rename_whole, "leader": rename_whole},
                parameters={"join": rename_whole},
            ),
        ),
    )
    with pytest.raises(
        NotSymmetric, match=r"choose in State\(inside=.*member \d as \d.*leaves field leader at"
    ):
        run(model, symmetry=True)


@BOTH
def test_field_that_was_forgotten_is_refused(run: Any) -> None:
    """A field that holds members and is not declared is found, and named."""
    whole = make_votes().symmetries[0]
    forgetful = replace(
        whole, values={name: how for name, how in whole.values.items() if name != "leader"}
    )
    with pytest.raises(NotSymmetric, match=r"lead.*leaves field leader"):
        run(make_votes(symmetries=(forgetful,)), symmetry=True)


@BOTH
def test_check_that_tells_members_apart_is_refused(run: Any) -> None:
    """An invariant or a goal about one member of many is no question for symmetry."""
    never = Invariant("never x", lambda s: "x leads" if s.leader == "x" else None)
    with pytest.raises(NotSymmetric, match="never x does not answer alike"):
        run(make_votes(invariants=(never,)), symmetry=True)
    goal = Goal("x votes", lambda s: s.vote_x is not None)
    with pytest.raises(NotSymmetric, match="x votes does not answer alike"):
        run(make_votes(goals=(goal,)), symmetry=True)


def test_model_without_symmetry_is_refused() -> None:
    """Symmetry that was not declared cannot be asked for, nor one that makes no sense."""
    with pytest.raises(ModelError, match="declares no symmetry"):
        explore_derived(make_votes(symmetries=()), symmetry=True)
    with pytest.raises(ModelError, match="'votes', which is neither"):
        make_votes(symmetries=(Symmetry("voter", ("x",), {"votes": rename_whole}),))
    with pytest.raises(ModelError, match="vote_x, vote_y cannot change places"):
        make_votes(symmetries=(Symmetry("voter", tuple("xyz"), {}, (("vote_x", "vote_y"),)),))
    many = Symmetry("voter", tuple("xyzabcdefg"), {"leader": rename_whole})
    with pytest.raises(ModelError, match="3,628,800 permutations are more than"):
        explore_derived(make_votes(symmetries=(many,)), symmetry=True)
