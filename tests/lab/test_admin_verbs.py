"""The verb `reassign`: every action, against the bundled controller, by either protocol."""

import json
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from kazoo.exceptions import BadVersionError

from reassure_conformance.cli import run_command
from reassure_controller import session
from reassure_controller.controller import Controller
from reassure_lab.admin import survey, verbs
from reassure_lab.answers.reassigning import Listener
from reassure_lab.throttles import (
    CONFIG_CHANGES,
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    decode_change,
)
from reassure_spec.znodes import (
    CONTROLLER,
    DELETED_TOPICS,
    REASSIGN_PARTITIONS,
    REASSIGNMENT_REQUESTS,
    broker_config_path,
    broker_path,
    decode_config,
    encode_config,
    encode_controller,
    topic_config_path,
)

Moves = dict[tuple[str, int], list[int]]
PROTOCOLS = {"kip-236": "kip-236", "legacy": "kip-236-legacy"}
"""By protocol of the tool: the profile of a controller that goes by it."""


class Tool:
    """Runs the verb on a cluster, by one protocol."""

    def __init__(self, cluster: Any, protocol: str, folder: Path) -> None:
        self.cluster = cluster
        self.protocol = protocol
        self._folder = folder
        self.said = ""

    def __call__(self, *arguments: str) -> int:
        """Run the verb; return its exit code."""
        texts: list[str] = []
        where = ("--zookeeper", self.cluster.hosts, "--protocol", self.protocol)
        code = run_command(["lab", "reassign", *where, *arguments], say=texts.append)
        self.said = "\n".join(texts)
        return code

    def file(self, moves: Moves | None = None, *, text: str = "", name: str = "moves.json") -> str:
        """Write a file of moves, or of this text, and return its path."""
        path = self._folder / name
        entries = [
            {"topic": topic, "partition": partition, "replicas": replicas}
            for (topic, partition), replicas in (moves or {}).items()
        ]
        path.write_text(text or json.dumps({"version": 1, "partitions": entries}), encoding="utf-8")
        return str(path)

    def execute(self, moves: Moves, *more: str) -> int:
        """Start these moves."""
        return self("--execute", "--reassignment-json-file", self.file(moves), *more)

    def verify(self, moves: Moves, *more: str) -> int:
        """Look how far these moves are."""
        return self("--verify", "--reassignment-json-file", self.file(moves), *more)

    def cancel(self, moves: Moves, *more: str) -> int:
        """Cancel these moves."""
        return self("--cancel", "--reassignment-json-file", self.file(moves), *more)

    def refused(
        self, act: Callable[..., int], *arguments: Any, code: int = 64, **options: Any
    ) -> str:
        """Have the tool refuse something, and return the message of the error."""
        assert act(*arguments, "--format", "json", **options) == code
        return str(self.json()["error"]["message"])

    def json(self) -> dict[str, Any]:
        """Return what was said, as a document."""
        document: dict[str, Any] = json.loads(self.said)
        return document


@pytest.fixture(params=PROTOCOLS)
def tool(request: pytest.FixtureRequest, cluster: Any, tmp_path: Path) -> Tool:
    """A tool, by each protocol, on a cluster with a topic of two partitions."""
    cluster.create_topic("t", {0: (1, 2), 1: (2, 1)})
    cluster.create_topic("u", {0: (1,)})
    return Tool(cluster, request.param, tmp_path)


@pytest.fixture
def controller(tool: Tool) -> Controller:
    """A controller that goes by the tool's protocol and has seen the topics."""
    elected: Controller = tool.cluster.controller(profile=PROTOCOLS[tool.protocol])
    elected.drain()
    return elected


SAVED = (
    'Current partition replica assignment\n\n{"version":1,"partitions":[{"topic":"t","partition":0,'
    '"replicas":[1,2],"log_dirs":["any","any"]}]}\n\n'
    "Save this to use as the --reassignment-json-file option during rollback\n"
)
MOVE: Moves = {("t", 0): [1, 3]}


