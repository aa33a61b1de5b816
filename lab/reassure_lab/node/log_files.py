"""Where a process logs that runs for long: files of a bounded size, the older ones numbered."""

import argparse
import logging
import os
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Final

LOG_BYTES: Final = 16 * 2**20
LOG_FILES: Final = 4


class _ErrorFile(RotatingFileHandler):
    """Has standard error go to the newest file as well: tracebacks of the interpreter."""

    def doRollover(self) -> None:  # noqa: N802 (the name is the library's)
        """Begin another file."""
        super().doRollover()
        if self.stream is not None:
            os.dup2(self.stream.fileno(), 2)


def add_log_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that `log_to_file` goes by."""
    add = parser.add_argument
    add("--log-file", type=Path, metavar="FILE", help="log there (default: to standard error)")
    add("--log-bytes", type=int, default=LOG_BYTES, metavar="N", help="begin another file then")
    add("--log-files", type=int, default=LOG_FILES, metavar="N", help="how many older ones stay")


def log_to_file(arguments: argparse.Namespace) -> None:
    """Send what goes to standard error to the file that is asked for, from now on."""
    if arguments.log_file is None:
        return
    size, count = arguments.log_bytes, arguments.log_files
    file = _ErrorFile(arguments.log_file, maxBytes=size, backupCount=count, encoding="utf-8")
    root = logging.getLogger()
    for handler in tuple(root.handlers):
        file.setFormatter(handler.formatter)
        root.removeHandler(handler)
    root.addHandler(file)
