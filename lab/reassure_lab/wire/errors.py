"""What can be wrong with a connection, or with the bytes on it."""

import os

from reassure_spec.errors import BadConfiguration, BadData, Unavailable


class BadFrame(BadData):
    """Bytes that are not a request or response that is understood here."""


class NoAnswer(Unavailable):
    """A broker cannot be reached, or ended the connection instead of answering."""


class PortTaken(BadConfiguration):
    """Another program listens on a port."""

    def __init__(self, host: str, port: int, problem: OSError) -> None:
        what = os.strerror(problem.errno or 0)
        super().__init__(
            f"{host}:{port}: {what}; end the program that listens there, or name another port"
        )
