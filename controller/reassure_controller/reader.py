"""Reads ZooKeeper into the controller's context, and keeps account of what has changed since.

What can be asked for at once is asked for in one request. Topics with their partitions, settings
and what planners name have one watch each on all that is below them, armed before they are read:
the number of watches grows with nothing. An event makes stale what it names, which is read again
it is next needed. Our own writes need no reading: their events (*echoes*) are counted off.

Watches belong to a connection: after it was lost everything is stale.

Znodes that cannot be read are never guessed at. A topic or a state of another format is left alone
with a warning; what stands where only controllers write and is not ours is put on the `rubbish`
list, which the controller deletes.
"""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from reassure_controller.client import Client, Read, Watch
from reassure_controller.context import (
    Context,
    Deletion,
    LiveBroker,
    PartitionContext,
    Preferred,
    TopicSettings,
)
from reassure_controller.session import fetch, gather, list_children, read
from reassure_spec.znodes import (
    BROKER_CONFIGS,
    BROKER_IDS,
    CONFIGS,
    DEFAULT_BROKER_CONFIG,
    DELETED_TOPICS,
    ISR_CHANGES,
    MIN_ISR,
    PREFERRED_ELECTION,
    TOPIC_CONFIGS,
    TOPICS,
    BadZnode,
    PartitionKey,
    broker_path,
    decode_broker,
    decode_config,
    decode_endpoints,
    decode_preferred_election,
    decode_rack,
    decode_state,
    decode_topic_content,
    parse_limit,
    parse_unclean,
    partition_path,
    reassignment_path,
    state_path,
    topic_config_path,
    topic_path,
)

log = logging.getLogger("reassure_controller")


