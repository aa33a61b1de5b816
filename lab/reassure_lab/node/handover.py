"""A broker that stops in good order, over the wire: Kafka's ControlledShutdown.

The controller listens for it (`office`), and says where in `/controller`. A broker asks before it
ends, a few times where it has to, and ends whatever the answer is.
"""

import logging
import time
from typing import Final

from kazoo.client import KazooClient
from kio.schema.errors import ErrorCode

from reassure_controller.session import Indefinite, gather
from reassure_lab.node.controller_requests import ANSWER_S
from reassure_lab.wire.connection import Connection
from reassure_lab.wire.errors import NoAnswer
from reassure_lab.wire.messages import ControlledShutdownRequest
from reassure_spec.znodes import CONTROLLER, BadZnode, decode_controller_address

log = logging.getLogger(__name__)

TRIES: Final = 3
"""Kafka's own controlled.shutdown.max.retries."""
BACKOFF_S: Final = 0.5


def ask_to_stop(client: KazooClient, broker: int, broker_epoch: int) -> bool:
    """Tell the controller that a broker wants to stop; return whether it leads nothing any more."""
    request = ControlledShutdownRequest(broker, broker_epoch)
    for attempt in range(TRIES):
        if attempt:
            time.sleep(BACKOFF_S)
        try:
            found = gather([client.get_async(CONTROLLER)])[0]
            address = None if found is None else decode_controller_address(CONTROLLER, found[0])
        except (Indefinite, BadZnode) as trouble:
            log.info("broker %d does not learn who the controller is: %s", broker, trouble)
            return False
        if address is None:
            return False  # nobody listens, so there is nobody to ask
        connection = Connection(*address, f"broker-{broker}", timeout_s=ANSWER_S)
        try:
            response = connection.ask(request)
        except NoAnswer as silent:
            log.info("broker %d: %s", broker, silent)
            continue
        finally:
            connection.close()
        if response.error_code == ErrorCode.none and not response.remaining_partitions:
            return True
        log.info("broker %d may not stop yet: %s", broker, response)
    return False
