"""What a theorem says of itself is so: the readings it ran under, its method, what refutes it."""

import ctypes
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from types import CodeType, FunctionType
from typing import Any, NoReturn

import pytest
from planting import replaced

from reassure_proofs.engine import tasks
from reassure_proofs.engine.inputs import TooLargeError, find_constants
from reassure_proofs.engine.prover import explore_shape
from reassure_proofs.engine.register import get_theorems
from reassure_proofs.engine.results import ProofGoal
from reassure_proofs.engine.runner import (
    TheoremResult,
    prove_all,
    summarise_outcomes,
    summarise_records,
)
from reassure_proofs.engine.statement import Parameter, Subject, Theorem, Values, choose_readings
from reassure_proofs.engine.tasks import ProofTask, group_theorems, run_task
from reassure_proofs.protocols.kafka_4485.logs import make_log
from reassure_proofs.protocols.kip_236.drop import DROP
from reassure_spec import readings
from reassure_spec.readings import Readings

REFUTED = [theorem for theorem in get_theorems() if theorem.expected == "refuted"]
CHOOSERS = (readings.get_profile, readings.override_readings, choose_readings)


# A crash is no counterexample ---------------------------------------------------------------------


def _broken(_: Any) -> NoReturn:
    raise RuntimeError("this code is broken")


def test_crash_confirms_no_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the code of every expected refutation raises, none of them is refuted as expected."""
    assert len(REFUTED) > 50
    monkeypatch.setattr(tasks, "make_function", lambda *_: (_broken, set[str]()))
    for group in group_theorems(REFUTED):
        names = tuple(theorem.name for theorem in group)
        records = run_task(ProofTask(names, (0,), 3, 60.0))
        for theorem in group:
            result = summarise_records(theorem, records, 3)
            if result.counterexample is None:
                # No input of the smallest shape satisfies the hypotheses, so nothing was run.
                assert result.verdict == "unknown", theorem.name
                continue
            assert (result.verdict, result.outcome) == ("refuted", "violated"), theorem.name
            assert "raises RuntimeError: this code is broken" in result.reason
            assert summarise_outcomes([result]) == "violated"


def test_counterexample_that_is_none_is_a_fault() -> None:
    """A counterexample that the plain code does not show when run again is told as a fault."""
    from reassure_proofs.engine.prover import ProofFaultError

    (theorem,) = get_theorems(["drop-leader-kept"])
    values = {"assigned": (1,), "isr": (1,), "leader": 1, "top": 1, "minimum": 1}
    with pytest.raises(ProofFaultError, match="no counterexample when it is run again"):
        tasks.run_again(theorem, lambda _: (), values)
    assert tasks.run_again(theorem, lambda _: (1,), values) == ""


EVERYBODY = """
def compute_drop(assigned, leader, isr, top, target, readings, others=None):
    return assigned
