"""Ids of idempotent producers, each given once in a cluster: brokers take them by the thousand.

`/latest_producer_id_block` is Kafka's own znode for it.
"""

import threading
from typing import Final

from kazoo.client import KazooClient

from reassure_controller.session import Operation, Refused, commit, gather
from reassure_spec.znodes import BadZnode, load_object, write_object

LATEST_BLOCK: Final = "/latest_producer_id_block"
BLOCK: Final = 1000


class ProducerIds:
    """The ids that one broker has to give."""

    def __init__(self, client: KazooClient, broker_id: int) -> None:
        self._client = client
        self._broker_id = broker_id
        self._lock = threading.Lock()
        self._left = range(0)

    def take(self) -> int:
        """Return an id. Raises Indefinite, BadZnode."""
        with self._lock:
            if not self._left:
                self._left = self.take_block()
            number, self._left = self._left[0], self._left[1:]
            return number

    def take_block(self) -> range:
        """Return the block behind the latest one. Raises Indefinite, BadZnode."""
        while (block := self._try_block()) is None:
            pass  # somebody else took it
        return block

    def _try_block(self) -> range | None:
        found = gather([self._client.get_async(LATEST_BLOCK)])[0]
        start = _read_end(found[0]) + 1 if found and found[0] else 0  # Kafka makes it empty
        # Kafka writes these numbers as texts.
        block = {"block_start": str(start), "block_end": str(start + BLOCK - 1)}
        content = write_object({"version": 1, "broker": self._broker_id, **block})
        write: Operation = ("create", (LATEST_BLOCK, content))
        if found is not None:
            write = ("set_data", (LATEST_BLOCK, content, found[1].version))
        try:
            commit(self._client, [write])
        except Refused:
            return None
        return range(start, start + BLOCK)


def _read_end(data: bytes) -> int:
    end = load_object(LATEST_BLOCK, data).get("block_end")
    if not isinstance(end, str) or not end.isdecimal():
        raise BadZnode(LATEST_BLOCK, f"expected a number as text under 'block_end', found {end!r}")
    return int(end)
