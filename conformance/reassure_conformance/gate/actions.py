"""How each step is carried out: by the adapter, or by the gate itself where a client takes it."""

from reassure_conformance.adapter import (
    REQUESTS,
    Adapter,
    KeepsTime,
    LosesWrites,
    MakesTopics,
    Reply,
    StopsBrokers,
    TakesRequests,
    expect,
)
from reassure_conformance.adapter.driver import Driver
from reassure_conformance.gate import steps as s
from reassure_conformance.gate.example import Example
from reassure_conformance.gate.malformed_znodes import FOREIGN_KINDS, OLD_KINDS, make_raw_request
from reassure_conformance.gate.moment import ClusterMoment
from reassure_spec.znodes import (
    CONTROLLER,
    DEFAULT_BROKER_CONFIG,
    MIN_ISR,
    PREFERRED_ELECTION,
    REASSIGN_PARTITIONS,
    UNCLEAN,
    RequestZnode,
    TaskZnode,
    decode_config,
    decode_topic_content,
    deleted_topic_path,
    encode_config,
    encode_preferred_election,
    encode_reassign_partitions,
    encode_request,
    encode_task,
    encode_topic,
    request_path,
    topic_config_path,
    topic_path,
)


class Actions:
    """Carries out steps on the clusters of one run."""

    def __init__(self, driver: Driver, adapter: Adapter) -> None:
        self.driver = driver
        self.adapter = adapter

    def let_go(self, now: ClusterMoment) -> None:
        """Let go of what is held, and have a controller act."""
        if now.held or now.sleeper or now.losing:
            with self.driver.calling("resume"):
                expect(Reply, self.adapter.resume())
            now.held = now.sleeper = now.losing = False
        if not now.acting:
            with self.driver.calling("elect"):
                expect(Reply, self.adapter.elect())
            now.acting = True

    def bring_back(self, now: ClusterMoment) -> bool:
        """Start the brokers that are down. Returns whether there were any."""
        down = [broker for broker in now.brokers if broker not in now.up]
        for broker in down:
            with self.driver.calling("start_broker"):
                expect(Reply, self.adapter.start_broker(broker))
            now.up.add(broker)
        return bool(down)

    def ask_adapter(self, step: s.ClusterStep) -> Reply:
        """Have the adapter carry out a step of the implementation."""
        adapter = self.adapter
        match step:
            case s.Join(broker, (topic, partition)) | s.Intrude(broker, (topic, partition)):
                return adapter.change_isr(broker, topic, partition, joins=True)
            case s.Leave(broker, (topic, partition)):
                return adapter.change_isr(broker, topic, partition, joins=False)
            case s.Die(broker):
                return adapter.stop_broker(broker)
            case s.Return(broker):
                return adapter.start_broker(broker)
            case s.ShutDown(broker):
                assert isinstance(adapter, StopsBrokers)
                return adapter.shut_down_broker(broker)
            case s.Hold(effects):
                return adapter.hold(effects)
            case s.Resume():
                return adapter.resume()
            case s.Kill():
                return adapter.kill_controller()
            case s.Elect():
                return adapter.elect()
            case s.Expire():
                return adapter.expire_session()
            case s.Cut():
                return adapter.cut_connection()
            case s.Lose(writes, done):
                assert isinstance(adapter, LosesWrites)  # or it would not have the capability
                return adapter.lose_write(writes, done=done)
            case s.Tick(milliseconds):
                assert isinstance(adapter, KeepsTime)
                return adapter.advance(milliseconds)
            case _:
                raise AssertionError(step)

    def play_client(self, example: Example, step: s.ClusterStep) -> Reply:
        """Carry out a step of a client."""
        driver = self.driver
        match step:
            case s.CreateTopic(topic, assignments, least) if isinstance(self.adapter, MakesTopics):
                settings = {} if least == 1 else {MIN_ISR: str(least)}
                with driver.calling("create_topic"):
                    return expect(Reply, self.adapter.create_topic(topic, assignments, settings))
            case s.CreateTopic():
                return driver.write(lambda: self._create_topic(example.chroot, step))
            case s.Request(targets, legacy):
                return self._submit(example, [RequestZnode(dict(targets), legacy)])
            case s.Burst(requests):
                return self._submit(example, [RequestZnode(dict(r.targets)) for r in requests])
            case s.Change(key, target):
                return self._submit(example, [RequestZnode({key: target})])
            case s.Withdraw():
                path = example.chroot + request_path(example.now.view.requests[-1])
                return driver.write(lambda: driver.client.delete(path))
            case s.Rewrite(targets):
                path = example.chroot + request_path(example.now.view.requests[-1])
                content = encode_request(RequestZnode(dict(targets)))
                return driver.write(lambda: driver.client.set(path, content))
            case s.Grow():
                return driver.write(lambda: self._grow_topic(example.chroot, step))
            case s.SetMinIsr(topic, least):
                return self._set(example.chroot, topic, MIN_ISR, str(least))
            case s.SetUnclean(topic, allowed):
                return self._set(example.chroot, topic, UNCLEAN, str(allowed).lower())
            case s.RawRequest(kind):
                return driver.submit(example.chroot, [make_raw_request(kind)])
            case s.WriteOld(entries):
                content = encode_reassign_partitions(entries)
                return self._write_old_znode(example.chroot, content)
            case s.RawOld(kind):
                return self._write_old_znode(example.chroot, OLD_KINDS[kind])
            case s.DeleteOld():
                path = example.chroot + REASSIGN_PARTITIONS
                return driver.write(lambda: driver.client.delete(path))
            case s.Depose() | s.DeleteTopic() | s.Prefer():
                return self._served_step(example, step)
            case s.SubmitTask(targets):
                content = encode_task(TaskZnode(dict(targets), automatic=False))
                return driver.submit_task(example.chroot, content)
            case s.Foreign(kind):
                path, content = FOREIGN_KINDS[kind]
                path = path.replace("/orders/", f"/{example.rename('orders')}/")
                example.now.planted.add(kind)
                return driver.write(
                    lambda: driver.client.create(example.chroot + path, content, makepath=True)
                )
            case _:
                raise AssertionError(step)

    def _submit(self, example: Example, requests: list[RequestZnode]) -> Reply:
        """Ask for reassignments: by request znodes, or else as the implementation is asked."""
        if REQUESTS in example.now.routes:
            return self.driver.submit(example.chroot, map(encode_request, requests))
        assert isinstance(self.adapter, TakesRequests)  # or nobody could be asked
        replies = []
        for (topic, number), target in (pair for r in requests for pair in r.assignments.items()):
            with self.driver.calling("reassign"):
                replies.append(expect(Reply, self.adapter.reassign(topic, number, target)))
        return max(replies, key=list(Reply).index)

    def _set(self, chroot: str, topic: str, name: str, value: str) -> Reply:
        """Set one setting of a topic, or of all brokers (""), beside those that are set."""
        path = topic_config_path(topic) if topic else DEFAULT_BROKER_CONFIG
        driver, client = self.driver, self.driver.client
        there = client.exists(chroot + path) is not None
        config = decode_config(path, client.get(chroot + path)[0]) if there else {}
        content = encode_config({**config, name: value})
        return driver.write(lambda: driver.put(chroot, {path: content}))

    def _served_step(self, example: Example, step: s.Depose | s.DeleteTopic | s.Prefer) -> Reply:
        driver = self.driver
        match step:
            case s.Depose():
                reply = driver.write(lambda: driver.client.delete(example.chroot + CONTROLLER))
                note_effect(example.now, step)
                return reply
            case s.DeleteTopic(topic):
                asked = example.chroot + deleted_topic_path(topic)
                return driver.write(lambda: driver.client.create(asked, b"", makepath=True))
            case s.Prefer():
                content = encode_preferred_election(map(example.find, example.now.existing()))
                return driver.write(
                    lambda: driver.put(example.chroot, {PREFERRED_ELECTION: content})
                )

    def _write_old_znode(self, chroot: str, content: bytes) -> Reply:
        return self.driver.write(lambda: self.driver.put(chroot, {REASSIGN_PARTITIONS: content}))

    def _create_topic(self, chroot: str, step: s.CreateTopic) -> None:
        # The configuration goes first and in the same multi: no controller may see the topic
        # without the minimum that its creator asked for.
        multi = self.driver.client.transaction()
        if step.min_isr != 1:
            config = encode_config({MIN_ISR: str(step.min_isr)})
            multi.create(chroot + topic_config_path(step.topic), config)
        # An id of 22 characters, as Kafka's are: whoever writes the znode has to keep it.
        content = encode_topic(dict(enumerate(step.assignments)), f"{step.topic:-<22.22}")
        multi.create(chroot + topic_path(step.topic), content)
        self.driver.commit(multi)

    def _grow_topic(self, chroot: str, step: s.Grow) -> None:
        path, client = chroot + topic_path(step.topic), self.driver.client
        data, stat = client.get(path)
        content = decode_topic_content(path, data)
        for number, assigned in enumerate(step.assignments, start=max(content.assigned) + 1):
            content = content.replace(number, assigned)
        client.set(path, content.encode(), stat.version)


def note_effect(now: ClusterMoment, step: s.ClusterStep) -> None:
    """Count what only the driver knows."""
    match step:
        case s.Die(broker):
            now.up.discard(broker)
            now.stopping.discard(broker)
        case s.Return(broker):
            now.up.add(broker)
        case s.ShutDown(broker):
            now.stopping.add(broker)
        case s.Hold():
            now.held = True
        case s.Lose():
            now.losing = True
        case s.Resume():
            now.held = now.sleeper = now.losing = False
        case s.Kill():
            now.acting = now.held = now.losing = False
        case s.Elect():
            now.acting = True
        case s.Expire() | s.Depose():
            # Only a held process sleeps through the loss of its session or its term; another one
            # finds out at once and contends again.
            now.sleeper = now.sleeper or now.held
            now.acting = not now.held
            now.held = now.losing = False
        case _:
            pass
