"""What processes log."""

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from reassure_controller.log_lines import Speaker, _make_json_formatter, about


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    """What is logged as JSON by the package's loggers, while the test runs."""
    speaker = Speaker("controller", 101)
    speaker.find_epoch = lambda: 7
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(_make_json_formatter(speaker))
    log = logging.getLogger("reassure_controller")
    before = log.level
    log.addHandler(handler)
    log.setLevel("DEBUG")
    yield written
    log.removeHandler(handler)
    log.setLevel(before)


def read(stream: io.StringIO) -> list[dict[str, Any]]:
    """Return the lines, which have to be JSON objects."""
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_lines_have_the_keys_of_what_they_are_about(stream: io.StringIO) -> None:
    """A line has the process's keys, and those of what is going on around it and of no more."""
    log = logging.getLogger("reassure_controller.some")
    with about(topic="t", partition=3), about(point="add.replicas-started"):
        log.warning("%s is %d", "x", 1)
    log.info("after")
    first, second = read(stream)
    assert first.pop("timestamp")
    assert first == {
        "event": "x is 1",
        "level": "warning",
        "logger": "reassure_controller.some",
        "role": "controller",
        "broker": 101,
        "controller_epoch": 7,
        "topic": "t",
        "partition": 3,
        "point": "add.replicas-started",
    }
    assert {"topic", "partition", "point"} & second.keys() == set()


def test_an_exception_is_one_line(stream: io.StringIO) -> None:
    """Where an exception is logged, its trace is in the line."""
    try:
        json.loads("")
    except ValueError:
        logging.getLogger("reassure_controller").exception("it failed")
    [line] = read(stream)
    assert line["event"] == "it failed"
    assert "JSONDecodeError: Expecting value" in line["exception"]


def test_steps_of_a_plan_are_logged_with_their_points(cluster: Any, stream: io.StringIO) -> None:
    """Each effect of a reassignment says once which partition it is about, and at which point."""
    controller = cluster.begin({0: (1, 2)})
    cluster.request({("t", 0): (1, 3)}, then=controller)
    cluster.join("t", 0, 3)
    done = controller.drain()
    assert done.idle
    lines = [line for line in read(stream) if "point" in line and line["level"] == "debug"]
    points = [line["point"] for line in lines if line.get("topic") == "t"]
    assert {line["partition"] for line in lines if line.get("topic") == "t"} == {0}
    assert len(set(points)) > 5
    assert all(line["event"].startswith(f"{line['point']}: ") for line in lines)
