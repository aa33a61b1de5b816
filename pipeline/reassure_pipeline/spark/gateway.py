"""Spark's Java, started directly, and a session on it.

PySpark's own launcher insists on a Java module that small Java runtimes, such as the packaged one,
do not have, and starts one Java more than is needed. Here the one Java that is needed is started
with Spark's main class, is told where to leave port and secret, and PySpark connects to that.

Everything that Spark writes goes into a temporary directory, and what it logs goes into a file
there, of which the end is shown when Spark does not come up. With a local master all addresses are
loopback, and there is no web interface.
"""

import logging
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from reassure_pipeline.spark.packages import find_roots, pack_packages
from reassure_spec.errors import Unavailable
from reassure_zookeeper.java import SPARK_NEEDS, Java, find_java

_START_LIMIT_S: Final = 120.0
_STOP_LIMIT_S: Final = 10.0
_EXECUTORS_LIMIT_S: Final = 60.0
_SETTLED_S: Final = 1.0
"""How long no executor must have come before those that are there are taken for all."""
_PACKED: Final = "reassure.zip"
_LOG: Final = "spark.log"
_CONNECTION: Final = "connection"
_LOOPBACK: Final = re.compile(r"spark://(127\.|localhost\b)")
_ENDED: Final = ("SparkEnv.", "stopped SparkContext", "SparkContext was shut down")
"""What a failure says where the context has ended before."""
_LACKS: Final = {
    re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'"): (
        "the workers' Python has no {0}: install it there, or name another Python of theirs in "
        "PYSPARK_PYTHON"
    ),
    re.compile(r'Cannot run program "([^"]*)"'): (
        "the workers have no Python called {0}: install one there, or name theirs in PYSPARK_PYTHON"
    ),
    re.compile(r"PYTHON_VERSION_MISMATCH\]?([^\n]*)"): (
        "the workers' Python is of another version than this one:{0}; name one of the same in "
        "PYSPARK_PYTHON"
    ),
}
"""What a failure says where workers lack something, and what to do about it."""
_OPENED: Final = """
    java.io java.lang java.lang.invoke java.lang.reflect java.net java.nio java.util
    java.util.concurrent java.util.concurrent.atomic jdk.internal.ref sun.nio.ch sun.nio.cs
    sun.security.action sun.util.calendar
"""
"""Packages of Java's base that Spark looks into."""
_LOGGING: Final = """\
status = error
appender.err.type = Console
appender.err.name = err
appender.err.target = SYSTEM_ERR
appender.err.layout.type = PatternLayout
appender.err.layout.pattern = %p %c{1}: %m%n%ex
rootLogger.level = error
rootLogger.appenderRef.err.ref = err
"""


class SparkUnavailable(Unavailable):
    """Spark is not installed or does not come up."""


@contextmanager
def open_spark(master: str) -> Iterator[Any]:
    """Start Spark and yield its `SparkSession`; stop everything at the end.

    Tasks can import what judging takes: with a local master from where they are, elsewhere
    from a file that is sent along. Where `spark-submit` has started this process, its Spark is
    taken, with its master.

    Raises `SparkUnavailable`, and `JavaError` where there is no Java of the version that Spark
    needs.
    """
    try:
        from py4j.protocol import Py4JError  # type: ignore[import-untyped]
        from pyspark import SparkConf, SparkContext
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession
    except ImportError as problem:
        raise SparkUnavailable(
            f"PySpark cannot be imported ({problem}); install the package pyspark, or audit "
            "without Spark"
        ) from problem
    if SparkContext._active_spark_context is not None:  # noqa: SLF001  (no public way to ask)
        raise SparkUnavailable("this process has a Spark context already; stop it first")
    with tempfile.TemporaryDirectory(prefix="reassure-spark-") as scratch:
        folder = Path(scratch)
        with _java_running(master, folder) as gateway:
            # What `spark-defaults.conf` and `spark-submit` say is for clusters.
            submitted = _is_submitted()
            conf = SparkConf(loadDefaults=submitted or not is_local(master), _jvm=gateway.jvm)
            master = str(conf.get("spark.master", master)) if submitted else master
            conf.setAll(list(_settings(master, folder).items()))
            python = {"PYSPARK_PYTHON": sys.executable} if is_local(master) else {}
            with _environment(python), _path_kept(), _py4j_silenced():
                context = None
                try:
                    with _interrupt_kept():
                        context = SparkContext(conf=conf, gateway=gateway)
                    # No accumulator is in use, and their server prints what it meets where Java
                    # ends before it, as after an interrupt.
                    accumulators: Any = context._accumulatorServer  # noqa: SLF001
                    accumulators.handle_error = _say_nothing
                    if not is_local(master):
                        _await_executors(context)
                    if submitted or not is_local(master):
                        pack_packages(folder / _PACKED)
                        context.addPyFile(str(folder / _PACKED))
                    yield SparkSession(context)
                except (Py4JError, PySparkException) as problem:
                    if isinstance(problem.__context__, KeyboardInterrupt):
                        # PySpark waits for the end of what it was collecting, which then failed.
                        raise problem.__context__ from None
                    # Asked while Java still runs: it is Java that has the words.
                    raise find_cause(problem, _read_log(folder)) from None
                finally:
                    if context is not None:
                        with warnings.catch_warnings():
                            # A Java that does not answer after an interrupt is ended all the same.
                            warnings.simplefilter("ignore", RuntimeWarning)
                            context.stop()