def test_move_from_start_to_end(tool: Tool, controller: Controller) -> None:
    """A move is started, listed while it goes on, and verified, in the words of Kafka's tool."""
    assert tool("--list") == 0
    assert tool.said == "No partition reassignments found."
    assert tool.execute(MOVE) == 0
    assert tool.said == SAVED + "Successfully started partition reassignment for t-0"
    assert tool.verify(MOVE) == 2
    progress = "Reassignment of partition t-0 is still in progress."
    assert tool.said == f"Status of partition reassignment:\n{progress}"
    tool("--list")
    assert (
        tool.said == "Current partition reassignments:\nt-0: replicas: 1,2. adding: 3. removing: 2."
    )
    controller.drain()
    tool("--list")
    listed = "t-0: replicas: 1,2,3. adding: 3. removing: 2."
    assert tool.said == f"Current partition reassignments:\n{listed}"
    tool.cluster.join("t", 0, 3, then=controller)
    assert tool.verify(MOVE) == 0
    assert tool.said == (
        "Status of partition reassignment:\nReassignment of partition t-0 is complete.\n"
        "Clearing broker-level throttles on brokers 1,2,3,4\n"
        "Clearing topic-level throttles on topic t"
    )
    assert tool.cluster.assigned("t", 0) == (1, 3)
    tool("--list")
    assert tool.said == "No partition reassignments found."


def test_documents_for_scripts(tool: Tool, controller: Controller) -> None:
    """With `--format json` each action says one document, with the same head as other verbs."""
    asks = {("t", 0): [3, 4], ("t", 1): [2, 1]}
    tool.execute(asks, "--format", "json")
    document = tool.json()
    head = ("verb", "verdict", "exit_code", "action", "protocol", "throttle")
    assert [document[one] for one in head] == [
        *("reassign", "holds", 0, "execute", tool.protocol, None),
    ]
    assert document["started"][0] == {"topic": "t", "partition": 0, "replicas": [3, 4]}
    controller.drain()
    tool("--list", "--format", "json")
    assert tool.json()["reassignments"] == [
        {
            "topic": "t",
            "partition": 0,
            "replicas": [1, 2, 3, 4],
            "adding": [3, 4],
            "removing": [1, 2],
            "target": [3, 4],
            "route": tool.protocol,
        }
    ]
    assert tool.verify(asks, "--format", "json") == 2
    document = tool.json()
    assert document["counts"] == {
        "partitions": 2,
        "complete": 1,
        "in_progress": 1,
        "other_replicas": 0,
    }
    assert document["partitions"][0] == {
        "topic": "t",
        "partition": 0,
        "status": "in progress",
        "replicas": [1, 2, 3, 4],
        "target": [3, 4],
        "in_sync": 0,
    }
    assert (document["verdict"], document["cleared"]) == ("unknown", None)
    tool.cancel(asks, "--format", "json")
    assert tool.json()["cancelled"] == [{"topic": "t", "partition": 0, "replicas": [1, 2]}]
    tool.verify(asks, "--format", "markdown")
    assert tool.said.startswith("```\nStatus of partition reassignment:\n")


def test_cancel_goes_back(tool: Tool, controller: Controller) -> None:
    """What is cancelled ends with the replicas that there were, and verifying says so."""
    asks = {("t", 0): [3, 4], ("u", 0): [1, 2]}
    tool.execute(asks)
    controller.drain()
    tool.cluster.join("t", 0, 3, then=controller)
    assert tool.cancel(asks) == 0
    assert tool.said.startswith("Successfully cancelled partition reassignments for: t-0,u-0\n")
    controller.drain()
    assert tool.verify(asks) == 1
    assert tool.said.splitlines()[1] == (
        "There is no active reassignment of partition t-0, but replica set is 1,2 rather than 3,4."
    )
    assert (tool.cluster.assigned("t", 0), tool.cluster.assigned("u", 0)) == ((1, 2), (1,))
    assert tool.cancel(asks) == 0
    assert tool.said.startswith("None of the specified partition reassignments are active.\n")


def test_more_is_started_only_when_asked_to(tool: Tool, controller: Controller) -> None:
    """A second reassignment is refused in Kafka's words, and is added with `--additional`."""
    tool.execute(MOVE)
    for _ in range(2):  # before and after a controller has seen the first
        assert tool.execute({("u", 0): [4]}, "--format", "json") == 64
        assert tool.json()["error"]["message"].startswith(
            "Cannot execute because there is an existing partition assignment.  Use --additional"
        )
        controller.drain()
    assert tool.execute({("u", 0): [4]}, "--additional") == 0
    assert tool.execute({("t", 0): [1, 4]}, "--additional") == 0
    controller.drain()
    tool("--list")
    assert [line.partition(":")[0] for line in tool.said.splitlines()[1:]] == ["t-0", "u-0"]
    assert tool.cluster.child("t", 0).target == (1, 4)
    tool.cluster.join("t", 0, 4)
    tool.cluster.join("u", 0, 4, then=controller)
    assert tool.verify({("t", 0): [1, 4], ("u", 0): [4]}) == 0


