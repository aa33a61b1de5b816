"""Controllers written from the page of the protocol: each is found as its README says."""

import functools
import shutil
import subprocess
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from reassure_conformance.adapter import EXAMPLE, LOG, OLD_ZNODE, REQUESTS, WATCHES
from reassure_conformance.answers.case_run import tell_document
from reassure_conformance.answers.smoking import smoke_document
from reassure_conformance.gate.controllers import ControllersResult
from reassure_conformance.gate.run_settings import Settings
from reassure_conformance.gate.running import run
from reassure_zookeeper.server import Server

DROP_OWED = """world cluster brokers=1,2,3,4,5

create orders with 3
broker 3 dies
request orders-0 to 5
request orders-0 to 2,5,1
depose controller
"""
EXAMPLES = Path(__file__).parents[2] / "examples"


JACKSON = ("jackson-core", "jackson-databind", "jackson-annotations")
CLASSES = ("zookeeper", "zookeeper-jute", "slf4j-api", "netty-handler", *JACKSON)
"""The jars that the example in Java needs, of those that come with PySpark."""
SERVED_BY_NONE = {"deletion", "messages", "preferred", "shutdown"}


def _require(tool: str, language: str) -> None:
    if shutil.which(tool) is None:
        pytest.skip(f"there is no {tool} here, which the example in {language} needs")


def _build_go(folder: Path) -> str:
    _require("go", "Go")
    example = EXAMPLES / "go-controller"
    fetched = subprocess.run(
        ["go", "mod", "download"], cwd=example, capture_output=True, text=True, timeout=300
    )
    if fetched.returncode:
        pytest.skip(f"the library of the example in Go cannot be had: {fetched.stderr.strip()}")
    program = folder / "go-controller"
    subprocess.run(["go", "build", "-o", str(program), "."], cwd=example, check=True, timeout=600)
    return f"exec:{program}"


def _build_node(folder: Path) -> str:
    _require("npm", "Node")
    for file in (EXAMPLES / "node-controller").iterdir():
        if file.is_file():
            shutil.copy(file, folder)
    fetched = subprocess.run(
        ["npm", "ci", "--no-audit", "--no-fund"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
    )
    if fetched.returncode:
        pytest.skip(f"the library of the example in Node cannot be had: {fetched.stderr.strip()}")
    return f"exec:node {folder / 'adapter.mjs'}"


def _build_java(folder: Path) -> str:
    _require("javac", "Java")
    spark = find_spec("pyspark")
    if spark is None or spark.origin is None:
        pytest.skip("there is no PySpark here, whose jars the example in Java needs")
    jars = Path(spark.origin).parent / "jars"
    path = ":".join(str(jar) for name in CLASSES for jar in jars.glob(f"{name}-[0-9]*.jar"))
    sources = sorted(map(str, (EXAMPLES / "java-controller").glob("*.java")))
    subprocess.run(["javac", "-cp", path, "-d", str(folder), *sources], check=True, timeout=600)
    return f"exec:java -cp {folder}:{path} Adapter"


BUILDS = {"go": _build_go, "node": _build_node, "java": _build_java}


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """What builds an example, once, and returns its connectable."""
    return functools.cache(lambda name: BUILDS[name](tmp_path_factory.mktemp(name)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "profile"), [("go", "kip-236"), ("node", "kip-236"), ("java", "kip-236-legacy")]
)
def test_controller_is_sound(
    name: str, profile: str, build: Callable[[str], str], tmp_path: Path
) -> None:
    """It holds in every story and in generated examples, and meets every clause that it can."""
    settings = Settings(1, connectable=build(name), profile=profile, examples=10, steps_min=0)
    result = run(settings, tmp_path)
    assert isinstance(result, ControllersResult)
    assert result.died == ""
    assert result.failure is None, result.failure.story.lines()
    assert result.verdict() == "holds", result.missing()
    declared = {"isr", "brokers", "kill", EXAMPLE, OLD_ZNODE, REQUESTS}
    assert result.capabilities == {*declared, LOG, WATCHES}
    assert {need for needs in result.not_asked().values() for need in needs} == SERVED_BY_NONE


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", BUILDS)
def test_controller_finds_a_drop_that_its_predecessor_owed(
    name: str, build: Callable[[str], str], tmp_path: Path
) -> None:
    """A change that waits with its drop goes on to wait after a failover, though nobody leads."""
    story = tmp_path / "story.txt"
    story.write_text(DROP_OWED, encoding="utf-8")
    settings = Settings(0, connectable=build(name), hang_s=60.0)
    document = tell_document(settings, str(story), tmp_path)
    assert (document.verdict, document.body["violations"]) == ("holds", [])
    assert "drop.carried-out" in document.body["told"][-1]["exercised"]


def test_controller_in_node_is_driven_by_zookeeper_alone(
    build: Callable[[str], str], tmp_path: Path
) -> None:
    """Without its adapter, as a process, it is told three stories and holds in them."""
    adapter = Path(build("node").rpartition(" ")[2])
    with Server.start(tmp_path / "zookeeper") as server:
        client = KazooClient(server.hosts)
        client.start()
        client.create("/mine", b"")
        command = ["node", str(adapter.with_name("alone.mjs")), f"{server.hosts}/mine"]
        process = subprocess.Popen(command)
        while client.exists("/mine/controller") is None:
            assert process.poll() is None
            time.sleep(0.05)
        place = f"zk:{server.hosts}/mine?log={server.log_dir}"
        document = smoke_document(Settings(0, connectable=place, hang_s=60.0), tmp_path)
        process.terminate()
        process.wait(30)
        client.stop()
        client.close()
    assert (document.verdict, document.body["amiss"]) == ("holds", "")