class ClusterReader:
    """Keeps one context in line with ZooKeeper."""

    def __init__(
        self,
        client: Client,
        context: Context,
        watch: Watch,
        watched_below: Sequence[str] = (),
    ) -> None:
        self.client = client
        self._watched_below = (TOPICS, CONFIGS, ISR_CHANGES, *watched_below)
        self.context = context
        self.watch = watch
        self.stale_topics: set[str] = set()
        """Topics whose znode has changed since it was read."""
        self._stale_states: set[PartitionKey] = set()
        """Partitions whose state has changed since it was read."""
        self.changed: set[PartitionKey] = set()
        """Partitions whose state somebody else has changed, for whoever carries on with them."""
        self.reset_topics: set[str] = set()
        """Topics whose settings may have changed, which may allow what they did not before."""
        self.notices: set[str] = set()
        """Notifications of brokers, which are deleted: what they are about is watched itself."""
        self.rubbish: list[tuple[str, str]] = []
        """Znodes to delete: (path, reason)."""

    # What has changed

    def watch_all(self) -> list[Any]:
        """Ask for the watches on all at and below some paths; return the answers to wait for."""
        self.context.echoes.clear()
        return [self.client.watch_below_async(root, self.watch) for root in self._watched_below]

    def note(self, path: str) -> bool:
        """Note a change of a topic or a setting; return whether it was one."""
        if self.context.take_echo(path):
            return True
        match path.split("/"):
            case ["", "brokers", "topics", topic]:
                self.stale_topics.add(topic)
            case ["", "brokers", "topics", topic, "partitions", number, "state"]:
                self._note_state(topic, number)
            case ["", "isr_change_notification", _]:
                self.notices.add(path)
            case ["", "config", *_]:
                self._note_setting(path)
            case ["", "brokers", "topics", *_]:
                pass  # nothing that is remembered
            case _:
                return False
        return True

    def _note_state(self, topic: str, number: str) -> None:
        key = self.find_key(topic, number)
        if key is not None:
            self._stale_states.add(key)
            self.changed.add(key)

    def _note_setting(self, path: str) -> None:
        if path == DEFAULT_BROKER_CONFIG:
            self._forget_settings(self.context.numbers)
        elif path.startswith(f"{TOPIC_CONFIGS}/"):
            self._forget_settings([path.removeprefix(f"{TOPIC_CONFIGS}/")])

    def _forget_settings(self, topics: Iterable[str]) -> None:
        for topic in topics:
            self.context.settings.pop(topic, None)
            self.reset_topics.add(topic)

    def make_stale(self) -> None:
        """Note that anything may have changed, because the watches were lost for a while."""
        names = gather([*self.watch_all(), self.client.get_children_async(TOPICS)])[-1]
        self.stale_topics.update(names or (), self.context.numbers)
        self._stale_states.update(self.context.partitions)
        self.changed.update(self.context.partitions)
        self._forget_settings(self.context.numbers)

    # Whole cluster

    def read_all(self) -> None:
        """Read everything, with every watch that a controller needs."""
        pending = [
            *self.watch_all(),
            self.client.get_children_async(BROKER_IDS, watch=self.watch),
        ]
        paths = [TOPICS, BROKER_CONFIGS, ISR_CHANGES]
        topics, configs, notices = list_children(self.client, paths)
        self.notices.update(f"{ISR_CHANGES}/{name}" for name in notices or ())
        brokers = gather(pending)[-1]
        self.context.brokers = self._read_brokers(brokers or ())
        self._remember_known(configs or ())
        for topic in self.context.numbers.keys() - set(topics or ()):
            self.forget_topic(topic)
        self.read_topics(topics or ())
        self.read_deletions()
        self.read_preferred()

    # Brokers

    def read_brokers(self) -> dict[int, LiveBroker]:
        """Return the live brokers, with a watch on their number; the context is not changed."""
        names = gather([self.client.get_children_async(BROKER_IDS, watch=self.watch)])[0]
        return self._read_brokers(names or ())

    def _read_brokers(self, names: Iterable[str]) -> dict[int, LiveBroker]:
        ids = sorted(int(name) for name in names if name.isascii() and name.isdigit())
        found = fetch(self.client, map(broker_path, ids))
        brokers: dict[int, LiveBroker] = {}
        for broker, content in zip(ids, found, strict=True):
            if content is None:
                continue  # gone since its parent was listed; the watch will tell
            data, stat = content
            try:
                host, port = decode_broker(broker_path(broker), data)
                rack = decode_rack(broker_path(broker), data)
                endpoints = decode_endpoints(broker_path(broker), data)
            except BadZnode as bad:
                log.warning("%s: %s; the broker is not used", bad.path, bad.reason)
                continue
            brokers[broker] = LiveBroker(broker, stat.czxid, host, port, endpoints)
            self.context.racks[broker] = rack
        return brokers

    def _remember_known(self, names: Iterable[str]) -> None:
        known = {int(name) for name in names if name.isascii() and name.isdigit()}
        self.context.known_brokers |= known | self.context.brokers.keys()

    # Topics and partitions

    def read_topics(self, topics: Iterable[str]) -> list[PartitionKey]:
        """Read these topics; return the partitions that were not known, and can be read."""
        topics = sorted(topics)
        found = fetch(self.client, map(topic_path, topics))
        new: list[PartitionKey] = []
        for topic, content in zip(topics, found, strict=True):
            new += self._take_topic(topic, content)
        made = sorted({topic for topic, _ in new})
        reads = [Read(state_path(*key)) for key in new]
        answers = read(self.client, reads + [_list_partitions(topic) for topic in made])
        for topic, numbers in zip(made, answers[len(new) :], strict=True):
            self._take_directories(topic, numbers)
        self._stale_states.difference_update(new)
        for key, content in zip(new, answers[: len(new)], strict=True):
            self._take_state(key, content)
        return [key for key in new if key in self.context.partitions]

    def _take_topic(self, topic: str, content: Any) -> list[PartitionKey]:
        """Take over a topic's content as read; return the partitions that were not known."""
        if content is None:
            self.forget_topic(topic)
            return []
        data, stat = content
        try:
            found = decode_topic_content(topic_path(topic), data)
        except BadZnode as bad:
            log.warning("%s: %s; the topic is left alone", bad.path, bad.reason)
            self.forget_topic(topic)
            self.context.unreadable.add(topic)
            return []
        self.context.unreadable.discard(topic)
        partitions = self.context.partitions
        self.context.topic_versions[topic] = stat.version
        self.context.topic_contents[topic] = found
        for key in self.context.keys_of([topic]):
            if key[1] not in found.assigned:
                self._forget_partition(key, "there is no such partition")
        new: list[PartitionKey] = []
        for number, assigned in found.assigned.items():
            key = (topic, number)
            if key in partitions:
                self.context.put(key, replace(partitions[key], assigned=assigned))
            else:
                self.context.put(key, PartitionContext(assigned))
                new.append(key)
        return new

    def forget_topic(self, topic: str) -> None:
        """Forget a topic that is gone; its reassignments have become rubbish."""
        self.context.unreadable.discard(topic)
        self.context.topic_versions.pop(topic, None)
        self.context.topic_contents.pop(topic, None)
        self._take_directories(topic, None)
        for key in self.context.keys_of([topic]):
            self._forget_partition(key, "there is no such topic")

    def _forget_partition(self, key: PartitionKey, reason: str) -> None:
        if self.context.drop(key).child_version >= 0:
            self.rubbish.append((reassignment_path(*key), reason))

    def refresh_states(self, keys: Iterable[PartitionKey]) -> None:
        """Read the states of these partitions."""
        keys = [key for key in keys if key in self.context.partitions]
        self._stale_states.difference_update(keys)
        found = fetch(self.client, [state_path(*key) for key in keys])
        for key, content in zip(keys, found, strict=True):
            self._take_state(key, content)

    def refresh_stale_states(self, keys: Iterable[PartitionKey]) -> None:
        """Read those of these partitions' states that have changed since they were read."""
        self.refresh_states(sorted(self._stale_states.intersection(keys)))

    def _take_state(self, key: PartitionKey, content: Any) -> None:
        before = self.context.partitions[key]
        if content is None:
            self.context.put(key, replace(before, state=None, state_version=-1))
            return
        data, stat = content
        try:
            state = decode_state(state_path(*key), data)
        except BadZnode as bad:
            log.warning("%s: %s; the partition is left alone", bad.path, bad.reason)
            self.context.drop(key)
            return
        self.context.directories.update((f"{topic_path(key[0])}/partitions", partition_path(*key)))
        self.context.put(key, replace(before, state=state, state_version=stat.version))

    def find_key(self, topic: str, name: str) -> PartitionKey | None:
        """Return the partition of a topic that a znode is named for, None where it is of none."""
        if not (name.isascii() and name.isdigit() and name == str(int(name))):
            return None
        key = (topic, int(name))
        return key if key in self.context.partitions else None

    # Partitions as a whole

    def _take_directories(self, topic: str, numbers: Iterable[str] | None) -> None:
        root, directories = f"{topic_path(topic)}/partitions", self.context.directories
        known = self.context.numbers.get(topic, ())
        directories.difference_update((root, *(f"{root}/{number}" for number in known)))
        if numbers is not None:
            directories.update((root, *(f"{root}/{number}" for number in numbers)))

    def refresh(self, keys: Iterable[PartitionKey]) -> None:
        """Read everything about partitions again, and what stands above their states."""
        topics = sorted({topic for topic, _ in keys})
        self.read_topics(topics)
        found = read(self.client, [_list_partitions(topic) for topic in topics])
        for topic, numbers in zip(topics, found, strict=True):
            self._take_directories(topic, numbers)
        self.refresh_states(keys)

    def catch_up(self, keys: Iterable[PartitionKey]) -> None:
        """Read what has changed about these partitions, the settings of their topics included.

        Those that are not known may have been made since events were looked at last.
        """
        keys = list(keys)
        known = self.context.partitions
        unknown = {key[0] for key in keys if key not in known}
        if unknown:
            self.read_topics(unknown)
        self.refresh_stale_states(keys)
        self._read_settings({topic for topic, _ in keys} - self.context.settings.keys())

    def look_for_unclean(self, keys: Iterable[PartitionKey]) -> None:
        """Read the settings of topics in which only a replica out of sync is left to be elected."""
        partitions = self.context.partitions
        offline = {k[0] for k in keys if k in partitions and self.context.is_offline(k)}
        self._read_settings(offline)

    def _read_settings(self, topics: set[str]) -> None:
        """Read what holds for these topics: their own settings go before those of all brokers."""
        if not topics:
            return
        paths = [topic_config_path(topic) for topic in topics]
        general, *own = fetch(self.client, [DEFAULT_BROKER_CONFIG, *paths])
        default = _take_settings(DEFAULT_BROKER_CONFIG, general, TopicSettings())
        for topic, path, content in zip(topics, paths, own, strict=True):
            found = _take_settings(path, content, default)
            self.context.settings[topic] = found

    def read_deletions(self, *, arm: bool = True) -> list[str]:
        """Read which topics clients ask to be deleted; return those that none asks for any more."""
        watch = self.watch if arm else None
        names = gather([self.client.get_children_async(DELETED_TOPICS, watch=watch)])[0] or ()
        before = self.context.deletions
        settings = gather([self.client.exists_async(topic_config_path(name)) for name in names])
        self.context.deletions = {
            name: replace(before.get(name, Deletion()), has_settings=found is not None)
            for name, found in zip(names, settings, strict=True)
        }
        return sorted(before.keys() - self.context.deletions.keys())

    def read_preferred(self, *, arm: bool = True) -> None:
        """Read of which partitions a client asks for the preferred leader; `arm` watches that."""
        found = self.read_perhaps(PREFERRED_ELECTION, arm=arm)
        if found is None:
            self.context.preferred = None
            return
        data, stat = found
        try:
            asked = Preferred(decode_preferred_election(PREFERRED_ELECTION, data), stat.version)
        except BadZnode as bad:
            asked = Preferred(frozenset(), stat.version, bad.reason)
        self.context.preferred = asked

    def read_perhaps(self, path: str, *, arm: bool) -> Any:
        """Return the content of a znode that mostly is not there; `arm` watches it either way."""
        if arm and gather([self.client.exists_async(path, watch=self.watch)])[0] is None:
            return None
        return fetch(self.client, [path])[0]

    def read_below(self, path: str, *, watch: Watch | None) -> dict[str, bytes]:
        """Return the content of everything below a path, by name."""
        names = gather([self.client.get_children_async(path, watch=watch)])[0] or ()
        found = fetch(self.client, [f"{path}/{name}" for name in names])
        return {
            name: content[0]
            for name, content in zip(names, found, strict=True)
            if content is not None
        }

    def list_existing(self, paths: Iterable[str]) -> list[str]:
        """Return those of these znodes that are there."""
        paths = list(paths)
        found = gather([self.client.exists_async(path) for path in paths]) if paths else []
        return [path for path, stat in zip(paths, found, strict=True) if stat is not None]

    def look_for_brokers(self, brokers: Iterable[int]) -> None:
        """Read again which brokers ever registered, unless these all are known to have."""
        if set(brokers) <= self.context.known_brokers:
            return
        configs, ids = gather(
            [
                self.client.get_children_async(BROKER_CONFIGS),
                self.client.get_children_async(BROKER_IDS),
            ]
        )
        self._remember_known([*(configs or ()), *(ids or ())])


def _list_partitions(topic: str) -> Read:
    """Return the question which partitions of a topic have a znode."""
    return Read(f"{topic_path(topic)}/partitions", children=True)


def _take_settings(path: str, content: Any, usual: TopicSettings) -> TopicSettings:
    """Return settings as read, what is usual where they do not say or make no sense."""
    if content is None:
        return usual
    try:
        config = decode_config(path, content[0])
        least, unclean = parse_limit(path, config, MIN_ISR), parse_unclean(path, config)
    except BadZnode as bad:
        log.warning("%s: %s; none of these settings is used", bad.path, bad.reason)
        return usual
    return TopicSettings(
        usual.min_insync if least is None else least, usual.unclean if unclean is None else unclean
    )
