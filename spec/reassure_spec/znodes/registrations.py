"""What stands in the znodes of controllers, brokers and their settings."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from reassure_spec.znodes.json_contents import (
    LARGEST_PORT,
    BadZnode,
    check_version,
    load_object,
    parse_number,
    read_integer,
    show_value,
    write_object,
)

_ENDPOINT: Final = re.compile(r"([^:/]+)://\[?([^\[\]/]*?)\]?:([0-9]+)")
"""A listener: its name, host and port."""
_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
UNCLEAN: Final = "unclean.leader.election.enable"
MIN_ISR: Final = "min.insync.replicas"
MESSAGE_BYTES: Final = "message.max.bytes"
"""The setting of a broker; a topic has one of another name."""
TOPIC_MESSAGE_BYTES: Final = "max.message.bytes"
"""The setting of a topic that the protocol reads."""


def decode_controller(path: str, data: bytes) -> int:
    """Decode `/controller` (versions 1 and 2) to the broker id of the controller."""
    value = load_object(path, data)
    check_version(path, value, (1, 2))
    return read_integer(path, value.get("brokerid"), "brokerid")


def decode_controller_address(path: str, data: bytes) -> tuple[str, int] | None:
    """Decode where the controller listens, None where `/controller` does not say.

    Kafka's controllers are brokers, which say it in their registration.
    """
    value = load_object(path, data)
    host = value.get("host")
    return (host, read_integer(path, value.get("port"), "port")) if isinstance(host, str) else None


def decode_controller_protocols(path: str, data: bytes) -> frozenset[str] | None:
    """Decode which protocols the controller serves, None where `/controller` does not say.

    Those of Kafka never say.
    """
    names = load_object(path, data).get("protocols")
    if names is None:
        return None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise BadZnode(path, f"protocols: expected a list of names, found {show_value(names)}")
    return frozenset(names)


def encode_controller(
    broker: int,
    timestamp_ms: int,
    address: tuple[str, int] | None = None,
    protocols: Iterable[str] = (),
) -> bytes:
    """Encode `/controller` (version 1), with where the controller listens, and what it serves.

    >>> encode_controller(100, 5, ("127.0.0.1", 9))
    b'{"version":1,"brokerid":100,"timestamp":"5","host":"127.0.0.1","port":9}'
    >>> encode_controller(100, 5, protocols=("topics",))
    b'{"version":1,"brokerid":100,"timestamp":"5","protocols":["topics"]}'
    """
    value: dict[str, Any] = {"version": 1, "brokerid": broker, "timestamp": str(timestamp_ms)}
    if address is not None:
        value |= {"host": address[0], "port": address[1]}
    if named := list(protocols):
        value["protocols"] = named
    return write_object(value)


def decode_controller_epoch(path: str, data: bytes) -> int:
    """Decode `/controller_epoch`, which is plain text."""
    epoch = parse_number(data[:40].decode("ascii", "replace"))
    if epoch is None:
        raise BadZnode(path, f"expected an epoch in digits, found {data[:40]!r}")
    return epoch


def encode_controller_epoch(epoch: int) -> bytes:
    """Encode `/controller_epoch`."""
    return str(epoch).encode()


def encode_broker(host: str, port: int, timestamp_ms: int, rack: str | None = None) -> bytes:
    """Encode a broker's registration (version 4), with its rack where it has one."""
    content = {
        "version": 4,
        "host": host,
        "port": port,
        "jmx_port": -1,
        "timestamp": str(timestamp_ms),
        "endpoints": [f"PLAINTEXT://{host}:{port}"],
        "listener_security_protocol_map": {"PLAINTEXT": "PLAINTEXT"},
    }
    return write_object(content if rack is None else {**content, "rack": rack})


def decode_broker(path: str, data: bytes) -> tuple[str, int]:
    """Decode a broker's registration (versions 1 to 5) to its host and port."""
    value = load_object(path, data)
    check_version(path, value, (1, 2, 3, 4, 5))
    host = value.get("host")
    if not isinstance(host, str):
        raise BadZnode(path, f"host: expected text, found {show_value(host)}")
    return host, read_integer(path, value.get("port"), "port", LARGEST_PORT)


