"""The verb `cluster`: ZooKeeper, brokers and controllers as processes of this machine."""

import os
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from reassure_conformance.cli.options import emit, format_option
from reassure_conformance.report.document import HOLDS, Document
from reassure_spec.profiles import DEFAULT_PROFILE, PROTOCOLS

if TYPE_CHECKING:
    from kazoo.client import KazooClient

    from reassure_lab.cluster.overview import Overview
    from reassure_lab.cluster.supervisor import ProcessCluster

LOOK_S: Final = 1.0
"""How long it is rested between two looks at a cluster."""
CONNECT_S: Final = 10.0


def _get_directory() -> Path:
    """Return where a cluster is that nobody says where it is: one for each user."""
    return Path(tempfile.gettempdir()) / f"reassure-cluster-{os.getuid()}"


_directory_option = click.option(
    "-d",
    "--directory",
    type=click.Path(path_type=Path),
    default=_get_directory,
    show_default="a temporary directory of the user",
    help="Directory of the cluster.",
)


@click.group()
def cluster() -> None:
    """Start a cluster of processes on this machine, watch it, and disturb it."""


def _count_option(what: str, usual: int) -> Callable[[Any], Any]:
    return click.option(
        f"--{what}", type=click.IntRange(min=1), default=usual, show_default=True, help="How many."
    )


@cluster.command()
@_count_option("brokers", 3)
@_count_option("controllers", 2)
@_count_option("zookeepers", 1)
@click.option(
    "--profile",
    default=DEFAULT_PROFILE,
    show_default=True,
    metavar="NAME",
    help=f"Rules of the controllers: {', '.join(PROTOCOLS)}.",
)
@click.option("--detach", is_flag=True, help="Return when all are ready, and leave them running.")
@click.option("--keep", is_flag=True, help="Keep data and logs when the cluster stops.")
@_directory_option
def up(
    brokers: int,
    controllers: int,
    zookeepers: int,
    profile: str,
    detach: bool,
    keep: bool,
    directory: Path,
) -> int:
    """Start a cluster, and report changes until it is interrupted."""
    import reassure_lab.cluster.overview  # noqa: F401 (so that what it lacks is missed at once)
    from reassure_lab.cluster.supervisor import ProcessCluster
    from reassure_zookeeper.jars import server_jars

    if profile not in PROTOCOLS:
        raise click.UsageError(f"no profile {profile!r}; choose one of: {', '.join(PROTOCOLS)}")
    server_jars()  # a cluster that cannot come up is not begun
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    click.echo(f"starting a cluster in {directory}", err=True)
    started = ProcessCluster.start(directory, brokers, controllers, zookeepers, profile=profile)
    stays = False
    try:
        _say_where(started)
        if not detach:
            _watch(started)
        stays = detach
    finally:  # whatever ends the watch
        if stays:
            started.leave()
            click.echo("the cluster is running; `reassure lab cluster down` stops it", err=True)
        else:
            click.echo("stopping the cluster", err=True)
            started.stop(keep=keep)
    return 0


@cluster.command()
@_directory_option
def watch(directory: Path) -> int:
    """Report changes of a running cluster, and leave it running."""
    _watch(_open(directory))
    return 0


@cluster.command()
@_directory_option
@format_option
def status(directory: Path, form: str) -> int:
    """Show the state of a cluster."""
    from reassure_lab.cluster.overview import Watcher

    with Watcher(_open(directory)) as watcher:
        overview = watcher.look()
    document = Document(
        "cluster status",
        HOLDS,
        0.0,
        {
            "members": len(overview.members),
            "alive": sum(one.status == "alive" for one in overview.members),
            "partitions": len(overview.partitions),
            "under_replicated": overview.under_replicated,
            "moving": overview.moving,
            "requests": overview.requests,
        },
        body=_tell(overview, watcher.cluster),
    )
    return emit(document, form, lambda: _render(overview, watcher.cluster, form))


@cluster.command()
@click.option("--keep", is_flag=True, help="Stop members in order, and keep data and logs.")
@_directory_option
def down(directory: Path, keep: bool) -> int:
    """Stop every member of a cluster, and remove its files."""
    _open(directory).stop(keep=keep)
    return 0


@cluster.group()
def topic() -> None:
    """Create topics in a cluster, and delete them."""


@topic.command("create")
@click.argument("name")
@_count_option("partitions", 1)
@_count_option("replication-factor", 1)
@click.option(
    "--assignment",
    metavar="LISTS",
    help="The replicas of each partition, such as 1:2,2:3, instead of counts.",
)
@click.option("--config", multiple=True, metavar="NAME=VALUE", help="A setting; may be repeated.")
@_directory_option
def create(
    name: str,
    partitions: int,
    replication_factor: int,
    assignment: str | None,
    config: tuple[str, ...],
    directory: Path,
) -> int:
    """Create a topic, and print where its replicas are."""
    from reassure_lab.node.topics import create_topic

    settings = dict(one.partition("=")[::2] for one in config)
    with _connect(directory) as client:
        made = create_topic(
            client,
            name,
            assigned=None if assignment is None else _parse_assignment(assignment),
            partitions=partitions,
            factor=replication_factor,
            config=settings,
        )
    for number, replicas in made.items():
        click.echo(f"{name}-{number} {','.join(map(str, replicas))}")
    return 0