def test_what_is_on_its_way_is_not_asked_for_again(tool: Tool, controller: Controller) -> None:
    """The same moves again make no second request: only their throttle changes."""
    tool.execute(MOVE)
    controller.drain()
    before = tool.cluster.dump()
    assert tool.execute(MOVE, "--additional", "--format", "json") == 0
    assert tool.json()["counts"] == {"partitions": 1, "asked": 0}
    assert tool.json()["current"]["partitions"][0]["replicas"] == [1, 2]
    assert tool.cluster.dump() == before


def test_changed_target_cannot_be_cancelled_blindly(tool: Tool, controller: Controller) -> None:
    """Where a target was changed nobody knows the first replicas: asking for these goes back."""
    tool.execute(MOVE)
    controller.drain()
    tool.execute({("t", 0): [4, 3]}, "--additional")
    controller.drain()
    assert "t-0: ZooKeeper does not tell" in tool.refused(tool.cancel, MOVE)
    assert tool.execute({("t", 0): [1, 2]}, "--additional") == 0
    controller.drain()
    assert tool.cluster.assigned("t", 0) == (1, 2)


def test_other_way_is_refused(tool: Tool) -> None:
    """A partition in flight by one protocol is neither changed nor cancelled by the other."""
    controller = tool.cluster.controller(profile="kip-236-legacy")
    controller.drain()
    tool.execute(MOVE)
    controller.drain()
    tool.protocol = next(one for one in PROTOCOLS if one != tool.protocol)
    assert "t-0 is being reassigned by another way" in tool.refused(
        tool.execute, {("t", 0): [4]}, "--additional"
    )
    assert tool.cancel(MOVE) == 64


def settings(tool: Tool, path: str) -> dict[str, str]:
    """Return the settings of a broker or a topic."""
    return decode_config(path, tool.cluster.admin.get(path)[0])


def notes(tool: Tool) -> list[str]:
    """Return which configurations were said to have changed, in order."""
    names = sorted(tool.cluster.admin.get_children(CONFIG_CHANGES))
    return [decode_change("", tool.cluster.admin.get(f"{CONFIG_CHANGES}/{n}")[0]) for n in names]


def test_throttle_is_set_changed_and_removed(tool: Tool, controller: Controller) -> None:
    """A throttle names who sends and who receives, what moves already included, and goes after."""
    topic, own = topic_config_path("t"), broker_config_path(1)
    tool.cluster.admin.create(topic, encode_config({"min.insync.replicas": "1"}))
    assert tool.execute(MOVE, "--throttle", "1000") == 0
    assert tool.said == SAVED + (
        "Warning: You must run --verify periodically, until the reassignment completes, to ensure "
        "the throttle is removed.\nThe inter-broker throttle limit was set to 1000 B/s\n"
        "Successfully started partition reassignment for t-0"
    )
    assert settings(tool, topic) == {
        "min.insync.replicas": "1",
        LEADER_REPLICAS: "0:1,0:2",
        FOLLOWER_REPLICAS: "0:3",
    }
    assert settings(tool, own) == {LEADER_RATE: "1000", FOLLOWER_RATE: "1000"}
    assert notes(tool) == [topic, *(broker_config_path(one) for one in (1, 2, 3))]
    controller.drain()
    assert tool.execute({("t", 1): [2, 4]}, "--additional", "--throttle", "2000") == 0
    assert settings(tool, topic)[LEADER_REPLICAS] == "0:1,0:2,1:1,1:2"
    assert settings(tool, topic)[FOLLOWER_REPLICAS] == "0:3,1:4"
    assert settings(tool, broker_config_path(4))[LEADER_RATE] == "2000"
    assert settings(tool, own)[FOLLOWER_RATE] == "2000"
    controller.drain()
    tool.cluster.join("t", 0, 3, then=controller)
    tool.verify(MOVE)  # one of the two is still on its way
    assert LEADER_RATE in settings(tool, own)
    tool.cluster.join("t", 1, 4, then=controller)
    assert tool.verify(MOVE, "--preserve-throttles") == 0
    assert "Clearing" not in tool.said
    assert LEADER_RATE in settings(tool, own)
    assert tool.verify(MOVE) == 0
    assert [settings(tool, broker_config_path(one)) for one in (1, 2, 3, 4)] == [{}] * 4
    assert settings(tool, topic) == {"min.insync.replicas": "1"}
    counted = len(notes(tool))
    assert tool.verify(MOVE) == 0
    assert len(notes(tool)) == counted