def _read_log(folder: Path) -> list[str]:
    log = folder / _LOG
    return log.read_text(encoding="utf-8", errors="replace").splitlines() if log.is_file() else []


def is_local(master: str) -> bool:
    """Whether a master has its tasks done in processes beside the driver."""
    return master.partition("[")[0] == "local"


def _is_submitted() -> bool:
    return "PYSPARK_GATEWAY_PORT" in os.environ


def find_cause(problem: Exception, log: Sequence[str] = ()) -> SparkUnavailable:
    """Return a failure of Spark in its own words, or what workers lack, where that is it.

    `log` has the lines that it has logged, which say why a context has ended.
    """
    text = str(problem)
    for pattern, advice in _LACKS.items():
        if lacks := pattern.search(text):
            return SparkUnavailable(advice.format(*lacks.groups()))
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    told = next((line for line in lines if "Exception:" in line), lines[0] if lines else "")
    if any(mark in text for mark in _ENDED):
        told = next((line for line in log if line.startswith("ERROR ")), told)
    return SparkUnavailable(
        f"Spark failed: {told}; audit without Spark, or read the log of its Java"
    )


def _await_executors(context: Any) -> None:
    """Wait until executors have come, and no more of them come."""
    until = time.monotonic() + _EXECUTORS_LIMIT_S
    count, settled = 0, 0.0
    status = context._jsc.sc().statusTracker()  # noqa: SLF001  (Python's own has no executors)
    while time.monotonic() < until and (not count or time.monotonic() < settled):
        now = len(status.getExecutorInfos()) - 1  # the driver is one of them
        if now != count:
            count, settled = now, time.monotonic() + _SETTLED_S
        time.sleep(0.1)
    if not count:
        raise SparkUnavailable(
            f"no executor started within {_EXECUTORS_LIMIT_S:.0f} s: check that {context.master} "
            "has workers with a free core and enough free memory (spark.executor.memory), and that "
            "they reach this machine (spark.driver.host)"
        )


def _settings(master: str, folder: Path) -> dict[str, str]:
    settings = {
        "spark.app.name": "reassure audit",
        "spark.master": master,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        # A task answers every finding of an archive, where tables are written (MiB).
        "spark.rpc.message.maxSize": "1024",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.catalogImplementation": "in-memory",
    }
    if is_local(master):
        settings["spark.local.dir"] = str(folder)
    if is_local(master) or _LOOPBACK.match(master):
        settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    return settings


