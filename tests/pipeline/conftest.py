"""Fixtures of the pipeline's tests."""

from collections.abc import Callable
from pathlib import Path

import pytest

from reassure_pipeline.audit import audit_local
from reassure_pipeline.report import AuditReport
from reassure_spec.readings import get_profile
from reassure_zookeeper.transactions import Transaction
from reassure_zookeeper.txnlog_writer import write_log

PROFILE = "kip-236"


@pytest.fixture
def server(tmp_path: Path) -> Callable[..., Path]:
    """Make data directories: `server(name, first file's transactions, second file's, ...)`."""

    def make(name: str, *files: list[Transaction]) -> Path:
        folder = tmp_path / name / "version-2"
        folder.mkdir(parents=True)
        for transactions in files:
            write_log(folder, transactions)
        return folder.parent

    return make


@pytest.fixture
def audit() -> Callable[..., AuditReport]:
    """Audit paths with the local engine and the default profile."""

    def run(*paths: Path, at_rest: bool = False) -> AuditReport:
        return audit_local(paths, PROFILE, get_profile(PROFILE), at_rest=at_rest)

    return run
