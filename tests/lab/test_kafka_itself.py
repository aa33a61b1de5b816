"""Apache Kafka itself is driven and judged as any other implementation is.

The slow ones run where the jars of a version are: in KAFKA_JARS, KAFKA_HOME, or the cache that
`python -m reassure_lab.kafka.kafka_jars 3.9.1` fills. docs/kafka.md says more.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.exceptions import ConnectionLoss

from reassure_conformance.adapter import BadConnectable, open_adapter
from reassure_conformance.cli import run_command
from reassure_controller.session import connect, stop
from reassure_lab.kafka import kafka_jars
from reassure_lab.kafka.frame_proxy import FrameProxy
from reassure_lab.kafka.kafka_adapter import KafkaCluster
from reassure_lab.kafka.kafka_jars import NoJars, find_jars, parse_version
from reassure_zookeeper.interruptions import expire_session
from reassure_zookeeper.server import Server

VERSION = os.environ.get("KAFKA_VERSION", "3.9.1")
STORIES = 12


def make_jars(folder: Path, version: str) -> Path:
    """Make a directory that looks like the jars of a version."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"kafka_2.13-{version}.jar").touch()
    return folder


@pytest.fixture(autouse=True)
def alone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave nothing of this machine's jars but to those who run them."""
    if "jars" not in request.fixturenames:
        for name in (kafka_jars.JARS, kafka_jars.HOME):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("XDG_CACHE_HOME", "/nowhere")
        monkeypatch.setenv("PATH", "/nowhere")


@pytest.mark.parametrize("text", ["3.9", "4.0.0", "0.7.2", "latest", ""])
def test_versions_without_zookeeper_are_refused(text: str) -> None:
    """What is no version of Kafka that has a controller in ZooKeeper is refused."""
    with pytest.raises(BadConnectable, match=r"such as kafka:3\.9\.1|expected 0\.8\.0 to 3\.9"):
        parse_version(text)


def test_jars_are_taken_where_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory that is named comes first, then those of the environment, then the cache."""
    version, found = "3.9.1", []
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for place in ("cache/reassure/kafka/3.9.1", "home/libs", "jars", "named"):
        made = make_jars(tmp_path / place, version)
        found.append(made)
        if place == "home/libs":
            monkeypatch.setenv(kafka_jars.HOME, str(tmp_path / "home"))
        if place == "jars":
            monkeypatch.setenv(kafka_jars.JARS, str(made))
        assert find_jars(version, str(made) if place == "named" else "") == made
    other = make_jars(tmp_path / "other", "2.3.1")
    monkeypatch.setenv(kafka_jars.JARS, str(other))
    assert find_jars(version) == found[1]
    with pytest.raises(BadConnectable, match=r"other has no kafka_SCALA-3\.9\.1\.jar"):
        find_jars(version, str(other))


def test_version_that_cannot_be_had_is_unavailable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without jars and Maven the command ends with 69, and says where it has looked."""
    monkeypatch.setenv(kafka_jars.JARS, str(make_jars(tmp_path / "old", "2.3.1")))
    with pytest.raises(NoJars, match=r"not in KAFKA_JARS .*old, and no mvn .*KAFKA_HOME"):
        find_jars("3.9.1")
    out = str(tmp_path / "run")
    assert run_command(["test", "-i", "kafka:3.9.1", "--out", out]) == 69
    assert "install Maven, or name a directory with them" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "wrong"), [("kafka:3.9.1?hom=x", "no option hom"), ("kafka:", "no version")]
)
def test_connectables_that_are_none_are_refused(name: str, wrong: str) -> None:
    """An option that there is not, and a version that is left out, are refused."""
    with pytest.raises(BadConnectable, match=wrong):
        open_adapter(name, profile="kip-236", readings={})
    with pytest.raises(BadConnectable, match="--fault is for the bundled"):
        open_adapter(name, profile="kip-236", readings={}, faults=("drop-skipped",))


@pytest.mark.parametrize(
    ("version", "profile", "holds", "calls"),
    [
        ("3.9.1", "kafka-zk", True, True),
        ("2.3.1", "kafka-42", True, False),
        ("1.1.1", "kafka-42", False, False),
    ],
)
def test_versions_say_what_can_be_done_to_them(
    version: str, profile: str, holds: bool, calls: bool, tmp_path: Path
) -> None:
    """A version is judged by its own rules; only what it lets be done is declared."""
    home = make_jars(tmp_path, version)
    cluster = KafkaCluster(f"kafka:{version}?home={home}", profile="kip-236", readings={})
    told = cluster.describe()
    cluster.close()
    assert (told.profile, told.lifetime) == (profile, "run")
    assert ("hold" in told.capabilities, "admin" in told.routes) == (holds, calls)
    assert "isr" not in told.capabilities


