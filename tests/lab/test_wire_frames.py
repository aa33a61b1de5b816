"""Requests and responses as bytes: every version there and back, and bytes that are neither."""

import dataclasses
import re
import struct
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.index import load_request_schema

from reassure_lab.wire.apis import APIS, BY_KEY, Api
from reassure_lab.wire.entities import from_entity, to_entity
from reassure_lab.wire.errors import BadFrame
from reassure_lab.wire.frames import (
    SIZE,
    UnknownVersions,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
    list_versions,
)
from reassure_lab.wire.messages import ApiVersionsRequest, FetchRequest, KioMessage, MetadataRequest

OWN = [api for api in APIS if api.request is not KioMessage]
VERSIONS = [(api, version) for api in OWN for version in api.versions]
LARGE = ("offset", "timestamp", "broker_epoch", "high_watermark", "producer_id")
"""How the names of fields with 64 bits end."""
SMALL = ("isolation_level", "key_type", "resource_type", "config_source")
"""Fields with 8 bits; the rest has 16 or more."""


def content_of(name: str, hint: Any) -> st.SearchStrategy[Any]:
    """Return what a field of this name and type can hold."""
    if dataclasses.is_dataclass(hint):
        hints = get_type_hints(hint)
        return st.builds(hint, **{name: content_of(name, hint) for name, hint in hints.items()})
    if get_origin(hint) is tuple:
        return st.lists(content_of(name, get_args(hint)[0]), max_size=3).map(tuple)
    if hint is int:
        bits = 63 if name.endswith(LARGE) else 7 if name in SMALL else 15
        return st.integers(-1, 2**bits - 1)
    if get_args(hint):
        return st.one_of(content_of(name, one) for one in get_args(hint))
    return st.from_type(hint)


def values(kind: type) -> st.SearchStrategy[Any]:
    """Return values of this type."""
    return content_of("", kind)


def carry(value: Any, entity_type: Any) -> Any:
    """Return what of the value a version carries: what it lacks has its default."""
    return from_entity(type(value), to_entity(entity_type, value))


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("api", "version"), VERSIONS, ids=[f"{api.request.__name__}-{v}" for api, v in VERSIONS]
)
@settings(max_examples=8, deadline=None)
@given(data=st.data(), correlation_id=st.integers(0, 2**31 - 1), client=st.none() | st.text())
def test_every_version_is_read_as_it_was_written(
    api: Api, version: int, data: st.DataObject, correlation_id: int, client: str | None
) -> None:
    """A request or response comes back as it was; of the newest version nothing is left out."""
    request, response = data.draw(values(api.request)), data.draw(values(api.response))
    frame = encode_request(request, correlation_id, client, version)
    assert SIZE.unpack_from(frame) == (len(frame) - 4,)
    asked = decode_request(frame[4:])
    assert (asked.api, asked.version, asked.correlation_id) == (api, version, correlation_id)
    assert asked.client_id == client
    kept = carry(request, load_request_schema(api.key, version))
    assert asked.request == kept
    answered = encode_response(response, version, correlation_id)
    if version == api.newest:
        assert kept == request
        assert decode_response(answered[4:], request, correlation_id) == response


GOOD = encode_request(FetchRequest(1, 2, 3, ()), 7, "x")[4:]


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (b"", "expected a header of at least 8 bytes, found 0"),
        (struct.pack(">hhi", 99, 0, 1), "expected one of the apis 0 v3-7, .* found api 99 v0"),
        (struct.pack(">hhi", 1, 3, 1), "found api 1 v3"),
        (GOOD[:-1], r"expected FetchRequest v11, found b'.*': BufferUnderflow"),
        (GOOD + b"x", "expected FetchRequest v11 to fill"),
        (struct.pack(">hhih", 3, 7, 1, 500), "expected MetadataRequest v7, found"),
    ],
)
def test_bytes_that_are_no_request_are_refused(frame: bytes, words: str) -> None:
    """What was expected is said, and what was found."""
    with pytest.raises(BadFrame, match=words):
        decode_request(frame)


def test_unknown_version_of_api_versions_can_be_answered() -> None:
    """One who asks in too new a version for the versions is known by its correlation id."""
    with pytest.raises(UnknownVersions, match="version 9") as caught:
        decode_request(struct.pack(">hhi", 18, 9, 42))
    assert caught.value.correlation_id == 42


def test_answer_to_another_request_is_refused() -> None:
    """An answer is taken for the request with its correlation id only."""
    frame = encode_request(ApiVersionsRequest(), 1, None)
    assert decode_request(frame[4:]).request == ApiVersionsRequest()
    answer = encode_response(list_versions(), 3, 5)[4:]
    with pytest.raises(BadFrame, match="expected the answer to request 6, found that to 5"):
        decode_response(answer, ApiVersionsRequest(), 6)


def damage(draw: st.DrawFn, frame: bytes) -> bytes:
    """Return the frame with some bytes changed, cut off or put in."""
    content = bytearray(frame)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(content)))
        new = draw(st.binary(max_size=5) | st.just(b"\xff\xff\xff\xff") | st.just(b"\x7f\xff"))
        content[at : at + draw(st.integers(0, 5))] = new
    return bytes(content)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """Draw a frame of any request in any version, damaged."""
    api, version = draw(st.sampled_from(VERSIONS))
    return damage(draw, encode_request(draw(values(api.request)), 1, "c", version)[4:])


@settings(max_examples=200, deadline=None)
@given(frame=damaged() | st.binary(max_size=200))
def test_damaged_bytes_are_a_request_or_refused(frame: bytes) -> None:
    """Whatever the bytes, they are a request that is understood, or BadFrame says why not."""
    try:
        asked = decode_request(frame)
    except BadFrame as bad:
        reason = str(bad)
    else:
        reason = ""
    if reason:
        assert "understood" in reason or "expected" in reason
    else:
        assert asked.api is BY_KEY[asked.api.key]
        assert isinstance(asked.request, asked.api.request)


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_damaged_bytes_are_an_answer_or_refused(data: st.DataObject) -> None:
    """The same holds for one who reads an answer."""
    api = data.draw(st.sampled_from(OWN))
    request, response = data.draw(values(api.request)), data.draw(values(api.response))
    frame = encode_response(response, api.newest, 1)[4:]
    try:
        answer = decode_response(data.draw(st.composite(damage)(frame)), request, 1)
    except BadFrame as bad:
        reason = str(bad)
    else:
        reason = ""
    if reason:
        assert "expected" in reason
    else:
        assert type(answer) is api.response


def test_huge_counts_cost_nothing() -> None:
    """An array that claims two thousand million elements is refused at once."""
    header = struct.pack(">hhih", 3, 7, 1, -1)
    with pytest.raises(BadFrame, match="MetadataRequest"):
        decode_request(header + struct.pack(">i", 2**31 - 1))
    assert MetadataRequest(None).topics is None


def test_documentation_lists_what_is_understood() -> None:
    """The page on the lab names every kind of request with its versions."""
    page = (Path(__file__).parents[2] / "docs/lab.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\w+) \| (\d+) \| (\d+)(?:-(\d+))? \|", page, re.MULTILINE)
    listed = {(f"{name}Request", int(key), int(a), int(b or a)) for name, key, a, b in rows}
    assert listed == {
        (load_request_schema(a.key, a.newest).__name__, a.key, a.versions[0], a.newest)
        for a in APIS
    }
