"""Controllers and brokers as processes, as far as they are alike whatever carries their messages.

`make_parser` reads what every one is told, `run_process` runs the roles that it is given. A process
logs to stderr, prints one line (`ready …`) when it has started, and ends on SIGTERM or SIGINT by
closing its session. Exit codes: 0 ended as asked, 64 usage, 69 ZooKeeper unavailable, 78 a reading
that it does not carry out, or a ZooKeeper that is too old.
"""

import argparse
import logging
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Final, get_args

from kazoo.handlers.threading import KazooTimeoutError

from reassure_controller.client import Client
from reassure_controller.controller import Controller
from reassure_controller.crashing import crash_at
from reassure_controller.log_lines import Form, Speaker, set_up
from reassure_controller.rules import list_settable
from reassure_controller.session import (
    Indefinite,
    OldZooKeeper,
    connect,
    fetch,
    find_versions,
    stop,
)
from reassure_controller.transport import Transport
from reassure_spec.errors import BadData, BadUsage, ReassureError, Unavailable
from reassure_spec.profiles import DEFAULT_PROFILE
from reassure_spec.rooms import choose_readings, controller_of
from reassure_spec.znodes import CONTROLLER_EPOCH, BadZnode

log = logging.getLogger("reassure_controller")

AT_ONCE: Final = 20
"""With how many partitions a controller carries on before it looks at what has happened."""
PATIENCE: Final = 3
"""For how many session timeouts a process waits for ZooKeeper when it starts, and a broker until a
former life of its own is forgotten."""

Run = Callable[[Client, argparse.Namespace, Speaker, threading.Event], None]
"""What a role does on a session until the event is set."""


def make_parser(
    program: str,
) -> tuple[argparse.ArgumentParser, Mapping[str, argparse.ArgumentParser]]:
    """Return what reads the command line, and in it what reads the options of each role."""
    parser = argparse.ArgumentParser(prog=program, description="Run a controller or a broker.")
    roles = parser.add_subparsers(dest="role", required=True)
    controller = roles.add_parser("controller", help="stand for election and reassign")
    broker = roles.add_parser("broker", help="register and obey")
    _add_controller_options(controller)
    for role in (controller, broker):
        _add_process_options(role)
    return parser, {"controller": controller, "broker": broker}


def _add_controller_options(controller: argparse.ArgumentParser) -> None:
    controller.add_argument(
        "--profile", default=DEFAULT_PROFILE, help=f"the rules (default: {DEFAULT_PROFILE})"
    )
    controller.add_argument(
        "--reading",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="settle one disputed point differently; may be repeated",
    )
    for module in list_settable():
        module.add_options(controller)
    controller.add_argument(
        "--crash-at",
        metavar="POINT:N",
        help="end as if killed before the effect at this point for the n-th time",
    )


def _add_process_options(role: argparse.ArgumentParser) -> None:
    role.add_argument("--zookeeper", required=True, metavar="HOSTS/CHROOT")
    role.add_argument("--id", required=True, type=int, help="broker id")
    role.add_argument("--session-timeout", type=float, default=6.0, metavar="SECONDS")
    role.add_argument(
        "--log-format",
        default="text",
        choices=get_args(Form),
        help="lines for people, or one JSON object each (default: text)",
    )
    role.add_argument("--log-level", default="INFO", choices=("DEBUG", "INFO", "WARNING"))


def say_ready(what: str) -> None:
    """Say on standard output that the process has started."""
    sys.stdout.write(f"ready {what}\n")
    sys.stdout.flush()


@contextmanager
def open_controller(
    client: Client, arguments: argparse.Namespace, speaker: Speaker, transport: Transport
) -> Iterator[Controller]:
    """Give the controller that is asked for, and end it at the end. Raises what it raises."""
    changes = dict(pair.split("=", 1) if "=" in pair else (pair, "") for pair in arguments.reading)
    readings = choose_readings(controller_of(arguments.profile), arguments.profile, changes)
    controller = Controller(
        client,
        arguments.id,
        transport,
        readings,
        profile=arguments.profile,
        settings=tuple(module.read_options(arguments) for module in list_settable()),
        on_point=crash_at(arguments.crash_at) if arguments.crash_at else lambda _: None,
        at_once=AT_ONCE,
    )
    speaker.find_epoch = lambda: controller.epoch
    try:
        yield controller
    finally:
        controller.kill()


def run_process(
    parser: argparse.ArgumentParser, argv: Sequence[str] | None, roles: Mapping[str, Run]
) -> int:
    """Run the role that a command line names, and return the exit code."""
    try:
        arguments = parser.parse_args(argv)
    except SystemExit as ended:
        return 0 if ended.code in (0, None) else BadUsage.exit_code
    speaker = Speaker(arguments.role, arguments.id)
    set_up(arguments.log_format, arguments.log_level, speaker)
    until = threading.Event()
    numbers = (signal.SIGTERM, signal.SIGINT)
    before = [signal.signal(number, lambda *_: until.set()) for number in numbers]
    try:
        return _run(arguments, roles[arguments.role], speaker, until)
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def _run(arguments: argparse.Namespace, run: Run, speaker: Speaker, until: threading.Event) -> int:
    try:
        session_s = arguments.session_timeout
        client = connect(arguments.zookeeper, timeout_s=session_s, wait_s=PATIENCE * session_s)
    except KazooTimeoutError:
        log.critical("no ZooKeeper at %s; start one or correct --zookeeper", arguments.zookeeper)
        return Unavailable.exit_code
    try:
        with suppress(Indefinite):  # who asks next finds out what kind of server it is
            fetch(client, [CONTROLLER_EPOCH])
        run(client, arguments, speaker, until)
    except OldZooKeeper as old:
        found = find_versions(arguments.zookeeper)
        log.critical("found ZooKeeper %s; %s: upgrade it, or correct --zookeeper", found, old)
        stop(client)
        return old.exit_code
    except ReassureError as error:
        ours = error.exit_code == ReassureError.exit_code
        log.critical("%s", error, exc_info=ours)
        stop(client)
        return error.exit_code
    except Indefinite as indefinite:
        said = "no ZooKeeper at %s answered in time: %s; see whether it has a majority"
        log.critical(said, arguments.zookeeper, indefinite)
        stop(client)
        return Unavailable.exit_code
    except BadZnode as bad:
        log.critical("%s; nothing can be done without it: mend the znode, then start again", bad)
        stop(client)
        return BadData.exit_code
    except Exception:
        log.critical("a mistake of ours", exc_info=True)
        stop(client)
        return ReassureError.exit_code
    return 0