def test_cancel_removes_throttles(tool: Tool, controller: Controller) -> None:
    """Throttles go with what is cancelled, unless they are to be preserved."""
    tool.execute(MOVE, "--throttle", "1000")
    controller.drain()
    tool.cancel(MOVE, "--preserve-throttles")
    assert settings(tool, broker_config_path(3))[LEADER_RATE] == "1000"
    controller.drain()
    tool.cancel(MOVE)
    assert settings(tool, broker_config_path(3)) == {}


def test_throttle_and_request_are_one_transaction(tool: Tool) -> None:
    """What is refused leaves no throttle behind."""
    before = tool.cluster.dump()
    assert tool.execute({("t", 0): [1, 9]}, "--throttle", "1000") == 64
    assert tool.cluster.dump() == before


def test_waiting_ends_with_the_move(tool: Tool, controller: Controller) -> None:
    """`--wait` returns when nothing of the file moves any more, and not later than it may."""
    tool.execute(MOVE)
    assert tool.verify(MOVE, "--wait", "--timeout", "0") == 2
    controller.drain()
    tool.cluster.join("t", 0, 3, then=controller)
    assert tool.verify(MOVE, "--watch") == 0


def test_waiting_looks_again(
    tool: Tool, controller: Controller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While one waits the move goes on."""
    acts: list[Callable[[], Any]] = [
        controller.drain,
        lambda: tool.cluster.join("t", 0, 3),
        controller.drain,
    ]
    monkeypatch.setattr(Listener, "wait", lambda _: acts.pop(0)() if acts else None)
    tool.execute(MOVE)
    assert tool.verify(MOVE, "--wait") == 0
    assert acts == []


@pytest.fixture
def tool_42(cluster: Any, tmp_path: Path) -> Tool:
    """A tool by the old znode, on a cluster with a topic, whose controller knows nothing else."""
    cluster.create_topic("t", {0: (1, 2), 1: (2, 1)})
    cluster.controller(profile="kafka-42").drain()
    return Tool(cluster, "legacy", tmp_path)


@pytest.mark.clause("move.tool.creates-path", "move.tool.reports", "move.tool.one-at-a-time")
def test_one_call_asks_and_waits(
    tool_42: Tool, cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--execute --wait` listens before it asks, and says of each partition what came of it."""
    tool, order, commit, arm = tool_42, list[str](), session.commit, Listener.arm
    acts: list[Callable[[], Any]] = [
        lambda: cluster.die(4, then=cluster.controllers[-1]),
        lambda: tool.execute(MOVE),
        lambda: cluster.join("t", 0, 3),
        lambda: cluster.controllers[-1].drain(),
    ]
    monkeypatch.setattr(Listener, "wait", lambda _: acts.pop(0)())
    monkeypatch.setattr(Listener, "arm", lambda one: (order.append("listen"), arm(one)))
    monkeypatch.setattr(verbs, "commit", lambda *them: (order.append("ask"), commit(*them)))
    both: Moves = {**MOVE, ("t", 1): [2, 4]}
    assert tool.execute(both, "--wait") == 1
    assert "t-0 is complete" in tool.said
    assert "no active reassignment of partition t-1" in tool.said
    assert (order[0], order.count("ask"), acts) == ("listen", 1, [])


@pytest.mark.clause("move.tool.interrupt")
def test_interrupted_command_of_kafka_42_takes_its_path_away(
    tool_42: Tool, cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who interrupts it is told what failed, and can ask for the same again."""

    def interrupt(_: Listener) -> None:
        cluster.controllers[-1].drain()
        raise KeyboardInterrupt

    monkeypatch.setattr(Listener, "wait", interrupt)
    assert tool_42.execute(MOVE, "--wait") == 1
    assert "nobody asks for t-0 any more" in tool_42.said
    assert cluster.admin.exists(REASSIGN_PARTITIONS) is None
    assert tool_42.execute(MOVE) == 0


def test_interrupted_command_says_how_to_go_on(
    tool: Tool, controller: Controller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What can be cancelled goes on when the command that asked for it is interrupted."""

    def interrupt(_: Listener) -> None:
        controller.drain()
        raise KeyboardInterrupt

    monkeypatch.setattr(Listener, "wait", interrupt)
    assert tool.execute(MOVE, "--wait") == 2
    assert "t-0 is still in progress" in tool.said and "--cancel takes it back" in tool.said
    tool.cluster.join("t", 0, 3, then=controller)
    assert tool.verify(MOVE) == 0


@pytest.mark.parametrize(
    ("moves", "words"),
    [
        ({("t", 7): [1, 2]}, "contains non-existent partitions: t-7"),
        ({("v", 0): [1, 2]}, "contains non-existent partitions: v-0"),
        ({("t", 0): [1, 9, 8]}, "contains non-existent brokerIDs: 8,9; alive are 1,2,3,4"),
    ],
)
def test_what_is_not_there_is_refused(tool: Tool, moves: Moves, words: str) -> None:
    """A partition or a broker that there is not is refused with the file and the line."""
    assert tool.execute(moves, "--format", "json") == 64
    error = tool.json()["error"]
    assert error["message"].startswith(f"{tool.file(moves)}, line 1: The proposed assignment ")
    assert words in error["message"]
    assert error["line"] == 1
    assert tool.cluster.requests() == []
    assert not tool.cluster.admin.exists(REASSIGN_PARTITIONS)


def test_dead_broker_and_dying_topic_are_refused(tool: Tool) -> None:
    """A broker that has died counts as not there, and so does a topic that is to be deleted."""
    tool.cluster.die(3)
    assert tool.execute(MOVE) == 64
    tool.cluster.admin.ensure_path(f"{DELETED_TOPICS}/t")
    assert "t-0 (it is to be deleted)" in tool.refused(tool.execute, {("t", 0): [1, 4]})


def test_unknown_partition_is_verified_as_such(tool: Tool) -> None:
    """A partition that does not exist has no replicas."""
    assert tool.verify({("v", 0): [1]}) == 1
    assert "but replica set is  rather than 1." in tool.said


def test_cluster_without_requests_takes_the_old_znode_only(cluster: Any, tmp_path: Path) -> None:
    """Where the paths of KIP-236 are missing, as in Kafka's own clusters, the tool says so.

    What is in the old znode there can be neither added to nor cancelled.
    """
    cluster.create_topic("t", {0: (1, 2), 1: (2, 1)})
    cluster.admin.delete(REASSIGNMENT_REQUESTS)
    tool = Tool(cluster, "kip-236", tmp_path)
    assert "use --protocol legacy" in tool.refused(tool.execute, MOVE)
    tool.protocol = "legacy"
    assert tool.execute(MOVE) == 0
    assert "Kafka does not look at" in tool.refused(tool.execute, {("t", 1): [4]}, "--additional")
    assert "cannot be taken back" in tool.refused(tool.cancel, MOVE)
    cluster.admin.delete(REASSIGN_PARTITIONS)
    lists = {"adding_replicas": {"0": [3]}, "removing_replicas": {"0": [2]}}
    content = {"version": 2, "partitions": {"0": [1, 3, 2], "1": [2, 1]}, **lists}
    cluster.admin.set("/brokers/topics/t", json.dumps(content).encode())
    tool("--list")
    assert tool.said.splitlines()[1:] == ["t-0: replicas: 1,3,2. adding: 3. removing: 2."]
    assert tool.verify(MOVE) == 2


def generate(tool: Tool, brokers: str, *more: str, topics: str = "") -> int:
    """Propose an assignment of the topics to these brokers."""
    text = topics or '{"version":1,"topics":[{"topic":"t"},{"topic":"u"}]}'
    file = tool.file(text=text, name="topics.json")
    return tool(
        *("--generate", "--topics-to-move-json-file", file, "--broker-list", brokers, *more)
    )


def test_proposal_can_be_executed(tool: Tool, controller: Controller) -> None:
    """What is proposed is the same for a seed, printed as Kafka does, and can be executed."""
    assert generate(tool, "3,4", "--seed", "7") == 0
    said = tool.said
    lines = said.splitlines()
    assert [lines[0], lines[2], lines[3]] == [
        *("Current partition replica assignment", ""),
        "Proposed partition reassignment configuration",
    ]
    current, proposed = (json.loads(lines[place])["partitions"] for place in (1, 4))
    assert [one["replicas"] for one in current] == [[1, 2], [2, 1], [1]]
    assert [sorted(one["replicas"]) for one in proposed[:2]] == [[3, 4], [3, 4]]
    assert proposed[0]["replicas"] != proposed[1]["replicas"]
    assert list(proposed[0]) == ["topic", "partition", "replicas", "log_dirs"]
    generate(tool, "4,3", "--seed", "7")
    assert tool.said == said
    generate(tool, "4,3", "--seed", "7", "--format", "json")
    document = tool.json()
    assert (document["seed"], document["proposed"]) == (7, json.loads(lines[4]))
    file = tool.file(text=lines[4])
    assert tool("--execute", "--reassignment-json-file", file) == 0


def test_proposal_goes_by_racks(tool: Tool) -> None:
    """Replicas are in different racks where brokers name them all; some alone are refused."""

    def name_rack(broker: int, rack: str) -> None:
        path = broker_path(broker)
        content = json.loads(tool.cluster.admin.get(path)[0])
        tool.cluster.admin.set(path, json.dumps({**content, "rack": rack}).encode())

    racks = {1: "a", 2: "a", 3: "b", 4: "b"}
    for broker in (1, 2):
        name_rack(broker, racks[broker])
    assert "Not all brokers have rack information (3,4" in tool.refused(
        partial(generate, tool), "1,2,3,4"
    )
    assert generate(tool, "1,2,3,4", "--disable-rack-aware") == 0
    assert generate(tool, "1,2") == 0
    for broker in (3, 4):
        name_rack(broker, racks[broker])
    for seed in map(str, range(9)):
        generate(tool, "1,2,3,4", "--seed", seed, "--format", "json")
        proposed = tool.json()["proposed"]["partitions"]
        assert all({racks[r] for r in one["replicas"]} == {"a", "b"} for one in proposed[:2])


@pytest.mark.parametrize(
    ("brokers", "topics", "words"),
    [
        ("1,9", "", "--broker-list: 9: not alive; alive are 1,2,3,4"),
        ("1,1", "", "Broker list contains duplicate entries: 1"),
        ("1,x", "", "expected ids as 1,2,3, found 'x'"),
        ("1", "", "Replication factor: 2 larger than available brokers: 1"),
        ("1", '{"topics":[\n{"topic":"v"}]}', "topics.json, line 2: Topic v does not exist"),
    ],
)
def test_proposal_is_refused(tool: Tool, brokers: str, topics: str, words: str) -> None:
    """Brokers that cannot hold the topics, and topics that there are not, are refused."""
    assert words in tool.refused(partial(generate, tool), brokers, topics=topics)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "exactly one action"),
        (["--list", "--verify"], "exactly one action"),
        (["--execute"], "--execute needs --reassignment-json-file"),
        (["--generate", "--broker-list", "1"], "--generate needs --topics-to-move-json-file"),
        (["--list", "--throttle", "5"], 'Option "--throttle" can\'t be used with --list'),
        (["--verify"], "--verify needs --reassignment-json-file"),
        (["--list", "--preserve-throttles"], "can't be used with --list"),
        (["--list", "--protocol", "kraft"], "'kraft' is not one of"),
        (["--execute", "--throttle", "0"], "not in the range"),
        (["--execute", "--reassignment-json-file", "no.json"], "'no.json' does not exist"),
    ],
)
def test_command_line_is_checked(tool: Tool, arguments: list[str], words: str) -> None:
    """What cannot be asked for is refused with the exit code of usage, and says why."""
    assert words in tool.refused(tool, *arguments)


