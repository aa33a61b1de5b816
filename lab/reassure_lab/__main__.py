"""Controllers and brokers as processes that speak Kafka's wire protocol, and can be measured.

    python -m reassure_lab controller --zookeeper 127.0.0.1:2181/cluster --id 100
    python -m reassure_lab broker --zookeeper 127.0.0.1:2181/cluster --id 1 --data DIRECTORY

A broker keeps its logs in the directory, and serves Kafka's clients. What every role is told, and
how it ends, is as `reassure_controller.daemons` has it.
"""

import argparse
import ctypes
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final

from reassure_controller import daemons
from reassure_controller.client import Client
from reassure_controller.controller import Controller
from reassure_controller.log_lines import Speaker
from reassure_lab.node.cluster_news import WireOrders
from reassure_lab.node.controller_requests import UNDERSTOOD, ControllerRequests
from reassure_lab.node.log_files import add_log_options, log_to_file
from reassure_lab.node.node import BrokerNode
from reassure_lab.node.settings import add_node_options, read_node_settings
from reassure_lab.wire.listener import WireServer

if TYPE_CHECKING:  # only who asks for metrics needs what they are made of
    from prometheus_client.metrics_core import Metric

    from reassure_lab.metrics.endpoint import Measure

ALLOCATOR: Final = {-8: 2, -3: 128 * 1024}
"""What glibc's mallopt is told: M_ARENA_MAX and M_MMAP_THRESHOLD."""


def make_parser(program: str) -> argparse.ArgumentParser:
    """Return what reads the command line."""
    parser, roles = daemons.make_parser(program)
    roles["controller"].add_argument(
        "--depose", action="store_true", help="take the office from a controller of Kafka's own"
    )
    add_node_options(roles["broker"])
    for role in roles.values():
        add_log_options(role)
        role.add_argument(
            "--metrics-port",
            type=int,
            metavar="PORT",
            help="answer Prometheus there, on 127.0.0.1; 0: on one that is free",
        )
    return parser


@contextmanager
def _serve_metrics(
    client: Client, arguments: argparse.Namespace, measure: "Measure"
) -> Iterator[str]:
    """Answer scrapes while entered, where that is asked for; gives what is said of it when ready.

    Raises PortTaken.
    """
    if arguments.metrics_port is None:
        yield ""
        return
    from reassure_lab.metrics.endpoint import make_registry, serve
    from reassure_lab.metrics.measures import measure_zookeeper

    registry = make_registry(measure, partial(measure_zookeeper, client))
    with serve(registry, arguments.metrics_port) as (host, port):
        yield f" metrics {host}:{port}"


def run_controller(
    client: Client, arguments: argparse.Namespace, speaker: Speaker, until: threading.Event
) -> None:
    """Run a controller until the event is set. Raises what `Controller` raises."""
    log_to_file(arguments)
    with (
        closing(WireOrders(arguments.id)) as orders,
        daemons.open_controller(client, arguments, speaker, orders) as controller,
        _listen(controller, client, orders),
        _serve_metrics(client, arguments, partial(_measure, controller)) as where,
    ):
        controller.candidate.deposes = arguments.depose
        daemons.say_ready(f"controller {arguments.id}{where}")
        controller.run_forever(until)


@contextmanager
def _listen(controller: Controller, client: Client, orders: WireOrders) -> Iterator[None]:
    """Answer brokers and clients while entered."""
    requests = ControllerRequests(controller, client)
    with closing(requests), WireServer(requests, apis=UNDERSTOOD) as server:
        requests.address = orders.address = controller.candidate.address = server.address
        yield


def _measure(controller: Controller) -> "Iterator[Metric]":
    from reassure_lab.metrics.measures import measure_controller

    return measure_controller(controller)


def run_broker(
    client: Client, arguments: argparse.Namespace, speaker: Speaker, until: threading.Event
) -> None:
    """Run a broker until the event is set. Raises what `read_node_settings` and `Node` raise."""
    log_to_file(arguments)
    node = BrokerNode(
        client,
        arguments.id,
        read_node_settings(arguments),
        patience_s=daemons.PATIENCE * arguments.session_timeout,
    )
    speaker.find_epoch = lambda: node.controller_epoch
    try:
        with _serve_metrics(client, arguments, node.measure) as where:
            daemons.say_ready(f"broker {arguments.id} {node.address[0]}:{node.address[1]}{where}")
            node.run_forever(until)
    finally:
        node.close()


def return_freed_memory() -> None:
    """Have the allocator give back what is freed, where it is that of glibc.

    As it comes, it keeps an arena for each of many threads, and large buffers in them once one was
    freed: a broker under load grew from 50 to 80 MiB in two minutes, and to 54 with this.
    """
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is not None:
        for option, value in ALLOCATOR.items():
            set_option(option, value)


def main(argv: Sequence[str] | None = None, *, program: str = "python -m reassure_lab") -> int:
    """Run the command line and return the exit code."""
    return_freed_memory()
    roles = {"controller": run_controller, "broker": run_broker}
    return daemons.run_process(make_parser(program), argv, roles)


if __name__ == "__main__":
    sys.exit(main())
