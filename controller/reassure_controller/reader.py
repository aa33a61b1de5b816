"""Reads ZooKeeper into the controller's context, and keeps account of what has changed since.

What can be asked for at once is asked for in one request. Topics with their partitions, settings
and the request queue have one watch each on all that is below them, armed before they are read: the
number of watches grows with nothing. An event makes stale what it names, which is read again when
it is next needed. Our own writes need no reading: their events (*echoes*) are counted off.

Watches belong to a connection: after it was lost everything is stale.

Znodes that cannot be read are never guessed at. A topic or a state of another format is left alone
with a warning; a child of `/admin/reassignments` that is not ours is put on the `rubbish` list,
which the controller deletes.
"""

import logging
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from kazoo.protocol.states import EventType

from reassure_controller.client import Client, Read, Watch
from reassure_controller.context import (
    Context,
    Deletion,
    LiveBroker,
    OldZnode,
    PartitionContext,
    Preferred,
    TopicSettings,
)
from reassure_controller.effects import Phase
from reassure_controller.rules import Rules
from reassure_controller.session import fetch, gather, list_children, read
from reassure_spec.znodes import (
    BROKER_CONFIGS,
    BROKER_IDS,
    CONFIGS,
    DEFAULT_BROKER_CONFIG,
    DELETED_TOPICS,
    FAILED_BROKERS,
    MIN_ISR,
    PREFERRED_ELECTION,
    REASSIGN_PARTITIONS,
    REASSIGNMENT_REQUESTS,
    REASSIGNMENT_TASKS,
    REASSIGNMENTS,
    TOPIC_CONFIGS,
    TOPICS,
    BadZnode,
    PartitionKey,
    broker_path,
    decode_broker,
    decode_config,
    decode_failed_broker,
    decode_preferred_election,
    decode_rack,
    decode_reassign_partitions,
    decode_reassignment,
    decode_state,
    decode_task,
    decode_topic,
    parse_limit,
    parse_number,
    parse_request_name,
    parse_task_name,
    parse_unclean,
    partition_path,
    reassignment_path,
    state_path,
    topic_config_path,
    topic_path,
)

log = logging.getLogger("reassure_controller")


