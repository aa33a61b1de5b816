"""kazoo's results and handler for a client without threads: who waits for an answer reads it.

Callbacks run where something is read.
"""

from typing import Any, ClassVar

from kazoo.handlers.threading import KazooTimeoutError, SequentialThreadingHandler
from kazoo.handlers.utils import AsyncResult


class ReadResult(AsyncResult):  # type: ignore[misc]
    """A result that is read by whoever waits for it."""

    def __init__(self, handler: "ReadingHandler") -> None:
        super().__init__(handler, handler.make_condition, KazooTimeoutError)

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        """Return the value, read if it is not there; raise what the answer says."""
        if block:
            self.wait(timeout)
        return super().get(block=False)

    def wait(self, timeout: float | None = None) -> bool:
        """Read until the value is there, or the time is up; return whether it is there."""
        self._handler.connection.read_until(self, timeout)
        return bool(self.ready())

    def _do_callbacks(self) -> None:
        for callback in self._callbacks:
            callback(self)


class ReadingHandler(SequentialThreadingHandler):  # type: ignore[misc]
    """kazoo's handler without threads for callbacks."""

    results: ClassVar[type[ReadResult]] = ReadResult
    connection: Any
    """The client's connection, which has `read_until(result, timeout)`."""

    def make_condition(self) -> Any:
        """Return what results are told by, and locked by."""
        raise NotImplementedError

    def start(self) -> None:
        """Start no thread."""
        self._running = True

    def stop(self) -> None:
        """End what has no thread."""
        self._running = False

    def async_result(self) -> ReadResult:
        """Return a result that is to be set."""
        return self.results(self)

    def dispatch_callback(self, callback: Any) -> None:
        """Run a callback now."""
        callback.func(*callback.args)