"""
CURED = [
    *("drop-exclusive-nothing-at-first-request", "drop-exclusive-leader-kept"),
    *("drop-exclusive-isr-at-least-min", "drop-after-expansion-keeps-copies"),
    *("drop-cancel-keeps-originals", "drop-keeps-redundancy", "drop-target-in-sync-kept"),
    "drop-offline-in-sync-copy-kept",
]


def test_finding_is_due_to_its_reading() -> None:
    """A drop rule that drops everybody confirms no finding that the cured reading should cure."""
    sound = prove_all(CURED, 2, processes=1)
    assert {result.outcome for result in sound} == {"finding"}
    with replaced("protocols.kip_236", EVERYBODY):
        broken = prove_all(CURED, 2, processes=1)
    assert {result.outcome for result in broken} == {"violated"}
    assert all("the code breaks it too" in result.reason for result in broken)


# Readings -----------------------------------------------------------------------------------------


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _parts(function: Any) -> Iterator[Any]:
    """Yield what a function has at hand: arguments given, closure, defaults, globals it names."""
    if isinstance(function, partial):
        yield from (function.func, *function.args, *function.keywords.values())
    elif isinstance(function, FunctionType):
        bound = {**(function.__kwdefaults__ or {})}
        yield from (*(function.__defaults__ or ()), *bound.values())
        yield from (cell.cell_contents for cell in function.__closure__ or ())
        names = {name for code in _codes(function.__code__) for name in code.co_names}
        yield from (function.__globals__[name] for name in names if name in function.__globals__)


def _find_readings(function: Any) -> list[Any]:
    """Return the readings that a function of this room holds, and what it could choose others by.

    A default that a caller replaces counts as well, unless a partial gives the argument by name.
    """
    found: list[Any] = []
    seen: set[int] = set()
    waiting = [function]
    while waiting:
        part = waiting.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        if isinstance(part, Readings) or part in CHOOSERS:
            found.append(part)
        elif isinstance(part, partial) and "readings" in part.keywords:
            found.append(part.keywords["readings"])
            waiting += [value for value in _parts(part.func) if not isinstance(value, Readings)]
        elif isinstance(part, partial | FunctionType) and _is_ours(part):
            waiting += list(_parts(part))
    return found


def _is_ours(part: Any) -> bool:
    return isinstance(part, partial) or part.__module__.startswith("reassure_proofs")


SUBJECTS = {theorem.subject.name: theorem for theorem in get_theorems()}


@pytest.mark.parametrize("theorem", SUBJECTS.values(), ids=SUBJECTS)
def test_code_has_the_readings_that_are_told(theorem: Theorem) -> None:
    """The code under test holds no readings but those of its profile with the changes it names."""
    subject = theorem.subject
    allowed = {choose_readings(theorem.profile, subject.changes)} if subject.profile else set()
    held = _find_readings(subject.function)
    assert all(isinstance(each, Readings) for each in held), "it chooses readings of its own"
    assert set(held) <= allowed


def test_readings_of_its_own_are_noticed() -> None:
    """Code that holds other readings than are told, or makes them as it runs, is found out."""
    exclusive = choose_readings("kip-236", ["drop.slice=exclusive"])
    held: list[Callable[[Any], Any]] = [
        lambda v: (v, exclusive),
        partial(lambda v, readings: (v, readings), readings=exclusive),
        lambda v: (v, choose_readings("kip-46")),
    ]
    assert [len(_find_readings(_as_ours(each))) for each in held] == [1, 1, 1]


def _as_ours(function: Any) -> Any:
    inner = function.func if isinstance(function, partial) else function
    inner.__module__ = "reassure_proofs.planted"
    return function


def test_theorem_of_another_profile_is_refused() -> None:
    """A theorem cannot name a profile whose readings its code was not given."""
    (theorem,) = get_theorems(["drop-leader-kept"])
    with pytest.raises(ValueError, match="profile kip-46, the code was given kip-236"):
        replace(theorem, profile="kip-46")


def test_result_names_its_readings_and_profiles() -> None:
    """A result tells the readings that were looked at, and the profiles that share them."""
    names = ["drop-leader-kept", "drop-amended-leader-kept", "drop-exclusive-leader-kept"]
    names += ["hw-never-decreases", "heal-removes-no-live-replica"]
    results: dict[str, TheoremResult] = {
        result.theorem.name: result for result in prove_all(names, 1, processes=1, tier="full")
    }
    wanted: dict[str, tuple[dict[str, str], tuple[str, ...]]] = {
        "drop-leader-kept": (
            {"drop.slice": "inclusive", "drop.protects": "nothing", "offline.drop": "wait"},
            ("kip-236",),
        ),
        "drop-amended-leader-kept": (
            {"drop.slice": "inclusive", "drop.protects": "target", "offline.drop": "skip"},
            ("kip-236-amended",),
        ),
        "drop-exclusive-leader-kept": (
            {"drop.slice": "exclusive", "drop.protects": "nothing", "offline.drop": "wait"},
            (),
        ),
        "hw-never-decreases": ({}, ("kafka-4485", "kip-236", "kip-236-amended")),
    }
    for name, (values, profiles) in wanted.items():
        assert (results[name].readings, results[name].profiles) == (values, profiles), name
    healing = results["heal-removes-no-live-replica"]
    assert healing.readings["heal.stale-task"] == "skip"
    assert healing.profiles == ()


def test_opposite_verdicts_on_one_clause_differ_in_readings_or_hypotheses() -> None:
    """Where one theorem of a clause is proved and another refuted, they are not about the same."""
    for proved in get_theorems():
        for refuted in REFUTED:
            if proved.expected != "refuted" and proved.clause == refuted.clause:
                assert _given(proved) != _given(refuted) or proved.statement != refuted.statement


def _given(theorem: Theorem) -> tuple[Any, ...]:
    names = tuple(item.name for item in theorem.assumptions)
    return theorem.profile, theorem.subject.changes, names


# Proofs and searches ------------------------------------------------------------------------------


@pytest.mark.parametrize("theorem", get_theorems(), ids=lambda theorem: theorem.name)
def test_theorem_is_about_something_symbolic(theorem: Theorem) -> None:
    """What is gone through case by case is a search, which is no proof: the explorer's."""
    assert any(p.kind != "word" for shape in theorem.shapes(2) for p in shape.values())


def test_subject_without_readings_has_no_changes() -> None:
    """Readings cannot be changed for code that takes none."""
    subject = Subject("plain", lambda _: (), "plain code", lambda _: iter(({},)))
    with pytest.raises(ValueError, match="plain code takes no readings"):
        tasks.make_function(
            replace(get_theorems(["drop-leader-kept"])[0], subject=subject), ["a=b"]
        )
    assert DROP.under is not None


def test_address_is_no_constant_of_a_rule() -> None:
    """What libraries hold is not tried as a broker's number; what stands beside it is."""
    library, limit = ctypes.CDLL(None), 4711

    def speak(number: int) -> bool:
        return bool(library) and number == limit

    constants = find_constants(speak)
    assert limit in constants
    assert max(constants) == limit + 1


def test_log_that_cannot_be_laid_out_is_not_tried() -> None:
    """A plain log of astronomic length is refused rather than made."""
    assert make_log(3, (1,), (7,)) == (0, 7, 0)
    with pytest.raises(TooLargeError, match="no log of 1000000000000 records"):
        make_log(10**12, (0,), (7,))


def test_plain_input_whose_step_needs_too_much_room_is_left_out() -> None:
    """A number beside the longest log is one of the harness's own, and breaks no claim."""

    def grow(values: Values) -> object:
        if isinstance(values["end"], int):
            make_log(values["end"] + 1_000_000, (0,), (7,))
        return values["end"]

    found = explore_shape(
        grow,
        {"end": Parameter(kind="natural")},
        (),
        [ProofGoal("grows", lambda values, result: result >= 0)],
    )
    assert not found.counterexamples
    assert found.certificate is not None
    assert found.certificate.tried
