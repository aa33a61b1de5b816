"""Which releases of Apache Kafka may have written a log, by what only some of them write.

Brokers write the format of `inter.broker.protocol.version`, which may be older than they are: what
is newest in the log counts.
"""

from typing import Final

from reassure_judge.rules import Signs

_FIRST: Final = {
    ("broker", 1): "0.8.0",
    ("broker", 2): "0.9.0",
    ("broker", 3): "0.10.0",
    ("broker", 4): "0.10.2",
    ("broker", 5): "2.7",
    ("topic", 2): "2.4",
    ("topic", 3): "2.8",
    "/brokers/seqid": "0.9.0",
    "/latest_producer_id_block": "0.11.0",
    "/log_dir_event_notification": "1.0.0",
    "fence": "2.1.0",
}
"""By version of a broker's registration or of a topic's znode, or by tree: the first release."""
_LAST: Final = {
    ("broker", 1): "0.8.2",
    ("broker", 2): "0.9.0",
    ("broker", 3): "0.10.1",
    ("broker", 4): "2.6",
    ("topic", 1): "2.3",
    ("topic", 2): "2.7",
}
"""The last release that writes no newer one."""
_END: Final = "3.9"


def _get_key(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.split(".")))


def find_releases(signs: Signs) -> str:
    """Return the releases that may have written what a log holds of a cluster.

    >>> find_releases(Signs(brokers={4}, topics={1}, fenced=True))
    'Kafka 2.1.0 to 2.3'
    """
    newest = [("broker", max(signs.brokers, default=1)), ("topic", max(signs.topics, default=1))]
    shown = [*newest, *signs.trees, *(["fence"] if signs.fenced else [])]
    first = max((_FIRST.get(each, "0.8.0") for each in shown), key=_get_key)
    last = min((_LAST.get(each, _END) for each in newest), key=_get_key)
    if _get_key(last) < _get_key(first):
        last = _LAST.get(newest[1], _END)
    return f"Kafka {first} to {last}" if _get_key(last) > _get_key(first) else f"Kafka {first}"
