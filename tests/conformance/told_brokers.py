"""Tales that are told to the bundled brokers, and nothing besides."""

from collections.abc import Iterable
from itertools import count
from pathlib import Path
from typing import Any

from reassure_conformance.gate.replication.brokers import BrokersRunner
from reassure_conformance.gate.replication.brokers_outcome import BrokersResult
from reassure_conformance.gate.run_settings import REPLICATION, Settings
from reassure_zookeeper.server import Server

SEEDS = count(1)
"""Nothing is drawn; runs that share a server differ in their seeds."""


def tell(tmp_path: Path, server: Server, tales: Iterable[str], **more: Any) -> BrokersResult:
    """Tell tales, given by their texts; return what the run came to."""
    saved = tmp_path / "saved"
    saved.mkdir()
    for number, text in enumerate(tales):
        (saved / f"{number}.txt").write_text(text, encoding="utf-8")
    settings = Settings(
        seed=next(SEEDS),
        profile=REPLICATION,
        examples=0,
        with_stories=False,
        failures=str(saved),
        **more,
    )
    runner = BrokersRunner(settings, tmp_path, server=server)
    runner.run()
    return runner.result
