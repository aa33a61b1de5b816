"""A controller that is reached by nothing but ZooKeeper: `zk:host:port/chroot?log=DIR`.

The controller is somebody else's and runs already. The suite plays its brokers and its clients: it
registers brokers that answer nobody, writes topics and requests, changes in-sync sets as leaders
do, and waits until nothing is written any more. What it will write is said before, and removed at
the end; a chroot in which there is anything of somebody else's is refused.
"""

import json
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl

from kazoo.exceptions import BadVersionError, NoNodeError, NotEmptyError

from reassure_conformance.adapter import (
    BROKERS,
    ISR,
    OLD_ZNODE,
    REQUESTS,
    RUN,
    BadConnectable,
    Description,
    Reply,
)
from reassure_conformance.adapter.driver import ServerGone, walk
from reassure_conformance.supervise import note_alive
from reassure_controller.client import Client
from reassure_spec.profiles import reads
from reassure_spec.znodes import (
    BROKER_CONFIGS,
    BROKER_IDS,
    CONTROLLER,
    CONTROLLER_EPOCH,
    REASSIGN_PARTITIONS,
    REASSIGNMENT_REQUESTS,
    REASSIGNMENTS,
    TOPIC_CONFIGS,
    TOPICS,
    broker_path,
    decode_state,
    decode_topic,
    encode_broker,
    encode_config,
    state_path,
    topic_path,
)

FORM: Final = "zk:host:port/chroot?log=DIRECTORY&quiet=SECONDS"
MARK: Final = "/reassure_run"
"""What says that the brokers and topics of a chroot are the suite's."""
_QUIET_S: Final = 0.3
_MOMENT_S: Final = 0.04
"""How long nothing may have been written where nobody owes anything."""
_ALONE_S: Final = 1.0
"""How long to hope that a server rests on which others may write."""
_LOOK_S: Final = 0.03
_CONNECT_S: Final = 10.0
_NEEDED: Final = (CONTROLLER, CONTROLLER_EPOCH, BROKER_IDS, TOPICS)
_REMOVED: Final = (REASSIGNMENT_REQUESTS, REASSIGNMENTS, TOPIC_CONFIGS, TOPICS, BROKER_CONFIGS)
"""Below these everything is removed at the end, so nothing may stand there at the beginning."""


class RemotePlace:
    """Where a controller is reached, as a connectable says. Raises BadConnectable."""

    def __init__(self, connectable: str) -> None:
        where, _, query = connectable.removeprefix("zk:").partition("?")
        self.hosts, slash, chroot = where.partition("/")
        self.chroot: Final = (slash + chroot).rstrip("/")
        options = dict(parse_qsl(query, keep_blank_values=True))
        log = options.pop("log", "")
        self.log_dir: Final = _find_log(Path(log)) if log else None
        try:
            self.quiet_s: Final = float(options.pop("quiet", _QUIET_S))
        except ValueError as error:
            raise BadConnectable(f"{connectable!r}: quiet is not a number; write {FORM}") from error
        scheme, port = connectable.partition(":")[0], self.hosts.rpartition(":")[2]
        if scheme != "zk" or not port.isdigit() or options:
            raise BadConnectable(f"{connectable!r} is not a place in ZooKeeper; write {FORM}")


def _find_log(folder: Path) -> Path:
    """Return the directory of the log files, which ZooKeeper puts one below. Raises."""
    for each in (folder / "version-2", folder):
        if each.is_dir() and any(each.glob("log.*")):
            return each
    raise BadConnectable(
        f"{folder} holds no transaction log of ZooKeeper; expected files log.ZXID in it or in its "
        "version-2; name the dataLogDir of the server, or leave out ?log="
    )