class Endpoint(NamedTuple):
    """Where a broker listens, under one name of a listener."""

    listener: str
    host: str
    port: int
    protocol: str
    """`PLAINTEXT`, `SSL`, `SASL_PLAINTEXT` or `SASL_SSL`."""


def decode_endpoints(path: str, data: bytes) -> tuple[Endpoint, ...]:
    """Decode a broker's registration (versions 1 to 5) to all that it says of where it listens.

    Where it names no listeners there is one, called as its protocol is. Raises BadZnode.

    >>> [end] = decode_endpoints("/b", encode_broker("h", 9, 5))
    >>> tuple(end)
    ('PLAINTEXT', 'h', 9, 'PLAINTEXT')
    """
    value = load_object(path, data)
    texts, protocols = value.get("endpoints"), value.get("listener_security_protocol_map", {})
    if texts is None:
        return (Endpoint("PLAINTEXT", *decode_broker(path, data), "PLAINTEXT"),)
    if not isinstance(texts, list) or not isinstance(protocols, dict):
        raise BadZnode(path, "expected a list of endpoints, and an object of their protocols")
    found = []
    for text in texts:
        parts = _ENDPOINT.fullmatch(text) if isinstance(text, str) else None
        if parts is None:
            raise BadZnode(path, f"endpoints: expected NAME://HOST:PORT, found {show_value(text)}")
        name, host, port = parts.groups()
        protocol = protocols.get(name, name)
        if protocol not in _PROTOCOLS:
            raise BadZnode(path, f"protocol of {name}: found {show_value(protocol)}")
        found.append(Endpoint(name, host, int(port), protocol))
    return tuple(found)


def asks_for_isr(path: str, data: bytes) -> bool:
    """Return whether a broker has the controller change in-sync sets, by its registration.

    It does from inter-broker protocol 2.7 on (KIP-497), from which on it registers in version 5.

    >>> asks_for_isr("/b", encode_broker("h", 9, 5)), asks_for_isr("/b", b'{"version":5}')
    (False, True)
    """
    return bool(load_object(path, data).get("version") == 5)


def decode_rack(path: str, data: bytes) -> str | None:
    """Decode a broker's registration (versions 1 to 5) to its rack, None where it names none."""
    value = load_object(path, data)
    check_version(path, value, (1, 2, 3, 4, 5))
    rack = value.get("rack")
    if rack is not None and not isinstance(rack, str):
        raise BadZnode(path, f"rack: expected text, found {show_value(rack)}")
    return rack


def decode_config(path: str, data: bytes) -> dict[str, str]:
    """Decode `/config/topics/T` or `/config/brokers/ID`: settings by name, all of them text."""
    value = load_object(path, data)
    check_version(path, value, (1,))
    config = value.get("config")
    if not isinstance(config, dict) or not all(isinstance(v, str) for v in config.values()):
        raise BadZnode(path, "expected an object of texts under 'config'")
    return config


def encode_config(config: Mapping[str, str]) -> bytes:
    """Encode `/config/topics/T` or `/config/brokers/ID`."""
    return write_object({"version": 1, "config": dict(config)})


def parse_limit(path: str, config: Mapping[str, str], name: str) -> int | None:
    """Return a setting that is a whole number, None where the settings do not say.

    Raises BadZnode where it is no number, with the path of the znode that they were read from.
    """
    text = config.get(name)
    if text is None:
        return None
    limit = parse_number(text.strip())
    if limit is None:
        raise BadZnode(path, f"{name}: expected a number, found {show_value(text)}")
    return limit


def parse_unclean(path: str, config: Mapping[str, str]) -> bool | None:
    """Return `unclean.leader.election.enable` of settings, None where they do not say.

    Raises BadZnode where it is neither true nor false.
    """
    text = config.get(UNCLEAN)
    if text is None:
        return None
    if text.strip().lower() not in ("true", "false"):
        raise BadZnode(path, f"{UNCLEAN}: expected true or false, found {show_value(text)}")
    return text.strip().lower() == "true"
