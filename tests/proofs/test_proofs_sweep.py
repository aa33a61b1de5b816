"""The sweep: theorems under other readings."""

import pytest

from reassure_proofs.engine import sweep as module
from reassure_proofs.engine.register import get_theorems
from reassure_proofs.engine.sweep import SweepResult, other_values, render, sweep, to_json
from reassure_proofs.engine.tasks import ProofTask, make_function, run_task
from reassure_spec.readings import UnknownReading, get_profile


def by_change(results: list[SweepResult], name: str) -> dict[str, str]:
    """Return the verdicts of one theorem by change."""
    return {each.change: each.verdict for each in results if each.name == name}


def test_other_readings_break_what_they_are_known_to_break() -> None:
    """The exclusive slice breaks the drop rule's promises, and no other reading does."""
    results = sweep(["drop-leader-kept", "drop-amended-target-kept"], 2, processes=1)
    assert by_change(results, "drop-leader-kept") == {
        "drop.slice=exclusive": "refuted",
        "offline.drop=as-written": "holds",
        "offline.drop=skip": "holds",
    }
    assert by_change(results, "drop-amended-target-kept") == {
        "drop.protects=nothing": "refuted",
        "drop.slice=exclusive": "holds",
        "offline.drop=as-written": "holds",
        "offline.drop=wait": "holds",
    }
    assert not any(each.is_news for each in results)
    assert all("drop-1" in e.findings for e in results if e.change == "drop.slice=exclusive")


def test_reading_that_code_does_not_look_at_is_not_asked() -> None:
    """The records of a task name the readings that the code looked at, and no others."""
    (record,) = run_task(ProofTask(("lag-note-stays-sound",), (0,), 1, 30.0))
    assert record["read"] == ["lag.credit"]
    (record,) = run_task(ProofTask(("isr-members-reach-hw",), (0,), 1, 30.0))
    assert record["read"] == []


def test_values_that_are_not_chosen_are_all_of_them() -> None:
    """A reading of three values has two others; what there is not is refused."""
    assert other_values("follower.truncation", get_profile("kip-236-amended")) == (
        "follower.truncation=own-high-watermark",
        "follower.truncation=leader-end",
    )
    (theorem,) = get_theorems(["drop-leader-kept"])
    with pytest.raises(UnknownReading):
        make_function(theorem, ["drop.slice=crooked"])
    (theorem,) = get_theorems(["isr-members-reach-hw"])
    with pytest.raises(ValueError, match="takes no readings"):
        make_function(theorem, ["drop.slice=exclusive"])


def test_forgotten_finding_is_news(monkeypatch: pytest.MonkeyPatch) -> None:
    """A refutation that no finding of the register speaks of is told first, as news."""
    monkeypatch.setattr(module, "findings_of_reading", lambda _: ())
    results = sweep(["drop-leader-kept"], 1, processes=1)
    assert [each.change for each in results if each.is_news] == ["drop.slice=exclusive"]
    assert to_json(results)["counts"]["news"] == 1
    assert render(results).startswith("drop-leader-kept under kip-236, drop.slice=exclusive")
    assert "NEWS" in render(results)
