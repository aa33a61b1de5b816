"""What runs on a real cluster: a master and workers in processes of their own, on loopback."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
import pyspark
import pytest
from pipeline_steps import read_tables, show

from reassure_lab.protocols.kip_236.synthetic import Size, write_archive
from reassure_pipeline.audit.run_audit import audit_paths
from reassure_pipeline.spark.gateway import SparkUnavailable, open_spark
from reassure_pipeline.spark.placement import OnSpark
from reassure_pipeline.tables.fleet_tables import FleetTables
from reassure_zookeeper.java import SPARK_NEEDS, find_java

PROFILE = "kip-236"
HOME = Path(pyspark.__file__).parent
LIMIT_S = 120.0


@dataclass
class Worker:
    """A worker of the cluster, with its executors; they are one process group."""

    process: subprocess.Popen[bytes]
    folder: Path

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to all of it."""
        os.killpg(self.process.pid, number)

    def is_judging(self) -> bool:
        """Whether a task has begun: it reads the logs then."""
        with suppress(psutil.Error):
            family = psutil.Process(self.process.pid).children(recursive=True)
            return any(
                Path(file.path).name.startswith("log.") for p in family for file in p.open_files()
            )
        return False


@dataclass
class Cluster:
    """A standalone cluster of Spark's."""

    url: str
    workers: list[Worker]


def _start(folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
    """Start one of Spark's daemons with nothing of this environment but Java and Spark."""
    folder.mkdir()
    java = find_java(minimum=SPARK_NEEDS)
    jars = os.pathsep.join(str(jar) for jar in (HOME / "jars").glob("*.jar"))
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(
            [str(java.path), "-Xmx256m", "-cp", jars, *arguments],
            env={
                "PATH": os.environ["PATH"],
                "JAVA_HOME": str(java.path.resolve().parent.parent),
                # Executors are started with it, too.
                "JDK_JAVA_OPTIONS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
                "SPARK_HOME": str(HOME),
                "SPARK_SCALA_VERSION": "2.13",
                "SPARK_LOCAL_IP": "127.0.0.1",
                "SPARK_LOCAL_DIRS": str(folder),
            },
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
            start_new_session=True,
        )


def _await_line(folder: Path, pattern: str) -> str:
    until = time.monotonic() + LIMIT_S
    while time.monotonic() < until:
        found = re.search(pattern, (folder / "log").read_text(errors="replace"))
        if found is not None:
            return found[1]
        time.sleep(0.1)
    raise TimeoutError(f"{folder / 'log'} does not say {pattern}")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A master and two workers with one core each."""
    if find_java(minimum=SPARK_NEEDS).source == "packaged":
        pytest.skip("Spark starts executors with a Java module that the packaged Java has not got")
    folder = tmp_path_factory.mktemp("cluster")
    daemon, loopback = "org.apache.spark.deploy", ("--host", "127.0.0.1", "--webui-port", "0")
    started = [_start(folder / "master", f"{daemon}.master.Master", *loopback, "--port", "0")]
    try:
        url = _await_line(folder / "master", r"Starting Spark master at (spark://\S+)")
        workers = []
        for number in (1, 2):
            place = folder / f"worker-{number}"
            bounds = ("--cores", "1", "--memory", "1g", "--work-dir", str(place / "work"))
            started.append(_start(place, f"{daemon}.worker.Worker", *loopback, *bounds, url))
            workers.append(Worker(started[-1], place))
        for worker in workers:
            _await_line(worker.folder, r"(Successfully registered) with master")
        yield Cluster(url, workers)
    finally:
        for process in started:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.fixture(autouse=True)
def bare_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let executors run a Python that has nothing but Arrow, and little memory."""
    packages = tmp_path / "packages"
    packages.mkdir()
    for name in (
        "pyarrow",
        "pandas",
        "numpy",
        "pytz",
        "dateutil",
        "six.py",
        "tzdata",
        "numpy.libs",
    ):
        found = Path(pyspark.__file__).parents[1] / name
        if found.exists():
            (packages / name).symlink_to(found)
    python = tmp_path / "bare-python"
    path = f'PYTHONPATH="$PYTHONPATH:{packages}"'
    python.write_text(f'#!/bin/sh\n{path} exec {sys.executable} -S "$@"\n')
    python.chmod(0o755)
    monkeypatch.setenv("PYSPARK_PYTHON", str(python))
    monkeypatch.setenv("SPARK_EXECUTOR_MEMORY", "512m")


class Killer(threading.Thread):
    """Kills a worker amid a task, and sees that the work is not done by then."""

    def __init__(self, worker: Worker) -> None:
        super().__init__(daemon=True)
        self.is_over = threading.Event()
        self.hit_the_middle = False
        self._worker = worker

    def run(self) -> None:
        """Freeze the worker amid the work, look whether the work still needs it, and kill it."""
        while not self._worker.is_judging():
            if self.is_over.wait(0.01):
                return
        self._worker.signal(signal.SIGSTOP)
        self.hit_the_middle = not self.is_over.wait(1.0)
        self._worker.signal(signal.SIGKILL)


@pytest.mark.spark
@pytest.mark.slow
def test_a_worker_that_dies_amid_an_audit_changes_nothing(cluster: Cluster, tmp_path: Path) -> None:
    """What the dead worker did is done elsewhere; document and rows are those of one process."""
    folders = [tmp_path / f"made-{seed}" for seed in range(1, 5)]
    for seed, folder in enumerate(folders, 1):
        write_archive(folder, Size(10_000, 200, 5, seed))
    path_before = list(sys.path)
    killer = Killer(cluster.workers[0])
    killer.start()
    run = datetime(2026, 1, 31, tzinfo=UTC)
    given: dict[str, Any] = {"facts": True, "members": "apart"}
    try:
        tables = FleetTables(tmp_path / "spark", "1", {}, run)
        spark = audit_paths(folders, PROFILE, {}, cluster.url, tables=tables, **given).get_report()
    finally:
        killer.is_over.set()
        killer.join()
    assert killer.hit_the_middle
    assert cluster.workers[0].process.wait(LIMIT_S) == -signal.SIGKILL
    tables = FleetTables(tmp_path / "local", "1", {}, run)
    local = audit_paths(folders, PROFILE, {}, jobs=1, tables=tables, **given).get_report()
    assert len(local.violations) == 20
    assert show(spark) == show(local)
    assert read_tables(tmp_path / "spark") == read_tables(tmp_path / "local")
    assert sys.path == path_before


@pytest.mark.spark
@pytest.mark.slow
def test_a_worker_that_lacks_a_package_is_a_clear_error(cluster: Cluster) -> None:
    """What a worker's Python has not got is named, with what to do about it."""
    with (
        pytest.raises(SparkUnavailable, match="the workers' Python has no jinja2: install it"),
        open_spark(cluster.url) as session,
    ):
        list(OnSpark(session).run(lambda name, _: __import__(name), ["jinja2"]))
