"""Self-healing: verdicts, that no claim is vacuous, and planted faults."""

from typing import Any

import pytest

from reassure_model.protocols.kip_46 import RemoveTask, StartTask
from reassure_proofs.engine.necessity import examine_hypotheses
from reassure_proofs.engine.prover import prove
from reassure_proofs.engine.register import get_theorems
from reassure_proofs.engine.runner import prove_all
from reassure_proofs.protocols import kip_46
from reassure_proofs.protocols.kip_46 import CHOICE, FAILOVER, QUEUE, THEOREMS

PROVED = [theorem.name for theorem in THEOREMS if theorem.expected == "proved"]


def _verdict(name: str, size: int = 1) -> str:
    (theorem,) = get_theorems([name])
    subject = theorem.subject
    shapes = list(subject.shapes(size))
    return prove(
        subject.function, shapes, theorem.assumptions, theorem.claim, hashable=True
    ).verdict


def test_healing_is_proved_for_single_replicas() -> None:
    """Every theorem about healing holds where partitions have one replica."""
    results = prove_all(PROVED, replication_factor=1, processes=1)
    assert {result.theorem.name: result.verdict for result in results} == dict.fromkeys(
        PROVED, "proved"
    )


def test_documents_choice_is_refuted() -> None:
    """As written a live replica is removed; from the assignment tasks are made twice."""
    names = [theorem.name for theorem in THEOREMS if theorem.expected == "refuted"]
    results = prove_all(names, replication_factor=2, processes=1)
    assert [result.outcome for result in results] == ["finding"] * 2


@pytest.mark.slow
def test_every_hypothesis_about_healing_is_needed() -> None:
    """Each hypothesis is needed, and what bounds the paths is not."""
    results = examine_hypotheses(
        ["heal-choice-has-fewest", "heal-task-names-nobody-twice"], 2, processes=1
    )
    assert [(r.hypothesis, r.as_expected) for r in results] == [
        ("alive-distinct", True),
        ("assigned-distinct", True),
        ("shape", True),
    ]


@pytest.mark.parametrize(
    "word", [StartTask.__name__, "heal.task.satisfied-skipped", "heal.task.stale"]
)
def test_queue_is_not_vacuous(word: str) -> None:
    """The controller starts, skips and cancels in some case."""
    never = prove(
        QUEUE.function, list(QUEUE.shapes(2)), (), lambda _, r: r[0] != word, hashable=True
    )
    assert never.verdict == "refuted"


def test_choice_is_not_vacuous() -> None:
    """Somebody is chosen in some case."""
    shapes = list(CHOICE.shapes(1))
    nobody = prove(CHOICE.function, shapes, (), lambda _, chosen: chosen is None, hashable=True)
    assert nobody.verdict == "refuted"


def test_failover_is_not_vacuous() -> None:
    """Tasks for two partitions are made in some case."""
    shapes = [item for item in FAILOVER.shapes(1) if "assigned_too" in item]
    few = prove(FAILOVER.function, shapes, (), lambda _, r: len(r[0]) < 2, hashable=True)
    assert few.verdict == "refuted"


def _start_whatever(cluster: Any, readings: object) -> Any:
    return StartTask(cluster.tasks[0].number) if cluster.tasks else None


def _cancel_whatever(cluster: Any, readings: object) -> Any:
    return RemoveTask(cluster.tasks[0].number, "heal.task.stale", "why not")


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("heal-removes-no-live-replica", _start_whatever),
        ("heal-starts-with-live-targets", _start_whatever),
        ("heal-running-task-stays", _cancel_whatever),
        ("heal-operators-task-stays", _cancel_whatever),
        ("heal-satisfied-changes-nothing", _start_whatever),
    ],
)
def test_fault_in_the_queue_is_caught(
    monkeypatch: pytest.MonkeyPatch, name: str, fault: object
) -> None:
    """A controller that starts or cancels what it must not is refuted."""
    monkeypatch.setattr(kip_46, "next_for_tasks", fault)
    assert _verdict(name) == "refuted"


def _choose_first(cluster: Any, replicas: object, broker: object, load: object) -> Any:
    return min(cluster.live, default=None)


def _choose_nobody(cluster: object, replicas: object, broker: object, load: object) -> None:
    return None


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("heal-choice-is-live-and-new", _choose_first),
        ("heal-choice-if-possible", _choose_nobody),
    ],
)
def test_fault_in_the_choice_is_caught(
    monkeypatch: pytest.MonkeyPatch, name: str, fault: object
) -> None:
    """Whoever chooses a replica that is there already, or nobody, is refuted."""
    monkeypatch.setattr(kip_46, "choose_replacement", fault)
    assert _verdict(name) == "refuted"
