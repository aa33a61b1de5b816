"""Several members' logs of one history, put together: holes filled, divergence told apart."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from reassure_zookeeper.ensemble import EnsembleMember, Hole, Merged, merge
from reassure_zookeeper.log_survey import BLOCK, survey_log
from reassure_zookeeper.transactions import Error, SetData, Transaction, multi_of
from reassure_zookeeper.txnlog import LogFile, log_files
from reassure_zookeeper.txnlog_writer import write_log

E1, E2, E3 = 1 << 32, 2 << 32, 3 << 32


def _make(zxids: Iterable[int], data: bytes = b"", session: int = 7) -> list[Transaction]:
    return [
        Transaction(session, 1, zxid, 1000 + zxid % 1000, 5, (SetData("/a", data, 1),))
        for zxid in zxids
    ]


def _member(
    folder: Path, *files: Sequence[Transaction], snapshots: Sequence[int] = ()
) -> EnsembleMember:
    folder.mkdir()
    for transactions in files:
        write_log(folder, transactions)
    return _survey(folder, snapshots)


def _survey(folder: Path, snapshots: Sequence[int] = ()) -> EnsembleMember:
    surveys = [survey_log(file, decodes=True) for file in log_files(folder)]
    return EnsembleMember.of(folder.name, surveys, snapshots)


def _read(merged: Merged) -> list[Transaction]:
    found: list[Transaction] = []
    for piece in merged.pieces:
        found += LogFile(piece.path, offset=piece.start, stop=piece.stop)
    return found


def test_every_zxid_is_taken_once(tmp_path: Path) -> None:
    """Files that begin elsewhere in each member come to the history that one alone has."""
    history = _make(range(1, 3 * BLOCK))
    merged = merge(
        [
            _member(tmp_path / "a", history[:5000], history[5000:]),
            _member(tmp_path / "b", history[:7000], history[7000:9000]),
            _member(tmp_path / "c", history[4200:]),
        ]
    )
    assert _read(merged) == history
    assert (merged.holes, merged.divergences, merged.damages) == ((), (), ())
    assert len(merged.pieces) == 2


def test_hole_in_one_is_filled_from_another(tmp_path: Path) -> None:
    """What a member lacks, or has damaged, is read where it is whole."""
    history = _make(range(1, 400))
    a = _member(tmp_path / "a", history[:100], history[150:])
    b = _member(tmp_path / "b", history[:300])
    (log,) = log_files(tmp_path / "b")
    content = bytearray(log.read_bytes())
    content[len(content) // 6] ^= 1
    log.write_bytes(content)
    b = _survey(tmp_path / "b")
    merged = merge([a, b])
    assert _read(merged) == history
    assert [each.file for each in merged.damages] == [log]
    assert merged.holes == ()


COMMON, LATER = _make(range(E1 + 1, E1 + 50)), _make(range(E2 + 1, E2 + 20))
MORE, LOST = _make([E1 + 50]), _make(range(E1 + 50, E1 + 53))
BLOCKS = _make(range(E1 + 50, E1 + 2 * BLOCK + 50))
BOTH = (COMMON, LATER)


@pytest.mark.parametrize(
    ("first", "others", "snapshots", "taken", "told", "holes"),
    [
        ([COMMON + LOST], 2, (), COMMON + LATER, [(E1 + 50, E1 + 52, 3, True)], ()),
        (
            *([COMMON + BLOCKS], 2, (), COMMON + LATER),
            *([(E1 + 50, E1 + 2 * BLOCK + 49, 2 * BLOCK, True)], ()),
        ),
        (
            *([COMMON + MORE], 1, (), COMMON + LATER),
            *([(E1 + 50, E1 + 50, 1, False)], (Hole(E1 + 49, E2 + 1),)),
        ),
        ([COMMON + MORE + LATER], 2, (), COMMON + MORE + LATER, [], ()),
        ([COMMON + MORE], 2, [E1 + 50], COMMON + MORE + LATER, [], ()),
    ],
    ids=["lost", "lost across blocks", "two cannot say", "who goes on", "sent a snapshot"],
)
def test_what_others_went_past_is_a_divergence(
    tmp_path: Path,
    first: list[list[Transaction]],
    others: int,
    snapshots: Sequence[int],
    taken: list[Transaction],
    told: list[tuple[int, int, int, bool]],
    holes: tuple[Hole, ...],
) -> None:
    """An older epoch's last records of one member were never committed if two went past them.

    Of two members nobody can say. Who goes on from a record to a new epoch has it committed, and
    who was sent a snapshot goes past nothing, for it may be in that.
    """
    a = _member(tmp_path / "a", *first)
    rest = [_member(tmp_path / str(n), *BOTH, snapshots=snapshots) for n in range(others)]
    merged = merge([a, *rest])
    found = merged.divergences
    assert _read(merged) == taken
    assert [(each.first, each.last, each.count, each.certain) for each in found] == told
    assert {each.member for each in found} <= {"a"}
    assert merged.holes == holes
    for each in found:
        assert len(list(LogFile(each.file, offset=each.offset))) == each.count


@pytest.mark.parametrize(("count", "certain"), [(2, False), (3, True)])
def test_other_content_under_a_zxid_goes_by_majority(
    tmp_path: Path, count: int, certain: bool
) -> None:
    """Of two records under one zxid a majority's is the history; of two members neither is."""
    common, after = _make(range(1, 50)), _make(range(51, 60))
    members = [
        _member(tmp_path / str(n), common + _make([50], data=b"x" if n else b"y") + after)
        for n in range(count)
    ]
    merged = merge(members)
    most = [*common, *_make([50], data=b"x"), *after] if certain else common + after
    assert _read(merged) == most
    assert {each.certain for each in merged.divergences} == {certain}
    assert len(merged.divergences) == (1 if certain else 2)
    assert merged.holes == (() if certain else (Hole(49, 51),))


def test_a_refusal_may_be_written_in_two_forms(tmp_path: Path) -> None:
    """A refused multi is the same, whether its server had applied it when it was sent on."""
    common = _make(range(1, 50))
    said = [
        multi_of(7, 1, 50, 1050, (Error(0, asked), Error(-101)), b"") for asked in (b"", b"asked!")
    ]
    assert said[0] != said[1]
    merged = merge([_member(tmp_path / str(n), [*common, one]) for n, one in enumerate(said)])
    assert _read(merged) == [*common, said[0]]
    assert merged.divergences == ()


def test_torn_tail_where_an_epoch_ends_is_a_hole_of_one_alone(tmp_path: Path) -> None:
    """What stood in a torn record is known where another member goes on without it."""
    _member(tmp_path / "a", *BOTH)
    first = log_files(tmp_path / "a")[0]
    first.write_bytes(first.read_bytes() + b"\0\0\0\0half a record")
    alone = merge([_survey(tmp_path / "a")])
    assert alone.holes == (Hole(E1 + 49, E2 + 1),)
    assert [each.file for each in alone.damages] == [first]
    b = _member(tmp_path / "b", *BOTH)
    merged = merge([_survey(tmp_path / "a"), b])
    assert _read(merged) == _read(alone) == COMMON + LATER
    assert merged.holes == ()
