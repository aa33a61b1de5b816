"""Files of Kafka's reassignment tool, and the assignments that it proposes."""

from pathlib import Path

import pytest

from reassure_lab.admin.errors import BadFile
from reassure_lab.admin.move_files import format_moves, read_moves, read_topics
from reassure_lab.node.proposing import choose_replicas, order_brokers, propose

ONE = '{"topic": "t", "partition": 0, "replicas": [1]}'
MOVED = (
    '{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[3,1],"log_dirs":["any",'
    '"any"]},{"topic":"t","partition":10,"replicas":[2],"log_dirs":["any"]}]}'
)


def test_what_is_printed_can_be_read(tmp_path: Path) -> None:
    """An assignment is printed as Kafka's tool prints it, and is read as it was."""
    file = tmp_path / "moves.json"
    file.write_text(MOVED, encoding="utf-8")
    moves = {move.key: move.target for move in read_moves(file)}
    assert moves == {("t", 0): (3, 1), ("t", 10): (2,)}
    assert format_moves(moves) == MOVED


def test_version_may_be_left_out(tmp_path: Path) -> None:
    """As with Kafka a file without a version has the first, and unknown keys mean nothing."""
    file = tmp_path / "moves.json"
    file.write_text('{"partitions": [%s], "by": "me"}' % ONE, encoding="utf-8")  # noqa: UP031
    assert [move.target for move in read_moves(file)] == [(1,)]
    file.write_text('{"topics": [{"topic": "t"}, {"topic": "u"}]}', encoding="utf-8")
    assert [topic.name for topic in read_topics(file)] == ["t", "u"]


BAD_MOVES = [
    ('{"partitions": [\n%s,\n]}', 3, "not JSON: "),
    ('{"partitions": [\n%s\n]}}', 3, "not JSON: Extra data"),
    ("", 1, "not JSON: Expecting value"),
    ("[" * 5000, 1, "not a reassignment"),
    ("[1]", 1, r"expected a JSON object, found \[1\]"),
    ('{"version": 2, "partitions": [%s]}', 1, "Not supported version field value 2; expected 1"),
    ('{"version": true, "partitions": [%s]}', 1, "Not supported version field value True"),
    ('{"partitions": {}}', 1, "partitions: expected a list"),
    ("{}", 1, "Partition reassignment list cannot be empty"),
    ('{"partitions": []}', 1, "Partition reassignment list cannot be empty"),
    ('{"partitions": [%s,\n 7]}', 1, "partitions: expected objects, found 7"),
    ('{"partitions": [%s,\n%s]}', 2, "contains duplicate topic partitions: t-0"),
    ('{\n"a": 1,\n"a": 2}', 1, "key 'a' stands twice"),
    ('{"partitions": [%s,\n{"partition": 1}]}', 2, "topic: expected a name, found None"),
    ('{"partitions": [\n\n{"topic": "t"}]}', 3, "partition: expected a number, found None"),
    ('{"partitions": [{"topic": "t", "partition": -1}]}', 1, "partition: expected a number"),
    ('{"partitions": [{"topic": "t", "partition": 0}]}', 1, "t-0: replicas: expected broker ids"),
]
BAD_REPLICAS = [
    ("[]", "t-1: Partition replica list cannot be empty"),
    ("[1, 2, 1]", "lists may not contain duplicate entries: t-1 contains multiple entries for 1"),
    ("[true]", "expected broker ids"),
    ("[-1]", "expected broker ids"),
    ("[4294967296]", "expected broker ids"),
    ('[1], "log_dirs": ["any", "any"]', "expected 'any' for each replica"),
    ('[1], "log_dirs": ["/data"]', "directories cannot be chosen through ZooKeeper"),
]


@pytest.mark.parametrize(("text", "line", "reason"), BAD_MOVES)
def test_bad_file_is_refused_by_line(text: str, line: int, reason: str, tmp_path: Path) -> None:
    """What is wrong with a file is told with its name and the line."""
    file = tmp_path / "moves.json"
    file.write_text(text.replace("%s", ONE), encoding="utf-8")
    with pytest.raises(BadFile, match=reason) as caught:
        read_moves(file)
    assert (caught.value.line, caught.value.exit_code) == (line, 65)
    assert str(caught.value).startswith(f"{file}, line {line}: ")


