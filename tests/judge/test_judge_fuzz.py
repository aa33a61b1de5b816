"""Strange znodes and strange transactions: the judge answers, and raises nothing."""

import json
import random
from collections.abc import Callable
from typing import Any, Final

import pytest

from reassure_judge.judge import Judge
from reassure_spec import znodes
from reassure_spec.readings import get_profile
from reassure_spec.znodes import (
    AssignmentZnode,
    BadZnode,
    LegacyEntry,
    ReassignmentZnode,
    RequestZnode,
    StateZnode,
    TaskZnode,
)
from reassure_zookeeper.transactions import (
    Check,
    CloseSession,
    Create,
    Delete,
    Op,
    SetData,
    Transaction,
    committed,
    multi,
)

NAMES: Final = (
    *("0", "1", "7", "orders", "controller", "controller_epoch", "brokers", "topics", "state"),
    *("²", "٣", "-1", "01", "1_0", "9" * 5000, "2147483648", "request_0000000000", "request_x"),
    *("", " ", "\n", "\x00", "\x1b[31m", "\ud800", "\U0001f4a9", "a" * 3000, "request_" + "٣" * 10),
)
KNOWN: Final = ("orders", "0", "1", "2", "request_0000000000", "request_0000000001")
PATHS: Final = (
    *("/controller", "/controller_epoch", "/brokers/ids", "/brokers/ids/{}", "/brokers/topics"),
    *("/brokers/topics/{}", "/brokers/topics/{}/partitions", "/brokers/topics/{}/partitions/{}"),
    *("/brokers/topics/{}/partitions/{}/state", "/config/topics/{}", "/config/brokers/{}"),
    *("/admin/reassignment_requests/{}", "/admin/reassignments/{}", "/admin/reassignments/{}/{}"),
    *("/admin/reassign_partitions", "/admin/reassignment_tasks/{}", "/admin/delete_topics/{}"),
    *("/consumers/{}/ids/{}", "/config/users/{}", "/{}/{}", "{}", "/", "", "//", "/brokers//{}"),
)
DATA: Final[tuple[bytes, ...]] = (
    *(b"", b"{}", b"[]", b"null", b"0", b"1", b"\xff\xfe", b'"', b"NaN", b"1e999", b"9" * 5000),
    *(b"[" * 100_000, b'{"a":' * 50_000, b"[" * 900 + b"]" * 900, b" " * 70_000, b"\xef\xbb\xbf{}"),
    '{"version":1}'.encode("utf-16"),
    b'{"version":1,"version":1,"partitions":{}}',
    b'{"version":1.0,"leader":1,"leader_epoch":0,"controller_epoch":1,"isr":[1]}',
    b'{"version":1,"assignments":{"\\ud800":{"0":[1,2]}}}',
    b'{"version":1,"assignments":{"' + b"t" * 5000 + b'":{"0":[1,2]}}}',
    znodes.encode_topic({0: (1, 2), 1: (), 2: (1, 1)}),
    znodes.encode_topic({0: (-1,), 2147483647: (3, 2147483647)}),
    znodes.encode_topic_lists({0: AssignmentZnode((2, 1), (2,), (1,))}),
    znodes.encode_state(StateZnode(1, 0, 1, (1, 2))),
    znodes.encode_state(StateZnode(-1, 2147483647, 2147483647, ())),
    znodes.encode_state(StateZnode(-7, -7, -7, (-1, -1))),
    znodes.encode_request(RequestZnode({("orders", 0): (2, 3)})),
    znodes.encode_request(RequestZnode({("orders", 0): (), ("orders", 9): (1, 1)}, legacy=True)),
    znodes.encode_request(RequestZnode({})),
    znodes.encode_reassignment(ReassignmentZnode(2, (2, 3))),
    znodes.encode_reassignment(ReassignmentZnode(-1, ())),
    znodes.encode_task(TaskZnode({("orders", 0): (1, 2)}, automatic=True)),
    znodes.encode_reassign_partitions([LegacyEntry(("orders", 0), (2, 3), (1, 2))]),
    znodes.encode_controller(1, 0),
    znodes.encode_controller(-1, -1),
    znodes.encode_broker("127.0.0.1", 9092, 0),
    znodes.encode_config({"min.insync.replicas": "2"}),
    znodes.encode_config({"min.insync.replicas": "²", "unclean.leader.election.enable": "maybe"}),
    znodes.encode_config({"min.insync.replicas": "9" * 5000}),
    znodes.encode_config({"min.insync.replicas": "-1"}),
)
VALUES: Final[tuple[Any, ...]] = (
    *(None, True, 0, -1, 1, 2**31, 2**63, 10**4200, 1.0, float("nan"), float("inf"), "", "1", "x"),
    *([], [[]], [1, 2], [1, "2"], [None], [2**40], {}, {"0": [1]}, {"0": 1}, {"²": [1]}),
)
"""What may stand where something else is expected."""
DECODERS: Final[tuple[Callable[[str, bytes], object], ...]] = (
    znodes.decode_topic,
    znodes.decode_topic_lists,
    znodes.decode_state,
    znodes.decode_request,
    znodes.decode_reassignment,
    znodes.decode_failed_broker,
    znodes.decode_task,
    znodes.decode_reassign_partitions,
    znodes.decode_controller,
    znodes.decode_controller_epoch,
    znodes.decode_broker,
    znodes.decode_config,
)


