"""Controllers and state machines: verdicts, that no claim is vacuous, and planted faults."""

from typing import Any

import pytest

from reassure_model.controllers import Controllership, accept_election
from reassure_model.outcome import Accepted
from reassure_model.protocols import topics
from reassure_proofs.engine.necessity import examine_hypotheses
from reassure_proofs.engine.prover import prove
from reassure_proofs.engine.register import get_theorems
from reassure_proofs.engine.runner import prove_all
from reassure_proofs.protocols.common import controllers
from reassure_proofs.protocols.common.controllers import OFFICE
from reassure_proofs.protocols.kafka_42 import MOVED_42
from reassure_proofs.protocols.topics import DEAD_NOT_DELETING, DELETED

NAMES = [
    theorem.name for theorem in get_theorems() if theorem.subject in (OFFICE, DELETED, MOVED_42)
]


def _verdict(name: str, size: int = 1) -> str:
    (theorem,) = get_theorems([name])
    shapes = list(theorem.subject.shapes(size))
    return prove(theorem.subject.function, shapes, theorem.assumptions, theorem.claim).verdict


def test_offices_and_machines_are_proved() -> None:
    """Every theorem about controllers and state machines holds."""
    results = prove_all(NAMES, replication_factor=1, processes=1)
    assert {result.theorem.name: result.outcome for result in results} == dict.fromkeys(
        NAMES, "holds"
    )


def test_every_hypothesis_about_offices_is_needed() -> None:
    """Each hypothesis is needed."""
    results = examine_hypotheses(NAMES, replication_factor=1, processes=1)
    assert results != []
    assert [r.theorem.name for r in results if not r.as_expected] == []


def test_elections_are_not_vacuous() -> None:
    """Somebody is elected in some case."""
    nobody = prove(OFFICE.function, list(OFFICE.shapes(1)), (), lambda _, r: r[0] is None)
    assert nobody.verdict == "refuted"


@pytest.mark.parametrize("action", ["answer", "die", "return", "controller"])
def test_deletion_is_not_vacuous(action: str) -> None:
    """Each action moves a replica in some case."""
    shapes = [item for item in DELETED.shapes(1) if item["action"].word == action]
    still = prove(DELETED.function, shapes, (DEAD_NOT_DELETING,), lambda _, r: r[0] == r[1])
    assert still.verdict == "refuted"


@pytest.mark.parametrize("word", ["moved", "refused"])
def test_move_is_not_vacuous(word: str) -> None:
    """A replica moves in some case, and is refused in another."""
    never = prove(
        MOVED_42.function,
        list(MOVED_42.shapes(1)),
        (),
        lambda _, r: r[0] == r[1] if word == "moved" else len(r[2]) == 0,
    )
    assert never.verdict == "refuted"


def _elect_in_any_epoch(before: Controllership, broker: int | None, epoch: int) -> Any:
    return Accepted(Controllership(broker, epoch))


@pytest.mark.parametrize("name", ["controller-epoch-is-new", "controller-epoch-only-with-election"])
def test_fault_in_elections_is_caught(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """A rule that lets a controller choose its epoch is refuted."""
    assert isinstance(accept_election(Controllership(None, 1), 1, 2), Accepted)
    monkeypatch.setattr(controllers, "accept_election", _elect_in_any_epoch)
    assert _verdict(name) == "refuted"


def test_fault_in_deletion_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A controller that begins on a dead broker is refuted."""
    monkeypatch.setattr(topics, "find_hindrance", lambda _: None)
    assert _verdict("deletion-keeps-dead-from-deleting") == "refuted"