class Reader:
    """Keeps one context in line with ZooKeeper."""

    def __init__(
        self,
        client: Client,
        context: Context,
        watch: Watch,
        rules: Rules,
    ) -> None:
        self._client = client
        self._rules = rules
        self._context = context
        self._watch = watch
        self.stale_topics: set[str] = set()
        """Topics whose znode has changed since it was read."""
        self._stale_states: set[PartitionKey] = set()
        """Partitions whose state has changed since it was read."""
        self.changed: set[PartitionKey] = set()
        """Partitions whose state somebody else has changed, for whoever carries on with them."""
        self.reset_topics: set[str] = set()
        """Topics whose settings may have changed, which may allow what they did not before."""
        self.rubbish: list[tuple[str, str]] = []
        """Znodes to delete: (path, reason)."""

    # What has changed

    def watch_all(self) -> list[Any]:
        """Ask for the watches on all at and below three paths; return the answers to wait for."""
        self._context.echoes.clear()
        roots = [TOPICS, CONFIGS]
        if self._rules.keeps_records:
            roots.append(REASSIGNMENT_REQUESTS)
        return [self._client.watch_below_async(root, self._watch) for root in roots]

    def note(self, kind: str, path: str) -> bool:
        """Note a change at or below one of the three paths; return whether it was one."""
        if self._context.take_echo(path):
            return True
        match path.split("/"):
            case ["", "brokers", "topics", topic]:
                self.stale_topics.add(topic)
            case ["", "brokers", "topics", topic, "partitions", number, "state"]:
                self._note_state(topic, number)
            case ["", "config", *_]:
                self._note_setting(path)
            case ["", "admin", "reassignment_requests", name]:
                self._note_request(kind, name)
            case ["", "brokers", "topics", *_] | ["", "admin", "reassignment_requests", *_]:
                pass  # nothing that is remembered
            case _:
                return False
        return True

    def _note_state(self, topic: str, number: str) -> None:
        key = self._find_key(topic, number)
        if key is not None:
            self._stale_states.add(key)
            self.changed.add(key)

    def _note_setting(self, path: str) -> None:
        if path == DEFAULT_BROKER_CONFIG:
            self._forget_settings(self._context.numbers)
        elif path.startswith(f"{TOPIC_CONFIGS}/"):
            self._forget_settings([path.removeprefix(f"{TOPIC_CONFIGS}/")])

    def _forget_settings(self, topics: Iterable[str]) -> None:
        for topic in topics:
            self._context.settings.pop(topic, None)
            self.reset_topics.add(topic)

    def _note_request(self, kind: str, name: str) -> None:
        requests = self._context.requests
        at = bisect_left(requests, _request_order(name), key=_request_order)
        known = requests[at : at + 1] == [name]
        if kind == EventType.CREATED and not known:
            requests.insert(at, name)
        elif kind == EventType.DELETED and known:
            del requests[at]

    def make_stale(self) -> None:
        """Note that anything may have changed, because the watches were lost for a while."""
        names = gather([*self.watch_all(), self._client.get_children_async(TOPICS)])[-1]
        self.stale_topics.update(names or (), self._context.numbers)
        self._stale_states.update(self._context.partitions)
        self.changed.update(self._context.partitions)
        self._forget_settings(self._context.numbers)
        self.read_requests()

    # Whole cluster

    def read_all(self) -> None:
        """Read everything, with every watch that a controller needs."""
        pending = [
            *self.watch_all(),
            self._client.get_children_async(BROKER_IDS, watch=self._watch),
        ]
        lists = [TOPICS, BROKER_CONFIGS, REASSIGNMENTS, REASSIGNMENT_REQUESTS]
        topics, configs, moving, requests = list_children(self._client, lists)
        brokers = gather(pending)[-1]
        self._context.brokers = self._read_brokers(brokers or ())
        self._remember_known(configs or ())
        for topic in self._context.numbers.keys() - set(topics or ()):
            self.forget_topic(topic)
        self.read_topics(topics or ())
        if self._rules.keeps_records:
            self._read_children(moving or ())
            self.set_requests(requests or ())
        self.read_deletions()
        self.read_preferred()
        self.read_old_znode()
        self.read_records()
        self.read_tasks()

    # Brokers

    def read_brokers(self) -> dict[int, LiveBroker]:
        """Return the live brokers, with a watch on their number; the context is not changed."""
        names = gather([self._client.get_children_async(BROKER_IDS, watch=self._watch)])[0]
        return self._read_brokers(names or ())

    def _read_brokers(self, names: Iterable[str]) -> dict[int, LiveBroker]:
        ids = sorted(int(name) for name in names if name.isascii() and name.isdigit())
        found = fetch(self._client, map(broker_path, ids))
        brokers: dict[int, LiveBroker] = {}
        for broker, content in zip(ids, found, strict=True):
            if content is None:
                continue  # gone since its parent was listed; the watch will tell
            data, stat = content
            try:
                host, port = decode_broker(broker_path(broker), data)
                rack = decode_rack(broker_path(broker), data)
            except BadZnode as bad:
                log.warning("%s: %s; the broker is not used", bad.path, bad.reason)
                continue
            brokers[broker] = LiveBroker(broker, stat.czxid, host, port)
            self._context.racks[broker] = rack
        return brokers

    def _remember_known(self, names: Iterable[str]) -> None:
        known = {int(name) for name in names if name.isascii() and name.isdigit()}
        self._context.known_brokers |= known | self._context.brokers.keys()

    # Topics and partitions

    def read_topics(self, topics: Iterable[str]) -> list[PartitionKey]:
        """Read these topics; return the partitions that were not known, and can be read."""
        topics = sorted(topics)
        found = fetch(self._client, map(topic_path, topics))
        new: list[PartitionKey] = []
        for topic, content in zip(topics, found, strict=True):
            new += self._take_topic(topic, content)
        made = sorted({topic for topic, _ in new})
        reads = [Read(state_path(*key)) for key in new]
        answers = read(self._client, reads + [_list_partitions(topic) for topic in made])
        for topic, numbers in zip(made, answers[len(new) :], strict=True):
            self._take_directories(topic, numbers)
        self._stale_states.difference_update(new)
        for key, content in zip(new, answers[: len(new)], strict=True):
            self._take_state(key, content)
        return [key for key in new if key in self._context.partitions]

    def _take_topic(self, topic: str, content: Any) -> list[PartitionKey]:
        """Take over a topic's content as read; return the partitions that were not known."""
        if content is None:
            self.forget_topic(topic)
            return []
        data, stat = content
        try:
            assignment = decode_topic(topic_path(topic), data)
        except BadZnode as bad:
            log.warning("%s: %s; the topic is left alone", bad.path, bad.reason)
            self.forget_topic(topic)
            self._context.unreadable.add(topic)
            return []
        self._context.unreadable.discard(topic)
        partitions = self._context.partitions
        self._context.topic_versions[topic] = stat.version
        self._context.topic_contents[topic] = data
        for key in self._context.keys_of([topic]):
            if key[1] not in assignment:
                self._forget_partition(key, "there is no such partition")
        new: list[PartitionKey] = []
        for number, assigned in assignment.items():
            key = (topic, number)
            if key in partitions:
                self._context.put(key, replace(partitions[key], assigned=assigned))
            else:
                self._context.put(key, PartitionContext(assigned))
                new.append(key)
        return new

    def forget_topic(self, topic: str) -> None:
        """Forget a topic that is gone; its reassignments have become rubbish."""
        self._context.unreadable.discard(topic)
        self._context.topic_versions.pop(topic, None)
        self._context.topic_contents.pop(topic, None)
        self._take_directories(topic, None)
        for key in self._context.keys_of([topic]):
            self._forget_partition(key, "there is no such topic")

    def _forget_partition(self, key: PartitionKey, reason: str) -> None:
        if self._context.drop(key).child_version >= 0:
            self.rubbish.append((reassignment_path(*key), reason))

    def refresh_states(self, keys: Iterable[PartitionKey]) -> None:
        """Read the states of these partitions."""
        keys = [key for key in keys if key in self._context.partitions]
        self._stale_states.difference_update(keys)
        found = fetch(self._client, [state_path(*key) for key in keys])
        for key, content in zip(keys, found, strict=True):
            self._take_state(key, content)

    def refresh_stale_states(self, keys: Iterable[PartitionKey]) -> None:
        """Read those of these partitions' states that have changed since they were read."""
        self.refresh_states(sorted(self._stale_states.intersection(keys)))

    def _take_state(self, key: PartitionKey, content: Any) -> None:
        before = self._context.partitions[key]
        if content is None:
            self._context.put(key, replace(before, state=None, state_version=-1))
            return
        data, stat = content
        try:
            state = decode_state(state_path(*key), data)
        except BadZnode as bad:
            log.warning("%s: %s; the partition is left alone", bad.path, bad.reason)
            self._context.drop(key)
            return
        self._context.directories.update((f"{topic_path(key[0])}/partitions", partition_path(*key)))
        self._context.put(key, replace(before, state=state, state_version=stat.version))

    # Reassignments in flight

    def _read_children(self, topics: Iterable[str]) -> None:
        """Read the reassignments in flight of these topics, foreign znodes included."""
        topics = list(topics)
        self._context.parents = set(topics)
        self._context.crowded.clear()
        listed = list_children(self._client, [f"{REASSIGNMENTS}/{topic}" for topic in topics])
        found: set[PartitionKey] = set()
        for topic, names in zip(topics, listed, strict=True):
            if topic not in self._context.numbers:
                self.rubbish.append((f"{REASSIGNMENTS}/{topic}", "there is no such topic"))
                continue
            for name in names or ():
                key = self._find_key(topic, name)
                if key is None:
                    path = f"{REASSIGNMENTS}/{topic}/{name}"
                    self.rubbish.append((path, "there is no such partition"))
                else:
                    found.add(key)
        stale = {k for k, content in self._context.partitions.items() if content.child is not None}
        self.refresh_children(sorted(found | stale))
        self._take_empty_parents()

    def _take_empty_parents(self) -> None:
        """Note the znodes that are left without a reassignment once the foreign ones are gone."""
        partitions = self._context.partitions
        flying = {topic for (topic, _), content in partitions.items() if content.child is not None}
        for topic in sorted((self._context.parents & self._context.numbers.keys()) - flying):
            self._context.parents.discard(topic)
            self.rubbish.append((f"{REASSIGNMENTS}/{topic}", "no reassignment is in flight"))

    def _find_key(self, topic: str, name: str) -> PartitionKey | None:
        if not (name.isascii() and name.isdigit() and name == str(int(name))):
            return None
        key = (topic, int(name))
        return key if key in self._context.partitions else None

    def refresh_children(self, keys: Iterable[PartitionKey]) -> None:
        """Read the reassignments in flight of these partitions."""
        keys = [key for key in keys if key in self._context.partitions]
        found = fetch(self._client, [reassignment_path(*key) for key in keys])
        for key, content in zip(keys, found, strict=True):
            self._take_child(key, content)

    def _take_child(self, key: PartitionKey, content: Any) -> None:
        if not self._rules.keeps_records:
            return  # what is in flight is in memory alone
        before = self._context.partitions[key]
        after = replace(before, child=None, child_version=-1, phase=None)
        if content is not None:
            data, stat = content
            self._context.parents.add(key[0])
            try:
                child = decode_reassignment(reassignment_path(*key), data)
            except BadZnode as bad:
                self.rubbish.append((bad.path, bad.reason))
            else:
                phase = before.phase
                if before.child is None:
                    phase = Phase.EXPAND
                elif before.child_version != stat.version:
                    # A change of ours of which we never learnt that it was carried out.
                    phase = Phase.DROP
                after = replace(before, child=child, child_version=stat.version, phase=phase)
        self._context.put(key, after)

    # Partitions as a whole, and requests

    def refresh_parents(self, topics: Iterable[str]) -> None:
        """Read again which of the znodes above states and reassignments of these topics exist."""
        topics = sorted(set(topics))
        found = gather([self._client.exists_async(f"{REASSIGNMENTS}/{topic}") for topic in topics])
        for topic, parent in zip(topics, found, strict=True):
            if parent is None:
                self._context.parents.discard(topic)
            else:
                self._context.parents.add(topic)
        found = read(self._client, [_list_partitions(topic) for topic in topics])
        for topic, numbers in zip(topics, found, strict=True):
            self._take_directories(topic, numbers)

    def _take_directories(self, topic: str, numbers: Iterable[str] | None) -> None:
        root, directories = f"{topic_path(topic)}/partitions", self._context.directories
        known = self._context.numbers.get(topic, ())
        directories.difference_update((root, *(f"{root}/{number}" for number in known)))
        if numbers is not None:
            directories.update((root, *(f"{root}/{number}" for number in numbers)))

    def refresh(self, keys: Iterable[PartitionKey]) -> None:
        """Read everything about these partitions again."""
        keys = sorted(keys)
        new = self.read_topics({topic for topic, _ in keys})
        known = [key for key in keys if key in self._context.partitions]
        self.refresh_states(known)
        self.refresh_children({*known, *new})

    def catch_up(self, keys: Iterable[PartitionKey], *, states: bool = True) -> None:
        """Read what has changed about these partitions, the settings of their topics included.

        Those that are not known may have been made since events were looked at last. `states=False`
        leaves a state that is remembered as it is.
        """
        keys = list(keys)
        known = self._context.partitions
        unknown = {key[0] for key in keys if key not in known}
        if unknown:
            self.read_topics(unknown)
        if not states:
            self.refresh_stale_states(k for k in keys if k in known and known[k].state is None)
        else:
            self.refresh_stale_states(keys)
        self._read_settings({topic for topic, _ in keys} - self._context.settings.keys())

    def look_for_unclean(self, keys: Iterable[PartitionKey]) -> None:
        """Read the settings of topics in which only a replica out of sync is left to be elected."""
        partitions = self._context.partitions
        offline = {k[0] for k in keys if k in partitions and self._context.is_offline(k)}
        self._read_settings(offline)

    def _read_settings(self, topics: set[str]) -> None:
        """Read what holds for these topics: their own settings go before those of all brokers."""
        if not topics:
            return
        paths = [topic_config_path(topic) for topic in topics]
        general, *own = fetch(self._client, [DEFAULT_BROKER_CONFIG, *paths])
        default = _take_settings(DEFAULT_BROKER_CONFIG, general, TopicSettings())
        for topic, path, content in zip(topics, paths, own, strict=True):
            found = _take_settings(path, content, default)
            self._context.settings[topic] = found

    def read_requests(self) -> None:
        """Read the names of the pending requests."""
        if self._rules.keeps_records:
            self.set_requests(list_children(self._client, [REASSIGNMENT_REQUESTS])[0] or ())

    def read_deletions(self, *, arm: bool = True) -> list[str]:
        """Read which topics clients ask to be deleted; return those that none asks for any more."""
        watch = self._watch if arm else None
        names = gather([self._client.get_children_async(DELETED_TOPICS, watch=watch)])[0] or ()
        before = self._context.deletions
        settings = gather([self._client.exists_async(topic_config_path(name)) for name in names])
        self._context.deletions = {
            name: replace(before.get(name, Deletion()), has_settings=found is not None)
            for name, found in zip(names, settings, strict=True)
        }
        return sorted(before.keys() - self._context.deletions.keys())

    def read_preferred(self, *, arm: bool = True) -> None:
        """Read of which partitions a client asks for the preferred leader; `arm` watches that."""
        found = self._read_perhaps(PREFERRED_ELECTION, arm=arm)
        if found is None:
            self._context.preferred = None
            return
        data, stat = found
        try:
            asked = Preferred(decode_preferred_election(PREFERRED_ELECTION, data), stat.version)
        except BadZnode as bad:
            asked = Preferred(frozenset(), stat.version, bad.reason)
        self._context.preferred = asked

    def read_old_znode(self, *, arm: bool = True) -> None:
        """Read the old znode where it is to be looked after; `arm` watches it, there or not."""
        if not self._rules.reads_old_znode:
            return
        found = self._read_perhaps(REASSIGN_PARTITIONS, arm=arm)
        if found is None:
            self._context.old = None
            return
        (data, stat), bad = found, ""
        try:
            entries = decode_reassign_partitions(REASSIGN_PARTITIONS, data)
        except BadZnode as error:
            entries, bad = (), error.reason
        known = self._context.old
        if known is None or known.created != stat.czxid:
            known = OldZnode(entries, stat.version, stat.czxid)
        self._context.old = replace(known.holding(entries, stat.version), bad=bad)

    def _read_perhaps(self, path: str, *, arm: bool) -> Any:
        """Return the content of a znode that mostly is not there; `arm` watches it either way."""
        if arm and gather([self._client.exists_async(path, watch=self._watch)])[0] is None:
            return None
        return fetch(self._client, [path])[0]

    def read_records(self) -> None:
        """Read who is missed since when, where that is recorded."""
        if not self._rules.heals:
            return
        found = self._read_below(FAILED_BROKERS, watch=None)
        self._context.failed.clear()
        for name, data in found.items():
            path = f"{FAILED_BROKERS}/{name}"
            broker = parse_number(name)
            try:
                since_ms = decode_failed_broker(path, data)
            except BadZnode as bad:
                self.rubbish.append((path, bad.reason))
            else:
                if broker is None:
                    self.rubbish.append((path, "not the id of a broker"))
                else:
                    self._context.failed[broker] = since_ms

    def read_tasks(self, *, arm: bool = True) -> None:
        """Read the persisted tasks, where there are any; `arm` puts a watch on their number."""
        if not self._rules.heals:
            return
        found = self._read_below(REASSIGNMENT_TASKS, watch=self._watch if arm else None)
        self._context.tasks.clear()
        self._context.tasks_unread = False
        for name, data in found.items():
            path, number = f"{REASSIGNMENT_TASKS}/{name}", parse_task_name(name)
            try:
                task = decode_task(path, data)
            except BadZnode as bad:
                self.rubbish.append((path, bad.reason))
            else:
                if number is None:
                    self.rubbish.append((path, "not the name of a task"))
                else:
                    self._context.tasks[number] = task

    def _read_below(self, path: str, *, watch: Watch | None) -> dict[str, bytes]:
        """Return the content of everything below a path, by name."""
        names = gather([self._client.get_children_async(path, watch=watch)])[0] or ()
        found = fetch(self._client, [f"{path}/{name}" for name in names])
        return {
            name: content[0]
            for name, content in zip(names, found, strict=True)
            if content is not None
        }

    def set_requests(self, names: Iterable[str]) -> None:
        """Remember the pending requests: foreign names first, then by number."""
        self._context.queue_unread = False
        self._context.requests = sorted(names, key=_request_order)

    def read_request(self, path: str) -> tuple[bytes, int] | None:
        """Return a request's data and its version, or None when it is gone."""
        content = gather([self._client.get_async(path)])[0]
        return None if content is None else (bytes(content[0]), content[1].version)

    def look_for_brokers(self, brokers: Iterable[int]) -> None:
        """Read again which brokers ever registered, unless these all are known to have."""
        if set(brokers) <= self._context.known_brokers:
            return
        configs, ids = gather(
            [
                self._client.get_children_async(BROKER_CONFIGS),
                self._client.get_children_async(BROKER_IDS),
            ]
        )
        self._remember_known([*(configs or ()), *(ids or ())])


def _list_partitions(topic: str) -> Read:
    """Return the question which partitions of a topic have a znode."""
    return Read(f"{topic_path(topic)}/partitions", children=True)


def _request_order(name: str) -> tuple[int, str]:
    """Order requests by number; ZooKeeper lists children in no particular order."""
    sequence = parse_request_name(name)
    return (-1 if sequence is None else sequence, name)


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
