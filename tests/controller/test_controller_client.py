"""What the client adds to kazoo: many reads in one request, and one watch on all below a path."""

from typing import Any

import pytest
from kazoo.exceptions import NoNodeError
from kazoo.protocol.states import EventType

from reassure_conformance.adapter.direct_client import DirectClient
from reassure_controller.client import Client, Read
from reassure_controller.session import barrier, connect, fetch, list_children, stop


@pytest.fixture(params=[Client, DirectClient])
def client(make_cluster: Any, request: pytest.FixtureRequest) -> Any:
    """A client of either kind, in a chroot of its own."""
    made = connect(make_cluster().hosts, kind=request.param)
    yield made
    stop(made)


def test_reads_of_both_kinds_share_a_request(client: Client) -> None:
    """Contents, names and what is missing are answered in the order of the questions."""
    client.create("/é", b"")
    client.create("/é/ü", b"content")
    reads = [Read("/é/ü"), Read("/é", children=True), Read("/no"), Read("/é"), Read("/é/ü", True)]
    content, names, missing, empty, none = client.read_async(reads).get()
    assert content == client.get("/é/ü")
    assert names == ["ü"]
    assert isinstance(missing, NoNodeError)
    assert empty == (b"", client.exists("/é"))
    assert none == []


def test_more_reads_than_go_into_one_request(client: Client) -> None:
    """Any number of znodes can be read; one that is not there is None."""
    paths = [f"/{number}" for number in range(450)]
    for path in paths[::2]:
        client.create(path, path.encode())
    found = fetch(client, paths)
    assert [content and content[0] for content in found] == [
        None if int(path[1:]) % 2 else path.encode() for path in paths
    ]
    assert [names for names in list_children(client, paths) if names is not None] == [[]] * 225


def test_all_below_a_path_is_told_until_it_is_ended(client: Client) -> None:
    """Creation, change and deletion at any depth are told each time, in order; others are not."""
    told: list[tuple[str, str]] = []
    client.watch_below_async("/a", lambda event: told.append((event.type, event.path))).get()
    client.create("/a", b"")
    client.create("/ab", b"")
    client.create("/a/b", b"")
    for content in (b"1", b"2"):
        client.set("/a/b", content)
    client.delete("/a/b")
    barrier(client)
    assert told == [
        (EventType.CREATED, "/a"),
        (EventType.CREATED, "/a/b"),
        (EventType.CHANGED, "/a/b"),
        (EventType.CHANGED, "/a/b"),
        (EventType.DELETED, "/a/b"),
    ]
    client.unwatch_below()
    client.delete("/a")
    barrier(client)
    assert len(told) == 5
