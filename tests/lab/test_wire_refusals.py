"""Requests of groups: each part of them is refused, in every version."""

import dataclasses
from collections.abc import Iterator
from datetime import timedelta
from io import BytesIO
from typing import Any, get_args, get_type_hints

import pytest
from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode
from kio.serial import entity_reader, entity_writer

from reassure_lab.wire.apis import REFUSED_APIS, Api
from reassure_lab.wire.frames import SIZE, decode_request, encode_response
from reassure_lab.wire.messages import KioMessage
from reassure_lab.wire.refusals import refuse

INDEXES = (3, 4)
CASES = [(api, version) for api in REFUSED_APIS for version in api.versions]


def make(kind: Any, index: int = 0) -> Any:
    """Return an entity with two of each part."""
    hints, content = get_type_hints(kind), {}
    for field in dataclasses.fields(kind):
        outer = get_args(hints[field.name])
        parts = (*outer, *(one for each in outer for one in get_args(each)))
        inner = [one for one in parts if dataclasses.is_dataclass(one)]
        told = field.metadata.get("kafka_type") or ""
        if inner:
            content[field.name] = tuple(make(inner[0], index) for index in INDEXES)
        elif field.name == "partition_indexes":
            content[field.name] = INDEXES
        elif told.startswith("timedelta"):
            content[field.name] = timedelta(seconds=1)
        elif told.startswith("int"):
            content[field.name] = index
        elif told == "bytes":
            content[field.name] = b"x"
        else:
            content[field.name] = "x"
    return kind(**content)


def list_errors(entity: Any) -> Iterator[tuple[int | None, ErrorCode]]:
    """Yield the errors in an entity, each with the partition that it is of."""
    for field in dataclasses.fields(entity):
        value = getattr(entity, field.name)
        if isinstance(value, ErrorCode):
            yield getattr(entity, "partition_index", None), value
        for part in value if isinstance(value, tuple) else ():
            yield from list_errors(part)


@pytest.mark.parametrize(("api", "version"), CASES, ids=[f"{a.key}-{v}" for a, v in CASES])
def test_every_part_is_refused(api: Api, version: int) -> None:
    """A refusal has an error for each partition that was asked about, or one for the whole."""
    kind: Any = load_request_schema(api.key, version)
    content, header = BytesIO(), kind.__header_schema__
    fields = {"request_api_key": api.key, "request_api_version": version}
    entity_writer(header)(content, header(**fields, correlation_id=7, client_id=None))
    entity_writer(kind)(content, make(kind))
    asked = decode_request(content.getvalue())
    assert isinstance(asked.request, KioMessage)
    frame = encode_response(refuse(asked.request), version, 7)[SIZE.size :]
    response: Any = load_response_schema(api.key, version)
    found, size = entity_reader(response)(frame, 4)
    assert size == len(frame) - 4
    errors = list(list_errors(found))
    assert {error for _, error in errors} == {ErrorCode.unsupported_version}
    of_partitions = [index for index, _ in errors if index is not None]
    assert of_partitions == (2 * list(INDEXES) if api.key in (8, 9) else [])
