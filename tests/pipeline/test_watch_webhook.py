"""Alerts sent to a receiver: each arrives, whatever that does, and judging never waits for it."""

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from reassure_pipeline import webhook as sending
from reassure_pipeline.alerts import VIOLATION, Alert
from reassure_pipeline.watch_state import Journal
from reassure_pipeline.webhook import Webhook, check_url
from reassure_spec.errors import BadUsage

LIMIT_S = 20.0


class Receiver(ThreadingHTTPServer):
    """Takes what is posted, and answers as it is told to."""

    def __init__(self, port: int = 0) -> None:
        self.received: list[dict[str, Any]] = []
        self.answers: list[int] = []
        """What to answer next; 200 where nothing is said."""
        super().__init__(("127.0.0.1", port), _Handler)
        self.daemon_threads = True
        self._thread = threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Return where to post."""
        return f"http://127.0.0.1:{self.server_address[1]}/alerts?from=test"

    def end(self) -> None:
        """Be there no more."""
        self.shutdown()
        self.server_close()
        self._thread.join()


class _Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        content = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = self.server.answers.pop(0) if self.server.answers else 200
        if answer == 200:
            assert self.headers["Idempotency-Key"] == content["id"]
            assert self.path == "/alerts?from=test"
            self.server.received.append(content)
        self.send_response(answer)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Try again sooner than in earnest."""
    monkeypatch.setattr(sending, "_FIRST_PAUSE_S", 0.01)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """Return somebody who takes what is posted."""
    made = Receiver()
    yield made
    made.end()


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    """Return a journal without alerts."""
    made = Journal(tmp_path / "alerts")
    yield made
    made.close()


def make_alerts(*names: str) -> list[Alert]:
    """Return alerts with these ids."""
    return [Alert(VIOLATION, name, "logs", 1, {"clause": "some.clause"}) for name in names]


def send(journal: Journal, url: str, said: list[str]) -> Webhook:
    """Return what sends the alerts of a journal."""
    position = journal.path.with_name("position")
    return Webhook(check_url(url, anywhere=False), journal.path, position, said.append, begin=0)


def wait_for(receiver: Receiver, count: int) -> list[str]:
    """Return the ids of what was received, once there are so many."""
    until = time.monotonic() + LIMIT_S
    while len(receiver.received) < count and time.monotonic() < until:
        time.sleep(0.005)
    return [each["id"] for each in receiver.received]


def test_alerts_arrive_in_order(journal: Journal, receiver: Receiver) -> None:
    """What stood in the journal and what is added later is posted one by one."""
    journal.append(make_alerts("a", "b"))
    webhook = send(journal, receiver.url, said := [])
    assert wait_for(receiver, 2) == ["a", "b"]
    journal.append(make_alerts("c"))
    webhook.wake()
    assert wait_for(receiver, 3) == ["a", "b", "c"]
    assert (webhook.close(1.0), webhook.sent, said) == (0, 3, [])


def test_a_receiver_that_is_down_gets_all_once_it_is_back(journal: Journal) -> None:
    """Whoever adds alerts meanwhile does not wait; it is said that they do, once."""
    first = Receiver()
    port = first.server_address[1]
    first.end()
    journal.append(make_alerts("a"))
    webhook = send(journal, f"http://127.0.0.1:{port}/alerts?from=test", said := [])
    until = time.monotonic() + LIMIT_S
    while not said and time.monotonic() < until:
        time.sleep(0.005)
    start = time.monotonic()
    journal.append(make_alerts(*map(str, range(100))))
    webhook.wake()
    assert time.monotonic() - start < 5
    second = Receiver(port)
    assert wait_for(second, 101) == ["a", *map(str, range(100))]
    assert webhook.close(1.0) == 0
    second.end()
    assert len(said) == 2
    assert said[0].startswith("webhook: alerts wait for the receiver: ")
    assert said[1] == "webhook: the receiver answers again"


def test_what_was_not_received_is_counted_and_sent_by_the_next(
    journal: Journal, receiver: Receiver
) -> None:
    """An end does not lose what waits: it says how much, and who goes on goes on there."""
    receiver.answers += [200] + [503] * 1000
    journal.append(make_alerts("a", "b", "c"))
    webhook = send(journal, receiver.url, [])
    assert wait_for(receiver, 1) == ["a"]
    assert webhook.close(0.1) == 2
    receiver.answers.clear()
    again = send(journal, receiver.url, [])
    assert wait_for(receiver, 3) == ["a", "b", "c"]
    assert again.close(1.0) == 0


def test_one_that_is_refused_does_not_hold_up_the_others(
    journal: Journal, receiver: Receiver
) -> None:
    """After a few refusals it is passed over, said and counted; a busy receiver is asked on."""
    receiver.answers += [400] * 5 + [429, 500, 503]
    journal.append(make_alerts("bad", "good"))
    webhook = send(journal, receiver.url, said := [])
    assert wait_for(receiver, 1) == ["good"]
    assert webhook.close(1.0) == 0
    assert (webhook.sent, webhook.refused) == (1, 1)
    assert any("alert bad is passed over: the receiver says 400" in line for line in said)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://example.org/x", "--webhook-anywhere"),
        ("http://10.0.0.1/x", "--webhook-anywhere"),
        ("ftp://127.0.0.1/x", "write it as"),
        ("127.0.0.1:80", "write it as"),
        ("http://127.0.0.1:port/", "port"),
        ("http://me:secret@127.0.0.1/", "password"),
    ],
)
def test_an_address_that_cannot_be_is_refused(url: str, words: str) -> None:
    """Nothing is sent to another machine unless somebody says so."""
    with pytest.raises(BadUsage, match=words):
        check_url(url, anywhere=False)


def test_addresses_of_this_machine_are_taken() -> None:
    """By number or as localhost; any other where that is allowed."""
    for url in ("http://127.0.0.1:1/", "http://[::1]:1/", "https://localhost/x"):
        assert check_url(url, anywhere=False).geturl() == url
    assert check_url("https://example.org/x", anywhere=True).hostname == "example.org"
