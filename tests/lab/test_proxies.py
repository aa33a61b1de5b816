"""The proxies between members, alone."""

import gc
import socket

import pytest

from reassure_lab.soak.proxies import ProxyNetwork


@pytest.mark.filterwarnings("error")
def test_end_closes_connections_that_just_came() -> None:
    """A connection that is being accepted when the network ends is closed too."""
    for _ in range(20):
        with (
            socket.create_server(("127.0.0.1", 0)) as member,
            ProxyNetwork() as network,
        ):
            address = network.open("broker-1", member.getsockname())
            came = [socket.create_connection(address) for _ in range(3)]
        for connection in came:
            connection.close()
    gc.collect()
