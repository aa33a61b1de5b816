"""The verb `reassign`: moves replicas of a running cluster, with the options of Kafka's tool."""

from collections.abc import Callable, Mapping
from math import inf
from pathlib import Path
from typing import Any, Final

import click

from reassure_conformance.cli.options import (
    ProgressLine,
    choose_seed,
    emit,
    format_option,
    is_given,
)
from reassure_lab.admin import PLACES, REQUESTS

ACTIONS: Final[Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "generate": (
        ("topics_to_move_json_file", "broker_list"),
        ("disable_rack_aware", "seed"),
    ),
    "execute": (("reassignment_json_file",), ("throttle", "additional", "wait", "timeout")),
    "verify": (("reassignment_json_file",), ("preserve_throttles", "wait", "timeout")),
    "cancel": (("reassignment_json_file",), ("preserve_throttles",)),
    "list": ((), ()),
}
"""By action: the options that it needs, and those that it may have besides."""


def _file_option(name: str, text: str) -> Callable[..., Any]:
    kind = click.Path(exists=True, dir_okay=False, path_type=Path)
    return click.option(name, type=kind, metavar="FILE", help=text)


@click.command()
@click.option("--generate", is_flag=True, help="Propose an assignment; nothing is started.")
@click.option("--execute", is_flag=True, help="Start a reassignment.")
@click.option("--verify", is_flag=True, help="Show the progress; when complete, remove throttles.")
@click.option("--cancel", is_flag=True, help="Cancel it, and go back to the former replicas.")
@click.option("--list", is_flag=True, help="List reassignments in progress.")
@click.option("--zookeeper", required=True, metavar="HOST:PORT/CHROOT", help="The cluster.")
@click.option(
    "--protocol",
    type=click.Choice(list(PLACES)),
    default=REQUESTS,
    show_default=True,
    help="How to request it: by request znodes, or by Kafka's /admin/reassign_partitions.",
)
@_file_option("--topics-to-move-json-file", "The topics to propose an assignment for.")
@_file_option("--reassignment-json-file", "The replicas of each partition.")
@click.option("--broker-list", metavar="ID,ID,...", help="Brokers to propose an assignment to.")
@click.option("--disable-rack-aware", is_flag=True, help="Ignore racks in the proposal.")
@click.option("--seed", type=click.IntRange(min=0), help="Repeat a proposal with this seed.")
@click.option(
    "--throttle",
    type=click.IntRange(min=1),
    metavar="BYTES",
    help="Limit each broker to this many bytes a second for reassignments.",
)
@click.option("--additional", is_flag=True, help="Add to, or change, reassignments in progress.")
@click.option("--preserve-throttles", is_flag=True, help="Do not change throttles.")
@click.option(
    "--wait", "--watch", is_flag=True, help="Wait until every partition of the file is done."
)
@click.option(
    "--timeout", type=click.FloatRange(min=0), metavar="SECONDS", help="Wait no longer than this."
)
@format_option
def reassign(zookeeper: str, protocol: Any, form: str, **options: Any) -> int:
    """Reassign partitions of a running cluster, through ZooKeeper alone.

    Files and answers are those of kafka-reassign-partitions. With --protocol legacy it works on
    Kafka itself, in ZooKeeper mode.

    --verify, and --execute with --wait, exit with 0 if all partitions are done, 1 if one has other
    replicas than requested, and 2 if one is in progress.
    """
    from reassure_lab.answers.reassigning import ToolCall, Waiting

    action = _choose_action(options)
    brokers = _parse_brokers(options["broker_list"] or "") if action == "generate" else ()
    call, file = ToolCall(zookeeper, protocol), options["reassignment_json_file"]
    clear = not options["preserve_throttles"]
    longest = inf if options["timeout"] is None else options["timeout"]
    seconds = longest if options["wait"] else 0.0
    match action:
        case "generate":
            answer = call.generate(
                options["topics_to_move_json_file"],
                brokers,
                choose_seed(options["seed"]),
                with_racks=not options["disable_rack_aware"],
            )
        case "execute":
            with ProgressLine() as progress:
                answer = call.execute(
                    file,
                    options["throttle"],
                    additional=options["additional"],
                    waiting=Waiting(progress, seconds, clear) if options["wait"] else None,
                )
        case "verify":
            with ProgressLine() as progress:
                answer = call.verify(file, Waiting(progress, seconds, clear))
        case "cancel":
            answer = call.cancel(file, clear=clear)
        case _:
            answer = call.list_active()
    return emit(answer.document, form, lambda: answer.render(form))


def _choose_action(options: Mapping[str, Any]) -> str:
    """Return the one action that is asked for, with the options that it needs and no others."""
    chosen = [action for action in ACTIONS if options[action]]
    if len(chosen) != 1:
        names = ", ".join(f"--{action}" for action in ACTIONS)
        raise click.UsageError(f"Command must include exactly one action: {names}")
    action = chosen[0]
    needed, allowed = ACTIONS[action]
    for option in options:
        if option in needed and options[option] is None:
            raise click.UsageError(f"--{action} needs {_spell(option)}")
        if option not in (action, *needed, *allowed) and is_given(option):
            raise click.UsageError(f'Option "{_spell(option)}" can\'t be used with --{action}')
    if options["timeout"] is not None and not options["wait"]:
        raise click.UsageError("--timeout is for --wait: give it as well")
    return action


def _spell(option: str) -> str:
    return "--" + option.replace("_", "-")


def _parse_brokers(text: str) -> tuple[int, ...]:
    ids = [part.strip() for part in text.split(",")]
    for part in ids:
        if not (part.isascii() and part.isdigit()):
            raise click.UsageError(f"--broker-list: expected ids as 1,2,3, found {part!r}")
    twice = dict.fromkeys(part for part in ids if ids.count(part) > 1)
    if twice:
        raise click.UsageError(f"Broker list contains duplicate entries: {','.join(twice)}")
    return tuple(map(int, ids))
