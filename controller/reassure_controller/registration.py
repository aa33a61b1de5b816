"""A broker's registration: the ephemeral znode by which a broker has its id."""

import logging
from typing import Any

from kazoo.exceptions import NodeExistsError, NoNodeError

from reassure_controller.client import Client
from reassure_controller.session import (
    Indefinite,
    Refused,
    commit,
    ensure_roots,
    gather,
    session_id,
)
from reassure_spec.errors import BadUsage
from reassure_spec.znodes import (
    BadZnode,
    broker_config_path,
    broker_path,
    decode_broker,
    encode_config,
)

log = logging.getLogger("reassure_controller.broker")


class IdTaken(BadUsage):
    """Another live session is registered with the broker's id."""


class FormerLife(Indefinite):
    """A session of an earlier life of the broker itself is registered, and will time out."""


def take_id(client: Client, broker: int, content: bytes) -> int | None:
    """Register unless another session is; return the session that is registered then.

    The client's session may change meanwhile: then it is not this one, and another try tells.
    Raises FormerLife, IdTaken, Indefinite.
    """
    session = session_id(client)
    config = (broker_config_path(broker), encode_config({}))
    path = broker_path(broker)
    registration = (path, content, None, True)
    refused = _create(client, config, registration)
    if isinstance(refused, NoNodeError):  # nobody has made the paths of this cluster yet
        ensure_roots(client)
        refused = _create(client, config, registration)
    if isinstance(refused, NodeExistsError):  # the broker was here before
        refused = _create(client, registration)
    if refused is None:
        return session
    found = gather([client.get_async(path)])[0]
    if found is None:  # whoever had it has gone meanwhile
        return take_id(client, broker, content)
    data, stat = found
    if stat.ephemeralOwner == session:
        return session
    if _has_same_address(path, data, content):
        raise FormerLife(
            f"{path}: a former session of this broker has not timed out; it registers then"
        )
    raise IdTaken(
        f"{path}: another session is registered with this id; "
        "end that broker, or wait until its session has timed out"
    )


def _has_same_address(path: str, data: bytes, content: bytes) -> bool:
    """Whether a registration names where this broker listens, so that nobody else can."""
    try:
        return decode_broker(path, data) == decode_broker(path, content)
    except BadZnode as bad:
        log.warning("%s", bad)
        return False


def _create(client: Client, *znodes: tuple[Any, ...]) -> Exception | None:
    """Create znodes in one transaction; return why they could not be, None where they were."""
    try:
        commit(client, [("create", znode) for znode in znodes])
    except Refused as refused:
        if not isinstance(refused.error, NodeExistsError | NoNodeError):
            raise
        error: Exception = refused.error
        return error
    return None
