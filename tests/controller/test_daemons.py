"""How a process ends that cannot go on."""

from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest

from reassure_controller import daemons
from reassure_controller.log_lines import Speaker
from reassure_controller.session import Indefinite


def test_a_zookeeper_that_does_not_answer_at_the_start_is_unavailable(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Connected, and then without an answer: no mistake of ours, and it says what to look at."""
    stopped: list[Any] = []
    monkeypatch.setattr(daemons, "connect", lambda *_, **__: "client")
    monkeypatch.setattr(daemons, "fetch", lambda *_: [None])
    monkeypatch.setattr(daemons, "stop", stopped.append)

    def begin(*_: object) -> None:
        raise Indefinite("KazooTimeoutError")

    arguments: Any = SimpleNamespace(session_timeout=6.0, zookeeper="127.0.0.1:1")
    assert daemons._run(arguments, begin, Speaker("broker", 1), Event()) == 69
    assert stopped == ["client"]
    assert "no ZooKeeper at 127.0.0.1:1 answered in time: KazooTimeoutError" in caplog.text