def test_time_to_wait_is_for_waiting(tool: Tool) -> None:
    """A timeout without anything to wait for is refused."""
    assert "--timeout is for --wait" in tool.refused(tool.verify, MOVE, "--timeout", "5")


def test_malformed_registration_concerns_its_broker_alone(
    tool: Tool, controller: Controller, caplog: pytest.LogCaptureFixture
) -> None:
    """A registration that cannot be read is named, and its broker is not alive; others move."""
    tool.cluster.admin.create("/brokers/ids/77", b"?")
    assert tool.execute(MOVE) == 0
    assert "/brokers/ids/77: " in caplog.text
    assert "alive are 1,2,3,4" in tool.refused(tool.execute, {("t", 1): [1, 77]})


def test_a_dead_port_is_told_in_one_line() -> None:
    """Where nobody listens the verb ends with 69 and one line, and its client says nothing."""
    done = subprocess.run(
        [
            *(sys.executable, "-c", "from reassure_conformance.cli import main; main()"),
            *("lab", "reassign", "--list", "--zookeeper", "127.0.0.1:1"),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout) == (69, "")
    assert done.stderr == "reassure: 127.0.0.1:1: no ZooKeeper answers; start one or correct it\n"


def test_no_cluster_is_said_to_be_none(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    """No ZooKeeper, or no Kafka in it, has the exit code of what is unavailable."""
    monkeypatch.setattr("reassure_lab.answers.reassigning.CONNECT_S", 0.5)
    texts: list[str] = []
    where = ("lab", "reassign", "--list", "--format", "json", "--zookeeper")
    assert run_command([*where, "127.0.0.1:1"], say=texts.append) == 69
    assert "127.0.0.1:1: no ZooKeeper answers" in json.loads(texts[0])["error"]["message"]
    nowhere = tool.cluster.hosts + "-other"
    assert run_command([*where, nowhere], say=texts.append) == 69
    message = json.loads(texts[1])["error"]["message"]
    assert "/brokers/ids does not exist there" in message
    chroot = "/" + nowhere.partition("/")[2]
    tool.cluster.admin.chroot, before = "", tool.cluster.admin.chroot
    found = tool.cluster.admin.exists(chroot)
    tool.cluster.admin.chroot = before
    assert found is None


def before_commit(monkeypatch: pytest.MonkeyPatch, act: Callable[[], None]) -> None:
    """Have something happen once between what the tool reads and what it writes."""
    acts = [act]

    def commit(*arguments: Any) -> Any:
        if acts:
            acts.pop()()
        return session.commit(*arguments)

    monkeypatch.setattr(verbs, "commit", commit)


def test_rival_is_not_overwritten(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two who start at the same time by the old znode one is refused, and sets no throttle."""
    tool.protocol = "legacy"
    entry = '{"version":1,"partitions":[{"topic":"u","partition":0,"replicas":[2]}]}'
    before_commit(
        monkeypatch, lambda: tool.cluster.admin.create(REASSIGN_PARTITIONS, entry.encode())
    )
    assert tool.execute(MOVE, "--throttle", "1000") == 64
    assert tool.cluster.admin.get(REASSIGN_PARTITIONS)[0] == entry.encode()
    assert settings(tool, broker_config_path(1)) == {}


def test_settings_of_others_are_kept(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A setting that is made while a throttle is being set stays beside it."""
    own = broker_config_path(1)
    before_commit(
        monkeypatch,
        lambda: tool.cluster.admin.set(own, encode_config({"log.cleaner.threads": "2"})),
    )
    assert tool.execute(MOVE, "--throttle", "1000") == 0
    assert settings(tool, own) == {
        "log.cleaner.threads": "2",
        LEADER_RATE: "1000",
        FOLLOWER_RATE: "1000",
    }


def test_cancel_is_of_what_was_seen(
    tool: Tool, controller: Controller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What completes while it is being cancelled stays complete."""
    tool.execute(MOVE)
    controller.drain()

    def complete() -> None:
        tool.cluster.join("t", 0, 3, then=controller)

    before_commit(monkeypatch, complete)
    assert tool.cancel(MOVE) == 0
    assert tool.said.startswith("None of the specified partition reassignments are active.")
    controller.drain()
    assert tool.cluster.assigned("t", 0) == (1, 3)


@pytest.mark.parametrize(
    ("failure", "code", "words"),
    [
        (session.Indefinite("ConnectionLoss"), 69, "it is not known whether this was done"),
        (session.Refused(0, BadVersionError()), 64, "10 times ZooKeeper refused"),
    ],
)
def test_outcome_is_not_guessed(
    failure: Exception, code: int, words: str, tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A write without an answer is said to be one, and refusals without an end are not success."""

    def fail(*_: object) -> None:
        raise failure

    monkeypatch.setattr(verbs, "commit", fail)
    assert tool.execute(MOVE, "--format", "json") == code
    assert words in tool.json()["error"]["message"]


def test_silent_zookeeper_is_unavailable(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where ZooKeeper stops answering on the way the exit code says so."""

    def fail(*_: object) -> None:
        raise session.Indefinite("ConnectionLoss")

    monkeypatch.setattr(survey, "gather", fail)
    assert tool("--list", "--format", "json") == 69
    assert "ZooKeeper does not answer" in tool.json()["error"]["message"]


def test_too_much_at_once_is_refused(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    """What ZooKeeper would cut the connection for is refused before it is sent."""
    monkeypatch.setattr(verbs, "LARGEST_BYTES", 100)
    assert "ZooKeeper takes 100 at once" in tool.refused(tool.execute, MOVE)


@pytest.mark.parametrize("path", ["/brokers/topics/t", REASSIGN_PARTITIONS])
def test_damaged_znode_is_named(path: str, tool: Tool) -> None:
    """A znode that is not of the format has the exit code of bad data, and its path."""
    tool.cluster.admin.ensure_path(path)
    tool.cluster.admin.set(path, b"?")
    assert tool.execute(MOVE, "--format", "json") == 65
    assert tool.json()["error"]["path"] == path


def test_damaged_request_stops_nobody(tool: Tool) -> None:
    """A request that makes no sense is for the controller to delete, and hides no other."""
    tool.cluster.request_raw(b"?")
    tool.cluster.request({("t", 0): (1, 3), ("x", 9): (1,)})
    tool("--list")
    assert tool.said.splitlines()[1:] == ["t-0: replicas: 1,2. adding: 3. removing: 2."]


def test_bad_file_is_told_by_line(tool: Tool) -> None:
    """A file that is not of Kafka's format has the exit code of bad data, its name and the line."""
    file = tool.file(text='{"version": 1, "partitions": [\n{"topic": "t"}]}')
    assert tool("--verify", "--reassignment-json-file", file, "--format", "json") == 65
    error = tool.json()["error"]
    assert (error["class"], error["file"], error["line"]) == ("BadFile", file, 2)


UNREAD = {"kip-236": "kafka-42", "legacy": "kip-236"}
"""By protocol of the tool: the profile of a controller that never looks at it."""
SERVED = {"kip-236": "legacy", "legacy": "kip-236"}
"""The protocol of the tool that such a controller goes by instead."""


def test_what_nobody_would_do_is_refused_before_it_is_written(tool: Tool) -> None:
    """A controller of another protocol says so in ZooKeeper: nothing is asked of it, and 64."""
    tool.cluster.admin.ensure_path(REASSIGNMENT_REQUESTS)
    tool.cluster.controller(profile=UNREAD[tool.protocol]).drain()
    before = tool.cluster.dump()
    said = tool.refused(tool.execute, MOVE)
    assert f"(100) serves {UNREAD[tool.protocol]}" in said
    assert "nothing was written" in said
    assert f"use --protocol {SERVED[tool.protocol]}" in said
    assert tool.cluster.dump() == before


def test_what_nobody_will_do_can_be_taken_back(tool: Tool, tmp_path: Path) -> None:
    """What was asked for before a controller of another protocol came is cancelled, it alone."""
    tool.cluster.admin.ensure_path(REASSIGNMENT_REQUESTS)
    assert tool.execute({**MOVE, ("t", 1): [2, 3]}) == 0
    assert "There is no controller" in tool.said
    tool.cluster.controller(profile=UNREAD[tool.protocol]).drain()
    said = tool.refused(tool.execute, MOVE)
    assert "nobody would do it" in said
    other = Tool(tool.cluster, SERVED[tool.protocol], tmp_path)
    said = other.refused(other.execute, MOVE, "--additional")
    assert "does not look there; --cancel takes it back" in said
    assert tool.cancel(MOVE) == 0
    assert tool("--list", "--format", "json") == 0
    assert [one["partition"] for one in tool.json()["reassignments"]] == [1]
    assert tool.cancel({("t", 1): [2, 3]}) == 0
    assert tool("--list", "--format", "json") == 0
    assert tool.json()["reassignments"] == []
    assert tool.cluster.admin.exists(REASSIGN_PARTITIONS) is None
    assert tool.cluster.admin.get_children(REASSIGNMENT_REQUESTS) == []


def test_controller_of_kafka_is_asked_by_the_old_znode_alone(cluster: Any, tmp_path: Path) -> None:
    """A controller that is a broker and does not say what it serves is taken for Kafka's."""
    cluster.create_topic("t", {0: (1, 2)})
    cluster.admin.ensure_path(REASSIGNMENT_REQUESTS)
    cluster.admin.create(CONTROLLER, encode_controller(1, 5), ephemeral=True)
    tool = Tool(cluster, "kip-236", tmp_path)
    said = tool.refused(tool.execute, MOVE)
    assert "controller is broker 1 and does not say in /controller what it serves" in said
    legacy = Tool(cluster, "legacy", tmp_path)
    assert legacy.execute(MOVE) == 0
    assert "Successfully started" in legacy.said
    assert "does not say" not in legacy.said


def test_controller_that_does_not_say_is_told_of(cluster: Any, tmp_path: Path) -> None:
    """Where nobody can know whether the controller reads it, that is said, and how to see."""
    cluster.create_topic("t", {0: (1, 2)})
    cluster.admin.ensure_path(REASSIGNMENT_REQUESTS)
    cluster.admin.create(CONTROLLER, encode_controller(77, 5), ephemeral=True)
    tool = Tool(cluster, "kip-236", tmp_path)
    assert tool.execute(MOVE) == 0
    assert "Controller 77 does not say in /controller what it serves: see by --verify" in tool.said
