"""Transactions of which their sender never hears: lost on their way, or carried out unanswered."""

from collections.abc import Callable
from typing import Any

from kazoo.client import TransactionRequest
from kazoo.exceptions import ConnectionLoss

from reassure_controller.client import Client


class _Lost:
    """A transaction that gets no answer. It is used like a `TransactionRequest`."""

    def __init__(self, client: Client, *, done: bool, on_lost: Callable[[], None]) -> None:
        self._client = client
        self._request = TransactionRequest(client)
        self._done = done
        self._on_lost = on_lost

    def __getattr__(self, name: str) -> Any:
        return getattr(self._request, name)

    def commit_async(self) -> Any:
        """Send the transaction or not, and answer that the connection was lost."""
        if self._done:
            self._request.commit_async().wait()
        self._on_lost()
        lost = self._client.handler.async_result()
        lost.set_exception(ConnectionLoss())
        return lost


def lose_write(
    client: Client, writes: int = 0, *, done: bool, on_lost: Callable[[], None] = lambda: None
) -> None:
    """Leave the client's next transaction but `writes` without an answer, once.

    `done` says whether it is carried out; `on_lost` is called before its sender hears of it.
    """
    left = writes

    def make_transaction() -> TransactionRequest | _Lost:
        nonlocal left
        left -= 1
        if left >= 0:
            return TransactionRequest(client)
        keep_writes(client)
        return _Lost(client, done=done, on_lost=on_lost)

    client.transaction = make_transaction


def keep_writes(client: Client) -> None:
    """Lose no transaction of the client that was not lost yet."""
    client.__dict__.pop("transaction", None)
