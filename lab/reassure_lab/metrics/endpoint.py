"""Answers scrapes over HTTP, on 127.0.0.1 alone."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from reassure_lab.wire.errors import PortTaken

HOST: Final = "127.0.0.1"

Measure = Callable[[], Iterator[Metric]]


class _Measures(Collector):
    def __init__(self, measures: tuple[Measure, ...]) -> None:
        self._measures = measures

    def collect(self) -> Iterator[Metric]:
        for measure in self._measures:
            yield from measure()


def make_registry(*measures: Measure) -> CollectorRegistry:
    """Return a registry of one process object: what it measures whenever it is asked."""
    registry = CollectorRegistry()
    registry.register(_Measures(measures))
    return registry


@contextmanager
def serve(registry: CollectorRegistry, port: int) -> Iterator[tuple[str, int]]:
    """Answer scrapes while entered; gives where. Port 0 is one that is free. Raises PortTaken."""
    try:
        server, thread = start_http_server(port, HOST, registry)
    except OSError as problem:
        raise PortTaken(HOST, port, problem) from None
    try:
        yield HOST, int(server.server_port)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
