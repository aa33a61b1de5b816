"""A server as a process of its own: writes its configuration, then becomes Java.

    python -m reassure_zookeeper --data DIRECTORY --port 2181
    python -m reassure_zookeeper --data DIRECTORY --port 2181 --own 1 --server 1:2888:3888 ...

The process id stays the same, so whoever started it can signal the server itself. Exit codes where
it does not come to that: 64 usage, 69 no Java or no jars, 78 a directory that cannot be written to.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from reassure_zookeeper.errors import JarsError, JavaError
from reassure_zookeeper.launch import Ensemble, ServerSettings, mend_epoch, prepare


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m reassure_zookeeper", description="Run a ZooKeeper server on 127.0.0.1."
    )
    parser.add_argument("--data", type=Path, required=True, metavar="DIRECTORY")
    parser.add_argument("--port", type=int, required=True, help="for clients")
    parser.add_argument("--own", type=int, metavar="N", help="which of the ensemble this is")
    parser.add_argument(
        "--server",
        action="append",
        default=[],
        metavar="N:FOLLOW:ELECT",
        help="a server of the ensemble and its two ports; this one is among them",
    )
    parser.add_argument("--tick-ms", type=int, default=ServerSettings().tick_time_ms, metavar="MS")
    arguments = parser.parse_args(argv)
    servers = [tuple(map(int, text.split(":"))) for text in arguments.server]
    arguments.ports = {number: (follow, elect) for number, follow, elect in servers}
    if arguments.ports and arguments.own not in arguments.ports:
        parser.error("--own has to name one of the servers")
    return arguments


def main(argv: Sequence[str] | None = None) -> int:
    """Become a server; return an exit code where that is not possible."""
    try:
        given = _parse(argv)
    except SystemExit as ended:
        return 0 if ended.code in (0, None) else os.EX_USAGE
    ensemble = Ensemble(given.own, given.ports) if given.ports else None
    try:
        given.data.mkdir(parents=True, exist_ok=True)
        settings = ServerSettings(tick_time_ms=given.tick_ms)
        command = prepare(given.data.absolute(), given.port, settings, ensemble)
        if ensemble and (mended := mend_epoch(given.data.absolute())):
            sys.stderr.write(f"{mended}\n")
            sys.stderr.flush()
        os.execv(command[0], command)
    except (JavaError, JarsError) as absent:
        sys.stderr.write(f"{absent}\n")
        return absent.exit_code
    except OSError as problem:
        sys.stderr.write(
            f"{problem.filename}: {problem.strerror}; name a directory that can be written to\n"
        )
        return os.EX_CONFIG


if __name__ == "__main__":
    sys.exit(main())
