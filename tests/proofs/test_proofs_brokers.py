"""Where brokers have plain numbers, no function of the model looks at them; bounds are told."""

import pytest
from planting import planted

from reassure_proofs.engine.numbers import find_looks, find_reached
from reassure_proofs.engine.register import get_theorems
from reassure_proofs.engine.runner import prove_all
from reassure_proofs.engine.statement import Subject, Theorem

NUMBERED = {each.subject.name: each.subject for each in get_theorems() if each.subject.numbered}
STEP = NUMBERED["replication-step"]
JOIN = '    if offset < mark:\n        return Rejected("isr.member'
LOOKS = (
    "offset < mark and broker != 2",
    "offset < mark and broker not in (2, 3)",
    "offset < mark and broker < len(state.replicas) - 2",
    "offset < mark and broker <= state.leader + 1",
    "offset < mark and broker % 3",
    "offset < mark and broker + 1 != len(state.replicas)",
    "offset < mark and broker != len(state.replicas)",
    "offset < mark and not broker - 2",
    "offset < mark and (not broker or broker is state.leader)",
    "offset < mark and str(broker) != '2'",
    "offset < mark and f'{broker}' != '2'",
    "offset < mark and {2: False}.get(broker, True)",
    "offset < mark and hash(broker) != 2",
    "offset < mark and broker not in range(2, 3)",
    "offset < mark and max(broker, state.leader) == broker",
    "offset < mark and sorted((broker, state.leader))[0] == broker",
)


@pytest.mark.parametrize("subject", NUMBERED.values(), ids=NUMBERED)
def test_no_function_looks_at_a_number(subject: Subject) -> None:
    """Of all functions that are reached none compares, orders or calculates with a broker."""
    assert find_reached(subject.function)
    assert find_looks(subject.function) == []


def test_step_reaches_what_the_actions_do() -> None:
    """The functions are followed through tables and modules that are loaded by name."""
    names = {each.__qualname__ for each in find_reached(STEP.function)}
    assert {"step", "_join", "_write_isr", "compute_high_watermark", "is_possible"} <= names


@pytest.mark.parametrize("look", LOOKS)
def test_look_at_a_number_is_found_with_its_line(look: str) -> None:
    """Each way of looking at a broker's number is found in the function where it stands."""
    look_too = JOIN.replace("offset < mark", look)
    with planted("protocols.kafka_4485.replication", JOIN, look_too):
        (found, *_) = find_looks(STEP.function)
    assert "may look at a broker's number" in found
    assert "reassure_model.protocols.kafka_4485.replication" in found


def test_code_that_looks_is_not_proved() -> None:
    """A theorem about code that looks is unknown, and says where."""
    name = "replication-starts-in-invariant"
    mistake = (
        "protocols.kafka_4485.replication",
        '    if broker not in state.isr:\n        return Rejected("election',
        '    if broker not in state.isr and broker != 2:\n        return Rejected("election',
    )
    with planted(*mistake):
        (result,) = prove_all(["replication-mark-never-back"], 2, processes=1)
    assert result.verdict == "unknown"
    assert "'broker not in state.isr" not in result.reason
    assert "'broker != 2' may look at a broker's number" in result.reason
    (untouched,) = prove_all([name], 2, processes=1)
    assert untouched.verdict == "proved"


@pytest.mark.parametrize("theorem", get_theorems(), ids=lambda theorem: theorem.name)
def test_bound_tells_the_longest_list(theorem: Theorem) -> None:
    """What is printed as the bound is the longest list among the shapes, for each factor."""
    for factor in (1, 2, 3, 4):
        lengths = [
            part.length
            for shape in theorem.shapes(factor)
            for part in shape.values()
            if part.length
        ]
        told = f"lists of up to {max(lengths)}" if lengths else "all integers unbounded"
        assert told in theorem.bound(factor)
