"""Log files of a bounded size."""

import argparse
import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from reassure_lab.node.log_files import add_log_options, log_to_file


@pytest.fixture
def restored() -> Iterator[None]:
    """Put back afterwards what logs, and where standard error goes."""
    root, error = logging.getLogger(), os.dup(2)
    before = root.handlers[:]
    yield
    for handler in set(root.handlers) - set(before):
        handler.close()
    root.handlers[:] = before
    os.dup2(error, 2)
    os.close(error)


@pytest.mark.usefixtures("restored")
def test_process_logs_to_so_many_files_of_so_many_bytes(tmp_path: Path) -> None:
    """Older files are numbered and at last deleted, and standard error stays in the newest."""
    parser, file = argparse.ArgumentParser(), tmp_path / "one.log"
    add_log_options(parser)
    log_to_file(parser.parse_args(["--log-file", str(file), "--log-bytes", "1000",
                                   "--log-files", "2"]))  # fmt: skip
    for number in range(200):
        logging.getLogger("some").warning("line %d", number)
    os.write(2, b"crashed\n")
    found = sorted(path.name for path in tmp_path.iterdir())
    assert found == ["one.log", "one.log.1", "one.log.2"]
    assert all(path.stat().st_size <= 1010 for path in tmp_path.iterdir())
    text = file.read_text("utf-8")
    assert "line 199" in text
    assert "crashed" in text