class Remote:
    """The suite's side of a controller that runs elsewhere. An adapter.

    Raises ServerGone where no ZooKeeper answers, BadConnectable for a chroot without a controller
    or in somebody else's use.
    """

    def __init__(self, place: RemotePlace, *, profile: str, readings: Mapping[str, str]) -> None:
        self._place = place
        self._takes_requests = reads(profile, REASSIGNMENT_REQUESTS)
        self._about = Description(
            name=f"controller at {place.hosts}{place.chroot}",
            version="unknown",
            language="unknown",
            profile=profile,
            readings=dict(readings),
            capabilities=frozenset({ISR, BROKERS}),
            lifetime=RUN,
            routes=frozenset({REQUESTS, OLD_ZNODE} if self._takes_requests else {OLD_ZNODE}),
        )
        self._brokers: dict[int, Client] = {}
        self._client = self._connect()
        try:
            self._check_free()
        except BaseException:
            self.close()
            raise

    def _connect(self) -> Client:
        client = Client(hosts=self._place.hosts + self._place.chroot, timeout=30.0)
        connected, until = client.start_async(), time.monotonic() + _CONNECT_S
        # Whoever supervises this process takes silence for death.
        while not connected.wait(_LOOK_S) and time.monotonic() < until:
            note_alive()
        if not client.connected:
            client.stop()
            client.close()
            raise ServerGone(
                f"ZooKeeper at {self._place.hosts} did not answer in {_CONNECT_S:g} s; expected a "
                f"server there; start it, or write {FORM}"
            )
        return client

    def _check_free(self) -> None:
        where = f"{self._place.hosts}{self._place.chroot}"
        queue = (REASSIGNMENT_REQUESTS,) if self._takes_requests else ()
        needed = (*_NEEDED, *queue)
        absent = [path for path in needed if self._client.exists(path) is None]
        if absent:
            raise BadConnectable(
                f"there is no {', '.join(absent)} at {where}; expected a controller that has been "
                "elected there; start it first, with this chroot"
            )
        if self._client.exists(MARK) is not None and not self._list(BROKER_IDS):
            self._say(f"removing what an earlier run has left at {where}")
            self._clean_up()
        taken = [f"{path}/{name}" for path in (BROKER_IDS, *_REMOVED) for name in self._list(path)]
        if self._client.exists(REASSIGN_PARTITIONS) is not None:
            taken.append(REASSIGN_PARTITIONS)
        if taken:
            raise BadConnectable(
                f"{where} is in use: there is {', '.join(taken[:3])}; expected a chroot with a "
                "controller and nothing else; use an empty chroot (the next run removes what an "
                "earlier run left, once its sessions have ended)"
            )

    def _list(self, path: str) -> list[str]:
        with suppress(NoNodeError):
            return sorted(self._client.get_children(path))
        return []

    def _say(self, what: str) -> None:
        sys.stderr.write(f"reassure: {what}\n")

    def describe(self) -> Description:
        """Say what is known of the implementation: nothing but how it is reached."""
        return self._about

    def start(self, hosts: str, chroot: str, brokers: tuple[int, ...]) -> None:
        """Say what will be written, and register the brokers."""
        ids = ",".join(map(str, brokers))
        where = f"{self._place.hosts}{self._place.chroot}"
        self._say(
            f"will write at {where}, and remove at the end: {MARK}; {BROKER_IDS}/{{{ids}}}; "
            f"{BROKER_CONFIGS}/{{{ids},<default>}}; topics named *-NNNNN below {TOPICS} and "
            f"{TOPIC_CONFIGS}; {REASSIGNMENT_REQUESTS}/*; {REASSIGN_PARTITIONS}"
        )
        self._client.create(MARK, b'{"version":1}')
        for broker in brokers:
            self._client.create(f"{BROKER_CONFIGS}/{broker}", encode_config({}))
            self.start_broker(broker)

    def settle(self, timeout_s: float) -> bool:
        """Wait until nothing has been written for a while and a controller acts."""
        return self._wait(self._place.quiet_s, timeout_s)

    def settle_soon(self, timeout_s: float) -> bool:
        """Wait until nothing has been written for a moment and a controller acts."""
        return self._wait(min(_MOMENT_S, self._place.quiet_s), timeout_s)

    def _wait(self, quiet_s: float, timeout_s: float) -> bool:
        """Wait until nothing has been written for so long; answer whether it was, and one acts.

        Every answer of ZooKeeper says which transaction was the last, so that asking for one znode
        is enough. Where others write as well it never stands still for long: then what stands in
        the chroot is compared.
        """
        begun = time.monotonic()
        alone = begun + max(_ALONE_S, 3 * quiet_s)
        look: Callable[[], object] = self._ask
        seen, since = look(), time.monotonic()
        while (now := time.monotonic()) < begun + timeout_s:
            if now - since >= quiet_s:
                return self._client.exists(CONTROLLER) is not None
            if now > alone and look == self._ask:
                look = self._look
                seen, since = look(), time.monotonic()
            time.sleep(min(_LOOK_S, quiet_s / 4))
            found = look()
            if found != seen:
                seen, since = found, time.monotonic()
        return False

    def _ask(self) -> int:
        """Return the last transaction that the server has seen, of whomever."""
        self._client.exists(CONTROLLER)
        return int(self._client.last_zxid)

    def _look(self) -> dict[str, int]:
        """Return every path with the transaction that changed it last."""
        return {path: stat.mzxid for path, _, stat in walk(self._client)}

    def stop(self) -> None:
        """Remove what was written, and end the brokers."""
        self._clean_up()
        for broker in list(self._brokers):
            self.stop_broker(broker)

    def _clean_up(self) -> None:
        for root in _REMOVED:
            for name in self._list(root):
                self._remove(f"{root}/{name}")
        for path in (REASSIGN_PARTITIONS, MARK):
            with suppress(NoNodeError):
                self._client.delete(path)

    def _remove(self, path: str) -> None:
        """Remove a znode and what is below it, where the controller may still be writing."""
        until = time.monotonic() + _CONNECT_S
        while True:
            try:
                self._client.delete(path, recursive=True)
                return
            except NotEmptyError:
                if time.monotonic() > until:
                    raise
                time.sleep(_LOOK_S)

    def close(self) -> None:
        """End the sessions."""
        for client in (*self._brokers.values(), self._client):
            client.stop()
            client.close()
        self._brokers.clear()

    def start_broker(self, broker: int) -> Reply:
        """Register a broker, in a session of its own."""
        client = self._connect()
        client.create(broker_path(broker), encode_broker("127.0.0.1", 9, 0), ephemeral=True)
        self._brokers[broker] = client
        return Reply.OK

    def stop_broker(self, broker: int) -> Reply:
        """End a broker's session, and its registration with it."""
        client = self._brokers.pop(broker)
        client.stop()
        client.close()
        return Reply.OK

    def change_isr(self, broker: int, topic: str, partition: int, *, joins: bool) -> Reply:
        """Write the in-sync set as the leader does that knows all that ZooKeeper knows."""
        path = state_path(topic, partition)
        content, stat = self._client.get(path)
        state = decode_state(path, content)
        assigned = decode_topic(topic_path(topic), self._client.get(topic_path(topic))[0])
        able = broker in self._brokers and broker in assigned.get(partition, ())
        if state.leader not in self._brokers or broker == state.leader or (joins and not able):
            return Reply.REFUSED
        others = [member for member in state.isr if member != broker]
        told = {**json.loads(content), "isr": [*others, broker] if joins else others}
        leader = self._brokers[state.leader]
        try:
            leader.set(path, json.dumps(told).encode(), stat.version)
        except BadVersionError:
            return Reply.REFUSED
        return Reply.OK

    def _refuse(self, *args: object, **kwargs: object) -> Reply:
        return Reply.REFUSED

    hold = resume = kill_controller = elect = expire_session = cut_connection = _refuse
