"""The election: one transaction makes the ephemeral `/controller` and raises the controller epoch.

That is how Kafka 2.1 and later do it. The version that the epoch znode has afterwards is the fence
that every write of the term checks.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from reassure_controller.client import Client, Watch
from reassure_controller.session import Operation, Refused, commit, gather, session_id
from reassure_spec.profiles import PROTOCOLS
from reassure_spec.znodes import (
    CONTROLLER,
    CONTROLLER_EPOCH,
    BadZnode,
    decode_controller_epoch,
    decode_controller_protocols,
    encode_controller,
    encode_controller_epoch,
)

log = logging.getLogger("reassure_controller")


class Elected(NamedTuple):
    """What came of an election that was won."""

    epoch: int
    epoch_version: int
    """Version of the epoch znode after it."""


@dataclass(slots=True)
class Candidate:
    """A controller, as it stands for election on a client's session."""

    client: Client
    broker_id: int
    profile: str
    watch: Watch
    """Is told when `/controller` comes or goes."""
    clock_ms: Callable[[], int]
    """Gives wall-clock milliseconds for the znode."""
    deposes: bool = False
    """Whether it takes the office from a controller that names no protocols, as Kafka's own do."""
    address: tuple[str, int] | None = None
    """Where it listens for brokers, which the znode says; None where it does not."""

    def stand(self) -> Elected | None:
        """Stand for election; return None where another one has won.

        Raises Indefinite or SessionLost when ZooKeeper cannot be asked.
        """
        while True:
            held, epoch = gather(
                [
                    self.client.get_async(CONTROLLER, watch=self.watch),
                    self.client.get_async(CONTROLLER_EPOCH),
                ]
            )
            if epoch is None:
                if not self._create_epoch():
                    continue
                epoch_data, epoch_version = encode_controller_epoch(0), 0
            else:
                epoch_data, epoch_version = epoch[0], epoch[1].version
            if held is not None and self._is_own(held[1]):
                # From an election whose outcome never arrived, or from a term that has ended.
                self._delete(held[1].version)
                held = None
            ends = held is not None and self.deposes and not _names_protocols(held[0])
            removal = [("delete", (CONTROLLER, held[1].version))] if ends else []
            if ends:
                log.warning("controller %d takes the office from %r", self.broker_id, held[0])
                held = None
            elected = None if held else self._elect(epoch_data, epoch_version, removal)
            if held is None:
                looked = self.client.exists_async(CONTROLLER, watch=self.watch)
            if elected is not None or held is not None or gather([looked])[0] is not None:
                return elected

    def holds_office(self) -> bool:
        """Whether `/controller` is of this session; watches it. Raises as `stand` does."""
        held = gather([self.client.get_async(CONTROLLER, watch=self.watch)])[0]
        return held is not None and self._is_own(held[1])

    def leave(self) -> None:
        """Delete `/controller` if it is of this session. Raises as `stand` does."""
        held = gather([self.client.get_async(CONTROLLER)])[0]
        if held is not None and self._is_own(held[1]):
            self._delete(held[1].version)

    def _is_own(self, stat: Any) -> bool:
        return bool(stat.ephemeralOwner == session_id(self.client))

    def _create_epoch(self) -> bool:
        """Create the epoch znode; return whether it was not there."""
        try:
            commit(self.client, [("create", (CONTROLLER_EPOCH, encode_controller_epoch(0)))])
        except Refused:
            log.info("%s was created by somebody else", CONTROLLER_EPOCH)
            return False
        return True

    def _delete(self, version: int) -> None:
        try:
            commit(self.client, [("delete", (CONTROLLER, version))])
        except Refused as refused:
            log.info("%s is gone already: %s", CONTROLLER, refused)

    def _elect(self, data: bytes, version: int, removal: list[Operation]) -> Elected | None:
        epoch = decode_controller_epoch(CONTROLLER_EPOCH, data) + 1
        protocols = PROTOCOLS[self.profile]
        content = encode_controller(self.broker_id, self.clock_ms(), self.address, protocols)
        create: Operation = ("create", (CONTROLLER, content, None, True))
        raised: Operation = (
            "set_data",
            (CONTROLLER_EPOCH, encode_controller_epoch(epoch), version),
        )
        try:
            results = commit(self.client, [*removal, create, raised])
        except Refused as refused:
            log.info("controller %d was not elected: %s", self.broker_id, refused)
            return None
        return Elected(epoch, results[-1].version)


def _names_protocols(data: bytes) -> bool:
    try:
        return decode_controller_protocols(CONTROLLER, data) is not None
    except BadZnode:
        return True  # nobody knows whose it is
