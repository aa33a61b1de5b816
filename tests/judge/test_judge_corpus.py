"""The measure of how often an audit is wrong counts what it says it does."""

import importlib
from pathlib import Path
from types import ModuleType

import pytest

from reassure_judge.protocols.kafka_zk.router import KafkaRouter

ROOT = Path(__file__).parents[2]
MADE = Path(__file__).parent / "kafka_corpus"


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

    def try_all() -> list[bool]:
        return [hit for _, hit in corpus.try_planted(found, history, 8)]

    assert len(try_all()) > 20
    assert all(try_all())

    def _on_state(*_: object) -> None:  # a judge that is put aside knows it by this name
        return

    monkeypatch.setattr(KafkaRouter, "_on_state", _on_state)
    assert not all(try_all())


@pytest.mark.parametrize("name", [each.name for each in sorted(MADE.glob("*"))])
def test_logs_that_were_made_hold_or_show_a_published_bug(
    corpus: ModuleType, tmp_path: Path, name: str
) -> None:
    """No log of a stock Kafka has an incident that no bug explains."""
    log = MADE / name
    verdict, alarm = corpus.sum_up(corpus.recognise(log, tmp_path), corpus.read(log, tmp_path))
    assert not alarm, verdict