@contextmanager
def _java_running(master: str, folder: Path) -> Iterator[Any]:
    from pyspark import SparkContext
    from pyspark.java_gateway import launch_gateway

    if _is_submitted():
        yield launch_gateway()  # type: ignore[no-untyped-call]
        return
    java, class_path = find_java(minimum=SPARK_NEEDS), _list_class_path()
    with (folder / _LOG).open("wb") as output:
        process = subprocess.Popen(
            _make_command(java, class_path, master, folder),
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            cwd=folder,
            env=_make_environment(folder),
            start_new_session=True,  # an interrupt at the terminal is ours to handle
        )
    gateway: Any = None
    try:
        port, secret = _await_gateway(process, folder)
        with _environment({"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret}):
            gateway = launch_gateway()  # type: ignore[no-untyped-call]
        yield gateway
    finally:
        if gateway is not None:
            gateway.shutdown()
        # PySpark keeps the gateway for the next context of this process, and this one is gone.
        SparkContext._gateway = None  # noqa: SLF001
        SparkContext._jvm = None  # noqa: SLF001
        _stop(process)


def _list_class_path() -> list[Path]:
    """Return the folders of settings, where there are any, and Spark's jars."""
    import pyspark

    configured = (os.environ.get(name) for name in ("SPARK_CONF_DIR", "HADOOP_CONF_DIR"))
    jars = sorted((Path(pyspark.__file__).parent / "jars").glob("*.jar"))
    return [*(Path(folder) for folder in configured if folder), *jars]


def _make_command(java: Java, class_path: Sequence[Path], master: str, folder: Path) -> list[str]:
    log_settings = folder / "log4j2.properties"
    log_settings.write_text(_LOGGING, encoding="utf-8")
    return [
        str(java.path),
        *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED.split()),
        "-Dio.netty.tryReflectionSetAccessible=true",
        "-Djava.net.preferIPv4Stack=true",
        f"-Dlog4j2.configurationFile={log_settings}",
        f"-Xmx{os.environ.get('SPARK_DRIVER_MEMORY', '1g')}",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-cp",
        os.pathsep.join(map(str, class_path)),
        "org.apache.spark.deploy.SparkSubmit",
        "--master",
        master,
        "pyspark-shell",
    ]


def _make_environment(folder: Path) -> dict[str, str]:
    import pyspark

    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    paths = [*find_roots(), *(str(Path(entry).absolute()) for entry in given if entry)]
    return {
        **os.environ,
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "SPARK_CONNECT_MODE": "0",
        "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths)),
        "_PYSPARK_DRIVER_CONN_INFO_PATH": str(folder / _CONNECTION),
    }


def _await_gateway(process: subprocess.Popen[bytes], folder: Path) -> tuple[int, str]:
    """Wait for Java to leave port and secret in a file, which it renames into place."""
    file = folder / _CONNECTION
    until = time.monotonic() + _START_LIMIT_S
    while not file.is_file():
        if process.poll() is not None or time.monotonic() > until:
            # What is indented is where in Spark's own code it happened.
            said = [line for line in _read_log(folder) if line.strip() and not line[0].isspace()][
                :5
            ]
            ended = "did not start" if process.returncode is None else "ended while starting"
            raise SparkUnavailable(
                f"Spark {ended}; its output: {' | '.join(said) or 'none'}; audit without Spark, or "
                "check that its Java can run"
            )
        time.sleep(0.02)
    content = file.read_bytes()
    length = int.from_bytes(content[4:8], "big")
    return int.from_bytes(content[:4], "big"), content[8 : 8 + length].decode()


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Let Java end, which it does when its input ends; then make it."""
    assert process.stdin is not None
    process.stdin.close()
    try:
        process.wait(_STOP_LIMIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@contextmanager
def _path_kept() -> Iterator[None]:
    """Take what PySpark puts on the path of imports off again."""
    before = list(sys.path)
    try:
        yield
    finally:
        sys.path[:] = before


def _say_nothing(*_: object) -> None:
    pass


@contextmanager
def _interrupt_kept() -> Iterator[None]:
    """Leave what an interrupt does to whoever has settled it; a context takes it for itself.

    What PySpark does then asks Java from within a question to Java, which py4j cannot do.
    """
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is not before:  # only in the main thread
            signal.signal(signal.SIGINT, before)


@contextmanager
def _py4j_silenced() -> Iterator[None]:
    """Keep py4j from logging, under its name and at the root, what it raises as well."""
    root, own = logging.getLogger(), logging.getLogger("py4j")
    level = own.level

    def is_not_py4js(record: logging.LogRecord) -> bool:
        return Path(record.pathname).parent.name != "py4j"

    root.addFilter(is_not_py4js)
    own.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        own.setLevel(level)
        root.removeFilter(is_not_py4js)


@contextmanager
def _environment(changes: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for a while; whatever PySpark sets meanwhile goes as well."""
    before = dict(os.environ)
    os.environ.update(changes)
    try:
        yield
    finally:
        for name in os.environ.keys() - before.keys():
            del os.environ[name]
        os.environ.update(before)
