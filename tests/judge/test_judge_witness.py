"""What clients were shown and brokers act upon is held against the end of a driven history."""

from typing import Final

import pytest

from reassure_judge.observed.witness import Witness
from reassure_judge.verdicts import Tally

KEY: Final = ("t", 0)
LOG: Final = {0: b"a", 1: b"b"}
KEPT, MARK, OBEYED = "log.committed-kept", "hw.consumer.monotone", "replica.order-obeyed"


def end(witness: Witness, log: dict[int, bytes], mark: int = 2) -> list[str]:
    """Return the clauses that are broken once the whole log was read."""
    witness.read_whole(KEY, log, mark)
    return [violation.clause for violation in witness.violations]


@pytest.mark.clause(KEPT)
def test_what_was_promised_and_read_is_there_at_the_end() -> None:
    """A log that keeps all breaks nothing; a record that is lost or another one is found."""
    for log, broken in ((LOG, []), ({0: b"a"}, [KEPT]), ({0: b"a", 1: b"c"}, [KEPT])):
        witness = Witness("/c")
        witness.read(KEY, {0: b"a"}, 1)
        witness.promise(KEY, {1: b"b"})
        assert end(witness, log) == broken


@pytest.mark.clause(KEPT)
def test_record_that_changes_between_two_reads_is_found() -> None:
    """What was handed out once is handed out again as it was."""
    witness = Witness("/c")
    for value in (b"a", b"a", b"b"):
        witness.read(KEY, {0: value}, 1)
    assert [(v.clause, v.chroot, v.topic) for v in witness.violations] == [(KEPT, "/c", "t")]


@pytest.mark.clause(MARK)
def test_mark_at_the_end_is_none_below_one_that_was_shown() -> None:
    """A client that was shown a high watermark is shown none below it at the end."""
    for mark, broken in ((2, []), (1, [MARK])):
        witness = Witness("/c")
        witness.read(KEY, {}, 2)
        assert end(witness, {}, mark) == broken


@pytest.mark.clause(OBEYED)
@pytest.mark.parametrize("told", [None, 3])
def test_brokers_act_upon_what_they_were_told(told: int | None) -> None:
    """The epoch that a broker acts upon is the one it was told of, or it acts upon nothing."""
    witness, tally = Witness("/c"), Tally()
    witness.judge_obedience(KEY, 1, told, told)
    witness.judge_obedience(KEY, 2, told, 2)
    witness.count(tally)
    assert tally.exercised[OBEYED] == 1
    assert [violation.clause for violation in witness.violations] == [OBEYED]