@pytest.fixture
def passed(tmp_path: Path) -> Iterator[tuple[Server, FrameProxy]]:
    """A server and a proxy to it."""
    with Server.start(tmp_path / "zookeeper") as server:
        host, _, port = server.hosts.partition(":")
        proxy = FrameProxy((host, int(port)))
        yield server, proxy
        proxy.close()


def test_proxy_holds_the_writes_of_controllers(passed: tuple[Server, FrameProxy]) -> None:
    """The write behind so many, and what comes after it, waits until it is let go."""
    server, proxy = passed
    eyes, controller = connect(server.hosts), connect(f"127.0.0.1:{proxy.port}")
    eyes.create("/controller_epoch", b"1")

    def write(path: str) -> object:
        multi = controller.transaction()
        multi.check("/controller_epoch", 0)
        multi.create(path, b"")
        return multi.commit_async()

    proxy.hold(1)
    writes = [write("/a"), write("/b"), controller.create_async("/c", b"")]
    assert proxy.is_standing.wait(10)
    writes[0].get(timeout=10)
    assert {*eyes.get_children("/")} == {"zookeeper", "controller_epoch", "a"}
    proxy.resume()
    writes[2].get(timeout=10)
    assert {"a", "b", "c"} <= {*eyes.get_children("/")}
    stop(controller)
    stop(eyes)


@pytest.mark.parametrize("done", [True, False])
def test_proxy_loses_answers_and_writes(passed: tuple[Server, FrameProxy], done: bool) -> None:
    """No answer comes to the write; whether it was carried out is as it was asked for."""
    server, proxy = passed
    eyes, controller = connect(server.hosts), connect(f"127.0.0.1:{proxy.port}")
    eyes.create("/controller_epoch", b"1")
    multi = controller.transaction()
    multi.check("/controller_epoch", 0)
    multi.create("/a", b"")
    proxy.lose(0, done=done)
    with pytest.raises(ConnectionLoss):
        multi.commit()
    controller.create("/behind", b"")  # in the same session, over another connection
    assert (eyes.exists("/a") is not None) is done
    assert proxy.session is not None and proxy.session[0] == controller.client_id[0]
    assert expire_session(server.hosts, proxy.session)
    stop(controller)
    stop(eyes)


@pytest.fixture
def jars() -> str:
    """Name the version to run, where its jars are there."""
    parse_version(VERSION)
    monkey = pytest.MonkeyPatch()
    with monkey.context() as m:
        m.setattr(kafka_jars.shutil, "which", lambda _: None)  # nothing is fetched by a test
        try:
            find_jars(VERSION)
        except NoJars as error:
            pytest.skip(f"{error}; fetched by: python -m reassure_lab.kafka.kafka_jars {VERSION}")
    return VERSION


@pytest.mark.slow
def test_kafka_holds(jars: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Test cases of all kinds end without a violation, and nothing runs on afterwards."""
    out = str(tmp_path / "run")
    told = ("--stories", str(STORIES), "--examples", "0", "--seed", "7", "--out", out)
    code = run_command(["test", "-i", f"kafka:{jars}", *told])
    said = capsys.readouterr()
    assert code == 0, said
    assert re.search(r"HOLDS for brokers, .*hold", said.out)
    assert run_command(["audit", f"{out}/zookeeper"]) == 0


@pytest.mark.slow
def test_mistake_of_kafka_is_named(
    jars: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A controller that writes an in-sync set without the leader is found out."""
    hand_on = FrameProxy._hand_on

    def mistake(proxy: FrameProxy, server: object, frame: bytes) -> None:
        hand_on(proxy, server, frame.replace(b'"isr":[1]', b'"isr":[4]'))  # type: ignore[arg-type]

    monkeypatch.setattr(FrameProxy, "_hand_on", mistake)
    story = tmp_path / "dies.txt"
    story.write_text("world cluster brokers=1,2\n\ncreate orders with 1,2\nbroker 2 dies\n")
    assert run_command(["test", "-i", f"kafka:{jars}", "--case", str(story)]) == 1
    said = capsys.readouterr().out
    assert "VIOLATED leader.in-isr" in said
