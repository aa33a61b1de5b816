"""The parts that replicas are made of: truncation, clocks, the network, files of observations."""

from pathlib import Path

import pytest

from reassure_conformance.adapter.stepped_network import Network
from reassure_conformance.adapter.stepping import VirtualClock
from reassure_controller.replication.clock import SteadyClock
from reassure_controller.replication.messages import EpochEndTold
from reassure_controller.replication.observing import Observer, list_files
from reassure_controller.replication.rules import ReplicationRules
from reassure_controller.replication.truncation import AskLeader, CutLog, begin_truncation, go_on
from reassure_controller.storage.epochs import EpochSpan, LeaderEpochs
from reassure_spec.observations import Produce, Writer, decode_lines, decode_observation
from reassure_spec.readings import Readings

BY_EPOCH = ReplicationRules(Readings(follower_truncation="common-prefix"))
KEY = ("t", 0)


def make_epochs(*spans: tuple[int, int]) -> LeaderEpochs:
    """Return epochs, each with its first offset."""
    return LeaderEpochs(tuple(EpochSpan(*span) for span in spans))


def truncate(mine: LeaderEpochs, end: int, leaders: LeaderEpochs, leader_end: int) -> int:
    """Return where a follower cuts its log when it asks this leader."""
    step = begin_truncation(mine, end, 0, BY_EPOCH)
    while isinstance(step, AskLeader):
        found = leaders.end_offset_for(step.epoch, leader_end)
        told = EpochEndTold(KEY, (0, 0), "", found.epoch, found.end_offset)
        step = go_on(mine, end, 0, told, BY_EPOCH)
    return step.end


@pytest.mark.parametrize(
    ("mine", "end", "leaders", "leader_end", "shared"),
    [
        pytest.param([(0, 0)], 3, [(0, 0)], 5, 3, id="shorter"),
        pytest.param([(0, 0)], 7, [(0, 0), (1, 5)], 5, 5, id="longer"),
        pytest.param([(0, 0), (1, 3)], 6, [(0, 0), (2, 4)], 8, 3, id="epoch unknown there"),
        pytest.param([(0, 0), (2, 3)], 6, [(0, 0), (1, 2), (3, 5)], 5, 2, id="asks twice"),
        pytest.param([(1, 0)], 4, [(2, 0)], 4, 0, id="nothing shared"),
        pytest.param([], 0, [(2, 0)], 4, 0, id="empty"),
    ],
)
@pytest.mark.clause("follower.truncation.common-prefix")
def test_logs_are_cut_to_what_they_share(
    mine: list[tuple[int, int]],
    end: int,
    leaders: list[tuple[int, int]],
    leader_end: int,
    shared: int,
) -> None:
    """By asking for epochs a follower finds where its log and the leader's part."""
    assert truncate(make_epochs(*mine), end, make_epochs(*leaders), leader_end) == shared


@pytest.mark.clause("follower.truncates-first")
def test_other_readings_cut_elsewhere() -> None:
    """As the reading says, a follower cuts at its own mark, or where the leader ended."""
    epochs = make_epochs((0, 0))
    assert begin_truncation(epochs, 5, 2, ReplicationRules()) == CutLog(2)
    at_end = ReplicationRules(Readings(follower_truncation="leader-end"))
    assert begin_truncation(epochs, 5, 2, at_end) == AskLeader(0)
    assert go_on(epochs, 5, 2, EpochEndTold(KEY, (0, 0), "", 0, 9, start=4), at_end) == CutLog(4)


def test_steady_clock_stands_still_while_time_goes_back() -> None:
    """A clock that is set back stops the broker's time until it has come there again."""
    clock = VirtualClock(100)
    steady = SteadyClock(clock)
    clock.advance(-50)
    assert steady.now_ms() == 100
    clock.advance(51)
    assert steady.now_ms() == 101


def test_network_delivers_keeps_and_loses() -> None:
    """A message arrives when it is delivered, again if it is kept, and never once it is lost."""
    network: Network[str] = Network()
    heard: list[tuple[str, str]] = []
    network.attach("b", lambda source, message: heard.append((source, message)))
    network.send("a", "b", "one")
    network.send("a", "b", "two")
    network.send("a", "c", "three")
    first, second, third = (packet.number for packet in network.waiting)
    assert network.deliver(second, keep=True)
    network.lose(first)
    assert not network.deliver(third)
    assert network.deliver_all() == 1
    assert heard == [("a", "two"), ("a", "two")]


def test_files_of_observations_are_bounded_and_follow_on(tmp_path: Path) -> None:
    """Files are turned over, the oldest go, and what is left counts on without a gap."""
    observer = Observer(tmp_path, 1, 7, file_bytes=600, files_kept=3)
    for offset in range(40):
        observer.say(KEY, 1, 2, Produce(offset))
    observer.close()
    files = list(list_files(tmp_path))
    assert [path.name for path in files] == [
        "observations.ndjson.2",
        "observations.ndjson.1",
        "observations.ndjson",
    ]
    lines = [line for f in files for line in decode_lines(f.read_bytes().splitlines())]
    sequences = [line.sequence for line in lines]
    assert sequences == list(range(sequences[0], sequences[0] + len(lines)))
    assert isinstance(lines[0].what, Writer)
    assert lines[-1].what == Produce(39)


def test_next_life_begins_with_a_new_line(tmp_path: Path) -> None:
    """After a kill in the middle of a line the next life's lines are whole."""
    Observer(tmp_path, 1, 7).close()
    path = tmp_path / "observations.ndjson"
    path.write_bytes(path.read_bytes()[:-20])
    Observer(tmp_path, 1, 9).close()
    torn, head = path.read_bytes().splitlines()
    assert decode_observation(head).run == 9
    assert not torn.endswith(b"}")
