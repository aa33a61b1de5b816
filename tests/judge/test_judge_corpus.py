"""The measure of how often an audit is wrong counts what it says it does."""

import importlib
from pathlib import Path
from types import ModuleType

import pytest

from reassure_judge.protocols.kafka_zk.router import KafkaRouter

ROOT = Path(__file__).parents[2]


@pytest.fixture
def corpus(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Return the script."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module("corpus")


def test_planted_writes_are_named_and_a_blind_judge_shows(
    corpus: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that is planted in one log is named; with a rule taken out, less is."""
    log = corpus.LOGS / "papa.log.gz"
    found, history = corpus.recognise(log, tmp_path), corpus.read(log, tmp_path)
    assert not corpus.judge(found, history).violations
    planted = list(corpus.plant(history, 8))
    assert len(planted) > 20

    def count_named() -> int:
        return sum(
            any(v.zxid == zxid for v in corpus.judge(found, wrong).violations)
            for _, wrong, zxid in planted
        )

    assert count_named() == len(planted)
    monkeypatch.setattr(KafkaRouter, "_on_state", lambda *_: None)
    assert count_named() < len(planted)
