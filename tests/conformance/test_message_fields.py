"""Each field of each message: wrong in each simple way it is told by the clause about it."""

import json
from collections.abc import Callable
from dataclasses import fields, replace

import jsonschema
import pytest

from reassure_conformance.adapter import LOG, MESSAGES
from reassure_conformance.adapter.answering import _encode
from reassure_conformance.adapter.bundled import Bundled
from reassure_conformance.adapter.wire import answer_schema, read_answer
from reassure_conformance.gate.harness import Harness
from reassure_conformance.gate.requirements import find_lacking
from reassure_conformance.gate.story import shipped_stories
from reassure_conformance.mutants import load_mutants, message_mutants
from reassure_conformance.mutants.exchange import exchanged
from reassure_controller.messages import LeaderAndIsr, StopReplica
from reassure_judge.messages import Told, ToldStates
from reassure_spec.znodes import StateZnode

STORY = "a-move-of-everything"
"""A story in which every message is sent."""
CLAUSES = frozenset(message_mutants.CLAUSES[each][0] for each in message_mutants.CLAUSES)
"""For each field of a message the clause about it."""
STATES = (
    "drop.replica.states",
    "partition.transition.valid-previous",
    "replica.transition.valid-previous",
)
"""The clauses about what controllers say of states."""
NAMES = [name for name, *_ in message_mutants.derive()]


def test_every_field_has_mutants() -> None:
    """No field of a message is without a mutant that can be told."""
    places = {name.rpartition(".")[0] for name in NAMES}
    every = {
        f"{kind.__name__}.{f.name}" for kind in (LeaderAndIsr, StopReplica) for f in fields(kind)
    }
    assert places == every


@pytest.mark.parametrize("name", NAMES)
def test_wrong_field_is_told(name: str, make_harness: Callable[..., Harness]) -> None:
    """One short story is red with a clause that is about the field, and with that first."""
    harness = make_harness(Bundled(faults=(name,)))
    example = harness.tell(next(story for story in shipped_stories() if story.name == STORY))
    harness.close()
    assert example.violations, f"{name} survives"
    assert example.violations[0].clause in load_mutants()[name].clauses


@pytest.mark.parametrize("name", message_mutants.UNTOLD)
def test_untold_field_breaks_nothing(name: str, make_harness: Callable[..., Harness]) -> None:
    """What is said to be told by nothing is told by nothing: else it would be a mutant."""
    place, _, operator = name.rpartition(".")
    (of,) = (of for *parts, of in message_mutants.list_fields() if ".".join(parts) == place)
    value = message_mutants.OPERATORS[of][operator]
    with exchanged((message_mutants.make_patch(*place.split("."), value),)):
        harness = make_harness(Bundled())
        example = harness.tell(next(story for story in shipped_stories() if story.name == STORY))
        harness.close()
    assert example.violations == []


FULL = (
    Told(1, "orders", 0, 1, StateZnode(1, 0, 1, (1, 2)), (1, 2), False, 9, 1001, 5, 0, True),
    Told(1, "orders", 0, 1, None, delete=True, zxid=9, controller=1001, broker_epoch=5),
)


@pytest.mark.parametrize("told", [*FULL, replace(FULL[1], leader_epoch=3)])
def test_record_travels_as_it_is(told: Told) -> None:
    """A program's record has the fields that it has, and none of the other message's."""
    schema = {"$ref": "#/$defs/take_messages", **answer_schema()}
    for left_out in (None, *told.given):
        record = told if left_out is None else replace(told, **{left_out: None})
        said = json.loads(json.dumps({"id": 1, "answer": _encode([record])}))
        jsonschema.validate(said, schema)
        assert read_answer("take_messages", said["answer"]) == [record]
    foreign = "leader_epoch" if told.state is not None else "is_new"
    (plain,) = json.loads(json.dumps(_encode([told])))
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"id": 1, "answer": [{**plain, foreign: 1}]}, schema)


def test_states_travel_as_they_are() -> None:
    """A program's record of states is read as it was said, and no state that there is not."""
    schema = {"$ref": "#/$defs/take_messages", **answer_schema()}
    record = ToldStates(3, "orders", 0, ((None, "NEW", "ONLINE"), (1, "OFFLINE", "ONLINE")))
    said = json.loads(json.dumps({"id": 1, "answer": _encode([record])}))
    jsonschema.validate(said, schema)
    assert read_answer("take_messages", said["answer"]) == [record]
    said["answer"][0]["moves"][0][2] = "NON_EXISTING"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(said, schema)


class Terse(Bundled):
    """An adapter that does not say all that there is to say of messages."""

    def take_messages(self) -> list[Told | ToldStates]:
        """Return the records without two fields, and none of states."""
        told = (one for one in super().take_messages() if isinstance(one, Told))
        return [replace(one, is_new=None, broker_epoch=None) for one in told]


def test_field_that_no_record_has_is_not_asked_for(make_harness: Callable[..., Harness]) -> None:
    """The clause of a field that nobody shows is skipped, and that is said; others are judged."""
    lacking = {}
    for adapter in (Terse(), Bundled()):
        harness = make_harness(adapter)
        example = harness.tell(next(story for story in shipped_stories() if story.name == STORY))
        assert not example.violations
        idle = [clause for clause in (*CLAUSES, *STATES) if not harness.judge.exercised[clause]]
        lacking[type(adapter)] = find_lacking(idle, frozenset(harness.abilities), "kip-236")
    assert lacking == {
        Bundled: {},
        Terse: {
            "message.is-new": ("messages with is_new",),
            "message.broker-epoch": ("messages with broker_epoch",),
            **dict.fromkeys(STATES, ("messages with states",)),
        },
    }
    assert set(find_lacking(CLAUSES, frozenset({LOG}), "kip-236").values()) == {(MESSAGES,)}
