"""The page of the protocol: its examples, its schemas, and the clauses that it names."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from jsonschema import Draft202012Validator

from reassure_spec import znodes
from reassure_spec.clauses import clauses_of_profile, load_clauses
from reassure_spec.schemas import SCHEMAS, load_schema
from reassure_spec.znodes import BadZnode

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "protocol.md").read_text(encoding="utf-8")
Decoder = Callable[[str, bytes], object]
DECODERS: dict[str, Decoder] = {
    "/controller": znodes.decode_controller,
    "/controller_epoch": znodes.decode_controller_epoch,
    "/brokers/ids/B": znodes.decode_broker,
    "/config/brokers/B": znodes.decode_config,
    "/config/brokers/<default>": znodes.decode_config,
    "/config/topics/T": znodes.decode_config,
    "/brokers/topics/T": znodes.decode_topic,
    "/brokers/topics/T/partitions/P/state": znodes.decode_state,
    "/admin/reassignment_requests/request_N": znodes.decode_request,
    "/admin/reassignments/T/P": znodes.decode_reassignment,
    "/admin/preferred_replica_election": znodes.decode_preferred_election,
    "/admin/reassign_partitions": znodes.decode_reassign_partitions,
    "/admin/failed_brokers/B": znodes.decode_failed_broker,
    "/admin/reassignment_tasks/task_N": znodes.decode_task,
}
OF_KAFKA = {"config_change", "isr_change", "log_dir_event", "observation"}
"""Schemas of what no controller of KIP-236 has to write."""


class Znode(NamedTuple):
    """One section of the page."""

    path: str
    schema: str
    right: str
    wrong: str


def list_znodes() -> Iterator[Znode]:
    """Yield the znodes that the page describes with examples."""
    chapter = PAGE.partition("## Znodes")[2].partition("## Who writes")[0]
    for section in re.split(r"^### ", chapter, flags=re.MULTILINE)[1:]:
        path = section.partition("\n")[0].strip("`")
        parts = dict(
            re.findall(r"^- (Schema|Right|Wrong): `?(.*?)`?(?: \(.*\))?$", section, re.MULTILINE)
        )
        assert "- Who: " in section
        yield Znode(path, parts["Schema"], parts.get("Right", ""), parts.get("Wrong", ""))


def test_every_znode_is_on_the_page() -> None:
    """Each znode that can be decoded has its section, and each schema is named by one."""
    found = list(list_znodes())
    assert {one.path for one in found} == {*DECODERS, "/admin/delete_topics/T"}
    assert {one.schema for one in found if one.schema in SCHEMAS} == set(SCHEMAS) - OF_KAFKA


@pytest.mark.parametrize("znode", [one for one in list_znodes() if one.right], ids=lambda z: z.path)
def test_examples_are_right_and_wrong(znode: Znode) -> None:
    """What the page calls right decoder and schema take, what it calls wrong they refuse."""
    decode = DECODERS[znode.path]
    decode(znode.path, znode.right.encode())
    if znode.schema in SCHEMAS:
        check = Draft202012Validator(load_schema(znode.schema))
        assert check.is_valid(json.loads(znode.right))
        assert not check.is_valid(json.loads(znode.wrong))
    with pytest.raises(BadZnode):
        decode(znode.path, znode.wrong.encode())


def _named() -> set[str]:
    return set(re.findall(r"\b[a-z][a-z-]*(?:\.[a-z][a-z0-9-]*)+\b", _without_code(PAGE)))


def _without_code(text: str) -> Any:
    return re.sub(r"`[^`]*`", "", text)


def test_clauses_that_the_page_names_are_there() -> None:
    """Every clause in the text is one of the spec."""
    assert _named() - load_clauses().keys() == set()


@pytest.mark.parametrize("profile", ["kip-236", "kip-236-legacy"])
def test_page_says_all_that_binds_a_controller(profile: str) -> None:
    """Each MUST of a profile that ZooKeeper can show is told with its clause, or by a znode."""
    elsewhere = ("message.", "hw.", "isr.pseudo", "isr.member", "topic.", "drop.leader-kept")
    silent = {
        c.id
        for c in clauses_of_profile(profile)
        if c.level == "MUST" and not c.id.startswith(elsewhere)
    } - _named()
    assert silent == set()
