"""What is owed to a move before 2.4, as far as it is the same however far the move has come."""

from dataclasses import replace
from typing import Final

import pytest

from reassure_judge.protocols import make_rules
from reassure_judge.protocols.kafka_zk.partition import DropEntry, Logged, WriteLists
from reassure_judge.rules import Possible
from reassure_model.outcome import Accepted
from reassure_model.partition import Environment, LeaderAndIsr
from reassure_model.protocols.kafka_zk import Assignment
from reassure_model.writes import WriteState
from reassure_spec.readings import get_profile, override_readings

PROFILE: Final = "kafka-42"
LIVE: Final = frozenset({1, 2, 3})
AROUND: Final = Environment(LIVE, LIVE)
SYNC: Final = LeaderAndIsr(1, 4, 1, (1, 2, 3))
MOVES: Final = Logged((1, 2), state=SYNC, entry=(2, 3), asked=((2, 3),))
"""The whole target is in sync, and an old replica leads."""
ELECTED: Final = replace(MOVES, state=replace(SYNC, leader=2, leader_epoch=5), completing=True)
DONE: Final = replace(ELECTED, assigned=(2, 3), done=True, completing=False)
STAYS: Final = replace(MOVES, entry=(1, 3), asked=((1, 3),))

OWED: Final = {
    "leader outside": (MOVES, WriteState(LeaderAndIsr(2, 5, 1, (1, 2, 3))), "move.step.listen"),
    "leader stays": (STAYS, WriteState(replace(SYNC, leader_epoch=5)), "move.step.elect"),
    "leader elected": (ELECTED, WriteLists(Assignment((2, 3))), "move.step.listen"),
    "assigned": (DONE, DropEntry(), "move.step.remove-path"),
    "the same": (
        replace(MOVES, entry=(1, 2), asked=((1, 2),)),
        DropEntry(),
        "move.listener.refuse-same",
    ),
}
"""By what has happened: the state, what is owed, and why."""
FREE: Final = {
    "not in sync": (replace(MOVES, state=replace(SYNC, isr=(1, 2))), AROUND),
    "another target": (replace(MOVES, asked=((3, 1), (2, 3))), AROUND),
    "withdrawn": (replace(MOVES, entry=None), AROUND),
    "never begun": (replace(MOVES, entry=(2, 2), asked=((2, 2),)), AROUND),
    "of the dead": (MOVES, replace(AROUND, live=frozenset({1, 2}))),
    "deleted": (MOVES, replace(AROUND, deleting=True)),
}
"""By why nobody knows: states in which nothing is owed to the move."""


@pytest.mark.clause("move.step.listen", "move.step.remove-path", "move.listener.refuse-same")
@pytest.mark.parametrize("name", OWED)
def test_step_of_a_move_is_owed_and_allowed(name: str) -> None:
    """The next step that shows is owed, and the rules on writes allow it."""
    rules = make_rules(PROFILE, get_profile(PROFILE))
    hosted, write, clause = OWED[name]
    owed = rules.find_owed(hosted, AROUND)
    assert owed is not None
    assert (owed.write, owed.clause) == (write, clause)
    assert isinstance(rules.accept(Possible(hosted), write, AROUND), Accepted)


@pytest.mark.parametrize("name", FREE)
def test_nothing_is_owed_where_nobody_knows_how_far_a_move_is(name: str) -> None:
    """What may be done already, or never be begun, is owed by nobody."""
    hosted, around = FREE[name]
    owed = make_rules(PROFILE, get_profile(PROFILE)).find_owed(hosted, around)
    assert owed is None or owed.clause == "isr.remove.dead"


def test_repaired_moves_assign_first_and_cut_before_they_end() -> None:
    """Under the readings that repair it the steps that are added are owed as well."""
    more = {"move.expand-first": "yes", "move.cut-isr": "yes"}
    rules = make_rules(PROFILE, override_readings(get_profile(PROFILE), more))
    first = rules.find_owed(MOVES, AROUND)
    assert first is not None
    assert first.write == WriteLists(Assignment((1, 2, 3)))
    cut = rules.find_owed(replace(ELECTED, assigned=(1, 2, 3), begun=True), AROUND)
    assert cut is not None
    assert cut.write == WriteState(LeaderAndIsr(2, 6, 1, (2, 3)))
