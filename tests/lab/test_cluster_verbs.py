"""The verbs that run processes: `cluster`, `broker` and `controller`."""

import json
import os
import pty
import select
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from reassure_conformance.cli import run_command

REASSURE = [sys.executable, "-c", "from reassure_conformance.cli import main; main()"]


def reassure(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own, as in a shell."""
    return subprocess.run(
        [*REASSURE, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **environment},
    )


def count_processes(directory: Path) -> int:
    """Return how many processes have a directory on their command line."""
    found = 0
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found += str(directory) in path.read_text("utf-8", "replace")
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


def read_status(directory: Path) -> dict[str, Any]:
    """Return what `cluster status` says."""
    done = reassure("lab", "cluster", "status", "-d", directory, "--format", "json")
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


@pytest.mark.slow
def test_a_cluster_is_brought_up_disturbed_and_taken_down(tmp_path: Path) -> None:
    """Each verb is another process, and the next one finds what the one before has left."""
    directory = tmp_path / "c"
    one_each = ("--brokers", 1, "--controllers", 1, "--zookeepers", 1)
    done = reassure("lab", "cluster", "up", *one_each, "--detach", "-d", directory)
    assert done.returncode == 0, done.stderr
    told = dict(line.split(" ", 1) for line in done.stdout.splitlines() if "metrics" not in line)
    status = read_status(directory)
    assert [told["zookeeper"], told["bootstrap"]] == [
        status["zookeeper"],
        *status["bootstrap"],
    ]
    assert status["counts"]["alive"] == status["counts"]["members"] == 3
    by_name = {one["name"]: one for one in status["members"]}
    assert by_name["controller-101"]["epoch"] == 1
    again = reassure("lab", "cluster", "up", *one_each, "-d", directory)
    assert again.returncode == 78
    assert "reassure lab cluster down" in again.stderr
    topic = ("lab", "cluster", "topic")
    made = reassure(*topic, "create", "t", "--assignment", "1,1", "-d", directory)
    assert (made.returncode, made.stdout) == (0, "t-0 1\nt-1 1\n")
    assert reassure(*topic, "create", "t", "-d", directory).returncode == 64
    assert reassure(*topic, "create", "u", "--assignment", "x", "-d", directory).returncode == 64
    assert reassure(*topic, "delete", "t", "-d", directory).returncode == 0
    assert reassure(*topic, "delete", "u", "-d", directory).returncode == 64
    assert "there is none of that name" in reassure(*topic, "delete", "u", "-d", directory).stderr
    assert reassure("lab", "cluster", "kill", "broker-1", "-d", directory).returncode == 0
    assert reassure("lab", "cluster", "pause", "controller-101", "-d", directory).returncode == 0
    statuses = {one["name"]: one["status"] for one in read_status(directory)["members"]}
    assert statuses == {"zookeeper-1": "alive", "broker-1": "dead", "controller-101": "paused"}
    assert reassure("lab", "cluster", "resume", "controller-101", "-d", directory).returncode == 0
    assert reassure("lab", "cluster", "restart", "broker-1", "-d", directory).returncode == 0
    text = reassure("lab", "cluster", "status", "-d", directory).stdout
    assert "broker-1" in text
    assert "dead" not in text
    assert reassure("lab", "cluster", "down", "-d", directory).returncode == 0
    assert count_processes(tmp_path) == 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_without_a_terminal_changes_are_told_as_lines(tmp_path: Path) -> None:
    """In the foreground it tells what changes, and goes down when it is told to end."""
    directory = tmp_path / "c"
    command = [*REASSURE, "lab", "cluster", "up", "--brokers", "1", "--controllers", "1"]
    with subprocess.Popen(
        [*command, "-d", str(directory)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        lines = []
        killed = False
        for line in process.stdout:
            lines.append(line.strip())
            if line.startswith("broker-1: alive") and not killed:
                killed = (
                    reassure("lab", "cluster", "kill", "broker-1", "-d", directory).returncode == 0
                )
            if line.startswith("broker-1: dead"):
                process.send_signal(signal.SIGTERM)
        assert process.stderr is not None
        assert "stopping the cluster" in process.stderr.read()
    assert process.returncode == 0
    assert "controller-101: alive" in "\n".join(lines)
    assert len(set(lines)) == len(lines), "what has not changed is told once"
    assert count_processes(tmp_path) == 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize(("ended_by", "code"), [(signal.SIGINT, 0), (signal.SIGHUP, 130)])
def test_on_a_terminal_it_is_told_until_it_goes_down(
    tmp_path: Path, ended_by: signal.Signals, code: int
) -> None:
    """When the user interrupts it, or the terminal is closed, the cluster ends."""
    keyboard, screen = pty.openpty()
    with subprocess.Popen(
        [*REASSURE, "lab", "cluster", "up", "--brokers", "1", "-d", str(tmp_path / "c")],
        stdin=screen,
        stdout=screen,
        stderr=screen,
    ) as process:
        os.close(screen)
        shown = b""
        sent = False
        while select.select([keyboard], [], [], 20)[0]:
            try:
                shown += os.read(keyboard, 4096)
            except OSError:  # the other side is closed
                break
            if b"controller-102: alive" in shown and not sent:
                sent = True
                process.send_signal(ended_by)
        os.close(keyboard)
        process.terminate()  # no harm where it has ended
    assert sent, shown
    assert process.returncode == code
    assert count_processes(tmp_path) == 0
    assert list(tmp_path.iterdir()) == []


def test_without_java_it_is_said_what_to_do(tmp_path: Path) -> None:
    """Where there is no Java nothing is left behind, and the message says how to get one: 69."""
    up = ("lab", "cluster", "up", "--detach", "-d", tmp_path / "c")
    done = reassure(*up, JAVA_HOME=str(tmp_path / "nowhere"))
    assert done.returncode == 69, done.stderr
    assert "point JAVA_HOME at a Java" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "words",
    [
        ("status",),
        ("down",),
        ("watch",),
        ("kill", "broker-1"),
        ("restart", "broker-1"),
        ("topic", "delete", "t"),
    ],
)
def test_a_directory_without_a_cluster_is_78(
    words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every verb on a cluster that is not there says so, and how to start one."""
    assert run_command(["lab", "cluster", *words, "-d", str(tmp_path / "c")]) == 78
    assert "`reassure lab cluster up` starts one" in capsys.readouterr().err


def test_unknown_profiles_and_counts_are_64(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A profile that does not exist and a cluster of nobody are matters of usage."""
    up = ["lab", "cluster", "up", "-d", str(tmp_path / "c")]
    assert run_command([*up, "--profile", "typo"]) == 64
    assert run_command([*up, "--brokers", "0"]) == 64
    assert "kip-236" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("role", ["broker", "controller"])
def test_a_process_of_a_role_is_the_same_program(
    role: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The verbs take the options of `python -m reassure_lab`, and say so."""
    assert run_command(["lab", role, "--help"]) == 0
    told = capsys.readouterr().out
    assert f"usage: reassure lab {role}" in told
    assert "--metrics-port" in told
    assert run_command(["lab", role, "--id", "x", "--zookeeper", "127.0.0.1:1"]) == 64
    assert run_command(["lab", role]) == 64


def test_a_taken_port_is_78_for_a_broker(tmp_path: Path, zookeeper_server: Any) -> None:
    """A broker whose port another program has ends with 78 and says what to do."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        done = reassure(
            *("lab", "broker", "--zookeeper", f"{zookeeper_server.hosts}/taken", "--id", 1),
            *("--data", tmp_path, "--port", port),
        )
    assert done.returncode == 78, done.stderr
    assert f"127.0.0.1:{port}: Address already in use; end the program" in done.stderr
