"""Brokers of Apache Kafka as processes on 127.0.0.1, which end with whoever started them.

Each Java is the child of a few lines of shell that wait for the end of a pipe whose other end only
the owner holds: however the owner ends, the system closes it and the shell kills Java.
"""

import signal
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from reassure_lab.cluster.ports import HOST, hold_port
from reassure_lab.cluster.processes import Process
from reassure_lab.kafka.kafka_jars import Version
from reassure_spec.errors import Unavailable
from reassure_zookeeper.java import find_java

SESSION_MS: Final = 6_000
LAG_MS: Final = 2_000
"""How long a follower may lag before its leader takes it out of the in-sync set."""
_GUARD: Final = """
out=$1; shift
exec 3<&0
"$@" >>"$out" 2>&1 3<&- </dev/null &
echo $!; exec >&-
read -r _ <&3
kill -9 $! 2>/dev/null
wait
"""
_SMALL: Final = ("-Xmx160m", "-Xms48m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xss512k")
_SETTINGS: Final = {
    "zookeeper.session.timeout.ms": SESSION_MS,
    "zookeeper.connection.timeout.ms": 30_000,
    "replica.lag.time.max.ms": LAG_MS,
    "replica.fetch.wait.max.ms": 250,
    "auto.leader.rebalance.enable": "false",
    "auto.create.topics.enable": "false",
    "delete.topic.enable": "true",
    "unclean.leader.election.enable": "false",
    "controlled.shutdown.retry.backoff.ms": 500,
    "log.cleaner.enable": "false",
    "num.network.threads": 1,
    "num.io.threads": 2,
    "background.threads": 2,
    "offsets.topic.num.partitions": 1,
    "offsets.topic.replication.factor": 1,
}
_LISTENERS: Final = (0, 9)
"""From here on a broker tells which port the system gave it."""
_LOG4J: Final = """\
log4j.rootLogger=INFO, F
log4j.appender.F=org.apache.log4j.FileAppender
log4j.appender.F.File={folder}/server.log
log4j.appender.F.layout=org.apache.log4j.PatternLayout
log4j.appender.F.layout.ConversionPattern=[%d] %p %m (%c)%n
"""
_LAST_LINES: Final = 12
_END_S: Final = 30.0


class BrokerEnded(Unavailable):
    """A broker ended by itself, or did not come up."""


@dataclass(frozen=True, slots=True)
class _Running:
    guard: "subprocess.Popen[bytes]"
    java: Process


class KafkaBrokers:
    """The brokers of one cluster of a version, whose files are in a directory."""

    def __init__(self, version: Version, jars: Path, folder: Path) -> None:
        self._version, self._jars, self._folder = version, jars, folder
        self._running: dict[int, _Running] = {}

    @property
    def up(self) -> frozenset[int]:
        """The brokers that were started and not stopped."""
        return frozenset(self._running)

    def start(self, broker: int, connect: str) -> None:
        """Start a broker that finds ZooKeeper by this connection string, and do not wait for it."""
        folder = self._folder / f"broker-{broker}"
        folder.mkdir(parents=True, exist_ok=True)
        settings = {
            **_SETTINGS,
            "broker.id": broker,
            "zookeeper.connect": connect,
            "log.dirs": folder / "data",
            **self._find_listener(),
        }
        lines = "".join(f"{name}={value}\n" for name, value in settings.items())
        (folder / "server.properties").write_text(lines, encoding="utf-8")
        log4j = folder / "log4j.properties"
        log4j.write_text(_LOG4J.format(folder=folder), encoding="utf-8")
        java = (str(find_java().path), *_SMALL, "-Djava.net.preferIPv4Stack=true")
        logged = f"-Dlog4j.configuration={log4j.as_uri()}"
        kafka = ("-cp", f"{self._jars}/*", "kafka.Kafka", str(folder / "server.properties"))
        guard = subprocess.Popen(
            ["/bin/sh", "-c", _GUARD, "guard", str(folder / "out"), *java, logged, *kafka],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=folder,
            start_new_session=True,
        )
        assert guard.stdout is not None
        with guard.stdout as answer:
            self._running[broker] = _Running(guard, Process.find(int(answer.readline())))

    def _find_listener(self) -> dict[str, object]:
        """Return where a broker listens: the system chooses, by the broker itself if it can."""
        if self._version >= _LISTENERS:
            return {"listeners": "PLAINTEXT://127.0.0.1:0"}
        with hold_port() as held:
            return {"host.name": HOST, "port": held.getsockname()[1]}

    def check(self, broker: int) -> None:
        """Raise BrokerEnded where a broker that was started is not there any more."""
        running = self._running.get(broker)
        if running is not None and running.java.is_alive:
            return
        folder = self._folder / f"broker-{broker}"
        said = [line for name in ("server.log", "out") for line in _read_last(folder / name)]
        shown = "\n  ".join(said) or "(it wrote nothing)"
        raise BrokerEnded(
            f"broker {broker} of Kafka {'.'.join(map(str, self._version))} has ended; expected it "
            f"to run; look into {folder}, where its last lines are:\n  {shown}"
        )

    def kill(self, broker: int) -> None:
        """End a broker as a crash does."""
        guard = self._running.pop(broker).guard
        assert guard.stdin is not None
        guard.stdin.close()
        guard.wait(_END_S)

    def stop(self, broker: int) -> None:
        """Have a broker stop in good order, and wait for its end; one that does not is killed."""
        java = self._running[broker].java
        java.send(signal.SIGTERM)
        java.wait(_END_S)
        self.kill(broker)

    def close(self) -> None:
        """End all brokers."""
        for broker in list(self._running):
            self.kill(broker)


def _read_last(path: Path) -> list[str]:
    with suppress(OSError):
        return path.read_text(encoding="utf-8", errors="replace").splitlines()[-_LAST_LINES:]
    return []
