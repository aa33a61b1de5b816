"""Ports of 127.0.0.1 that are free, and stay so until whoever is to have them listens.

They are taken from below those that the system gives to clients, so that nobody is given the port
of a member that is away. Until it is closed, a bound socket that never listens keeps others off:
with address reuse the member may listen on the port, and a second owner cannot bind it.
"""

import contextlib
import random
import socket
from pathlib import Path
from typing import Final

HOST: Final = "127.0.0.1"
LOWEST: Final = 10_000
_TRIES: Final = 1000


def find_highest() -> int:
    """Return the port below which the system gives none to clients."""
    return int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text("ascii").split()[0])


def hold_port() -> socket.socket:
    """Return a socket that holds a free port. Raises OSError where there is none."""
    choose = random.SystemRandom()
    for _ in range(_TRIES):
        holder = socket.socket()
        with contextlib.suppress(OSError):
            holder.bind((HOST, choose.randrange(LOWEST, find_highest())))
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            return holder
        holder.close()
    raise OSError(f"no port of {HOST} from {LOWEST} to {find_highest()} is free: end what has them")
