"""Fair runs: toy models with known answers, and the drop rule under restarts."""

from typing import Any

import pytest

from reassure_explorer.engine.interface import Action, Choice, Flag, Int, Model, ModelError
from reassure_explorer.engine.liveness import check_liveness
from reassure_explorer.engine.result import Verdict
from reassure_explorer.scopes.catalogue import explore_scope


def make_traffic(*actions: Action) -> Model:
    """A traffic light that is to be green again and again; `broken` and `spark` do nothing."""
    return Model(
        "traffic",
        {"light": Choice(("red", "amber", "green")), "spark": Flag(), "faults": Int(0, 2)},
        ({"light": "red", "spark": False, "faults": 0},),
        actions,
        settled=lambda s: s.light == "green",
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
    """Liveness of a model that does not say what is settled is an error with the way out."""
    model = Model("mute", {"x": Flag()}, ({"x": False},), ())
    with pytest.raises(ModelError, match="give it `settled`"):
        check_liveness(model)


@pytest.mark.parametrize("profile", ["kip-236", "kip-236-amended"])
def test_reassignments_settle_under_failovers_without_end(profile: str) -> None:
    """Every reassignment completes or waits for a dead target, however often controllers fail."""
    exploration = explore_scope("restless", profile=profile, liveness=True)
    assert exploration.verdict is Verdict.HOLDS
    assert exploration.liveness is not None and exploration.liveness.unsettled > 0


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
    document = exploration.make_body()["liveness"]
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
    assert exploration.liveness is not None and exploration.liveness.unsettled > 0
