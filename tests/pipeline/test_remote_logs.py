"""Logs in an object store: an audit of their URI is one of the files."""

import threading
from collections.abc import Iterator
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

import pytest
from pipeline_steps import Server, plant, read_tables

from reassure_conformance.answers.auditing import audit_document
from reassure_conformance.cli import run_command
from reassure_pipeline.archives.remote_logs import bring, find_uri
from reassure_zookeeper.errors import LogsMissing

PROFILE = "kip-236"


class Store(BaseHTTPRequestHandler):
    """As much of S3 as reading takes: the buckets are folders."""

    root: Path
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """List what begins alike, or give an object."""
        place, asked = urlsplit(self.path), parse_qs(urlsplit(self.path).query)
        if "list-type" not in asked:
            self._give(self.root / unquote(place.path).strip("/"), whole=True)
            return
        bucket = self.root / place.path.strip("/")
        prefix = asked.get("prefix", [""])[0]
        keys = {str(f.relative_to(bucket)): f for f in bucket.rglob("*") if f.is_file()}
        found = [
            f"<Contents><Key>{escape(key)}</Key><Size>{file.stat().st_size}</Size>"
            "<LastModified>2026-01-31T04:00:00.000Z</LastModified></Contents>"
            for key, file in sorted(keys.items())
            if key.startswith(prefix) and "/" not in key[len(prefix) :]
        ]
        self._answer(200, f"<ListBucketResult>{''.join(found)}</ListBucketResult>".encode())

    def do_HEAD(self) -> None:
        """Tell about an object."""
        self._give(self.root / unquote(urlsplit(self.path).path).strip("/"), whole=False)

    def _give(self, file: Path, *, whole: bool) -> None:
        if not file.is_file():
            self._answer(404, b"")
            return
        content = file.read_bytes()
        first, last = 0, len(content) - 1
        if span := self.headers.get("Range"):
            first, last = (int(each) for each in span.removeprefix("bytes=").split("-"))
        part = content[first : last + 1]
        self._answer(206 if span else 200, part if whole else b"", len(part))

    def _answer(self, code: int, content: bytes, length: int | None = None) -> None:
        self.send_response(code)
        self.send_header("Content-Length", str(len(content) if length is None else length))
        self.send_header("Last-Modified", formatdate(0, usegmt=True))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return the folder of the buckets of an object store."""
    root = tmp_path / "store"
    (root / "logs").mkdir(parents=True)
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("OwnStore", (Store,), {"root": root}))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    for name, value in {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.server_port}",
        "AWS_ACCESS_KEY_ID": "who",
        "AWS_SECRET_ACCESS_KEY": "ever",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }.items():
        monkeypatch.setenv(name, value)
    bring.cache_clear()
    yield root
    server.shutdown()
    thread.join()
    server.server_close()


def judge(*paths: Path, **options: Any) -> dict[str, Any]:
    """Return the document of an audit."""
    return audit_document(paths, PROFILE, {}, None, **options).as_dict()


def test_logs_of_a_bucket_are_judged(server: Server, store: Path, tmp_path: Path) -> None:
    """As files are, under the name of the URI, with tables that know them again."""
    history = plant()
    folder = server("one", history[:300], history[300:])
    (folder / "version-2").rename(store / "logs" / "one")
    uri, tables = Path("s3://logs/one"), tmp_path / "tables"
    document, plain = judge(uri, tables=tables), judge(store / "logs" / "one")
    assert document["counts"] == plain["counts"]
    assert document["counts"]["violations"] > 10
    (archive,) = document["archives"]
    assert archive["path"] == "s3://logs/one"
    rows = read_tables(tables)
    assert {row["archive"] for row in rows["archives"]} == {"s3://logs/one"}
    bring.cache_clear()  # as another process would
    judge(uri, tables=tables)
    assert read_tables(tables) == rows


def test_what_is_not_there_is_told(
    server: Server, store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A URI that leads nowhere leaves the others judged; one that nothing reads is wrong usage."""
    server("one", plant()).rename(store / "logs" / "one")
    document = judge(Path("s3://logs/one"), Path("s3://logs/none"))
    assert [each["path"] for each in document["archives"]] == ["s3://logs/one"]
    (left_out,) = document["not_judged"]
    assert left_out["path"] == "s3://logs/none"
    assert "no transaction log" in left_out["reason"]
    with pytest.raises(LogsMissing):
        judge(Path("s3://logs/none"))
    assert run_command(["audit", "ftps://host/logs"]) == 64
    assert "ftps://host/logs cannot be read" in capsys.readouterr().err
    assert run_command(["audit", "--follow", "s3://logs/one"]) == 64
    assert find_uri(Path("C:log.1")) is None
