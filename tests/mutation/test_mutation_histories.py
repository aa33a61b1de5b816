"""What mutants of the judge of observations are asked: whole histories."""

import pytest

from reassure_judge.protocols import get_observing
from reassure_model.outcome import Accepted, Rejected
from reassure_mutation.accepting import Kill, Known, Question
from reassure_mutation.linked import list_mutants
from reassure_mutation.protocols.kafka_4485 import histories
from reassure_mutation.protocols.kafka_4485.histories import JOINED, Histories, judge_history
from reassure_spec.observations import (
    KINDS,
    NOBODY,
    BadObservation,
    Evaluate,
    Lead,
    Observation,
    Replica,
    Stored,
    Writer,
)
from reassure_spec.readings import get_profile

READINGS = get_profile("kafka-4485")
HEAD = Observation("broker-1", 1, 0, "", "", -1, NOBODY, 0, 0, Writer(tuple(KINDS)))
LEADS = HEAD._replace(
    sequence=1, topic="t", partition=0, broker=1, what=Lead(3, 1, (1,), (1,), 0, 100, 1000)
)
LOOKS = LEADS._replace(sequence=2, what=Evaluate((1,), 2, None, 1050))
LATE = LEADS._replace(sequence=3, what=Evaluate((1,), 4, None, 1101))
STORED = LEADS._replace(sequence=JOINED, broker=NOBODY, what=Stored(1, (2,), 0))


def test_history_is_accepted_or_says_all_that_it_breaks() -> None:
    """With the lines; what is left open is what an accepted one leads to."""
    said = judge_history((HEAD, LEADS, LOOKS), READINGS, is_over=True)
    assert isinstance(said, Accepted) and said.state == ()
    assert said.clauses.count("lag.evaluated-in-time") == 1
    said = judge_history((HEAD, LEADS, LOOKS, LATE), READINGS, is_over=True)
    assert isinstance(said, Rejected)
    assert said.clause == "hw.at-most-leader-end at 4, lag.evaluated-in-time at 4"
    said = judge_history((HEAD, LEADS, LOOKS, STORED), READINGS, is_over=True)
    assert isinstance(said, Accepted) and said.state == ("open isr.write.conditional: 1",)


def test_what_nobody_could_write_is_no_history() -> None:
    """A question that is drawn may be nonsense."""
    with pytest.raises(BadObservation, match="high_watermark"):
        judge_history((LEADS._replace(what=Evaluate((1,), -1)),), READINGS, is_over=True)


def test_histories_are_recorded_wherever_they_are_judged() -> None:
    """With what ZooKeeper's log says, until the end of the record and no longer."""
    found: dict[Question, None] = {}
    with Histories().recorded(found):
        judge = get_observing().make_judge(READINGS)
        for number, line in enumerate((HEAD, LEADS, LOOKS)):
            judge.feed(line, "file", number)
        judge.join(STORED._replace(sequence=7), "log", 7)
        tally = judge.finish(is_over=True)
    assert tally.undecided == {"isr.write.conditional": 1}
    (question,) = found
    assert question.arguments == ((HEAD, LEADS, LOOKS, STORED), READINGS, True)
    get_observing().make_judge(READINGS).finish()
    assert len(found) == 1


def test_judge_that_never_answers_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A skipped statement may leave a loop without an end, in which nothing is answered."""
    monkeypatch.setattr(histories, "PATIENCE_S", 0.2)
    grows = [Replica(2 + at, 1, 1000 + 10 * at) for at in (1, 2, 3)]
    looks = [Evaluate((1,), 5, None, 1000 + 50 * at) for at in (1, 2, 3)]
    said = [LOOKS._replace(sequence=2 + at, what=what) for at, what in enumerate((*grows, *looks))]
    rules = Histories()
    known = Known(Question(rules.begin[0], ((HEAD, LEADS, *said), READINGS, True)), "", "here")
    function = next(e for e in rules.functions if e.__qualname__ == "Past.end_a_limit_ago")
    names = {each.mutation.name: each for each in list_mutants([function])}
    mutant = names["statement: moves.popleft() -> pass"]
    found = rules.find_kills([mutant], [known], rules.prepare([known]))
    assert found == {mutant.name: Kill("", "here", "refuses what is right")}
