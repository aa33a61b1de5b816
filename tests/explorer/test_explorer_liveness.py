"""Fair runs: toy models with known answers, and the drop rule under restarts."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, combinations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reassure_explorer.engine.interface import Action, Choice, Flag, Int, Model, ModelError
from reassure_explorer.engine.liveness import check_liveness
from reassure_explorer.engine.result import Verdict
from reassure_explorer.engine.temporal import (
    ALWAYS_EVENTUALLY,
    EVENTUALLY,
    EVENTUALLY_ALWAYS,
    LEADS_TO,
    Temporal,
    always_eventually,
    eventually,
    eventually_always,
    leads_to,
)
from reassure_explorer.scopes.catalogue import explore_scope


def make_traffic(*actions: Action) -> Model:
    """A traffic light that is to be green again and again; `broken` and `spark` do nothing."""
    return Model(
        "traffic",
        {"light": Choice(("red", "amber", "green")), "spark": Flag(), "faults": Int(0, 2)},
        ({"light": "red", "spark": False, "faults": 0},),
        actions,
        temporal=(always_eventually("green", lambda s: s.light == "green"),),
    )


def _change(before: str, after: str, *, fair: bool = True) -> Action:
    def step(state: Any, _: None) -> Any:
        return state.replace(light=after) if state.light == before else None

    return Action(f"{before} to {after}", step, fair=fair)


SPARK = Action("spark", lambda s, _: s.replace(spark=not s.spark))
ROUND = (_change("red", "amber"), _change("amber", "green"), _change("green", "red"))


def test_light_that_goes_round_is_live() -> None:
    """Where every change is fair the light is green again and again, whatever else happens."""
    assert check_liveness(make_traffic(*ROUND, SPARK)).verdict is Verdict.HOLDS


def test_light_that_need_not_change_stays() -> None:
    """Where a change is not fair the light may stay as it is, with no step at all."""
    result = check_liveness(make_traffic(_change("red", "amber", fair=False), *ROUND[1:]))
    assert result.lasso is not None
    assert result.lasso.stem.steps == ()
    assert result.lasso.cycle == ()


def test_light_that_flickers_is_never_green() -> None:
    """A cycle that takes each fair action, or makes it impossible, is a fair run."""
    back = _change("amber", "red")
    result = check_liveness(make_traffic(ROUND[0], back, ROUND[2], SPARK))
    assert result.lasso is not None
    assert sorted({step.action for step in result.lasso.cycle}) == ["amber to red", "red to amber"]


def test_fair_action_possible_all_along_must_be_taken() -> None:
    """A cycle in which a fair action stays possible and is never taken is no counterexample."""

    def go(state: Any, _: None) -> Any:
        return None if state.light == "green" else state.replace(light="green")

    escape = Action("escape", go, fair=True)
    assert check_liveness(make_traffic(*ROUND, escape, SPARK)).verdict is Verdict.HOLDS


def test_limited_faults_do_not_make_a_cycle() -> None:
    """What may happen twice only cannot keep a fair run from being settled."""

    def fail(state: Any, _: None) -> Any:
        if state.faults == 2:
            return None
        return state.replace(light="red", faults=state.faults + 1)

    assert check_liveness(make_traffic(*ROUND, Action("fail", fail))).verdict is Verdict.HOLDS


def test_model_that_claims_nothing_is_refused() -> None:
    """Liveness of a model that does not say what must come about is an error with the way out."""
    model = Model("mute", {"x": Flag()}, ({"x": False},), ())
    with pytest.raises(ModelError, match="give it `temporal`"):
        check_liveness(model)


@pytest.mark.parametrize("profile", ["kip-236", "kip-236-amended"])
def test_reassignments_settle_under_failovers_without_end(profile: str) -> None:
    """Every reassignment completes or waits for a dead target, however often controllers fail."""
    exploration = explore_scope("restless", profile=profile, liveness=True)
    assert exploration.verdict is Verdict.HOLDS
    assert exploration.liveness is not None
    assert exploration.liveness.properties[0].pending > 0


RESTART = {"drop.reevaluated-on-failover": "yes"}


def test_drop_at_every_restart_is_a_livelock() -> None:
    """A drop that each failover evaluates anew throws away what was copied, for ever."""
    exploration = explore_scope("restless", profile="kip-236", readings=RESTART, liveness=True)
    assert exploration.liveness is not None and exploration.liveness.lasso is not None
    lasso = exploration.liveness.lasso
    actions = [step.action for step in lasso.cycle]
    assert {"join", "failover", "controller"} == set(actions)
    assert len(lasso.stem.steps) == 3
    assert lasso.cycle[-1].state == lasso.stem.last
    assert exploration.exit_code == 1
    assert "for ever" in exploration.render()
    document = exploration.make_body()["liveness"]["properties"][0]
    assert len(document["cycle"]) == len(actions)


def test_drop_that_spares_the_target_is_no_livelock() -> None:
    """Where the replicas of the target are spared, restarts that drop anew do no lasting harm."""
    exploration = explore_scope(
        "restless", profile="kip-236-amended", readings=RESTART, liveness=True
    )
    assert exploration.verdict is Verdict.HOLDS


def test_cut_replica_that_joins_again_is_a_livelock() -> None:
    """Where KAFKA-42 cuts the in-sync set first, the replica may join again before it is stopped.

    It is cut again, and so for ever: nothing says, as of KIP-236, that who was cut stays out.
    """
    mended = explore_scope("moves", profile="kip-236-amended", liveness=True)
    assert mended.result.verdict is Verdict.HOLDS
    assert mended.liveness is not None and mended.liveness.lasso is not None
    cycle = mended.liveness.lasso.cycle
    assert [step.action for step in cycle] == ["join", "controller"]
    written = explore_scope("moves", profile="kafka-42", liveness=True).liveness
    assert written is not None and written.verdict is Verdict.HOLDS


def test_both_routes_settle() -> None:
    """Whatever comes by the old znode and by the new route is settled in the end."""
    exploration = explore_scope("old-znode", profile="kip-236-legacy", liveness=True)
    assert exploration.verdict is Verdict.HOLDS
    assert exploration.liveness is not None
    assert exploration.liveness.properties[0].pending > 0


def _pass(before: str, after: str, **fairness: bool) -> Action:
    return Action(f"{before} {after}", _change(before, after).step, **fairness)


def test_strong_fairness_is_for_what_is_possible_again_and_again() -> None:
    """A turn that comes and goes may be missed for ever by who is weakly fair only."""
    turns = (_change("red", "amber"), _change("amber", "red"))
    assert (
        check_liveness(make_traffic(*turns, _pass("amber", "green", fair=True))).lasso is not None
    )
    strong = make_traffic(*turns, _pass("amber", "green", strong=True))
    assert check_liveness(strong).verdict is Verdict.HOLDS


LIGHTS = make_traffic(*ROUND)
IS = {light: (lambda s, light=light: s.light == light) for light in ("red", "amber", "green")}


@pytest.mark.parametrize(
    ("temporal", "verdict"),
    [
        (eventually("green", IS["green"]), Verdict.HOLDS),
        (eventually("red", IS["red"]), Verdict.VACUOUS),  # it is red to begin with
        (leads_to("on", IS["amber"], IS["green"]), Verdict.HOLDS),
        (leads_to("never asked", lambda s: s.spark, IS["green"]), Verdict.VACUOUS),
        (eventually_always("green", IS["green"]), Verdict.VIOLATED),
        (always_eventually("spark", lambda s: s.spark), Verdict.VIOLATED),
    ],
)
def test_each_form_has_its_verdict(temporal: Temporal, verdict: Verdict) -> None:
    """A light that goes round: what comes about, what stays, what nothing awaits."""
    found = check_liveness(replace(LIGHTS, temporal=(temporal,)))
    assert found.properties[0].verdict is verdict


GRAPHS = st.fixed_dictionaries(
    {
        "edges": st.lists(
            st.tuples(st.integers(0, 1), st.integers(0, 3), st.integers(0, 3)), max_size=10
        ),
        "fair": st.tuples(*[st.sampled_from(["", "fair", "strong"])] * 2),
        "when": st.frozensets(st.integers(0, 3)),
        "wanted": st.frozensets(st.integers(0, 3), max_size=2),
        "form": st.sampled_from([ALWAYS_EVENTUALLY, EVENTUALLY, LEADS_TO, EVENTUALLY_ALWAYS]),
    }
)


def is_broken(edges: Any, fair: Any, when: Any, wanted: Any, form: str) -> bool:
    """Whether some fair run from 0 breaks the property, by trying all sets that it may stay in."""

    def reach(sources: Any, allowed: Any) -> set[int]:
        found = set(sources) & allowed
        while more := {j for _, i, j in edges if i in found and j in allowed} - found:
            found |= more
        return found

    def is_fair(inside: set[int]) -> bool:
        for number, kind in enumerate(fair):
            own = [(i, j) for action, i, j in edges if action == number]
            taken = any(i in inside and j in inside for i, j in own)
            possible = inside & {i for i, _ in own}
            if kind and not taken and possible and (kind == "strong" or possible == inside):
                return False
        return True

    everything = set(range(4))
    allowed = everything if form == EVENTUALLY_ALWAYS else everything - wanted
    reached = reach({0}, everything)
    awaits = {
        ALWAYS_EVENTUALLY: reached,
        EVENTUALLY: {0},
        LEADS_TO: reached & when,
        EVENTUALLY_ALWAYS: {0},
    }[form]
    there = reach(awaits, allowed)
    return any(
        all(reach({i}, set(inside)) == set(inside) for i in inside)
        and set(inside) - wanted
        and is_fair(set(inside))
        for inside in chain.from_iterable(combinations(there, n) for n in range(1, 5))
    )


def make_drawn(graph: dict[str, Any]) -> Model:
    """Return the model that has a graph for its states and steps."""

    def make(number: int) -> Action:
        def step(s: Any, _: None) -> Iterator[Any]:
            return (s.replace(x=j) for k, i, j in graph["edges"] if k == number and i == s.x)

        fairness = {graph["fair"][number]: True} if graph["fair"][number] else {}
        return Action(f"a{number}", step, **fairness)

    temporal = Temporal(
        "drawn", graph["form"], lambda s: s.x in graph["wanted"], lambda s: s.x in graph["when"]
    )
    actions = (make(0), make(1))
    return Model("drawn", {"x": Int(0, 3)}, ({"x": 0},), actions, temporal=(temporal,))


@settings(max_examples=150)
@given(GRAPHS)
def test_verdict_is_that_of_all_sets_of_states(graph: dict[str, Any]) -> None:
    """Of any graph brute force says the same, and each lasso is fair."""
    model = make_drawn(graph)
    found = check_liveness(model)
    assert (found.lasso is not None) == is_broken(**graph)
    if found.lasso is not None:
        cycle = [found.lasso.stem.last.x, *(step.state.x for step in found.lasso.cycle)]
        assert cycle[0] == cycle[-1]
        inside, taken = set(cycle), {step.action for step in found.lasso.cycle}
        for number, kind in enumerate(graph["fair"]):
            possible = inside & {i for action, i, _ in graph["edges"] if action == number}
            if kind and f"a{number}" not in taken:
                assert not possible or (kind == "fair" and possible != inside)


@pytest.mark.parametrize(
    ("edges", "cycle"),
    [
        # 0 and 1 owe a1 a step; 0 alone, where a1 is impossible, does not.
        (((0, 0, 1), (0, 1, 0), (1, 1, 2)), []),
        # a1 is taken, though it is impossible in 0, where the cycle begins.
        (((0, 0, 1), (0, 1, 0), (1, 1, 0)), ["a0", "a1"]),
    ],
)
def test_cycle_does_justice_to_strong_fairness(edges: Any, cycle: list[str]) -> None:
    """Where a whole component is not fair a part of it may be; a cycle takes what it must."""
    graph = {"edges": edges, "fair": ("fair" if cycle else "", "strong")}
    model = make_drawn({**graph, "when": (), "wanted": {2}, "form": ALWAYS_EVENTUALLY})
    lasso = check_liveness(model).lasso
    assert lasso is not None and [step.action for step in lasso.cycle] == cycle
