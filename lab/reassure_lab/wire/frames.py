"""Requests and responses as bytes: a size of four bytes, a header, and the message.

Schemas are those of kio 0.5, the last release that has what a controller over ZooKeeper sends.
"""

import struct
from collections.abc import Iterable
from functools import cache
from io import BytesIO
from typing import Any, Final, NamedTuple

from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode
from kio.serial import entity_reader, entity_writer

from reassure_lab.wire.apis import API_VERSIONS, APIS, BY_KEY, BY_REQUEST, REFUSED_APIS, Api
from reassure_lab.wire.entities import from_entity, to_entity
from reassure_lab.wire.errors import BadFrame
from reassure_lab.wire.messages import (
    Answer,
    ApiVersion,
    ApiVersionsResponse,
    Asks,
    KioMessage,
    Request,
    Response,
)

load_request = cache(load_request_schema)
load_response = cache(load_response_schema)

SIZE: Final = struct.Struct(">i")
"""The size of what follows."""

MAX_BYTES: Final = 100 * 2**20
"""The largest request that is read, as Kafka has it (`socket.request.max.bytes`)."""

_START: Final = struct.Struct(">hhi")
"""What every request begins with: api key, version, correlation id."""


class AskedRequest(NamedTuple):
    """A request, and how it is to be answered."""

    api: Api
    version: int
    correlation_id: int
    client_id: str | None
    request: Request


class UnknownVersions(BadFrame):
    """Somebody asks for the versions that are understood in a version that is not."""

    def __init__(self, version: int, correlation_id: int) -> None:
        super().__init__(f"version {version} of ApiVersions is not understood")
        self.correlation_id = correlation_id


def encode_request(
    request: Asks[Any], correlation_id: int, client_id: str | None, version: int | None = None
) -> bytes:
    """Return the request with its size before it; without a version, in the newest one."""
    key, newest = _find_version(request)
    version = newest if version is None else version
    kind: Any = load_request(key, version)
    header = kind.__header_schema__(
        request_api_key=key,
        request_api_version=version,
        correlation_id=correlation_id,
        client_id=client_id,
    )
    entity = request.entity if isinstance(request, KioMessage) else to_entity(kind, request)
    return _frame(header, entity)


def _find_version(request: Asks[Any]) -> tuple[int, int]:
    """Return the api of a request, and the version that it has or is sent in."""
    if isinstance(request, KioMessage):
        return request.entity.__api_key__, request.version
    api = BY_REQUEST[type(request)]
    return api.key, api.newest


def decode_request(frame: bytes) -> AskedRequest:
    """Return the request of a frame, which comes without its size.

    Raises UnknownVersions; BadFrame when it is not understood for any other reason.
    """
    if len(frame) < _START.size:
        raise BadFrame(f"expected a header of at least {_START.size} bytes, found {len(frame)}")
    key, version, correlation_id = _START.unpack_from(frame)
    api = BY_KEY.get(key)
    if api is API_VERSIONS and version not in api.versions:
        raise UnknownVersions(version, correlation_id)
    if api is None or version not in api.versions:
        known = ", ".join(f"{a.key} v{a.versions[0]}-{a.newest}" for a in APIS)
        raise BadFrame(f"expected one of the apis {known}; found api {key} v{version}")
    kind: Any = load_request(key, version)
    header, entity = _read(frame, kind, f"{kind.__name__} v{version}")
    raw = api.request is KioMessage
    request = KioMessage(entity) if raw else from_entity(api.request, entity)
    return AskedRequest(api, version, correlation_id, header.client_id, request)


def encode_response(response: Response, version: int, correlation_id: int) -> bytes:
    """Return the response with its size before it; one of kio's has its version itself."""
    if isinstance(response, KioMessage):
        header = response.entity.__header_schema__(correlation_id=correlation_id)
        return _frame(header, response.entity)
    api = next(api for api in APIS if api.response is type(response))
    kind: Any = load_response(api.key, version)
    return _frame(kind.__header_schema__(correlation_id=correlation_id), to_entity(kind, response))


def decode_response(frame: bytes, request: Asks[Answer], correlation_id: int) -> Answer:
    """Return the answer to a request that was sent in its newest version, or its own.

    Raises BadFrame.
    """
    key, version = _find_version(request)
    kind: Any = load_response(key, version)
    header, entity = _read(frame, kind, f"{kind.__name__} v{version}")
    if header.correlation_id != correlation_id:
        found = header.correlation_id
        raise BadFrame(f"expected the answer to request {correlation_id}, found that to {found}")
    raw = isinstance(request, KioMessage)
    answer: Any = KioMessage(entity) if raw else from_entity(BY_KEY[key].response, entity)
    return answer  # type: ignore[no-any-return]  # which kind it is says the request's


def list_versions(
    error: ErrorCode = ErrorCode.none, apis: Iterable[Api] = (*APIS, *REFUSED_APIS)
) -> ApiVersionsResponse:
    """Return which requests are understood here."""
    apis = sorted(apis, key=lambda api: api.key)
    versions = (ApiVersion(api.key, api.versions[0], api.newest) for api in apis)
    return ApiVersionsResponse(error, tuple(versions))


def _frame(header: Any, entity: Any) -> bytes:
    buffer = BytesIO()
    entity_writer(type(header))(buffer, header)
    entity_writer(type(entity))(buffer, entity)
    content = buffer.getvalue()
    return SIZE.pack(len(content)) + content


def _read(frame: bytes, kind: Any, name: str) -> tuple[Any, Any]:
    """Return header and entity, which fill the frame. Raises BadFrame."""
    try:
        header, start = entity_reader(kind.__header_schema__)(frame, 0)
        entity, size = entity_reader(kind)(frame, start)
    except Exception as error:  # whatever kio makes of bytes that are not what its schema says
        raise BadFrame(f"expected {name}, found {frame[:40]!r}: {error!r}") from error
    if start + size != len(frame):
        raise BadFrame(f"expected {name} to fill {len(frame)} bytes, it fills {start + size}")
    return header, entity