@topic.command("delete")
@click.argument("name")
@_directory_option
def delete(name: str, directory: Path) -> int:
    """Ask for a topic to be deleted."""
    from reassure_lab.node.topics import delete_topic

    with _connect(directory) as client:
        delete_topic(client, name)
    return 0


def _parse_assignment(text: str) -> dict[int, tuple[int, ...]]:
    """Return the replicas of each partition, as Kafka's --replica-assignment has them."""
    try:
        lists = [tuple(map(int, one.split(":"))) for one in text.split(",")]
    except ValueError as error:
        raise click.UsageError(f"--assignment {text}: expected lists such as 1:2,2:3") from error
    return dict(enumerate(lists))


@contextmanager
def _connect(directory: Path) -> "Iterator[KazooClient]":
    """Give a client of a cluster's ZooKeeper. Raises Unsettled where it does not answer."""
    from reassure_controller.session import Indefinite, stop
    from reassure_lab.admin.errors import Unsettled
    from reassure_lab.admin.survey import open_cluster

    client = open_cluster(_open(directory).zookeeper, CONNECT_S)
    try:
        yield client
    except Indefinite as indefinite:
        raise Unsettled(
            f"ZooKeeper does not answer ({indefinite}); look with status"
        ) from indefinite
    finally:
        stop(client)


def _add_action(name: str, what: str) -> None:
    @cluster.command(name, help=what)
    @click.argument("members", nargs=-1, required=True, metavar="MEMBER...")
    @_directory_option
    def act(members: tuple[str, ...], directory: Path) -> int:
        opened = _open(directory)
        for member in members:
            getattr(opened, name)(member)
        opened.leave()
        return 0


_add_action("kill", "Kill members (SIGKILL).")
_add_action("pause", "Pause members (SIGSTOP).")
_add_action("resume", "Resume paused members (SIGCONT).")
_add_action("restart", "Start members again.")


def _open(directory: Path) -> "ProcessCluster":
    from reassure_lab.cluster.supervisor import ProcessCluster

    return ProcessCluster.open(directory)


def _say_where(started: "ProcessCluster") -> None:
    click.echo(f"zookeeper {started.zookeeper}")
    click.echo(f"bootstrap {','.join(started.bootstrap)}")
    for member in started.members():
        if member.metrics is not None:
            host, port = member.metrics
            click.echo(f"metrics {member.name} http://{host}:{port}/metrics")


def _watch(watched: "ProcessCluster") -> None:
    """Tell what changes of a cluster until the process is interrupted."""
    from reassure_lab.cluster.overview import Watcher

    with Watcher(watched) as watcher:
        _tell_changes(watcher.look)


def _tell_changes(look: "Callable[[], Overview]") -> None:
    """Print what has changed, line by line, until the process is interrupted."""
    from reassure_lab.cluster.lines import list_lines
    from reassure_lab.cluster.state_file import NoCluster

    ended = threading.Event()
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, lambda *_: ended.set()) for number in numbers]
    told: list[str] = []
    try:
        while not ended.is_set():
            lines = list(list_lines(look()))
            for line in lines:
                if line not in told:
                    click.echo(line)
            told = lines
            ended.wait(LOOK_S)
    except NoCluster:
        click.echo("the cluster is down", err=True)
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def _tell(overview: "Overview", told: "ProcessCluster") -> dict[str, Any]:
    from dataclasses import asdict

    return {
        "directory": str(told.directory),
        "zookeeper": told.zookeeper,
        "bootstrap": told.bootstrap,
        "trouble": overview.trouble,
        "members": [
            {**asdict(one.member), "status": one.status, "epoch": one.epoch}
            for one in overview.members
        ],
        "partitions": [
            {**asdict(one), "arrived": one.arrived, "leaving": one.leaving}
            for one in overview.partitions
        ],
    }


def _render(overview: "Overview", told: "ProcessCluster", form: str) -> str:
    from reassure_conformance.report.display import render_table
    from reassure_lab.cluster import lines

    tables = [
        ("members", lines.MEMBER_COLUMNS, [lines.tell_member(x) for x in overview.members]),
        (
            "partitions",
            lines.PARTITION_COLUMNS,
            [lines.tell_partition(x) for x in overview.partitions],
        ),
    ]
    where = [
        f"directory {told.directory}",
        f"zookeeper {told.zookeeper}",
        f"bootstrap {','.join(told.bootstrap)}",
        lines.tell_summary(overview),
    ]
    parts = [render_table(title, columns, rows, form) for title, columns, rows in tables if rows]
    return "\n".join((*where, "", *parts))
