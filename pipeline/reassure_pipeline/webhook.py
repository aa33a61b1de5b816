"""Alerts sent to a receiver by HTTP, beside the judging, which never waits for it.

What is to be sent stands in the journal, so that it takes no memory and outlives the process. One
alert after another is posted, in order, as one JSON object with its id as `Idempotency-Key`; an
answer 2xx is what counts as received. So each is sent *at least once*: one that was received while
the process ended before it had noted that is sent again, with the same id.

A receiver that cannot be reached, or asks for time (408, 429, 5xx), is tried again, after longer
and longer, and everything waits for it. One that refuses an alert is not asked for ever: after a
few answers of that kind the alert is passed over, said, and counted.
"""

import json
import threading
from collections.abc import Callable
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from ipaddress import ip_address
from pathlib import Path
from time import monotonic, sleep
from typing import Final
from urllib.parse import SplitResult, urlsplit

from reassure_spec.errors import BadUsage

_TIMEOUT_S: Final = 5.0
_FIRST_PAUSE_S: Final = 0.2
_LONGEST_PAUSE_S: Final = 30.0
_MOST_REFUSALS: Final = 5
"""How often an alert may be refused before it is passed over."""
_TRY_AGAIN: Final = (408, 425, 429)
_SCHEMES: Final = {"http": HTTPConnection, "https": HTTPSConnection}


def check_url(url: str, *, anywhere: bool) -> SplitResult:
    """Return the parts of a receiver's address.

    Raises BadUsage for what is none, and for one on another machine unless `anywhere` allows it.
    """
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise BadUsage(f"--webhook {url!r}: {error}") from None
    if parts.scheme not in _SCHEMES or not parts.hostname:
        raise BadUsage(f"--webhook {url!r}: write it as http://127.0.0.1:PORT/PATH")
    if parts.username is not None:
        raise BadUsage(f"--webhook {url!r}: a name and a password cannot be given in the address")
    if not anywhere and not _is_loopback(parts.hostname):
        raise BadUsage(
            f"--webhook {url!r} is another machine, and alerts say what stands in ZooKeeper: add "
            "--webhook-anywhere if that is meant, or name a receiver on 127.0.0.1"
        )
    return parts


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


class Webhook:
    """Sends what stands in a journal, from the byte on that `position` has; a thread of its own."""

    def __init__(
        self,
        url: SplitResult,
        journal: Path,
        position: Path,
        say: Callable[[str], None],
        *,
        begin: int,
    ) -> None:
        self._url = url
        self._journal = journal
        self._position = position
        self._say = say
        self._at = self._read_position(begin)
        self._more = threading.Event()
        self._ending = threading.Event()
        self._until = float("inf")
        self.sent = 0
        self.refused = 0
        """Alerts that the receiver would not have."""
        self.trouble = ""
        """Why the receiver does not get what waits for it, "" where it does."""
        self._thread = threading.Thread(target=self._run, name="webhook", daemon=True)
        self._thread.start()

    def _read_position(self, begin: int) -> int:
        try:
            return int(self._position.read_text(encoding="ascii"))
        except FileNotFoundError:
            self._note(begin)
            return begin
        except ValueError:
            return 0  # rather all of them twice than one of them never

    def wake(self) -> None:
        """Say that there is more in the journal."""
        self._more.set()

    def close(self, limit_s: float) -> int:
        """Send what is left for a while; return how many alerts still wait."""
        self._until = monotonic() + limit_s
        self._ending.set()
        self._more.set()
        self._thread.join(limit_s + 2 * _TIMEOUT_S)
        with self._journal.open("rb") as file:
            file.seek(self._at)
            return sum(line.endswith(b"\n") for line in file)

    def _run(self) -> None:
        try:
            self._send_all()
        except OSError as error:  # of our own files; the receiver's are answers
            self.trouble = str(error)
            self._say(f"webhook: no alert is sent any more: {error}")

    def _send_all(self) -> None:
        with self._journal.open("rb") as file:
            file.seek(self._at)
            while monotonic() < self._until:
                self._more.clear()
                line = file.readline()
                if line.endswith(b"\n"):
                    if not self._deliver(line):
                        return
                    self._note(file.tell())
                    continue
                file.seek(self._at)
                if self._ending.is_set():
                    return
                self._more.wait(1.0)

    def _deliver(self, line: bytes) -> bool:
        """Post one alert until it is received or passed over; whether there is time for more."""
        name = str(json.loads(line)["id"])
        pause, refusals = _FIRST_PAUSE_S, 0
        while monotonic() < self._until:
            status, said = self._post(name, line)
            if 200 <= status < 300:
                if self.trouble:
                    self._say("webhook: the receiver answers again")
                self.trouble = ""
                self.sent += 1
                return True
            if status and status < 500 and status not in _TRY_AGAIN:
                refusals += 1
                if refusals >= _MOST_REFUSALS:
                    self.refused += 1
                    self._say(f"webhook: alert {name} is passed over: the receiver says {said}")
                    return True
            if not self.trouble:
                self._say(f"webhook: alerts wait for the receiver: {said}")
            self.trouble = said
            self._ending.wait(min(pause, _LONGEST_PAUSE_S))
            if self._ending.is_set():
                sleep(_FIRST_PAUSE_S)
            pause *= 2
        return False

    def _post(self, name: str, line: bytes) -> tuple[int, str]:
        """Return the receiver's answer, 0 where there is none, and what it is in words."""
        url = self._url
        connect = _SCHEMES[url.scheme](str(url.hostname), url.port, timeout=_TIMEOUT_S)
        try:
            path = (url.path or "/") + (f"?{url.query}" if url.query else "")
            headers = {"Content-Type": "application/json", "Idempotency-Key": name}
            connect.request("POST", path, line.rstrip(b"\n"), headers)
            answer = connect.getresponse()
            answer.read()
        except (OSError, HTTPException) as error:
            return 0, str(error) or type(error).__name__
        else:
            return answer.status, f"{answer.status} {answer.reason}"
        finally:
            connect.close()

    def _note(self, at: int) -> None:
        """Note up to which byte the receiver has answered."""
        fresh = self._position.with_suffix(".new")
        fresh.write_text(str(at), encoding="ascii")
        fresh.replace(self._position)
        self._at = at