@pytest.mark.parametrize(("replicas", "reason"), BAD_REPLICAS)
def test_bad_replicas_are_refused_by_line(replicas: str, reason: str, tmp_path: Path) -> None:
    """Replica lists that no partition can have are refused before anything is asked for."""
    file = tmp_path / "moves.json"
    entry = '{"topic": "t", "partition": 1, "replicas": ' + replicas + "}"
    file.write_text('{"partitions": [' + ONE + ",\n" + entry + "]}", encoding="utf-8")
    with pytest.raises(BadFile, match=reason) as caught:
        read_moves(file)
    assert caught.value.line == 2


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    """A file in another encoding is refused with the byte."""
    file = tmp_path / "moves.json"
    file.write_bytes(b'{"a": "\xff"}')
    with pytest.raises(BadFile, match=r"not UTF-8: .* at byte 7"):
        read_moves(file)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"topics": []}', "List of topics to reassign cannot be empty"),
        ('{"topics": [{"topic": "t"}, {"topic": "t"}]}', "duplicate entries: t"),
        ('{"topics": [{"topic": 5}]}', "topic: expected a name, found 5"),
        ('{"version": 3, "topics": [{"topic": "t"}]}', "Not supported version field value 3"),
    ],
)
def test_bad_topics_are_refused(text: str, reason: str, tmp_path: Path) -> None:
    """Files of topics are held to the same rules."""
    file = tmp_path / "topics.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(BadFile, match=reason):
        read_topics(file)


RACKS = "?accbbad"
"""By a broker's id: its rack."""
RECORDED = [
    (3, 0, True, "1,2,3 2,1,3 3,1,2 1,2,3 2,1,3 3,1,2 1,2,3 2,1,3"),
    (5, 0, False, "1,2,3 2,3,4 3,4,5 4,5,1 5,1,2 1,3,4 2,4,5 3,5,1 4,1,2 5,2,3 1,4,5"),
    (6, 1, True, "4,3,1 2,1,4 6,4,2 5,2,6 3,6,5 1,5,3 4,6,3 2,5,1 6,3,4 5,1,2 3,4,6 1,2,5 4,1,2"),
    (6, 2, True, "2,5,1 6,3,4 5,1,2 3,4,6 1,2,5 4,6,3 2,4,6 6,2,5 5,6,3 3,5,1 1,3,4 4,1,2 2,1,4"),
    (7, 3, False, "4,1 5,2 6,3 7,4 1,5 2,6 3,7 4,2 5,3 6,4 7,5 1,6 2,7 3,1 4,3"),
    (7, 3, True, "7,6,5,3 6,5,3,7 5,3,1,7 3,1,4,7 1,4,2,7 4,2,7,6 2,7,6,5 7,4,2,6 6,2,7,5"),
]
"""What AdminUtils of Kafka 2.8.2 answers: brokers, where it begins, whether by rack, replicas."""


@pytest.mark.parametrize(("brokers", "begin", "by_rack", "expected"), RECORDED)
def test_replicas_are_those_that_kafka_chooses(
    brokers: int, begin: int, by_rack: bool, expected: str
) -> None:
    """From the same beginning partition after partition gets the replicas that Kafka gives it."""
    racks = {one: RACKS[one] if by_rack else None for one in range(1, brokers + 1)}
    order, lists = order_brokers(racks), expected.split()
    count = lists[0].count(",") + 1
    assert lists == [
        ",".join(map(str, choose_replicas(order, racks, begin + place, begin, place, count)))
        for place in range(len(lists))
    ]


def test_partitions_keep_their_number_of_replicas() -> None:
    """A proposal changes who has a partition, not how many do, and goes by the seed alone."""
    assigned = {("t", 0): (1, 2), ("t", 5): (1, 2, 3), ("u", 0): (3,)}
    racks = dict.fromkeys((1, 2, 3, 4))
    proposals = [propose(assigned, racks, seed) for seed in range(20)]
    assert all(
        len(found[key]) == len(replicas) == len(set(found[key]))
        for found in proposals
        for key, replicas in assigned.items()
    )
    assert proposals == [propose(assigned, racks, seed) for seed in range(20)]
    assert len({tuple(found.values()) for found in proposals}) > 10