def damage(chosen: random.Random, data: bytes) -> bytes:
    """Return contents with a value of another kind, or with bytes flipped, cut or doubled."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict) and value and chosen.random() < 0.6:
        _replace(chosen, value)
        return json.dumps(value).encode()
    content = bytearray(data[:2000])
    for _ in range(chosen.randrange(1, 4)):
        at = chosen.randrange(len(content) + 1)
        match chosen.randrange(4):
            case 0:
                content[at:at] = bytes([chosen.randrange(256)])
            case 1:
                del content[at : at + chosen.randrange(1, 9)]
            case 2:
                content[at:at] = content[:at]
            case 3 if content:
                content[at % len(content)] ^= 1 << chosen.randrange(8)
    return bytes(content)


def _replace(chosen: random.Random, value: dict[str, Any]) -> None:
    """Put another value somewhere into an object, or below another key."""
    key = chosen.choice(list(value))
    inner = value[key]
    if isinstance(inner, dict) and inner and chosen.random() < 0.7:
        _replace(chosen, inner)
    elif chosen.random() < 0.3:
        value[chosen.choice(NAMES)] = value.pop(key)
    else:
        value[key] = chosen.choice(VALUES)


def make_data(chosen: random.Random) -> bytes:
    """Return contents, half of them damaged."""
    data = chosen.choice(DATA)
    return damage(chosen, data) if chosen.random() < 0.5 else data


def make_path(chosen: random.Random) -> str:
    """Return a path of some family, with names that are strange or well known."""
    path = chosen.choice(PATHS)
    while "{}" in path:
        names = KNOWN if chosen.random() < 0.6 else NAMES
        path = path.replace("{}", chosen.choice(names), 1)
    return chosen.choice(("", "", "", "/kafka", "/consumers", "/" + chosen.choice(NAMES))) + path


def make_op(chosen: random.Random) -> Op:
    """Return a write, a check or the end of a session."""
    path = make_path(chosen)
    match chosen.randrange(10):
        case 0 | 1 | 2 | 3:
            return Create(path, make_data(chosen), ephemeral=chosen.random() < 0.3)
        case 4 | 5 | 6:
            return SetData(path, make_data(chosen), chosen.choice((-1, 0, 1, 2**31 - 1)))
        case 7:
            return Delete(path)
        case 8:
            return Check(chosen.choice((path, "/controller_epoch")), chosen.choice((-1, 0, 1)))
        case _:
            return CloseSession(chosen.choice((None, (), (path,))))


def make_transaction(chosen: random.Random, zxid: int) -> Transaction:
    """Return one transaction of a few sessions, whose clock may be anything."""
    where: dict[str, Any] = {
        "zxid": zxid,
        "session_id": chosen.choice((0, 1, 2, 900, -1, 2**63 - 1)),
        "time_ms": chosen.choice((0, -1, zxid * 1000, 2**62)),
    }
    if chosen.random() < 0.4:
        return multi(*(make_op(chosen) for _ in range(chosen.randrange(2, 5))), **where)
    return committed(make_op(chosen), **where)


@pytest.mark.parametrize("seed", range(40))
def test_strange_contents_decode_or_are_bad(seed: int) -> None:
    """Whatever a znode holds, a decoder answers or raises BadZnode, in words that fit on a page."""
    chosen = random.Random(seed)
    found: list[BadZnode] = []
    for _ in range(150):
        data = make_data(chosen)
        for decode in DECODERS:
            try:
                decode("/some/where", data)
            except BadZnode as error:
                found.append(error)
    assert {error.path for error in found} == {"/some/where"}
    assert max(len(error.reason) for error in found) < 10_000


@pytest.mark.parametrize("seed", range(60))
def test_strange_transactions_are_judged(seed: int, make_simulation: Any) -> None:
    """A cluster amid strange transactions is judged to its end, and the report can be printed."""
    chosen = random.Random(seed)
    simulation = make_simulation(chroot=chosen.choice(("", "/kafka")))
    simulation.start()
    judge = simulation.judge
    for _ in range(120):
        judge.feed(make_transaction(chosen, next(simulation.zxids)))
        if chosen.random() < 0.1:
            judge.quiesce(chosen.choice(("", "/kafka")))
        if chosen.random() < 0.1:
            judge.view(chosen.choice(("", "/kafka")))
    report = judge.report()
    json.dumps([violation.as_dict() for violation in report.violations])
    judge.router.count_unjudged()
    judge.forget("")


@pytest.mark.parametrize("seed", range(30))
def test_strange_snapshots_are_judged(seed: int) -> None:
    """A history may begin from a tree of strange znodes."""
    chosen = random.Random(seed)
    judge = Judge("kip-236-amended", get_profile("kip-236-amended"))
    owners = (0, 1, -1, 2**63 - 1)
    judge.load([(make_path(chosen), make_data(chosen), chosen.choice(owners)) for _ in range(150)])
    for zxid in range(1, 60):
        judge.feed(make_transaction(chosen, zxid))
    judge.quiesce("")
    judge.report()


def test_many_keys_are_looked_at_once_each() -> None:
    """A request of the largest size whose keys are all different takes no time that hurts."""
    many = b",".join(b'"%d":[1]' % number for number in range(80_000))
    data = b'{"version":1,"assignments":{"t":{' + many + b"}}}"
    assert len(data) < znodes.MAX_ZNODE_BYTES
    assert len(znodes.decode_request("/r", data).assignments) == 80_000
